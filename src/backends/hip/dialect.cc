#include "backends/hip/dialect.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace tl {
namespace {

// No library of the vendor's is linked, and maths.hip has what is computed in f32.
bool HasFunction(MathFn fn, ScalarType type) {
  if (type != ScalarType::kF64) return true;
  switch (fn) {
    case MathFn::kExp:
    case MathFn::kExp2:
    case MathFn::kLog:
    case MathFn::kLog2:
    case MathFn::kTanh:
    case MathFn::kErf:
    case MathFn::kSin:
    case MathFn::kCos:
    case MathFn::kPow:
    case MathFn::kSigmoid:
      return false;
    default:
      return true;
  }
}

}  // namespace

const Dialect& HipDialect() {
  // Never destroyed, so nothing happens when the process ends.
  static const auto& prelude = *new std::string(absl::StrCat(HipPrimitives(), HipMaths()));
  static const Dialect dialect = {
      .language = "hip",
      .primitives = prelude,
      .entry = "TL_KERNEL($0) void",
      .arena = "TL_ARENA;",
      .block_index = "tl_block()",
      .grid_size = "tl_grid()",
      .thread_index = "tl_thread()",
      .barrier = "tl_barrier();",
      .warp_barrier = "",
      .group_barrier = "",
      .unroll = "#pragma unroll",
      .no_unroll = "#pragma unroll 1",
      .has_function = HasFunction,
  };
  return dialect;
}

}  // namespace tl
