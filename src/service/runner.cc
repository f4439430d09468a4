#include "service/runner.h"

#include <algorithm>

#include "service/check.h"

namespace tl {

Status Runner::Prepare(std::shared_ptr<Kernel> kernel) {
  if (kernel == kernel_) return absl::OkStatus();
  if (!session_) {
    TL_ASSIGN_OR_RETURN(session_, device_.backend->OpenSession(device_.info.ordinal));
  }
  // Making inputs takes longer than timing on them.
  if (rotation_ && SameOperands(*made_for_, kernel->module())) {
    TL_RETURN_IF_ERROR(rotation_->Use(*kernel));
  } else {
    rotation_.reset();
    TL_ASSIGN_OR_RETURN(rotation_, Rotation::Make(*kernel, *session_, device_.info, arguments_, 0));
    made_for_ = kernel->shared_module();
  }
  kernel_ = std::move(kernel);
  return absl::OkStatus();
}

// The first of few launches that takes no longer than `give_up_ns`, or the shortest: one launch may
// find the machine busy with something else.
StatusOr<double> Runner::TimeShortly(double give_up_ns) {
  constexpr int kLaunches = 3;
  TL_ASSIGN_OR_RETURN(double least, rotation_->Time(1));
  for (int i = 1; i < kLaunches && give_up_ns > 0 && least > give_up_ns; ++i) {
    TL_ASSIGN_OR_RETURN(const double once, rotation_->Time(1));
    least = std::min(least, once);
  }
  return least;
}

StatusOr<double> Runner::TimeOnce(const Effort& effort) {
  // The first launch finds cold caches and memory that was never touched.
  TL_RETURN_IF_ERROR(rotation_->Time(1).status());
  TL_ASSIGN_OR_RETURN(const double once, TimeShortly(effort.give_up_ns));
  if (effort.give_up_ns > 0 && once > effort.give_up_ns) return once;
  const int64_t launches = LaunchesPerRound(effort.round_ns, once);
  return launches > 1 ? rotation_->Time(launches) : once;
}

Measured Runner::Time(const Effort& effort) {
  const StatusOr<double> ns = TimeOnce(effort);
  return ns.ok() ? Measured{absl::OkStatus(), *ns} : Measured{ns.status(), 0};
}

Measured Runner::Validate(uint64_t seed) {
  CheckOptions options;
  options.arguments = arguments_;
  options.arguments.seed = seed;
  options.reference_work = kValidationWork;
  options.threads = threads_;
  CheckResult result;
  return {Check(*kernel_, device_, options, &result), 0};
}

}  // namespace tl
