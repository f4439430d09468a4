// f32 polynomials; see maths.h for their errors.
#ifndef TILEJIT_BACKENDS_CPU_MATHS_F32_H_
#define TILEJIT_BACKENDS_CPU_MATHS_F32_H_

#include <string>

#include "backends/cpu/ir_text.h"
#include "ir/expr.h"

namespace tl::cpu {

// Name of the helper function float -> float, defined in `module` on first use. For kExp, kExp2,
// kLog, kLog2, kTanh, kErf, kSigmoid.
std::string MathHelperF32(ModuleText& module, MathFn fn);

}  // namespace tl::cpu

#endif  // TILEJIT_BACKENDS_CPU_MATHS_F32_H_
