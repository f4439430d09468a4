// Intervals of integer expressions: which values can one take? They answer two questions of the
// emitter: may floor division be written as plain `/`, and does an expression fit in 32 bits?
#ifndef TILEJIT_BACKENDS_C_FAMILY_RANGE_H_
#define TILEJIT_BACKENDS_C_FAMILY_RANGE_H_

#include <cstdint>
#include <limits>

#include "base/dtype.h"
#include "ir/expr.h"

namespace tl {

// All values from lo to hi. Integers of the language wrap, and two kinds of expressions are told
// apart: index arithmetic, made of dims, strides, literals and loop indices, never overflows,
// because a launch whose tensors do not fit in 63 bits is refused; it saturates here. Data
// (elements, scalars, mutable variables) may hold anything, so where it can overflow the interval
// is everything.
struct Range {
  static constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  static constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

  int64_t lo = kMin;
  int64_t hi = kMax;
  bool data = false;   // depends on data
  bool wraps = false;  // the operation itself may overflow and has to be written so that it wraps

  bool NonNegative() const { return lo >= 0; }
  bool Positive() const { return lo >= 1; }
  bool Fits32() const {
    return lo >= std::numeric_limits<int32_t>::min() && hi <= std::numeric_limits<int32_t>::max();
  }
};

inline Range Exactly(int64_t v) { return {v, v}; }
// Values of an integer element type; data.
Range RangeOf(DType t);
// Result of an int operator that yields an int.
Range Apply(BinaryOp op, const Range& a, const Range& b);
Range Negate(const Range& a);
Range Union(const Range& a, const Range& b);

// May `a / b` (and `a % b`) of C stand for floor division? Both sides are known not to be negative.
// A divisor that is index arithmetic is taken to be non-zero: a zero dim means an empty grid.
bool PlainDivision(const Range& a, const Range& b);

}  // namespace tl

#endif  // TILEJIT_BACKENDS_C_FAMILY_RANGE_H_
