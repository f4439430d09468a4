// CUDA C++ as a dialect of the C family.
#ifndef TILEJIT_BACKENDS_CUDA_DIALECT_H_
#define TILEJIT_BACKENDS_CUDA_DIALECT_H_

#include <string_view>

#include "backends/c_family/dialect.h"

namespace tl {

const Dialect& CudaDialect();
// Content of primitives.cuh.
std::string_view CudaPrimitives();
// Changes whenever the lowering, the emitter, the prelude or the compiler's options change.
std::string_view CudaCodegenHash();

}  // namespace tl

#endif  // TILEJIT_BACKENDS_CUDA_DIALECT_H_
