#include "backends/reference/split.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace tl::reference {

StatusOr<SplitPlan> SplitPlan::Make(const std::vector<int64_t>& counts, int64_t parts) {
  if (parts < 1) {
    return absl::InvalidArgumentError(absl::StrCat("split into ", parts, " parts; at least 1"));
  }
  SplitPlan plan;
  plan.parts_ = parts;
  plan.first_.push_back(0);
  for (int64_t count : counts) {
    int64_t next;
    if (__builtin_add_overflow(plan.first_.back(), std::max<int64_t>(count, 0), &next)) {
      return absl::InvalidArgumentError("split: the counts' sum overflows");
    }
    plan.first_.push_back(next);
  }
  return plan;
}

int64_t SplitPlan::RunBegin(int64_t run) const {
  return static_cast<int64_t>(static_cast<__int128>(run) * total() / parts_);
}

// The run p with p·total/parts <= unit < (p+1)·total/parts.
int64_t SplitPlan::RunOf(int64_t unit) const {
  return static_cast<int64_t>((static_cast<__int128>(unit + 1) * parts_ - 1) / total());
}

std::vector<Piece> SplitPlan::PiecesOf(int64_t run) const {
  std::vector<Piece> pieces;
  const int64_t begin = RunBegin(run), end = RunBegin(run + 1);
  int64_t item = std::upper_bound(first_.begin(), first_.end(), begin) - first_.begin() - 1;
  for (; item < items() && first_[item] < end; ++item) {
    const int64_t from = std::max(begin, first_[item]), to = std::min(end, first_[item + 1]);
    if (from >= to) continue;
    pieces.push_back({item, from - first_[item], to - first_[item], item + run,
                      from == first_[item] && to == first_[item + 1]});
  }
  return pieces;
}

int64_t SplitPlan::FirstSlot(int64_t item) const {
  if (first_[item] == first_[item + 1]) return item;
  return item + RunOf(first_[item]);
}

int64_t SplitPlan::EndSlot(int64_t item) const {
  if (first_[item] == first_[item + 1]) return item;
  return item + RunOf(first_[item + 1] - 1) + 1;
}

}  // namespace tl::reference
