// Where the vectors that a thread moves lie in memory, with what the thread contributes computed
// once.
#ifndef TILEJIT_PASSES_THREAD_PLACE_H_
#define TILEJIT_PASSES_THREAD_PLACE_H_

#include <cstdint>
#include <optional>

#include "passes/lowering.h"

namespace tl {

// An offset is a sum of what the thread's place brings and what slot and window bring, where the
// order of swizzled rows permits it. Then the thread's part is a name of
// its own, and what is left in an unrolled loop is a constant for each slot. Else offsets are as
// long as they are.
class ThreadPlace {
 public:
  enum class Keep {
    kForLaunch,  // in a register from the launch's start on: for loops over such moves
    kHere,       // from here on
  };

  // `count`: elements of one vector. Refers to `window` and `layout`. `within_panels`: parts are
  // also made where slots move within a panel.
  ThreadPlace(Lowering& l, const Region& window, const FragmentLayout& layout, int64_t count,
              Keep keep, bool within_panels = false);

  ExprRef OffsetOf(const Lowering::Element& e) const;

 private:
  // How the order of the chunks in a swizzled row depends on the slot.
  enum class Order {
    kByThread,  // not at all
    kByBits,    // the slot flips bits of the column that the thread leaves at zero
    kMixed,
  };

  std::optional<Coords> Strides() const;
  Order OrderOfRows(int64_t count) const;
  bool ColumnsShareNoBits() const;
  bool HasPanels() const;
  Coords IndexOf(const Coords& c) const;

  Lowering& l_;
  const Region& window_;
  const FragmentLayout& layout_;
  bool within_panels_;
  ExprRef of_thread_;  // null: no such sum
  ExprRef column_;     // the thread's column in a row that is ordered by bits, else null
};

}  // namespace tl

#endif  // TILEJIT_PASSES_THREAD_PLACE_H_
