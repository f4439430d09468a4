// One kernel after another on several sets of inputs, launched on in turn so that no launch finds
// its inputs in the cache.
#ifndef TILEJIT_SERVICE_ROTATION_H_
#define TILEJIT_SERVICE_ROTATION_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "service/trial.h"

namespace tl {

class Rotation : private DeviceSession::Enqueue {
 public:
  // As many sets as exceed `rotate_bytes`; 0: twice the device's L2 cache. The kernel, which must
  // outlive the rotation or the next Use, need not be loaded yet.
  static StatusOr<std::unique_ptr<Rotation>> Make(const Kernel& kernel, DeviceSession& session,
                                                  const DeviceInfo& device,
                                                  const TrialArguments& arguments,
                                                  int64_t rotate_bytes);

  // From now on this kernel, whose operands must be those of the first (SameOperands).
  Status Use(const Kernel& kernel);
  // Launches back to back; device time of one of them in nanoseconds.
  StatusOr<double> Time(int64_t launches);

  int64_t sets() const { return static_cast<int64_t>(trials_.size()); }
  // Bytes of all operands of one launch.
  double traffic() const { return trials_.front()->traffic(); }

 private:
  explicit Rotation(DeviceSession& session) : session_(session) {}
  Status operator()(int iteration) override;

  DeviceSession& session_;
  std::vector<std::unique_ptr<Trial>> trials_;
};

// How many launches of `once_ns` make a round of `round_ns`.
int64_t LaunchesPerRound(double round_ns, double once_ns);

}  // namespace tl

#endif  // TILEJIT_SERVICE_ROTATION_H_
