#include "service/rotation.h"

#include <algorithm>
#include <cmath>

namespace tl {
namespace {

constexpr int64_t kMaxSets = 64;
constexpr int64_t kMaxLaunches = 20000;

int64_t InputSets(double bytes_per_set, int64_t rotate_bytes) {
  if (bytes_per_set <= 0 || rotate_bytes <= 0) return 1;
  const double sets = std::ceil(static_cast<double>(rotate_bytes) / bytes_per_set);
  return std::clamp<int64_t>(static_cast<int64_t>(sets), 1, kMaxSets);
}

}  // namespace

int64_t LaunchesPerRound(double round_ns, double once_ns) {
  const double launches = round_ns / std::max(once_ns, 1.0);
  return std::clamp<int64_t>(static_cast<int64_t>(launches), 1, kMaxLaunches);
}

StatusOr<std::unique_ptr<Rotation>> Rotation::Make(const Kernel& kernel, DeviceSession& session,
                                                   const DeviceInfo& device,
                                                   const TrialArguments& arguments,
                                                   int64_t rotate_bytes) {
  std::unique_ptr<Rotation> rotation(new Rotation(session));
  const int64_t rotate = rotate_bytes > 0 ? rotate_bytes : 2 * device.l2_bytes;
  int64_t sets = 1;
  for (int64_t i = 0; i < sets; ++i) {
    TrialArguments own = arguments;
    own.seed += static_cast<uint64_t>(i);
    TL_ASSIGN_OR_RETURN(std::unique_ptr<Trial> trial,
                        Trial::Make(kernel, session, device.ordinal, own));
    sets = InputSets(trial->traffic(), rotate);
    rotation->trials_.push_back(std::move(trial));
  }
  return rotation;
}

Status Rotation::Use(const Kernel& kernel) {
  for (const std::unique_ptr<Trial>& trial : trials_) TL_RETURN_IF_ERROR(trial->Use(kernel));
  return absl::OkStatus();
}

Status Rotation::operator()(int iteration) {
  return trials_[static_cast<size_t>(iteration) % trials_.size()]->Launch();
}

StatusOr<double> Rotation::Time(int64_t launches) {
  TL_ASSIGN_OR_RETURN(const double ns, session_.Time(*this, static_cast<int>(launches)));
  return ns / static_cast<double>(launches);
}

}  // namespace tl
