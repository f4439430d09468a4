// The functions of MathFn on the CPU.
//
// f32: exp, exp2, log, log2, tanh, erf, sigmoid are polynomials in IR, so loops over them
// vectorise. Largest errors over all floats, measured by tests/unit/cpu_maths_test.cc, in units in
// the last place of the result (flushing nothing to zero):
//
//   exp 1.5   exp2 1.5   log 1.5   log2 2   tanh 2   erf 1.5   sigmoid 3   rsqrt 1.5
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
