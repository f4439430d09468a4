#include "backends/reference/arith.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>

#include "backends/reference/error_model.h"
#include "backends/reference/math_fn.h"

namespace tl::reference {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

Value BoolOf(bool v, bool uncertain, BufferId undefined) {
  return Value{.c = {.i = v}, .err = uncertain ? 1.0 : 0.0, .undefined = undefined};
}

template <typename T>
bool Compare(BinaryOp op, T a, T b) {
  switch (op) {
    case BinaryOp::kLt:
      return a < b;
    case BinaryOp::kLe:
      return a <= b;
    case BinaryOp::kGt:
      return a > b;
    case BinaryOp::kGe:
      return a >= b;
    case BinaryOp::kEq:
      return a == b;
    default:
      return a != b;
  }
}

// Whether errors this large could change the outcome of comparing a and b.
bool Crosses(double a, double b, double err) { return err > 0 && !(std::fabs(a - b) > err); }

// min and max: the loser's error does not count when it loses for certain.
double ErrorOfPick(double a, double ea, double b, double eb, bool picked_a) {
  if (std::fabs(a - b) > ea + eb) return picked_a ? ea : eb;
  if (std::isnan(a)) return eb;
  if (std::isnan(b)) return ea;
  return std::max(ea, eb);
}

// An infinite operand that is certain leaves nothing to a finite one, as long as that cannot be
// zero (0 * inf) or, where signs count, change its sign.
bool InfinityDecides(double a, double ea, double b, double eb) {
  const bool by_a = std::isinf(a) && ea == 0 && std::fabs(b) > eb;
  const bool by_b = std::isinf(b) && eb == 0 && std::fabs(a) > ea;
  return by_a || by_b;
}

double ErrorOfProduct(double a, double ea, double b, double eb) {
  if ((ea == 0 && eb == 0) || InfinityDecides(a, ea, b, eb)) return 0;
  return std::fabs(a) * eb + std::fabs(b) * ea + ea * eb;
}

double ErrorOfQuotient(double q, double a, double ea, double b, double eb) {
  if ((ea == 0 && eb == 0) || InfinityDecides(a, ea, b, eb)) return 0;
  const double least = std::fabs(b) - eb;
  return least > 0 ? (ea + std::fabs(q) * eb) / least : kInf;
}

}  // namespace

Value Arith::Finish(double v, double prop, double own, ScalarType type, BufferId undefined) const {
  Value r{.c = {.f = v}, .undefined = undefined};
  if (!exact_) {
    if (type == ScalarType::kF32) r.c.f = static_cast<double>(static_cast<float>(v));
    return r;
  }
  if (!std::isfinite(v)) {
    // Infinities and NaN come out the same everywhere, unless an operand was unknown.
    r.err = prop == kInf ? kInf : 0;
    return r;
  }
  if (v == 0 && prop == 0) return r;
  r.err = prop + own;
  if (std::isnan(r.err)) r.err = kInf;
  if (type != ScalarType::kF32) return r;
  r.err += SmallestSubnormal(DType::kF32);
  if (std::fabs(v) + r.err > FLT_MAX) {
    const bool surely = std::fabs(v) - r.err > FLT_MAX * (1 + kF32Eps);
    if (surely) r.c.f = std::copysign(kInf, v);
    r.err = surely ? 0 : kInf;
  }
  return r;
}

Value Arith::Unary(UnaryOp op, ScalarType type, const Value& a) const {
  Value r = a;
  if (op == UnaryOp::kNot) {
    r.c.i = !a.c.i;
  } else if (IsFloat(type)) {
    r.c.f = -a.c.f;
  } else {
    r.c.i = EvalInt(BinaryOp::kSub, 0, a.c.i);
  }
  return r;
}

Value Arith::Binary(BinaryOp op, ScalarType type, const Value& a, const Value& b) const {
  if (IsFloat(type)) return FloatBinary(op, type, a, b);
  return IntBinary(op, a, b);
}

Value Arith::FloatBinary(BinaryOp op, ScalarType type, const Value& a, const Value& b) const {
  const double x = a.c.f, y = b.c.f;
  const BufferId undefined = FirstUndefined(a, b);
  if (IsComparison(op)) {
    return BoolOf(Compare(op, x, y), exact_ && Crosses(x, y, a.err + b.err), undefined);
  }
  if (op == BinaryOp::kMin || op == BinaryOp::kMax) {
    const double v = op == BinaryOp::kMin ? std::fmin(x, y) : std::fmax(x, y);
    Value r{.c = {.f = v}, .undefined = undefined};
    if (exact_) r.err = ErrorOfPick(x, a.err, y, b.err, v == x);
    return r;
  }
  double v, prop;
  double ulps = kArithmeticUlps;
  switch (op) {
    case BinaryOp::kAdd:
      v = x + y;
      prop = a.err + b.err;
      break;
    case BinaryOp::kSub:
      v = x - y;
      prop = a.err + b.err;
      break;
    case BinaryOp::kMul:
      v = x * y;
      prop = ErrorOfProduct(x, a.err, y, b.err);
      break;
    default:  // kDiv
      v = x / y;
      prop = exact_ ? ErrorOfQuotient(v, x, a.err, y, b.err) : 0;
      ulps = kDivisionUlps;
      break;
  }
  return Finish(v, prop, ulps * ComputeEps(type) * std::fabs(v), type, undefined);
}

Value Arith::IntBinary(BinaryOp op, const Value& a, const Value& b) const {
  Value r{.c = {.i = EvalInt(op, a.c.i, b.c.i)}, .undefined = FirstUndefined(a, b)};
  if (a.err == 0 && b.err == 0) return r;
  const double x = static_cast<double>(a.c.i), y = static_cast<double>(b.c.i);
  switch (op) {
    case BinaryOp::kAdd:
    case BinaryOp::kSub:
      r.err = a.err + b.err;
      break;
    case BinaryOp::kMul:
      r.err = std::fabs(x) * b.err + std::fabs(y) * a.err + a.err * b.err;
      break;
    case BinaryOp::kMin:
    case BinaryOp::kMax:
      r.err = ErrorOfPick(x, a.err, y, b.err, r.c.i == a.c.i);
      break;
    // An uncertain side matters only where the other one does not decide.
    case BinaryOp::kAnd:
      r.err = (a.err > 0 && (b.c.i || b.err > 0)) || (b.err > 0 && (a.c.i || a.err > 0));
      break;
    case BinaryOp::kOr:
      r.err = (a.err > 0 && (!b.c.i || b.err > 0)) || (b.err > 0 && (!a.c.i || a.err > 0));
      break;
    default:
      r.err = IsComparison(op) ? Crosses(x, y, a.err + b.err) : kInf;
      break;
  }
  return r;
}

Value Arith::Call(MathFn fn, ScalarType type, const Value& a, const Value& b) const {
  const bool two = fn == MathFn::kPow;
  const BufferId undefined = two ? FirstUndefined(a, b) : a.undefined;
  if (!IsFloat(type)) {  // only abs
    Value r = a;
    if (a.c.i < 0) r.c.i = EvalInt(BinaryOp::kSub, 0, a.c.i);
    return r;
  }
  const double v = Apply(fn, a.c.f, b.c.f);
  if (!exact_) return Finish(v, 0, 0, type, undefined);
  const double prop = PropagateError(fn, v, a.c.f, a.err, b.c.f, two ? b.err : 0);
  const FnError e = ErrorOf(fn);
  // Exact steps (abs, floor) and an exact argument at infinity stay exact.
  if (prop == 0 && (e.ulps == 0 || std::isinf(a.c.f))) {
    return Value{.c = {.f = v}, .undefined = undefined};
  }
  if (e.ulps == 0) return Value{.c = {.f = v}, .err = prop, .undefined = undefined};
  const double eps = ComputeEps(type);
  const double own =
      eps * (e.ulps * std::fabs(v) + e.absolute + e.argument * std::fabs(a.c.f * v)) +
      (type == ScalarType::kF32 ? static_cast<double>(FLT_MIN) : 0);  // results may flush to zero
  Value r = Finish(v, prop, own, type, undefined);
  if (v == 0) r.err = std::max(r.err, own);
  return r;
}

Value Arith::Convert(DType to, ScalarType from, const Value& a) const {
  if (IsFloat(from)) {
    if (IsFloat(to)) return RoundFloat(to, from, a);
    if (to == DType::kBool) {
      return BoolOf(a.c.f != 0, exact_ && Crosses(a.c.f, 0, a.err), a.undefined);
    }
    return FloatToInt(to, a);
  }
  if (IsFloat(to)) {
    Value r = a;
    r.c.f = static_cast<double>(a.c.i);
    return RoundFloat(to, ScalarType::kF64, r);
  }
  Value r = a;
  if (to == DType::kBool) {
    r.err = Crosses(static_cast<double>(a.c.i), 0, a.err);
    r.c.i = a.c.i != 0;
  } else if (from == ScalarType::kInt) {
    r.c.i = WrapTo(to, a.c.i);
  }
  return r;
}

Value Arith::RoundFloat(DType to, ScalarType from, const Value& a) const {
  if (to == DType::kF64 || (to == DType::kF32 && from == ScalarType::kF32)) return a;
  Value r = a;
  if (!exact_) {
    r.c.f = to == DType::kF32 ? static_cast<double>(static_cast<float>(a.c.f)) : RoundTo(to, a.c.f);
    return r;
  }
  const double rounded = RoundTo(to, a.c.f);
  if (a.err == 0 && (rounded == a.c.f || std::isnan(rounded))) return r;
  if (!std::isfinite(a.c.f) && a.err == 0) {  // infinity to fp8: the largest number
    r.c.f = rounded;
    return r;
  }
  const double half = 0.5 * Epsilon(to);
  r.err = a.err + half * (std::fabs(a.c.f) + a.err) + 0.5 * SmallestSubnormal(to);
  const double max = MaxValue(to);
  if (to == DType::kE4M3 || to == DType::kE5M2) {  // saturates
    r.c.f = std::clamp(a.c.f, -max, max);
  } else if (std::fabs(a.c.f) + a.err > max) {
    const bool surely = std::isinf(rounded) && std::isinf(RoundTo(to, std::fabs(a.c.f) - a.err));
    if (surely) r.c.f = rounded;
    if (surely || rounded != MaxValue(to)) r.err = surely ? 0 : kInf;
  }
  return r;
}

int64_t TruncateTo(DType t, double v) {
  if (std::isnan(v)) return 0;
  if (t == DType::kI64) {
    if (v >= 0x1p63) return std::numeric_limits<int64_t>::max();
    if (v <= -0x1p63) return std::numeric_limits<int64_t>::min();
    return static_cast<int64_t>(v);
  }
  return static_cast<int64_t>(std::clamp(v, MinValue(t), MaxValue(t)));
}

Value Arith::FloatToInt(DType to, const Value& a) const {
  Value r{.c = {.i = TruncateTo(to, a.c.f)}, .undefined = a.undefined};
  if (a.err == 0) return r;
  const double v = static_cast<double>(r.c.i);
  const double low = static_cast<double>(TruncateTo(to, a.c.f - a.err));
  const double high = static_cast<double>(TruncateTo(to, a.c.f + a.err));
  r.err = std::max(v - low, high - v);
  return r;
}

}  // namespace tl::reference
