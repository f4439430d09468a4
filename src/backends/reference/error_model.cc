#include "backends/reference/error_model.h"

namespace tl::reference {

FnError ErrorOf(MathFn fn) {
  switch (fn) {
    case MathFn::kExp:
      return {4, 0, 2};
    case MathFn::kExp2:
      return {4, 0x1p-103, 0};  // f32 results below 2^-126 may be 0
    case MathFn::kLog:
      return {4, 2, 0};
    case MathFn::kLog2:
      return {4, 2, 0};
    case MathFn::kSqrt:
      return {2, 0, 0};
    case MathFn::kRsqrt:
      return {4, 0, 0};
    case MathFn::kTanh:
      return {4, 2, 0};
    case MathFn::kErf:
      return {4, 2, 0};
    case MathFn::kSigmoid:
      return {6, 0, 2};
    case MathFn::kSin:
      return {4, 2, 0};
    case MathFn::kCos:
      return {4, 2, 0};
    case MathFn::kPow:
      return {16, 0, 0};
    case MathFn::kAbs:
    case MathFn::kFloor:
    case MathFn::kCeil:
    case MathFn::kRound:
    case MathFn::kFin:
      return {0, 0, 0};
  }
  return {0, 0, 0};
}

double SmallestSubnormal(DType t) {
  switch (t) {
    case DType::kE4M3:
      return 0x1p-9;
    case DType::kE5M2:
      return 0x1p-16;
    case DType::kF16:
      return 0x1p-24;
    case DType::kBF16:
      return 0x1p-133;
    case DType::kF32:
      return 0x1p-149;
    case DType::kF64:
      return 0x1p-1074;
    default:
      return 0;
  }
}

}  // namespace tl::reference
