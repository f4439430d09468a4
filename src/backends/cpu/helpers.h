// Helper functions in IR that generated kernels call: narrow floats, integer division. They are
// inlined, so a loop that uses them still vectorises.
#ifndef TILEJIT_BACKENDS_CPU_HELPERS_H_
#define TILEJIT_BACKENDS_CPU_HELPERS_H_

#include <string>

#include "backends/cpu/ir_text.h"
#include "base/dtype.h"

namespace tl::cpu {

// Facts of the processor that change the text, not just the instructions chosen for it.
struct CpuFacts {
  bool f16c = false;  // converts f16 in hardware; otherwise LLVM would call a library function
};

// Name of the function that widens an element of a narrow float type (iN -> float).
std::string WidenHelper(ModuleText& module, DType type);
// Name of the function that rounds float to a narrow float type (float -> iN).
std::string NarrowHelper(ModuleText& module, DType type);
// double -> float, rounding to odd: rounding the result once more to a type of at most 22 bits of
// precision gives what rounding the double directly would have given.
std::string OddHelper(ModuleText& module);
// i64, i64 -> i64: "floordiv", "floormod", "ceildiv" with the semantics of EvalInt.
std::string DivisionHelper(ModuleText& module, std::string_view which);

}  // namespace tl::cpu

#endif  // TILEJIT_BACKENDS_CPU_HELPERS_H_
