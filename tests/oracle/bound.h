// How far a correct kernel may be from the exact result.
//
//   ½·eps(out)·|ref| + c·√K·(eps_acc + eps of reduced operands)·Σ|a||b|
//
// plus the documented error of approximate functions. eps(t) is the distance from 1 to the next
// number of t. The constants stand here and nowhere else.
#ifndef TILEJIT_TESTS_ORACLE_BOUND_H_
#define TILEJIT_TESTS_ORACLE_BOUND_H_

#include "tl/tl.h"

namespace oracle {

// c: a sum of K rounded terms in any order.
inline constexpr double kSumFactor = 4;
// A few correctly rounded operations, or one exp, tanh or erf (documented as at most 2 ulp), in
// eps.
inline constexpr double kFunctionEps = 4;
// The largest slope of gelu, gelu_tanh and silu is below 1.13: errors of their argument grow no
// more.
inline constexpr double kActivationSlope = 1.13;

// 0 for ints.
double Eps(tl_dtype t);
// The distance between neighbours around zero; 0 for ints.
double SmallestStep(tl_dtype t);
// The largest finite number; conversions of fp8 saturate there.
double Largest(tl_dtype t);
bool IsInt(tl_dtype t);

// Error of a sum of `terms` products whose magnitudes add up to `magnitude`.
double SumBound(double terms, double eps, double magnitude);

// What a kernel stores in an element of `t` when it computed `value`, give or take `error`.
struct Stored {
  double expected;
  double bound;
};
Stored Store(tl_dtype t, double value, double error);

}  // namespace oracle

#endif  // TILEJIT_TESTS_ORACLE_BOUND_H_
