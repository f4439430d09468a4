#include "tests/oracle/bound.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace oracle {
namespace {

struct Format {
  double eps, smallest, largest;
};

// Mantissa bits and least exponents of the IEEE formats, of bfloat16, and of the OCP 8-bit formats.
Format FormatOf(tl_dtype t) {
  switch (t) {
    case TL_E4M3:
      return {0x1p-3, 0x1p-9, 448};
    case TL_E5M2:
      return {0x1p-2, 0x1p-16, 57344};
    case TL_F16:
      return {0x1p-10, 0x1p-24, 65504};
    case TL_BF16:
      return {0x1p-7, 0x1p-133, 0x1.fep127};
    case TL_F32:
      return {0x1p-23, 0x1p-149, std::numeric_limits<float>::max()};
    case TL_F64:
      return {0x1p-52, 0x1p-1074, std::numeric_limits<double>::max()};
    default:
      return {0, 0, 0};
  }
}

bool Saturates(tl_dtype t) { return t == TL_E4M3 || t == TL_E5M2; }

}  // namespace

double Eps(tl_dtype t) { return FormatOf(t).eps; }
double SmallestStep(tl_dtype t) { return FormatOf(t).smallest; }
double Largest(tl_dtype t) { return FormatOf(t).largest; }
bool IsInt(tl_dtype t) { return t < TL_E4M3; }

double SumBound(double terms, double eps, double magnitude) {
  return kSumFactor * std::sqrt(terms) * eps * magnitude;
}

Stored Store(tl_dtype t, double value, double error) {
  if (IsInt(t)) return {value, error};
  if (!std::isfinite(value)) return {value, 0};
  const Format f = FormatOf(t);
  const double reach = std::fabs(value) + error;
  const double bound = error + 0.5 * f.eps * reach + 0.5 * f.smallest;
  if (Saturates(t)) return {std::clamp(value, -f.largest, f.largest), bound};
  // Either side of the overflow threshold may be hit.
  if (reach > f.largest) return {value, -1};
  return {value, bound};
}

}  // namespace oracle
