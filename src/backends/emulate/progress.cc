#include "backends/emulate/progress.h"

#include <algorithm>
#include <utility>

namespace tl::emulate {

void Progress::Start(int threads) {
  threads_ = static_cast<size_t>(threads);
  known_.clear();
  mbarriers_.clear();
}

int Progress::NewCounter() {
  known_.emplace_back(threads_, 0);
  return counters() - 1;
}

void Progress::Tell(int counter, int thread, uint32_t count) {
  uint32_t& known = known_[static_cast<size_t>(counter)][static_cast<size_t>(thread)];
  known = std::max(known, count);
}

uint32_t Progress::KnownToAll(int counter, int first, int count) const {
  const auto begin = known_[static_cast<size_t>(counter)].begin() + first;
  return *std::min_element(begin, begin + count);
}

void Progress::Meet(std::span<const ThreadRange> threads) {
  for (Counts& known : known_) {
    uint32_t all = 0;
    for (const ThreadRange& r : threads) {
      const auto begin = known.begin() + r.first;
      all = std::max(all, *std::max_element(begin, begin + r.count));
    }
    for (const ThreadRange& r : threads) std::fill_n(known.begin() + r.first, r.count, all);
  }
}

void Progress::Arrive(int mbarrier, int thread) {
  if (known_.empty()) return;
  Counts& gathered = mbarriers_[mbarrier].gathered;
  gathered.resize(known_.size(), 0);
  for (size_t i = 0; i < gathered.size(); ++i) {
    gathered[i] = std::max(gathered[i], known_[i][static_cast<size_t>(thread)]);
  }
}

void Progress::EndPhase(int mbarrier) {
  if (known_.empty()) return;
  Mbarrier& m = mbarriers_[mbarrier];
  m.told = std::move(m.gathered);
  m.gathered.clear();
}

void Progress::Learn(int mbarrier, int thread) {
  if (known_.empty()) return;
  const Counts& told = mbarriers_[mbarrier].told;
  for (size_t i = 0; i < told.size(); ++i) Tell(static_cast<int>(i), thread, told[i]);
}

}  // namespace tl::emulate
