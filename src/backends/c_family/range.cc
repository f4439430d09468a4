#include "backends/c_family/range.h"

#include <algorithm>

namespace tl {
namespace {

using Wide = __int128;

bool Unbounded(int64_t v) { return v == Range::kMin || v == Range::kMax; }

// The interval [lo, hi], cut to 64 bits: index arithmetic saturates, data wraps around.
Range Cut(Wide lo, Wide hi, bool data) {
  const bool fits = lo >= Range::kMin && hi <= Range::kMax;
  if (data && !fits) return {Range::kMin, Range::kMax, true, true};
  auto cut = [](Wide v) {
    return static_cast<int64_t>(std::clamp<Wide>(v, Range::kMin, Range::kMax));
  };
  return {cut(lo), cut(hi), data, false};
}

Range Multiply(const Range& a, const Range& b, bool data) {
  const Wide corners[] = {Wide{a.lo} * b.lo, Wide{a.lo} * b.hi, Wide{a.hi} * b.lo,
                          Wide{a.hi} * b.hi};
  return Cut(*std::min_element(corners, corners + 4), *std::max_element(corners, corners + 4),
             data);
}

// Floor division by a positive divisor moves towards zero or keeps the sign; anything else is not
// worth the cases.
Range Divide(const Range& a, const Range& b, bool data) {
  if (!a.NonNegative() || b.lo < 0) return {Range::kMin, Range::kMax, data, false};
  const int64_t least = std::max<int64_t>(b.lo, 1);
  const int64_t lo = Unbounded(b.hi) || b.hi == 0 ? 0 : a.lo / b.hi;
  return {lo, Unbounded(a.hi) ? Range::kMax : a.hi / least, data, false};
}

Range Modulo(const Range& a, const Range& b, bool data) {
  if (b.lo < 0) return {Range::kMin, Range::kMax, data, false};
  const int64_t below = Unbounded(b.hi) ? Range::kMax : std::max<int64_t>(b.hi - 1, 0);
  return {0, a.NonNegative() ? std::min(below, a.hi) : below, data, false};
}

// Shifts count modulo 64.
Range ShiftLeft(const Range& a, const Range& b, bool data) {
  if (b.lo != b.hi || b.lo < 0 || b.lo > 62) return {Range::kMin, Range::kMax, data, true};
  Range r = Multiply(a, Exactly(int64_t{1} << b.lo), data);
  // Unlike a product, a shift is no index arithmetic: assume nothing.
  if (Unbounded(r.lo) || Unbounded(r.hi)) r = {Range::kMin, Range::kMax, data, true};
  return r;
}

Range ShiftRight(const Range& a, const Range& b, bool data) {
  const bool counts = b.lo >= 0 && b.hi <= 63;
  if (!counts || (b.lo != b.hi && !a.NonNegative())) return {Range::kMin, Range::kMax, data, true};
  return {a.lo >> b.hi, a.hi >> b.lo, data, false};
}

// Or and xor of non-negative numbers stay below the next power of two.
Range OrLike(const Range& a, const Range& b, bool data) {
  if (!a.NonNegative() || !b.NonNegative()) {
    // Sign extension: the wider operand bounds the bits.
    const bool narrow = a.Fits32() && b.Fits32();
    return narrow ? Range{std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max(),
                          data}
                  : Range{Range::kMin, Range::kMax, data};
  }
  uint64_t mask = static_cast<uint64_t>(std::max(a.hi, b.hi));
  for (int shift = 1; shift < 64; shift *= 2) mask |= mask >> shift;
  return {0, static_cast<int64_t>(mask), data, false};
}

Range And(const Range& a, const Range& b, bool data) {
  if (a.NonNegative() && b.NonNegative()) return {0, std::min(a.hi, b.hi), data, false};
  if (a.NonNegative()) return {0, a.hi, data, false};
  if (b.NonNegative()) return {0, b.hi, data, false};
  return OrLike(a, b, data);
}

}  // namespace

Range RangeOf(DType t) {
  if (t == DType::kI64 || IsFloat(t)) return {Range::kMin, Range::kMax, true};
  return {static_cast<int64_t>(MinValue(t)), static_cast<int64_t>(MaxValue(t)), true};
}

Range Apply(BinaryOp op, const Range& a, const Range& b) {
  const bool data = a.data || b.data;
  switch (op) {
    case BinaryOp::kAdd:
      return Cut(Wide{a.lo} + b.lo, Wide{a.hi} + b.hi, data);
    case BinaryOp::kSub:
      return Cut(Wide{a.lo} - b.hi, Wide{a.hi} - b.lo, data);
    case BinaryOp::kMul:
      return Multiply(a, b, data);
    case BinaryOp::kDiv:
      return Divide(a, b, data);
    case BinaryOp::kCeilDiv: {
      Range r = Divide(a, b, data);
      if (r.hi != Range::kMax) ++r.hi;
      return r;
    }
    case BinaryOp::kMod:
      return Modulo(a, b, data);
    case BinaryOp::kMin:
      return {std::min(a.lo, b.lo), std::min(a.hi, b.hi), data, false};
    case BinaryOp::kMax:
      return {std::max(a.lo, b.lo), std::max(a.hi, b.hi), data, false};
    case BinaryOp::kBitAnd:
      return And(a, b, data);
    case BinaryOp::kBitOr:
    case BinaryOp::kBitXor:
      return OrLike(a, b, data);
    case BinaryOp::kShl:
      return ShiftLeft(a, b, data);
    case BinaryOp::kShr:
      return ShiftRight(a, b, data);
    default:
      return {Range::kMin, Range::kMax, data, false};
  }
}

Range Negate(const Range& a) { return Apply(BinaryOp::kSub, Exactly(0), a); }

Range Union(const Range& a, const Range& b) {
  return {std::min(a.lo, b.lo), std::max(a.hi, b.hi), a.data || b.data, false};
}

bool PlainDivision(const Range& a, const Range& b) {
  return a.NonNegative() && (b.Positive() || (b.NonNegative() && !b.data));
}

}  // namespace tl
