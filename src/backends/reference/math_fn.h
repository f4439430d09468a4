// The functions of the language in float64, and how an error of the argument reaches the result.
#ifndef TILEJIT_BACKENDS_REFERENCE_MATH_FN_H_
#define TILEJIT_BACKENDS_REFERENCE_MATH_FN_H_

#include "ir/expr.h"

namespace tl::reference {

double Apply(MathFn fn, double a, double b);

// Bound on |fn(a', b') - v| over |a' - a| <= ea, |b' - b| <= eb, where v = fn(a, b).
double PropagateError(MathFn fn, double v, double a, double ea, double b, double eb);

}  // namespace tl::reference

#endif  // TILEJIT_BACKENDS_REFERENCE_MATH_FN_H_
