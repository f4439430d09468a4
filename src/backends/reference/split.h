// How a `split` axis cuts its items.
//
// Run p is units p·total/parts … (p+1)·total/parts of all items' units one after the other. With
// fewer units than runs some runs are empty, also between two that have pieces of one item.
#ifndef TILEJIT_BACKENDS_REFERENCE_SPLIT_H_
#define TILEJIT_BACKENDS_REFERENCE_SPLIT_H_

#include <cstdint>
#include <vector>

#include "base/status.h"

namespace tl::reference {

struct Piece {
  int64_t item;
  int64_t begin, end;  // units of the item
  int64_t part;        // workspace slot
  bool whole;
};

class SplitPlan {
 public:
  // `counts` per item; what is negative counts as 0.
  static StatusOr<SplitPlan> Make(const std::vector<int64_t>& counts, int64_t parts);

  int64_t parts() const { return parts_; }  // of the grid
  int64_t items() const { return static_cast<int64_t>(first_.size()) - 1; }
  std::vector<Piece> PiecesOf(int64_t run) const;
  // First slot of an item's pieces and one past the last; equal when it has none. In between, the
  // slot of an empty run holds nothing.
  int64_t FirstSlot(int64_t item) const;
  int64_t EndSlot(int64_t item) const;
  bool IsEmpty(int64_t run) const { return RunBegin(run) == RunBegin(run + 1); }

 private:
  int64_t total() const { return first_.back(); }
  int64_t RunBegin(int64_t run) const;
  int64_t RunOf(int64_t unit) const;

  std::vector<int64_t> first_;  // first unit of each item, and the total
  int64_t parts_ = 0;
};

}  // namespace tl::reference

#endif  // TILEJIT_BACKENDS_REFERENCE_SPLIT_H_
