// Which values can an integer expression take? Copies ask to leave out bounds checks that always
// hold.
//
// Index arithmetic is taken not to overflow: a launch whose tensors do not fit in 63 bits is
// refused. Elements, scalars and mutable variables may hold anything.
#ifndef TILEJIT_PASSES_INTERVAL_H_
#define TILEJIT_PASSES_INTERVAL_H_

#include <cstdint>
#include <limits>
#include <vector>

#include "ir/module.h"

namespace tl {

// All values from lo to hi; the extremes of int64 stand for "no bound".
struct Interval {
  static constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  static constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  int64_t lo = kMin;
  int64_t hi = kMax;
};

class Intervals {
 public:
  // Records what `var` may hold from here on.
  void Set(VarId var, Interval value);
  // Loop index: begin <= var < end.
  void SetLoop(const Module& module, VarId var, const ExprRef& begin, const ExprRef& end);

  Interval Of(const Module& module, const ExprRef& e) const;

 private:
  Interval OfVar(const Module& module, VarId var) const;
  Interval OfBinary(const Module& module, const Binary& b) const;

  struct Known {
    bool set = false;
    Interval value;
  };
  std::vector<Known> known_;  // by VarId
};

}  // namespace tl

#endif  // TILEJIT_PASSES_INTERVAL_H_
