// Times and checks candidates of tuning on one device, in this process.
#ifndef TILEJIT_SERVICE_RUNNER_H_
#define TILEJIT_SERVICE_RUNNER_H_

#include <memory>

#include "service/context.h"
#include "service/rotation.h"
#include "tuner/lab.h"

namespace tl {

// Multiply-adds that the reference spends on validating one candidate.
inline constexpr int64_t kValidationWork = 20'000'000;

class Runner {
 public:
  Runner(const Device& device, TrialArguments arguments, int threads)
      : device_(device), arguments_(std::move(arguments)), threads_(threads) {}

  // Has inputs on the device that fit this kernel. Runs nothing of it. A failure is nobody's fault.
  Status Prepare(std::shared_ptr<Kernel> kernel);
  // Of the kernel that was prepared last.
  Measured Time(const Effort& effort);
  Measured Validate(uint64_t seed);

 private:
  StatusOr<double> TimeShortly(double give_up_ns);
  StatusOr<double> TimeOnce(const Effort& effort);

  const Device& device_;
  const TrialArguments arguments_;
  const int threads_;
  std::shared_ptr<Kernel> kernel_;
  std::unique_ptr<DeviceSession> session_;
  std::shared_ptr<const Module> made_for_;  // whose inputs these are
  std::unique_ptr<Rotation> rotation_;
};

}  // namespace tl

#endif  // TILEJIT_SERVICE_RUNNER_H_
