// How a `split` axis cuts its items.
//
// With total units in all items, R = min(parts, total) runs have work, run p being units
// p·total/R … (p+1)·total/R: none of them is empty, so that the slots of one item are consecutive.
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
  // First slot of an item's pieces and one past the last; equal when it has none.
  int64_t FirstSlot(int64_t item) const;
  int64_t EndSlot(int64_t item) const;

 private:
  int64_t total() const { return first_.back(); }
  int64_t RunBegin(int64_t run) const;
  int64_t RunOf(int64_t unit) const;

  std::vector<int64_t> first_;  // first unit of each item, and the total
  int64_t parts_ = 0;
  int64_t runs_ = 0;
};

}  // namespace tl::reference

#endif  // TILEJIT_BACKENDS_REFERENCE_SPLIT_H_
