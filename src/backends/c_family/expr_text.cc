#include "backends/c_family/expr_text.h"

#include <bit>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tl {
namespace {

bool IsInt(CType t) { return t == CType::kI32 || t == CType::kI64; }

Text CallText(std::string_view name, std::initializer_list<std::string_view> args, CType type,
              Range range = {}) {
  std::string text = absl::StrCat(name, "(");
  const char* comma = "";
  for (std::string_view a : args) {
    absl::StrAppend(&text, comma, a);
    comma = ", ";
  }
  return {text + ")", kPostfix, type, range};
}

// A C cast; `t` is any type name.
Text Converted(const Text& x, std::string_view t, CType type, Range range = {}) {
  return {absl::StrCat("(", t, ")", Wrap(x, kPrefix)), kPrefix, type, range};
}

Text Widened(const Text& x) {
  return x.type == CType::kI64 ? x : Converted(x, "long long", CType::kI64, x.range);
}

struct Operator {
  std::string_view symbol;
  int precedence;
};

std::optional<Operator> COperator(BinaryOp op) {
  switch (op) {
    case BinaryOp::kAdd:
      return Operator{"+", kSum};
    case BinaryOp::kSub:
      return Operator{"-", kSum};
    case BinaryOp::kMul:
      return Operator{"*", kProduct};
    case BinaryOp::kDiv:
      return Operator{"/", kProduct};
    case BinaryOp::kMod:
      return Operator{"%", kProduct};
    case BinaryOp::kAnd:
      return Operator{"&&", kAndAnd};
    case BinaryOp::kOr:
      return Operator{"||", kOrOr};
    case BinaryOp::kBitAnd:
      return Operator{"&", kBitAnd};
    case BinaryOp::kBitOr:
      return Operator{"|", kBitOr};
    case BinaryOp::kBitXor:
      return Operator{"^", kBitXor};
    case BinaryOp::kShl:
      return Operator{"<<", kShift};
    case BinaryOp::kShr:
      return Operator{">>", kShift};
    case BinaryOp::kLt:
      return Operator{"<", kRelation};
    case BinaryOp::kLe:
      return Operator{"<=", kRelation};
    case BinaryOp::kGt:
      return Operator{">", kRelation};
    case BinaryOp::kGe:
      return Operator{">=", kRelation};
    case BinaryOp::kEq:
      return Operator{"==", kEquality};
    case BinaryOp::kNe:
      return Operator{"!=", kEquality};
    case BinaryOp::kCeilDiv:
    case BinaryOp::kMin:
    case BinaryOp::kMax:
      return std::nullopt;
  }
  return std::nullopt;
}

bool IsBitwise(int precedence) { return kBitOr <= precedence && precedence <= kBitAnd; }

// All C operators here group to the left. Among shifts and bit operators nobody knows the
// precedence by heart: there every operand that is an operation has parentheses.
Text Infix(const Operator& op, const Text& a, const Text& b, CType type, Range range = {}) {
  const bool bits = op.precedence == kShift || IsBitwise(op.precedence);
  const bool chain = bits && a.precedence == op.precedence;
  const int left = bits && !chain ? kPrefix : op.precedence;
  const int right = bits ? kPrefix : op.precedence + 1;
  return {absl::StrCat(Wrap(a, left), " ", op.symbol, " ", Wrap(b, right)), op.precedence, type,
          range};
}

// The prelude function that does an int operator with all the language's guarantees.
std::string_view IntFunction(BinaryOp op) {
  switch (op) {
    case BinaryOp::kAdd:
      return "tl_add";
    case BinaryOp::kSub:
      return "tl_sub";
    case BinaryOp::kMul:
      return "tl_mul";
    case BinaryOp::kDiv:
      return "tl_floor_div";
    case BinaryOp::kMod:
      return "tl_floor_mod";
    case BinaryOp::kCeilDiv:
      return "tl_ceil_div";
    case BinaryOp::kShl:
      return "tl_shl";
    case BinaryOp::kShr:
      return "tl_shr";
    default:
      return "";
  }
}

bool Divides(BinaryOp op) {
  return op == BinaryOp::kDiv || op == BinaryOp::kMod || op == BinaryOp::kCeilDiv;
}

// Quotient or remainder of a number that is not negative. Powers of two are shifts and masks: C's
// signed division by them corrects for signs that the compiler does not know to be absent.
Text PlainDivide(BinaryOp op, const Text& a, const Text& b, CType type, Range range) {
  const int64_t n = b.range.lo;
  const bool power = n == b.range.hi && n > 0 && (n & (n - 1)) == 0;
  if (!power) return Infix(*COperator(op), a, b, type, range);
  if (op == BinaryOp::kMod) return Infix({"&", kBitAnd}, a, IntText(n - 1), type, range);
  return Infix({">>", kShift}, a, IntText(std::countr_zero(static_cast<uint64_t>(n))), type, range);
}

// (a + (b - 1)) / b for a literal b: no division function, and b stands there only as a number.
Text PlainCeilDiv(const Text& a, int64_t b, CType type, Range range) {
  const Text sum = Infix({"+", kSum}, a, IntText(b - 1), type);
  return PlainDivide(BinaryOp::kDiv, sum, IntText(b), type, range);
}

bool IsShift(BinaryOp op) { return op == BinaryOp::kShl || op == BinaryOp::kShr; }

bool IsNarrowFloat(DType t) { return IsFloat(t) && SizeOf(t) <= 2; }

// An element of a narrow float type made of any value. What is no float goes through double, which
// holds it exactly up to 2^53, so that it is rounded once.
std::string RoundedText(const Text& x, DType t) {
  std::string value = x.text;
  if (x.type != CType::kF32 && x.type != CType::kF64) {
    const bool small = x.range.lo >= -(1 << 24) && x.range.hi <= (1 << 24);
    const bool single = x.type == CType::kBool || small;
    value = Converted(x, single ? "float" : "double", CType::kF64).text;
  }
  return absl::StrCat("tl_to_", Suffix(t), "(", value, ")");
}

// Names of the C library's functions, without the f that the float ones end in.
std::string_view CFunction(MathFn fn) {
  switch (fn) {
    case MathFn::kAbs:
      return "fabs";
    case MathFn::kRound:
      return "rint";
    default:
      return tl::Name(fn);
  }
}

}  // namespace

StatusOr<Text> ExprEmitter::Emit(const ExprRef& e) const { return EmitNode(*e); }

StatusOr<std::string> ExprEmitter::Emit(const ExprRef& e, int precedence) const {
  TL_ASSIGN_OR_RETURN(Text text, EmitNode(*e));
  return Wrap(text, precedence);
}

StatusOr<Text> ExprEmitter::EmitNode(const Expr& e) const {
  if (const auto* x = std::get_if<IntLit>(&e.node)) return IntText(x->value);
  if (const auto* x = std::get_if<FloatLit>(&e.node)) return FloatText(x->value, CTypeOf(e.type));
  if (const auto* x = std::get_if<BoolLit>(&e.node)) {
    return Text{x->value ? "true" : "false", kPostfix, CType::kBool, {}};
  }
  if (const auto* x = std::get_if<VarRef>(&e.node)) {
    const Names::Variable& v = names_.vars[x->var];
    if (v.name.empty()) {
      return absl::InternalError(
          absl::StrCat("variable '", module_.var(x->var).name, "' is used outside its scope"));
    }
    return Text{v.name, kPostfix, v.type, v.range};
  }
  if (const auto* x = std::get_if<Unary>(&e.node)) return EmitUnary(*x);
  if (const auto* x = std::get_if<Binary>(&e.node)) return EmitBinary(*x);
  if (const auto* x = std::get_if<Select>(&e.node)) return EmitSelect(*x);
  if (const auto* x = std::get_if<Call>(&e.node)) return EmitCall(*x, e.type);
  if (const auto* x = std::get_if<Cast>(&e.node)) return EmitCast(*x);
  if (const auto* x = std::get_if<Load>(&e.node)) return EmitLoad(*x);
  if (const auto* x = std::get_if<IsAligned>(&e.node)) {
    const std::string function = absl::StrCat("tl_is_aligned<", x->bytes, ">");
    return CallText(function, {names_.buffers[x->buffer]}, CType::kBool);
  }
  return absl::InternalError(
      "an expression that lowering should have expanded reached the emitter");
}

StatusOr<Text> ExprEmitter::EmitUnary(const Unary& u) const {
  TL_ASSIGN_OR_RETURN(Text x, Emit(u.arg));
  if (u.op == UnaryOp::kNot) return Text{absl::StrCat("!", Wrap(x, kPrefix)), kPrefix, x.type, {}};
  if (IsInt(x.type)) return EmitInt(BinaryOp::kSub, IntText(0), x);
  // Not kPrefix: "--" is an operator of C.
  return Text{absl::StrCat("-", Wrap(x, kPostfix)), kPrefix, x.type, {}};
}

StatusOr<Text> ExprEmitter::EmitBinary(const Binary& b) const {
  TL_ASSIGN_OR_RETURN(Text x, Emit(b.lhs));
  TL_ASSIGN_OR_RETURN(Text y, Emit(b.rhs));
  const std::optional<Operator> op = COperator(b.op);
  if (op && (IsComparison(b.op) || b.op == BinaryOp::kAnd || b.op == BinaryOp::kOr)) {
    return Infix(*op, x, y, CType::kBool);
  }
  if (IsInt(x.type)) return EmitInt(b.op, x, y);
  if (x.type == CType::kBool) {  // the bit operators and min, max of bools
    const bool both = b.op == BinaryOp::kBitAnd || b.op == BinaryOp::kMin;
    if (b.op == BinaryOp::kBitXor) return Infix({"!=", kEquality}, x, y, CType::kBool);
    return Infix(both ? Operator{"&&", kAndAnd} : Operator{"||", kOrOr}, x, y, CType::kBool);
  }
  if (op) return Infix(*op, x, y, x.type);
  // fmin and fmax give the number where one side is NaN, as the language wants.
  std::string name = b.op == BinaryOp::kMin ? "fmin" : "fmax";
  if (x.type == CType::kF32) name += "f";
  return CallText(name, {x.text, y.text}, x.type);
}

StatusOr<Text> ExprEmitter::EmitInt(BinaryOp op, const Text& a, const Text& b) const {
  const Range range = Apply(op, a.range, b.range);
  // In C the left side alone makes the type of a shift, and the count stays below its width.
  const bool narrow = a.type == CType::kI32 && b.type == CType::kI32 && range.Fits32() &&
                      (!IsShift(op) || b.range.hi < 32);
  const CType type = narrow ? CType::kI32 : CType::kI64;
  if (op == BinaryOp::kMin || op == BinaryOp::kMax) {
    // Overloaded for int and long long: both arguments must be of one type.
    const bool widen = a.type != b.type;
    const Text x = widen ? Widened(a) : a;
    const Text y = widen ? Widened(b) : b;
    return CallText(op == BinaryOp::kMin ? "tl_min" : "tl_max", {x.text, y.text}, x.type, range);
  }
  if (Divides(op) && !PlainDivision(a.range, b.range)) {
    return CallText(IntFunction(op), {a.text, b.text}, CType::kI64, range);
  }
  if (range.wraps) return CallText(IntFunction(op), {a.text, b.text}, CType::kI64, range);
  if (op == BinaryOp::kCeilDiv) {
    const bool literal = b.range.lo == b.range.hi;
    const Range sum = literal ? Apply(BinaryOp::kAdd, a.range, Exactly(b.range.lo - 1)) : Range{};
    if (!literal || sum.wraps) {
      return CallText(IntFunction(op), {a.text, b.text}, CType::kI64, range);
    }
    if (narrow && sum.Fits32()) return PlainCeilDiv(a, b.range.lo, CType::kI32, range);
    return PlainCeilDiv(Widened(a), b.range.lo, CType::kI64, range);
  }
  // C computes in the wider type of the two sides, so one of them has to be as wide as the result.
  const bool widen = !narrow && a.type == CType::kI32 && (b.type == CType::kI32 || IsShift(op));
  // `0 - x` reads as a negation.
  if (op == BinaryOp::kSub && a.text == "0" && a.range.hi == 0) {
    const Text x = widen ? Widened(b) : b;
    return Text{absl::StrCat("-", Wrap(x, kPostfix)), kPrefix, type, range};
  }
  // A literal divisor vanishes into a shift or a mask and makes nothing wide.
  const bool literal = b.range.lo == b.range.hi;
  const bool narrow_dividend = widen || (!narrow && a.type == CType::kI32 && literal);
  if (Divides(op)) return PlainDivide(op, narrow_dividend ? Widened(a) : a, b, type, range);
  return Infix(*COperator(op), widen ? Widened(a) : a, b, type, range);
}

StatusOr<Text> ExprEmitter::EmitSelect(const Select& s) const {
  TL_ASSIGN_OR_RETURN(Text c, Emit(s.cond));
  TL_ASSIGN_OR_RETURN(Text x, Emit(s.yes));
  TL_ASSIGN_OR_RETURN(Text y, Emit(s.no));
  const CType type = x.type == CType::kI32 ? y.type : x.type;
  // Both sides of one type: which one a conditional expression has is no matter of taste in C++.
  const auto side = [&](const Text& t, int precedence) {
    return t.type == type ? Wrap(t, precedence)
                          : absl::StrCat("(", Name(type), ")", Wrap(t, kPrefix));
  };
  return Text{absl::StrCat(Wrap(c, kOrOr), " ? ", side(x, kOrOr), " : ", side(y, kTernary)),
              kTernary, type, Union(x.range, y.range)};
}

StatusOr<Text> ExprEmitter::EmitCall(const Call& c, ScalarType type) const {
  TL_ASSIGN_OR_RETURN(Text x, Emit(c.args[0]));
  if (c.fn == MathFn::kAbs && IsInt(x.type)) {
    return CallText("tl_abs", {x.text}, CType::kI64, Range{Range::kMin, Range::kMax, true});
  }
  if (c.fn == MathFn::kFin || c.fn == MathFn::kSigmoid || c.fn == MathFn::kExp2) {
    return CallText(absl::StrCat("tl_", tl::Name(c.fn)), {x.text}, x.type);
  }
  std::string name(CFunction(c.fn));
  if (CTypeOf(type) == CType::kF32) name += "f";
  if (c.fn != MathFn::kPow) return CallText(name, {x.text}, x.type);
  TL_ASSIGN_OR_RETURN(Text y, Emit(c.args[1]));
  return CallText(name, {x.text, y.text}, x.type);
}

StatusOr<Text> ExprEmitter::EmitCast(const Cast& c) const {
  TL_ASSIGN_OR_RETURN(Text x, Emit(c.arg));
  const CType to = CTypeOf(ComputeType(c.to));
  if (c.to == DType::kBool) {
    if (x.type == CType::kBool) return x;
    const Text zero = IsInt(x.type) ? IntText(0) : FloatText(0, x.type);
    return Infix({"!=", kEquality}, x, zero, CType::kBool);
  }
  if (!IsFloat(c.to)) {
    if (x.type == CType::kBool) return Converted(x, "int", CType::kI32, Range{0, 1, true});
    if (!IsInt(x.type)) {
      const CType type = c.to == DType::kI64 || c.to == DType::kU32 ? CType::kI64 : CType::kI32;
      return CallText(absl::StrCat("tl_to_", Suffix(c.to)), {x.text}, type, RangeOf(c.to));
    }
    const Range limits = RangeOf(c.to);
    if (x.range.lo >= limits.lo && x.range.hi <= limits.hi) {
      const bool narrows = x.type == CType::kI64 && x.range.Fits32();
      return narrows ? Converted(x, "int", CType::kI32, x.range) : x;
    }
    const Text stored = Converted(x, StorageName(c.to), CType::kI32, limits);
    return c.to == DType::kU32 ? Widened(Text{stored.text, kPrefix, CType::kI32, limits}) : stored;
  }
  if (c.to == DType::kF32 || c.to == DType::kF64) {
    return x.type == to ? x : Converted(x, tl::Name(to), to);
  }
  return CallText("tl_f32", {RoundedText(x, c.to)}, CType::kF32);
}

StatusOr<std::string> ExprEmitter::EmitElement(BufferId buffer,
                                               const std::vector<ExprRef>& index) const {
  if (index.size() != 1) return absl::InternalError("an element of a lowered buffer has one index");
  if (names_.buffers[buffer].empty()) {
    return absl::InternalError(
        absl::StrCat("buffer '", module_.buffer(buffer).name, "' is used outside its scope"));
  }
  TL_ASSIGN_OR_RETURN(Text i, Emit(index[0]));
  return absl::StrCat(names_.buffers[buffer], "[", i.text, "]");
}

StatusOr<Text> ExprEmitter::EmitLoad(const Load& l) const {
  TL_ASSIGN_OR_RETURN(std::string element, EmitElement(l.buffer, l.index));
  const DType t = module_.buffer(l.buffer).dtype;
  const Text stored{element, kPostfix, CType::kI32, RangeOf(t)};
  switch (t) {
    case DType::kBool:
      return Infix({"!=", kEquality}, stored, IntText(0), CType::kBool);
    case DType::kU32:
      return Widened(stored);
    case DType::kI64:
      return Text{element, kPostfix, CType::kI64, RangeOf(t)};
    case DType::kF32:
      return Text{element, kPostfix, CType::kF32, {}};
    case DType::kF64:
      return Text{element, kPostfix, CType::kF64, {}};
    default:
      return IsFloat(t) ? CallText("tl_f32", {element}, CType::kF32) : stored;
  }
}

StatusOr<std::string> ExprEmitter::EmitStored(const ExprRef& value, DType t) const {
  // Rounding is what storing does: a cast to the same type around the value needs no widening
  // again.
  const Cast* cast = As<Cast>(value);
  if (cast != nullptr && cast->to == t && IsNarrowFloat(t)) {
    TL_ASSIGN_OR_RETURN(Text x, Emit(cast->arg));
    return RoundedText(x, t);
  }
  if (ComputeType(t) != value->type) {
    if (IsNarrowFloat(t)) {
      TL_ASSIGN_OR_RETURN(Text x, Emit(value));
      return RoundedText(x, t);
    }
    return EmitStored(MakeCast(t, value), t);
  }
  // Elements move between tensors and tiles of one type as they are.
  const Load* load = As<Load>(value);
  if (load != nullptr && module_.buffer(load->buffer).dtype == t)
    return EmitElement(load->buffer, load->index);
  const Select* select = As<Select>(value);
  if (select != nullptr && IsNarrowFloat(t)) {
    TL_ASSIGN_OR_RETURN(std::string c, Emit(select->cond, kOrOr));
    TL_ASSIGN_OR_RETURN(std::string yes, EmitStored(select->yes, t));
    TL_ASSIGN_OR_RETURN(std::string no, EmitStored(select->no, t));
    return absl::StrCat(c, " ? ", yes, " : ", no);
  }
  TL_ASSIGN_OR_RETURN(Text x, Emit(value));
  if (t == DType::kF32 || t == DType::kF64 || t == DType::kI64 || t == DType::kBool) return x.text;
  if (IsFloat(t)) return RoundedText(x, t);
  if (t == DType::kI32 && x.type == CType::kI32) return x.text;
  return Converted(x, StorageName(t), CType::kI32).text;
}

}  // namespace tl
