#include "service/bench.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "service/rotation.h"

namespace tl {

StatusOr<BenchResult> Bench(const Kernel& kernel, const Device& device,
                            const BenchOptions& options) {
  TL_ASSIGN_OR_RETURN(std::unique_ptr<DeviceSession> session,
                      device.backend->OpenSession(device.info.ordinal));
  TL_ASSIGN_OR_RETURN(
      std::unique_ptr<Rotation> rotation,
      Rotation::Make(kernel, *session, device.info, options.arguments, options.rotate_bytes));
  // Not within Time, which may capture: a kernel for a target by name is not on the device yet.
  TL_RETURN_IF_ERROR(kernel.program().Load(device.info.ordinal).status());
  // One launch of each set warms up; its time sizes a round.
  TL_RETURN_IF_ERROR(rotation->Time(rotation->sets()).status());
  TL_ASSIGN_OR_RETURN(const double once, rotation->Time(rotation->sets()));
  const int64_t launches = LaunchesPerRound(options.min_round_ns, once);

  std::vector<double> times;
  for (int round = 0; round < std::max(options.rounds, 1); ++round) {
    TL_ASSIGN_OR_RETURN(double ns, rotation->Time(launches));
    times.push_back(ns);
  }
  std::sort(times.begin(), times.end());
  BenchResult result;
  result.median_ns = times[times.size() / 2];
  result.min_ns = times.front();
  result.max_ns = times.back();
  result.bytes = rotation->traffic();
  result.launches_per_round = launches;
  result.input_sets = rotation->sets();
  result.rounds = static_cast<int>(times.size());
  return result;
}

}  // namespace tl
