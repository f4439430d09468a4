// What a legitimate implementation may deviate from exact arithmetic: the constants, once.
//
// A value v computed by one operation in type t has an error of at most
//   (what its operands' errors cause) + ulps · eps(t) · |v| + the smallest number of t,
// a stored element ½·eps(dtype)·|v| + half its smallest number more, and a sum of n terms
//   sum of the terms' errors + kSumFactor · √n · (eps(accumulator) + eps of operands that the
//   implementation may round, such as tf32) · Σ|term|.
// Fast accumulation loses kFastStepEps of how large the sum may be on its way, in each step of
// kFastStep terms: of the result and kSumFactor · √Σterm² around it.
// Ints are exact; one that stems from a float (argmax, a cast) has the distance to the values that
// it takes within that float's error.
#ifndef TILEJIT_BACKENDS_REFERENCE_ERROR_MODEL_H_
#define TILEJIT_BACKENDS_REFERENCE_ERROR_MODEL_H_

#include "base/dtype.h"
#include "ir/expr.h"

namespace tl::reference {

inline constexpr double kSumFactor = 4;
inline constexpr double kTf32Eps = 0x1p-11;
// Fast accumulation of 8-bit floats: 13 bits behind the point, to which the terms of a step are cut
// one by one.
inline constexpr double kFastStepEps = 0x1p-12;
inline constexpr int kFastStep = 32;  // terms
inline constexpr double kF32Eps = 0x1p-23;
inline constexpr double kF64Eps = 0x1p-52;
// One correctly rounded operation; the other half ulp leaves room for contraction to fma.
inline constexpr double kArithmeticUlps = 1;
// Division by the approximate reciprocal.
inline constexpr double kDivisionUlps = 2;

inline double ComputeEps(ScalarType t) { return t == ScalarType::kF64 ? kF64Eps : kF32Eps; }

// Documented error of an implementation of `fn`: ulps·eps·|f(x)| + absolute·eps +
// argument·eps·|x·f(x)|. The last is for exponentials computed as exp2 of a product.
struct FnError {
  double ulps;
  double absolute;
  double argument;
};
FnError ErrorOf(MathFn fn);

// The distance between neighbours around zero.
double SmallestSubnormal(DType t);

}  // namespace tl::reference

#endif  // TILEJIT_BACKENDS_REFERENCE_ERROR_MODEL_H_
