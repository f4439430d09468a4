#include "passes/interval.h"

#include <algorithm>

namespace tl {
namespace {

using Wide = __int128;

constexpr int64_t kMin = Interval::kMin;
constexpr int64_t kMax = Interval::kMax;

int64_t Clamp(Wide v) {
  if (v <= kMin) return kMin;
  if (v >= kMax) return kMax;
  return static_cast<int64_t>(v);
}

bool Bounded(int64_t v) { return v != kMin && v != kMax; }

Interval Add(Interval a, Interval b) {
  const auto end = [](int64_t x, int64_t y, int64_t unbounded) {
    return x == unbounded || y == unbounded ? unbounded : Clamp(Wide{x} + y);
  };
  return {end(a.lo, b.lo, kMin), end(a.hi, b.hi, kMax)};
}

Interval Negate(Interval a) {
  return {a.hi == kMax ? kMin : Clamp(-Wide{a.hi}), a.lo == kMin ? kMax : Clamp(-Wide{a.lo})};
}

// Only of factors that are not negative, and of literals: that is what index arithmetic is made of.
Interval Multiply(Interval a, Interval b) {
  if (a.lo >= 0 && b.lo >= 0) {
    const bool open = (a.hi == kMax && b.hi != 0) || (b.hi == kMax && a.hi != 0);
    return {Clamp(Wide{a.lo} * b.lo), open ? kMax : Clamp(Wide{a.hi} * b.hi)};
  }
  if (Bounded(a.lo) && Bounded(a.hi) && Bounded(b.lo) && Bounded(b.hi)) {
    const Wide all[] = {Wide{a.lo} * b.lo, Wide{a.lo} * b.hi, Wide{a.hi} * b.lo, Wide{a.hi} * b.hi};
    return {Clamp(*std::min_element(all, all + 4)), Clamp(*std::max_element(all, all + 4))};
  }
  return {};
}

// Rounding towards the sides keeps the order, so the ends of the quotient come from those of `a`.
Interval Divide(BinaryOp op, Interval a, Interval b) {
  if (b.lo < 1) return {};
  if (b.lo != b.hi) {  // an unknown positive divisor
    if (a.lo < 0) return {};
    return {0, a.hi};
  }
  return {a.lo == kMin ? kMin : EvalInt(op, a.lo, b.lo),
          a.hi == kMax ? kMax : EvalInt(op, a.hi, b.lo)};
}

Interval Remainder(Interval a, Interval b) {
  if (b.lo < 1) return {};
  Interval r{0, b.hi == kMax ? kMax : b.hi - 1};
  if (a.lo >= 0) r.hi = std::min(r.hi, a.hi);
  return r;
}

Interval OfElement(DType t) {
  switch (t) {
    case DType::kI8:
      return {-128, 127};
    case DType::kU8:
      return {0, 255};
    case DType::kI16:
      return {-32768, 32767};
    case DType::kU16:
      return {0, 65535};
    case DType::kI32:
      return {std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()};
    case DType::kU32:
      return {0, std::numeric_limits<uint32_t>::max()};
    default:
      return {};
  }
}

}  // namespace

void Intervals::Set(VarId var, Interval value) {
  if (static_cast<size_t>(var) >= known_.size()) known_.resize(var + 1);
  known_[var] = {true, value};
}

void Intervals::SetLoop(const Module& module, VarId var, const ExprRef& begin, const ExprRef& end) {
  const int64_t last = Of(module, end).hi;
  Set(var, {Of(module, begin).lo, last == kMax || last == kMin ? last : last - 1});
}

Interval Intervals::OfVar(const Module& module, VarId var) const {
  if (static_cast<size_t>(var) < known_.size() && known_[var].set) return known_[var].value;
  const Var& v = module.var(var);
  switch (v.role) {
    case VarRole::kDim:
    case VarRole::kGrid:
    case VarRole::kGroup:
    case VarRole::kThread:
      return {0, kMax};
    case VarRole::kScalar:
    case VarRole::kMutable:
      return OfElement(v.dtype);
    default:
      return {};
  }
}

Interval Intervals::OfBinary(const Module& module, const Binary& b) const {
  const Interval x = Of(module, b.lhs), y = Of(module, b.rhs);
  switch (b.op) {
    case BinaryOp::kAdd:
      return Add(x, y);
    case BinaryOp::kSub:
      return Add(x, Negate(y));
    case BinaryOp::kMul:
      return Multiply(x, y);
    case BinaryOp::kDiv:
    case BinaryOp::kCeilDiv:
      return Divide(b.op, x, y);
    case BinaryOp::kMod:
      return Remainder(x, y);
    case BinaryOp::kMin:
      return {std::min(x.lo, y.lo), std::min(x.hi, y.hi)};
    case BinaryOp::kMax:
      return {std::max(x.lo, y.lo), std::max(x.hi, y.hi)};
    default:
      return {};
  }
}

Interval Intervals::Of(const Module& module, const ExprRef& e) const {
  if (e->type != ScalarType::kInt) return {};
  if (const int64_t* v = IntValue(e)) return {*v, *v};
  if (const VarRef* ref = As<VarRef>(e)) return OfVar(module, ref->var);
  if (const Binary* b = As<Binary>(e)) return OfBinary(module, *b);
  if (const Load* load = As<Load>(e)) return OfElement(module.buffer(load->buffer).dtype);
  if (const Cast* cast = As<Cast>(e)) {
    // A value that fits stays as it is, others wrap.
    const Interval x = Of(module, cast->arg), type = OfElement(cast->to);
    return x.lo >= type.lo && x.hi <= type.hi ? x : type;
  }
  if (const Select* s = As<Select>(e)) {
    const Interval x = Of(module, s->yes), y = Of(module, s->no);
    return {std::min(x.lo, y.lo), std::max(x.hi, y.hi)};
  }
  return {};
}

}  // namespace tl
