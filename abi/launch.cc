// Launching from plain pointers and numbers: the hot path.
#include "abi/error.h"
#include "abi/launch_args.h"
#include "abi/structs.h"

using tl::abi::Call;
using tl::abi::CheckCount;
using tl::abi::DeviceFor;
using tl::abi::ReadStruct;

namespace {

tl::Status NoKernel() { return absl::InvalidArgumentError("kernel is NULL"); }

tl::HostArgs HostArgsOf(const tl_launch_args& a) {
  return {{a.dims, a.num_dims},
          {a.strides, a.num_strides},
          {reinterpret_cast<const tl::ScalarValue*>(a.scalars), a.num_scalars}};
}

tl::Status CheckNumbers(const tl::Module& m, const tl_launch_args& a) {
  TL_RETURN_IF_ERROR(CheckCount("dims", a.dims, a.num_dims, m.dims.size(), m));
  TL_RETURN_IF_ERROR(CheckCount("strides", a.strides, a.num_strides, m.strides.size(), m));
  return CheckCount("scalars", a.scalars, a.num_scalars, m.scalars.size(), m);
}

tl::Status Launch(const tl_kernel& kernel, const tl_launch_args& a) {
  TL_RETURN_IF_ERROR(kernel.context->CheckProcess());
  const tl::Module& m = kernel.impl->module();
  TL_ASSIGN_OR_RETURN(const tl::Device* device, DeviceFor(kernel, a.device));
  TL_RETURN_IF_ERROR(CheckCount("tensors", a.tensors, a.num_tensors, m.operands.size(), m));
  TL_RETURN_IF_ERROR(CheckNumbers(m, a));
  tl::LaunchRequest request;
  request.ordinal = device->info.ordinal;
  request.stream = a.stream;
  request.tensors = a.tensors;
  request.args = HostArgsOf(a);
  request.workspace = a.workspace;
  request.workspace_size = a.workspace_size;
  return kernel.impl->Launch(request);
}

}  // namespace

tl_status tl_launch(tl_kernel* kernel, const tl_launch_args* args) {
  return Call([&]() -> tl::Status {
    if (!kernel) return NoKernel();
    // A struct of our own size needs no copy.
    if (args && args->struct_size == sizeof(*args) && !args->next) return Launch(*kernel, *args);
    TL_ASSIGN_OR_RETURN(tl_launch_args a, ReadStruct(args, "tl_launch_args"));
    return Launch(*kernel, a);
  });
}

tl_status tl_prepare(tl_kernel* kernel, int32_t device) {
  return Call([&]() -> tl::Status {
    if (!kernel) return NoKernel();
    TL_RETURN_IF_ERROR(kernel->context->CheckProcess());
    TL_ASSIGN_OR_RETURN(const tl::Device* d, DeviceFor(*kernel, device));
    return kernel->impl->program().Load(d->info.ordinal).status();
  });
}

tl_status tl_workspace_size(const tl_kernel* kernel, const tl_launch_args* args, size_t* bytes) {
  return Call([&]() -> tl::Status {
    if (!kernel) return NoKernel();
    if (!bytes) return absl::InvalidArgumentError("bytes is NULL");
    *bytes = 0;
    TL_ASSIGN_OR_RETURN(tl_launch_args a, ReadStruct(args, "tl_launch_args"));
    TL_RETURN_IF_ERROR(CheckNumbers(kernel->impl->module(), a));
    TL_RETURN_IF_ERROR(kernel->impl->CheckArguments(HostArgsOf(a)));
    TL_ASSIGN_OR_RETURN(*bytes, kernel->impl->WorkspaceSize(HostArgsOf(a)));
    return absl::OkStatus();
  });
}
