#include "ir/expr.h"

#include <cmath>
#include <utility>

namespace tl {
namespace {

ExprRef Node(Expr::Node node, ScalarType type, Span span) {
  return std::make_shared<const Expr>(Expr{std::move(node), type, span});
}

const double* FloatValue(const ExprRef& e) {
  const FloatLit* lit = As<FloatLit>(e);
  return lit ? &lit->value : nullptr;
}

const bool* BoolValue(const ExprRef& e) {
  const BoolLit* lit = As<BoolLit>(e);
  return lit ? &lit->value : nullptr;
}

int64_t Wrap(unsigned __int128 v) { return static_cast<int64_t>(static_cast<uint64_t>(v)); }

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

// Identities that keep index expressions short: x+0, x-0, x*1, x*0, x/1, 0/x for ints.
ExprRef FoldIntIdentity(BinaryOp op, const ExprRef& a, const ExprRef& b) {
  const int64_t* x = IntValue(a);
  const int64_t* y = IntValue(b);
  switch (op) {
    case BinaryOp::kAdd:
      if (x && *x == 0) return b;
      if (y && *y == 0) return a;
      return nullptr;
    case BinaryOp::kSub:
      return y && *y == 0 ? a : nullptr;
    case BinaryOp::kMul:
      if ((x && *x == 0) || (y && *y == 0)) return MakeInt(0);
      if (x && *x == 1) return b;
      return y && *y == 1 ? a : nullptr;
    case BinaryOp::kDiv:
    case BinaryOp::kCeilDiv:
      return y && *y == 1 ? a : nullptr;
    case BinaryOp::kMod:
      return y && *y == 1 ? MakeInt(0) : nullptr;
    default:
      return nullptr;
  }
}

ExprRef FoldBool(BinaryOp op, const ExprRef& a, const ExprRef& b) {
  const bool* x = BoolValue(a);
  const bool* y = BoolValue(b);
  if (op == BinaryOp::kAnd) {
    if (x) return *x ? b : a;
    if (y && *y) return a;
  }
  if (op == BinaryOp::kOr) {
    if (x) return *x ? a : b;
    if (y && !*y) return a;
  }
  if (x && y && op == BinaryOp::kEq) return MakeBool(*x == *y);
  if (x && y && op == BinaryOp::kNe) return MakeBool(*x != *y);
  return nullptr;
}

ExprRef FoldFloat(BinaryOp op, double a, double b, ScalarType type, Span span) {
  if (IsComparison(op)) return MakeBool(Compare(op, a, b), span);
  auto make = [&](double v) { return MakeFloat(v, type, span); };
  // Single-precision operations of single-precision values round once, so double arithmetic
  // followed by rounding gives the same bits for these four operators.
  switch (op) {
    case BinaryOp::kAdd:
      return make(a + b);
    case BinaryOp::kSub:
      return make(a - b);
    case BinaryOp::kMul:
      return make(a * b);
    case BinaryOp::kDiv:
      return make(a / b);
    case BinaryOp::kMin:
      return make(std::fmin(a, b));
    case BinaryOp::kMax:
      return make(std::fmax(a, b));
    default:
      return nullptr;
  }
}

bool EqualLists(const std::vector<ExprRef>& a, const std::vector<ExprRef>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!Equal(a[i], b[i])) return false;
  }
  return true;
}

// Compares a node with another of the same kind.
struct SameNode {
  const Expr& other;
  template <typename T>
  const T& same(const T&) const {
    return std::get<T>(other.node);
  }
  bool operator()(const IntLit& x) const { return x.value == same(x).value; }
  bool operator()(const FloatLit& x) const {
    const double y = same(x).value;
    return x.value == y ? std::signbit(x.value) == std::signbit(y)
                        : std::isnan(x.value) && std::isnan(y);
  }
  bool operator()(const BoolLit& x) const { return x.value == same(x).value; }
  bool operator()(const VarRef& x) const { return x.var == same(x).var; }
  bool operator()(const Unary& x) const { return x.op == same(x).op && Equal(x.arg, same(x).arg); }
  bool operator()(const Binary& x) const {
    const Binary& y = same(x);
    return x.op == y.op && Equal(x.lhs, y.lhs) && Equal(x.rhs, y.rhs);
  }
  bool operator()(const Select& x) const {
    const Select& y = same(x);
    return Equal(x.cond, y.cond) && Equal(x.yes, y.yes) && Equal(x.no, y.no);
  }
  bool operator()(const Call& x) const {
    return x.fn == same(x).fn && EqualLists(x.args, same(x).args);
  }
  bool operator()(const Cast& x) const { return x.to == same(x).to && Equal(x.arg, same(x).arg); }
  bool operator()(const Load& x) const {
    return x.buffer == same(x).buffer && EqualLists(x.index, same(x).index);
  }
  bool operator()(const PartsBound& x) const {
    const PartsBound& y = same(x);
    return x.launch == y.launch && x.end == y.end && Equal(x.item, y.item);
  }
  bool operator()(const IsAligned& x) const {
    return x.buffer == same(x).buffer && x.bytes == same(x).bytes;
  }
};

}  // namespace

int64_t EvalInt(BinaryOp op, int64_t a, int64_t b) {
  const auto ua = static_cast<uint64_t>(a);
  const auto ub = static_cast<uint64_t>(b);
  switch (op) {
    case BinaryOp::kAdd:
      return static_cast<int64_t>(ua + ub);
    case BinaryOp::kSub:
      return static_cast<int64_t>(ua - ub);
    case BinaryOp::kMul:
      return Wrap(static_cast<unsigned __int128>(ua) * ub);
    case BinaryOp::kDiv:
    case BinaryOp::kMod: {
      if (b == 0) return 0;
      if (b == -1) return op == BinaryOp::kDiv ? static_cast<int64_t>(0 - ua) : 0;
      int64_t q = a / b;
      int64_t r = a % b;
      if (r != 0 && (r < 0) != (b < 0)) {
        q -= 1;
        r += b;
      }
      return op == BinaryOp::kDiv ? q : r;
    }
    case BinaryOp::kCeilDiv: {
      if (b == 0) return 0;
      const int64_t q = EvalInt(BinaryOp::kDiv, a, b);
      return EvalInt(BinaryOp::kMod, a, b) == 0 ? q : q + 1;
    }
    case BinaryOp::kMin:
      return a < b ? a : b;
    case BinaryOp::kMax:
      return a > b ? a : b;
    case BinaryOp::kBitAnd:
      return a & b;
    case BinaryOp::kBitOr:
      return a | b;
    case BinaryOp::kBitXor:
      return a ^ b;
    case BinaryOp::kShl:
      return static_cast<int64_t>(ua << (ub & 63));
    case BinaryOp::kShr:
      return a >> (ub & 63);
    case BinaryOp::kAnd:
      return a && b;
    case BinaryOp::kOr:
      return a || b;
    default:
      return Compare(op, a, b);
  }
}

ExprRef MakeInt(int64_t value, Span span) { return Node(IntLit{value}, ScalarType::kInt, span); }

ExprRef MakeFloat(double value, ScalarType type, Span span) {
  if (type == ScalarType::kF32) value = static_cast<float>(value);
  return Node(FloatLit{value}, type, span);
}

ExprRef MakeBool(bool value, Span span) { return Node(BoolLit{value}, ScalarType::kBool, span); }

ExprRef MakeVar(VarId var, ScalarType type, Span span) { return Node(VarRef{var}, type, span); }

ExprRef MakeUnary(UnaryOp op, ExprRef arg, Span span) {
  if (op == UnaryOp::kNot) {
    if (const bool* b = BoolValue(arg)) return MakeBool(!*b, span);
  } else if (const int64_t* i = IntValue(arg)) {
    return MakeInt(EvalInt(BinaryOp::kSub, 0, *i), span);
  } else if (const double* f = FloatValue(arg)) {
    return MakeFloat(-*f, arg->type, span);
  }
  const ScalarType type = arg->type;
  return Node(Unary{op, std::move(arg)}, type, span);
}

ExprRef MakeBinary(BinaryOp op, ExprRef lhs, ExprRef rhs, Span span) {
  const ScalarType operand_type = lhs->type;
  const ScalarType type = IsComparison(op) ? ScalarType::kBool : operand_type;
  if (operand_type == ScalarType::kInt) {
    const int64_t* a = IntValue(lhs);
    const int64_t* b = IntValue(rhs);
    const bool divides = op == BinaryOp::kDiv || op == BinaryOp::kMod || op == BinaryOp::kCeilDiv;
    if (a && b && !(divides && *b == 0)) {
      const int64_t v = EvalInt(op, *a, *b);
      return IsComparison(op) ? MakeBool(v != 0, span) : MakeInt(v, span);
    }
    if (ExprRef folded = FoldIntIdentity(op, lhs, rhs)) return folded;
  } else if (operand_type == ScalarType::kBool) {
    if (ExprRef folded = FoldBool(op, lhs, rhs)) return folded;
  } else if (const double* a = FloatValue(lhs), *b = FloatValue(rhs); a && b) {
    if (ExprRef folded = FoldFloat(op, *a, *b, operand_type, span)) return folded;
  }
  return Node(Binary{op, std::move(lhs), std::move(rhs)}, type, span);
}

ExprRef MakeSelect(ExprRef cond, ExprRef yes, ExprRef no, Span span) {
  if (const bool* b = BoolValue(cond)) return *b ? yes : no;
  const ScalarType type = yes->type;
  return Node(Select{std::move(cond), std::move(yes), std::move(no)}, type, span);
}

ExprRef MakeCall(MathFn fn, std::vector<ExprRef> args, Span span) {
  const ScalarType type = args[0]->type;
  return Node(Call{fn, std::move(args)}, type, span);
}

ExprRef MakeCast(DType to, ExprRef arg, Span span) {
  const ScalarType type = ComputeType(to);
  if (const int64_t* i = IntValue(arg)) {
    if (type == ScalarType::kInt) return MakeInt(WrapTo(to, *i), span);
    if (IsFloat(type)) return MakeFloat(RoundTo(to, static_cast<double>(*i)), type, span);
  } else if (const double* f = FloatValue(arg); f && IsFloat(type)) {
    return MakeFloat(RoundTo(to, *f), type, span);
  }
  // Widening to the type it already has changes nothing.
  // Nor does rounding a second time.
  if (const Cast* inner = As<Cast>(arg); inner && inner->to == to) return arg;
  const bool whole =
      to == DType::kBool || to == DType::kI64 || to == DType::kF32 || to == DType::kF64;
  if (whole && arg->type == type) return arg;
  return Node(Cast{to, std::move(arg)}, type, span);
}

ExprRef MakeLoad(BufferId buffer, DType dtype, std::vector<ExprRef> index, Span span) {
  return Node(Load{buffer, std::move(index)}, ComputeType(dtype), span);
}

ExprRef MakePartsBound(int launch, ExprRef item, bool end, Span span) {
  return Node(PartsBound{launch, std::move(item), end}, ScalarType::kInt, span);
}
ExprRef MakeIsAligned(BufferId buffer, int bytes, Span span) {
  return Node(IsAligned{buffer, bytes}, ScalarType::kBool, span);
}

const int64_t* IntValue(const ExprRef& e) {
  const IntLit* lit = As<IntLit>(e);
  return lit ? &lit->value : nullptr;
}

bool IsInt(const ExprRef& e, int64_t value) {
  const int64_t* v = IntValue(e);
  return v && *v == value;
}

std::string_view Name(MathFn fn) {
  switch (fn) {
    case MathFn::kExp:
      return "exp";
    case MathFn::kExp2:
      return "exp2";
    case MathFn::kLog:
      return "log";
    case MathFn::kLog2:
      return "log2";
    case MathFn::kSqrt:
      return "sqrt";
    case MathFn::kRsqrt:
      return "rsqrt";
    case MathFn::kTanh:
      return "tanh";
    case MathFn::kErf:
      return "erf";
    case MathFn::kSigmoid:
      return "sigmoid";
    case MathFn::kSin:
      return "sin";
    case MathFn::kCos:
      return "cos";
    case MathFn::kPow:
      return "pow";
    case MathFn::kAbs:
      return "abs";
    case MathFn::kFloor:
      return "floor";
    case MathFn::kCeil:
      return "ceil";
    case MathFn::kRound:
      return "round";
    case MathFn::kFin:
      return "fin";
  }
  return "?";
}

std::string_view Symbol(BinaryOp op) {
  switch (op) {
    case BinaryOp::kAdd:
      return "+";
    case BinaryOp::kSub:
      return "-";
    case BinaryOp::kMul:
      return "*";
    case BinaryOp::kDiv:
      return "/";
    case BinaryOp::kMod:
      return "%";
    case BinaryOp::kCeilDiv:
      return "ceildiv";
    case BinaryOp::kMin:
      return "min";
    case BinaryOp::kMax:
      return "max";
    case BinaryOp::kAnd:
      return "and";
    case BinaryOp::kOr:
      return "or";
    case BinaryOp::kBitAnd:
      return "&";
    case BinaryOp::kBitOr:
      return "|";
    case BinaryOp::kBitXor:
      return "^";
    case BinaryOp::kShl:
      return "<<";
    case BinaryOp::kShr:
      return ">>";
    case BinaryOp::kLt:
      return "<";
    case BinaryOp::kLe:
      return "<=";
    case BinaryOp::kGt:
      return ">";
    case BinaryOp::kGe:
      return ">=";
    case BinaryOp::kEq:
      return "==";
    case BinaryOp::kNe:
      return "!=";
  }
  return "?";
}

std::string_view Symbol(UnaryOp op) { return op == UnaryOp::kNeg ? "-" : "not"; }

bool IsCallLike(BinaryOp op) {
  return op == BinaryOp::kMin || op == BinaryOp::kMax || op == BinaryOp::kCeilDiv;
}

bool IsComparison(BinaryOp op) { return op >= BinaryOp::kLt; }

bool Equal(const ExprRef& a, const ExprRef& b) {
  if (a == b) return true;
  if (!a || !b || a->type != b->type || a->node.index() != b->node.index()) return false;
  return std::visit(SameNode{*b}, a->node);
}

}  // namespace tl
