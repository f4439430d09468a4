// Integer arithmetic that the language leaves out.
#ifndef TILEJIT_BASE_INT_MATH_H_
#define TILEJIT_BASE_INT_MATH_H_

#include <cstdint>

namespace tl {

// Of a >= 0 and b > 0: the quotient, rounded up.
constexpr int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace tl

#endif  // TILEJIT_BASE_INT_MATH_H_
