// HIP C++ without headers as a dialect of the C family: what HIPRTC and clang take alike.
#ifndef TILEJIT_BACKENDS_HIP_DIALECT_H_
#define TILEJIT_BACKENDS_HIP_DIALECT_H_

#include <string_view>

#include "backends/c_family/dialect.h"

namespace tl {

const Dialect& HipDialect();
// Content of primitives.hip and of maths.hip. The latter is plain C++ on five functions of the
// former, so that a host can run it.
std::string_view HipPrimitives();
std::string_view HipMaths();
// Changes whenever the lowering, the emitter, the prelude or the compiler's options change.
std::string_view HipCodegenHash();

}  // namespace tl

#endif  // TILEJIT_BACKENDS_HIP_DIALECT_H_
