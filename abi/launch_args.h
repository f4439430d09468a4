// tl_launch_args and the lists of numbers in check and bench options, counted against a signature.
#ifndef TILEJIT_ABI_LAUNCH_ARGS_H_
#define TILEJIT_ABI_LAUNCH_ARGS_H_

#include <optional>
#include <vector>

#include "abi/handles.h"
#include "service/trial.h"

namespace tl::abi {

// tl_scalar and ScalarValue are the same union under two names.
static_assert(sizeof(tl_scalar) == sizeof(ScalarValue));

inline Status WrongCount(const char* what, size_t given, size_t want, const Module& m) {
  return absl::InvalidArgumentError(
      absl::StrCat("'", m.name, "' takes ", want, " ", what, ", and ", given, " are given"));
}

// A list that must have exactly `want` entries.
inline Status CheckCount(const char* what, const void* list, size_t given, size_t want,
                         const Module& m) {
  if (given != want) return WrongCount(what, given, want, m);
  if (want > 0 && !list) return absl::InvalidArgumentError(absl::StrCat(what, " is NULL"));
  return absl::OkStatus();
}

// Dims are needed; strides and scalars may be left out (NULL).
template <typename Options>
StatusOr<TrialArguments> TrialArgumentsOf(const Options& o, const Module& m) {
  TL_RETURN_IF_ERROR(CheckCount("dims", o.dims, o.num_dims, m.dims.size(), m));
  TrialArguments out;
  out.dims.assign(o.dims, o.dims + o.num_dims);
  out.seed = o.seed;
  if (o.strides) {
    TL_RETURN_IF_ERROR(CheckCount("strides", o.strides, o.num_strides, m.strides.size(), m));
    out.strides.emplace(o.strides, o.strides + o.num_strides);
  }
  if (o.scalars) {
    TL_RETURN_IF_ERROR(CheckCount("scalars", o.scalars, o.num_scalars, m.scalars.size(), m));
    const auto* scalars = reinterpret_cast<const ScalarValue*>(o.scalars);
    out.scalars.emplace(scalars, scalars + o.num_scalars);
  }
  return out;
}

// The device, if it runs what the kernel was compiled for.
inline StatusOr<const Device*> DeviceFor(const tl_kernel& kernel, int32_t number) {
  TL_ASSIGN_OR_RETURN(const Device* device, kernel.context->FindDevice(number));
  const Target& compiled = kernel.impl->program().target();
  if (device->info.target.Runs(compiled)) return device;
  return MakeError(absl::StatusCode::kFailedPrecondition,
                   absl::StrCat("the kernel was compiled for ", compiled.name, ", and device ",
                                number, " (", device->info.name, ") is ", device->info.target.name),
                   {.reason = Reason::kNoDevice, .span = {}, .log = {}});
}

}  // namespace tl::abi

#endif  // TILEJIT_ABI_LAUNCH_ARGS_H_
