#include "service/bench.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

namespace tl {
namespace {

constexpr int64_t kMaxSets = 64;
constexpr int64_t kMaxLaunches = 20000;

class Rotation : public DeviceSession::Enqueue {
 public:
  explicit Rotation(std::vector<std::unique_ptr<Trial>>& trials) : trials_(trials) {}
  Status operator()(int iteration) override {
    return trials_[static_cast<size_t>(iteration) % trials_.size()]->Launch();
  }

 private:
  std::vector<std::unique_ptr<Trial>>& trials_;
};

int64_t InputSets(double bytes_per_set, int64_t rotate_bytes) {
  if (bytes_per_set <= 0 || rotate_bytes <= 0) return 1;
  const double sets = std::ceil(static_cast<double>(rotate_bytes) / bytes_per_set);
  return std::clamp<int64_t>(static_cast<int64_t>(sets), 1, kMaxSets);
}

}  // namespace

StatusOr<BenchResult> Bench(const Kernel& kernel, const Device& device,
                            const BenchOptions& options) {
  TL_ASSIGN_OR_RETURN(std::unique_ptr<DeviceSession> session,
                      device.backend->OpenSession(device.info.ordinal));
  std::vector<std::unique_ptr<Trial>> trials;
  const int64_t rotate = options.rotate_bytes > 0 ? options.rotate_bytes : 2 * device.info.l2_bytes;
  int64_t sets = 1;
  for (int64_t i = 0; i < sets; ++i) {
    TrialArguments arguments = options.arguments;
    arguments.seed += static_cast<uint64_t>(i);
    TL_ASSIGN_OR_RETURN(std::unique_ptr<Trial> trial,
                        Trial::Make(kernel, *session, device.info.ordinal, arguments));
    sets = InputSets(trial->traffic(), rotate);
    trials.push_back(std::move(trial));
  }
  Rotation rotation(trials);
  // One launch of each set loads the kernel and warms up; its time sizes a round.
  TL_RETURN_IF_ERROR(session->Time(rotation, static_cast<int>(sets)).status());
  TL_ASSIGN_OR_RETURN(double warm, session->Time(rotation, static_cast<int>(sets)));
  const double once = std::max(warm / static_cast<double>(sets), 1.0);
  const auto launches =
      std::clamp<int64_t>(static_cast<int64_t>(options.min_round_ns / once), 1, kMaxLaunches);

  std::vector<double> times;
  for (int round = 0; round < std::max(options.rounds, 1); ++round) {
    TL_ASSIGN_OR_RETURN(double ns, session->Time(rotation, static_cast<int>(launches)));
    times.push_back(ns / static_cast<double>(launches));
  }
  std::sort(times.begin(), times.end());
  BenchResult result;
  result.median_ns = times[times.size() / 2];
  result.min_ns = times.front();
  result.max_ns = times.back();
  result.bytes = trials[0]->traffic();
  result.launches_per_round = launches;
  result.input_sets = sets;
  result.rounds = static_cast<int>(times.size());
  return result;
}

}  // namespace tl
