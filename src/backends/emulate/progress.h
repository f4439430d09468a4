// How far asynchronous work has come: numbers that only grow, such as the matrix products of a warp
// that it has waited for, and how much of each every thread knows. Knowledge spreads by barriers
// and mbarriers; unlike a clock of accesses (shadow.h) it vouches for what its thread has done
// until now.
#ifndef TILEJIT_BACKENDS_EMULATE_PROGRESS_H_
#define TILEJIT_BACKENDS_EMULATE_PROGRESS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace tl::emulate {

struct ThreadRange {
  int first, count;
};

class Progress {
 public:
  void Start(int threads);  // forgets everything

  int NewCounter();
  void Tell(int counter, int thread, uint32_t count);
  uint32_t Known(int counter, int thread) const {
    return known_[static_cast<size_t>(counter)][static_cast<size_t>(thread)];
  }
  // What the threads [first, first + count) all know of a counter.
  uint32_t KnownToAll(int counter, int first, int count) const;
  int counters() const { return static_cast<int>(known_.size()); }

  // What one of these threads knows, all know now.
  void Meet(std::span<const ThreadRange> threads);
  // Mbarriers, by their offsets.
  void Arrive(int mbarrier, int thread);
  void EndPhase(int mbarrier);
  void Learn(int mbarrier, int thread);

 private:
  using Counts = std::vector<uint32_t>;
  struct Mbarrier {
    Counts gathered, told;  // by counter; missing ones are 0
  };

  size_t threads_ = 0;
  std::vector<Counts> known_;  // by counter and thread
  std::unordered_map<int, Mbarrier> mbarriers_;
};

}  // namespace tl::emulate

#endif  // TILEJIT_BACKENDS_EMULATE_PROGRESS_H_
