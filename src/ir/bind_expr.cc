// Scalar expressions: names, types, implicit conversions.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/binder.h"

namespace tl {

using syntax::ExprKind;

namespace {

struct Function {
  std::string_view name;
  MathFn fn;
};
constexpr Function kFunctions[] = {
    {"exp", MathFn::kExp},     {"exp2", MathFn::kExp2},   {"log", MathFn::kLog},
    {"log2", MathFn::kLog2},   {"sqrt", MathFn::kSqrt},   {"rsqrt", MathFn::kRsqrt},
    {"tanh", MathFn::kTanh},   {"erf", MathFn::kErf},     {"sigmoid", MathFn::kSigmoid},
    {"sin", MathFn::kSin},     {"cos", MathFn::kCos},     {"pow", MathFn::kPow},
    {"abs", MathFn::kAbs},     {"floor", MathFn::kFloor}, {"ceil", MathFn::kCeil},
    {"round", MathFn::kRound}, {"fin", MathFn::kFin},
};

struct Operator {
  std::string_view text;
  BinaryOp op;
};
constexpr Operator kOperators[] = {
    {"+", BinaryOp::kAdd},    {"-", BinaryOp::kSub},    {"*", BinaryOp::kMul},
    {"/", BinaryOp::kDiv},    {"%", BinaryOp::kMod},    {"and", BinaryOp::kAnd},
    {"or", BinaryOp::kOr},    {"&", BinaryOp::kBitAnd}, {"|", BinaryOp::kBitOr},
    {"^", BinaryOp::kBitXor}, {"<<", BinaryOp::kShl},   {">>", BinaryOp::kShr},
    {"<", BinaryOp::kLt},     {"<=", BinaryOp::kLe},    {">", BinaryOp::kGt},
    {">=", BinaryOp::kGe},    {"==", BinaryOp::kEq},    {"!=", BinaryOp::kNe},
};

const MathFn* FindFunction(std::string_view name) {
  for (const Function& f : kFunctions) {
    if (f.name == name) return &f.fn;
  }
  return nullptr;
}

bool WantsInts(BinaryOp op) {
  return op == BinaryOp::kMod || op == BinaryOp::kCeilDiv ||
         (op >= BinaryOp::kBitAnd && op <= BinaryOp::kShr);
}

Status WrongCount(const syntax::ExprRef& e, size_t want) {
  return SemanticError(
      e->span, absl::StrCat("'", e->text, "' takes ", want, want == 1 ? " argument" : " arguments",
                            ", not ", e->args.size()));
}

}  // namespace

ExprRef Binder::Settle(const Typed& t) {
  if (!t.loose) return t.expr;
  const FloatLit* lit = As<FloatLit>(t.expr);
  return lit ? MakeFloat(lit->value, ScalarType::kF32, t.expr->span) : t.expr;
}

StatusOr<ExprRef> Binder::Convert(const Typed& t, ScalarType type, Span span) {
  const ScalarType from = t.expr->type;
  if (t.loose && IsFloat(type)) return MakeFloat(As<FloatLit>(t.expr)->value, type, t.expr->span);
  if (from == type) return t.expr;
  if (IsFloat(type) && (IsFloat(from) || from == ScalarType::kInt)) {
    return MakeCast(type == ScalarType::kF64 ? DType::kF64 : DType::kF32, t.expr, span);
  }
  std::string hint;
  if (type == ScalarType::kInt) {
    hint = IsFloat(from) ? "; convert it with i32(…) or i64(…)" : "; write 'if … then 1 else 0'";
  } else if (type == ScalarType::kBool) {
    hint = "; compare it, as in '… != 0'";
  } else {
    hint = "; write 'if … then 1.0 else 0.0'";
  }
  return SemanticError(span, absl::StrCat("expected ", Name(type), ", found ",
                                          Name(t.loose ? ScalarType::kF32 : from), hint));
}

StatusOr<ScalarType> Binder::Unify(Typed& a, Typed& b, Span span, std::string_view what) {
  if (a.loose && b.loose) return ScalarType::kF64;  // stays a literal
  ScalarType type = std::max(a.expr->type, b.expr->type);
  if (a.loose || b.loose) type = a.loose ? b.expr->type : a.expr->type;
  if ((a.loose || b.loose) && type == ScalarType::kInt) type = ScalarType::kF32;
  const bool mixes_bool =
      (a.expr->type == ScalarType::kBool) != (b.expr->type == ScalarType::kBool);
  if (mixes_bool) {
    return SemanticError(
        span, absl::StrCat("the two sides of '", what, "' are ", Name(a.expr->type), " and ",
                           Name(b.expr->type), "; both must be bool or both numbers"));
  }
  TL_ASSIGN_OR_RETURN(a.expr, Convert(a, type, span));
  TL_ASSIGN_OR_RETURN(b.expr, Convert(b, type, span));
  a.loose = b.loose = false;
  return type;
}

// What the parser allows to be written, and once more for what constants bring along.
constexpr int kMaxHeight = 400;
// Together they keep the bound program a small multiple of its text.
constexpr int64_t kMaxExpanded = 1000000;

Status Binder::Expand(const Binding& symbol, Span span) {
  max_depth_ = std::max(max_depth_, depth_ + symbol.height);
  expanded_ += symbol.size;
  if (max_depth_ <= kMaxHeight && (symbol.size == 1 || expanded_ <= kMaxExpanded))
    return absl::OkStatus();
  return LimitError(span,
                    absl::StrCat("the constants and views named here make the expression ",
                                 max_depth_ > kMaxHeight
                                     ? absl::StrCat("more than ", kMaxHeight, " operations deep")
                                     : absl::StrCat("too long: more than ", kMaxExpanded,
                                                    " operations are copied in the program"),
                                 "; name the value inside the launch instead"));
}

StatusOr<Typed> Binder::BindTyped(const syntax::ExprRef& e) {
  max_depth_ = std::max(max_depth_, ++depth_);
  StatusOr<Typed> typed = BindNode(e);
  --depth_;
  return typed;
}

StatusOr<Typed> Binder::BindNode(const syntax::ExprRef& e) {
  switch (e->kind) {
    case ExprKind::kInt:
      return Typed{MakeInt(e->int_value, e->span)};
    case ExprKind::kFloat:
      return Typed{MakeFloat(e->float_value, ScalarType::kF64, e->span), true};
    case ExprKind::kBool:
      return Typed{MakeBool(e->int_value != 0, e->span)};
    case ExprKind::kName:
      return BindName(e);
    case ExprKind::kUnary:
      return BindUnary(e);
    case ExprKind::kBinary:
      return BindBinary(e);
    case ExprKind::kIf:
      return BindIf(e);
    case ExprKind::kCall:
      return BindCall(e);
    case ExprKind::kIndex:
      return BindLoad(e);
    case ExprKind::kAny:
      break;
  }
  return SemanticError(e->span, "'?' is only for the strides of a tensor");
}

StatusOr<Typed> Binder::BindName(const syntax::ExprRef& e) {
  const Binding* symbol = Lookup(e->text);
  if (!symbol) return UnknownName(e->text, e->span);
  switch (symbol->kind) {
    case Binding::Kind::kValue:
      TL_RETURN_IF_ERROR(Expand(*symbol, e->span));
      return Typed{symbol->value, symbol->loose};
    case Binding::Kind::kMutable:
      return Typed{MakeVar(symbol->var, module_.var(symbol->var).type, e->span)};
    case Binding::Kind::kDType:
      return SemanticError(
          e->span, absl::StrCat("'", e->text, "' is a dtype, not a value; use it as ", e->text,
                                "(…) or compare it with =="));
    case Binding::Kind::kEnum:
      return SemanticError(
          e->span, absl::StrCat("'", e->text, "' is one of {", absl::StrJoin(symbol->choices, ", "),
                                "}; compare it with =="));
    case Binding::Kind::kAbsent:
      return SemanticError(
          e->span,
          absl::StrCat("operand '", e->text, "' is left out because its condition at ",
                       FormatSpan(symbol->span), " is false; guard this with the same if"));
    case Binding::Kind::kBuffer:
    case Binding::Kind::kView:
      break;
  }
  return SemanticError(
      e->span, absl::StrCat("'", e->text, "' is a ",
                            symbol->kind == Binding::Kind::kView ? "view" : "tensor or tile",
                            ", not a number; name an element, as in ", e->text, "[…]"));
}

StatusOr<Typed> Binder::BindUnary(const syntax::ExprRef& e) {
  TL_ASSIGN_OR_RETURN(Typed arg, BindTyped(e->args[0]));
  if (e->text == "not") {
    if (arg.expr->type != ScalarType::kBool) {
      return SemanticError(e->span,
                           absl::StrCat("'not' takes a bool, found ", Name(arg.expr->type)));
    }
    return Typed{MakeUnary(UnaryOp::kNot, arg.expr, e->span)};
  }
  if (arg.expr->type == ScalarType::kBool)
    return SemanticError(e->span, "'-' takes a number, found bool");
  return Typed{MakeUnary(UnaryOp::kNeg, arg.expr, e->span), arg.loose};
}

// `t == bf16` and `act == relu`: nullopt when neither side is a dtype or enum name.
StatusOr<std::optional<bool>> Binder::CompareNames(const syntax::ExprRef& e) {
  if (e->text != "==" && e->text != "!=") return std::optional<bool>();
  auto named = [&](const syntax::ExprRef& x) -> const Binding* {
    return x->kind == ExprKind::kName ? Lookup(x->text) : nullptr;
  };
  for (int side = 0; side < 2; ++side) {
    const syntax::ExprRef& left = e->args[side];
    const syntax::ExprRef& right = e->args[1 - side];
    const Binding* symbol = named(left);
    if (!symbol) continue;
    if (symbol->kind == Binding::Kind::kEnum) {
      TL_ASSIGN_OR_RETURN(std::string other, BindChoice(right, left->text, symbol->choices));
      return std::optional<bool>((other == symbol->text) == (e->text == "=="));
    }
    if (symbol->kind == Binding::Kind::kDType) {
      if (right->kind != ExprKind::kName) {
        return SemanticError(right->span,
                             absl::StrCat("'", left->text, "' is a dtype; compare it with one"));
      }
      TL_ASSIGN_OR_RETURN(DType other, BindDType(right->text, right->span));
      return std::optional<bool>((other == symbol->dtype) == (e->text == "=="));
    }
  }
  return std::optional<bool>();
}

StatusOr<Typed> Binder::BindBinary(const syntax::ExprRef& e) {
  TL_ASSIGN_OR_RETURN(std::optional<bool> names, CompareNames(e));
  if (names.has_value()) return Typed{MakeBool(*names, e->span)};
  const auto* row = std::find_if(std::begin(kOperators), std::end(kOperators),
                                 [&](const Operator& o) { return o.text == e->text; });
  const BinaryOp op = row->op;
  TL_ASSIGN_OR_RETURN(Typed a, BindTyped(e->args[0]));
  const bool logic = op == BinaryOp::kAnd || op == BinaryOp::kOr;
  // `has_bias and bias[0] > 0`: what a literal decides is not looked at further, since it may name
  // what a compile-time condition leaves out.
  if (const BoolLit* known = As<BoolLit>(a.expr);
      logic && known && known->value == (op == BinaryOp::kOr)) {
    return a;
  }
  TL_ASSIGN_OR_RETURN(Typed b, BindTyped(e->args[1]));
  if (logic) {
    if (a.expr->type != ScalarType::kBool || b.expr->type != ScalarType::kBool) {
      return SemanticError(e->span, absl::StrCat("'", e->text, "' takes two bools, found ",
                                                 Name(a.expr->type), " and ", Name(b.expr->type)));
    }
    return Typed{MakeBinary(op, a.expr, b.expr, e->span)};
  }
  TL_ASSIGN_OR_RETURN(ScalarType type, Unify(a, b, e->span, e->text));
  if (WantsInts(op) && type != ScalarType::kInt) {
    return SemanticError(e->span,
                         absl::StrCat("'", e->text, "' takes two ints, found ", Name(type)));
  }
  if (type == ScalarType::kBool && op != BinaryOp::kEq && op != BinaryOp::kNe) {
    return SemanticError(e->span, absl::StrCat("'", e->text, "' takes two numbers, found bool"));
  }
  if ((op == BinaryOp::kDiv || op == BinaryOp::kMod) && type == ScalarType::kInt &&
      IsInt(b.expr, 0)) {
    return SemanticError(e->span, "division by zero");
  }
  return Typed{MakeBinary(op, a.expr, b.expr, e->span), a.loose && !IsComparison(op)};
}

StatusOr<Typed> Binder::BindIf(const syntax::ExprRef& e) {
  TL_ASSIGN_OR_RETURN(ExprRef cond, BindCondition(e->args[0]));
  if (const BoolLit* known = As<BoolLit>(cond)) return BindTyped(e->args[known->value ? 1 : 2]);
  TL_ASSIGN_OR_RETURN(Typed yes, BindTyped(e->args[1]));
  TL_ASSIGN_OR_RETURN(Typed no, BindTyped(e->args[2]));
  if (yes.loose && no.loose) {
    yes = {Settle(yes)};
    no = {Settle(no)};
  }
  TL_RETURN_IF_ERROR(Unify(yes, no, e->span, "if then else").status());
  return Typed{MakeSelect(cond, yes.expr, no.expr, e->span)};
}

StatusOr<Typed> Binder::BindCast(DType to, const syntax::ExprRef& e) {
  if (e->args.size() != 1) return WrongCount(e, 1);
  TL_ASSIGN_OR_RETURN(Typed arg, BindTyped(e->args[0]));
  if (to == DType::kBool && arg.expr->type != ScalarType::kBool) {
    return SemanticError(e->span, "a number becomes a bool by comparing it, as in '… != 0'");
  }
  const bool wide = to == DType::kF64;
  const ExprRef value = arg.loose && wide ? arg.expr : Settle(arg);
  return Typed{MakeCast(to, value, e->span)};
}

// Is its value known now? That of a dim is where the request fixes it.
StatusOr<Typed> Binder::BindKnown(const syntax::ExprRef& e) {
  if (e->args.size() != 1) return WrongCount(e, 1);
  TL_ASSIGN_OR_RETURN(Typed x, BindTyped(e->args[0]));
  const bool literal = As<IntLit>(x.expr) || As<BoolLit>(x.expr) || As<FloatLit>(x.expr);
  return Typed{MakeBool(literal, e->span)};
}

StatusOr<Typed> Binder::BindCall(const syntax::ExprRef& e) {
  if (std::optional<DType> to = ParseDType(e->text)) return BindCast(*to, e);
  if (const Binding* s = Lookup(e->text); s && s->kind == Binding::Kind::kDType)
    return BindCast(s->dtype, e);
  if (e->text == "parts") {
    return SemanticError(
        e->span, "parts(…) is allowed only as the range of a loop: 'serial p in parts(b) { … }'");
  }
  if (e->text == "known") return BindKnown(e);
  const size_t count = e->args.size();
  if (e->text == "min" || e->text == "max" || e->text == "ceildiv") {
    if (count != 2) return WrongCount(e, 2);
    TL_ASSIGN_OR_RETURN(Typed a, BindTyped(e->args[0]));
    TL_ASSIGN_OR_RETURN(Typed b, BindTyped(e->args[1]));
    TL_ASSIGN_OR_RETURN(ScalarType type, Unify(a, b, e->span, e->text));
    const BinaryOp op = e->text == "min"   ? BinaryOp::kMin
                        : e->text == "max" ? BinaryOp::kMax
                                           : BinaryOp::kCeilDiv;
    if (type == ScalarType::kBool || (op == BinaryOp::kCeilDiv && type != ScalarType::kInt)) {
      return SemanticError(e->span, absl::StrCat("'", e->text, "' takes two ",
                                                 op == BinaryOp::kCeilDiv ? "ints" : "numbers",
                                                 ", found ", Name(type)));
    }
    if (op == BinaryOp::kCeilDiv && IsInt(b.expr, 0))
      return SemanticError(e->span, "division by zero");
    return Typed{MakeBinary(op, a.expr, b.expr, e->span), a.loose};
  }
  if (e->text == "clamp") {
    if (count != 3) return WrongCount(e, 3);
    TL_ASSIGN_OR_RETURN(Typed x, BindTyped(e->args[0]));
    for (int i = 1; i <= 2; ++i) {
      TL_ASSIGN_OR_RETURN(Typed bound, BindTyped(e->args[i]));
      TL_ASSIGN_OR_RETURN(ScalarType type, Unify(x, bound, e->span, "clamp"));
      if (type == ScalarType::kBool)
        return SemanticError(e->span, "'clamp' takes numbers, found bool");
      x = {MakeBinary(i == 1 ? BinaryOp::kMax : BinaryOp::kMin, x.expr, bound.expr, e->span),
           x.loose};
    }
    return x;
  }
  const MathFn* fn = FindFunction(e->text);
  if (!fn) {
    const Binding* symbol = Lookup(e->text);
    if (symbol) return SemanticError(e->span, absl::StrCat("'", e->text, "' is not a function"));
    return SemanticError(
        e->span,
        absl::StrCat(
            "unknown function '", e->text,
            "'; there are abs, ceil, ceildiv, clamp, cos, erf, exp, exp2, fin, floor, "
            "known, log, log2, max, min, pow, round, rsqrt, sigmoid, sin, sqrt, tanh and the "
            "dtypes as casts"));
  }
  const size_t want = *fn == MathFn::kPow ? 2 : 1;
  if (count != want) return WrongCount(e, want);
  TL_ASSIGN_OR_RETURN(Typed a, BindTyped(e->args[0]));
  if (*fn == MathFn::kAbs && a.expr->type == ScalarType::kInt)
    return Typed{MakeCall(*fn, {a.expr}, e->span)};
  std::vector<ExprRef> args;
  if (want == 2) {
    TL_ASSIGN_OR_RETURN(Typed b, BindTyped(e->args[1]));
    if (a.loose && b.loose) a = {Settle(a)};
    TL_ASSIGN_OR_RETURN(ScalarType type, Unify(a, b, e->span, e->text));
    if (type == ScalarType::kInt) {
      TL_ASSIGN_OR_RETURN(b.expr, Convert(b, ScalarType::kF32, e->span));
    }
    args = {nullptr, b.expr};
  } else {
    args = {nullptr};
  }
  args[0] = Settle(a);
  if (!IsFloat(args[0]->type)) {
    TL_ASSIGN_OR_RETURN(args[0], Convert({args[0]}, ScalarType::kF32, e->span));
  }
  return Typed{MakeCall(*fn, std::move(args), e->span)};
}

StatusOr<Typed> Binder::BindLoad(const syntax::ExprRef& e) {
  TL_ASSIGN_OR_RETURN(Element element, BindElement(e));
  const Buffer& b = buffer(element.buffer);
  if (b.scope == Scope::kChannel) {
    return SemanticError(e->span, absl::StrCat("channel '", b.name, "' is read by recv"));
  }
  if (!in_launch_) return SemanticError(e->span, "tensors are read inside a launch");
  if (b.accumulator) {
    return SemanticError(
        e->span,
        absl::StrCat("'", b.name,
                     "' is an alloc_acc tile; copy it to a fragment to read its elements"));
  }
  if (b.role == BufferRole::kReducer && !finished_.contains(element.buffer)) {
    return SemanticError(
        e->span, absl::StrCat("reducer '", b.name, "' is read before 'finish ", b.name, "'"));
  }
  if (b.scope == Scope::kFragment && !in_parallel_) {
    return SemanticError(
        e->span,
        absl::StrCat("elements of fragment '", b.name,
                     "' are spread over threads and can be read only inside 'parallel'; a shared "
                     "or local tile can be read here"));
  }
  return Typed{MakeLoad(element.buffer, b.dtype, std::move(element.index), e->span)};
}

StatusOr<ExprRef> Binder::BindExpr(const syntax::ExprRef& e) {
  TL_ASSIGN_OR_RETURN(Typed t, BindTyped(e));
  return Settle(t);
}

StatusOr<ExprRef> Binder::BindExprAs(const syntax::ExprRef& e, ScalarType type) {
  TL_ASSIGN_OR_RETURN(Typed t, BindTyped(e));
  return Convert(t, type, e->span);
}

StatusOr<ExprRef> Binder::BindInt(const syntax::ExprRef& e, std::string_view what) {
  TL_ASSIGN_OR_RETURN(ExprRef x, BindExpr(e));
  if (x->type != ScalarType::kInt) {
    return SemanticError(e->span, absl::StrCat(what, " must be an int, found ", Name(x->type)));
  }
  return x;
}

StatusOr<int64_t> Binder::BindConstInt(const syntax::ExprRef& e, std::string_view what, int64_t lo,
                                       int64_t hi) {
  TL_ASSIGN_OR_RETURN(ExprRef x, BindInt(e, what));
  const int64_t* v = IntValue(x);
  if (!v) {
    return SemanticError(
        e->span,
        absl::StrCat(what, " must be known at compile time, but '", syntax::Print(e),
                     "' depends on launch arguments; give the dim a value or use a parameter"));
  }
  if (*v < lo || *v > hi) {
    return SemanticError(e->span,
                         absl::StrCat(what, " must be between ", lo, " and ", hi, ", found ", *v));
  }
  return *v;
}

StatusOr<bool> Binder::BindConstBool(const syntax::ExprRef& e, std::string_view what) {
  TL_ASSIGN_OR_RETURN(ExprRef x, BindExpr(e));
  const BoolLit* v = As<BoolLit>(x);
  if (!v) {
    return SemanticError(e->span,
                         absl::StrCat(what, " must be a bool known at compile time, found '",
                                      syntax::Print(e), "'"));
  }
  return v->value;
}

StatusOr<ExprRef> Binder::BindCondition(const syntax::ExprRef& e) {
  TL_ASSIGN_OR_RETURN(ExprRef x, BindExpr(e));
  if (x->type != ScalarType::kBool) {
    return SemanticError(e->span, absl::StrCat("a condition must be bool, found ", Name(x->type),
                                               "; compare it, as in '… != 0'"));
  }
  return x;
}

StatusOr<DType> Binder::BindDType(std::string_view name, Span span) const {
  if (std::optional<DType> t = ParseDType(name)) return *t;
  const Binding* symbol = Lookup(name);
  if (symbol && symbol->kind == Binding::Kind::kDType) return symbol->dtype;
  return SemanticError(span,
                       absl::StrCat("'", name,
                                    "' is no dtype; there are bool i8 u8 i16 u16 i32 u32 i64 e4m3 "
                                    "e5m2 f16 bf16 f32 f64 and dtype parameters"));
}

StatusOr<std::string> Binder::BindChoice(const syntax::ExprRef& e, std::string_view what,
                                         const std::vector<std::string>& choices) {
  // Words are no values of expressions, but may depend on a condition.
  if (e->kind == ExprKind::kIf) {
    TL_ASSIGN_OR_RETURN(bool condition, BindConstBool(e->args[0], what));
    return BindChoice(e->args[condition ? 1 : 2], what, choices);
  }
  std::string found;
  if (e->kind == ExprKind::kName) {
    const Binding* symbol = Lookup(e->text);
    found = symbol && symbol->kind == Binding::Kind::kEnum ? symbol->text : e->text;
  }
  if (std::find(choices.begin(), choices.end(), found) != choices.end()) return found;
  return SemanticError(e->span, absl::StrCat("'", syntax::Print(e), "' is no value of ", what,
                                             "; there are ", absl::StrJoin(choices, ", ")));
}

}  // namespace tl
