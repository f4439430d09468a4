// The functions of MathFn on the CPU.
//
// f32: exp, exp2, log, log2, tanh, erf, sigmoid are polynomials in IR, so loops over them
// vectorise. Largest errors in units in the last place of the result, subnormals included, as
// tests/unit/cpu_maths_test.cc bounds them over a sweep of all exponents, and as measured there:
//
//   exp 1.5 (0.90)   exp2 1.5 (1.19)   log 1.5 (0.84)     log2 2 (1.31)
//   tanh 2 (1.25)    erf 1.5 (1.21)    sigmoid 3 (2.09)   rsqrt 1.5 (1.47)
//
// sqrt, abs, floor, ceil, round and fin are exact operations. sin, cos, pow of f32 and everything
// of f64 that is not exact call the C library.
#ifndef TILEJIT_BACKENDS_CPU_MATHS_H_
#define TILEJIT_BACKENDS_CPU_MATHS_H_

#include <string>
#include <string_view>
#include <vector>

#include "backends/cpu/ir_text.h"
#include "ir/expr.h"

namespace tl::cpu {

// Emits the call and returns the name of its value; args have the type `type`.
std::string EmitMath(FunctionText& f, MathFn fn, ScalarType type,
                     const std::vector<std::string>& args);

// Address of a C library function that generated code may call, null for any other name.
void* LibraryFunction(std::string_view name);

}  // namespace tl::cpu

#endif  // TILEJIT_BACKENDS_CPU_MATHS_H_
