#include "absl/strings/str_cat.h"
#include "backends/cpu/kernel_emitter.h"
#include "backends/cpu/maths.h"
#include "ir/visit.h"

namespace tl::cpu {
namespace {

std::string_view IntPredicate(BinaryOp op) {
  switch (op) {
    case BinaryOp::kLt:
      return "icmp slt";
    case BinaryOp::kLe:
      return "icmp sle";
    case BinaryOp::kGt:
      return "icmp sgt";
    case BinaryOp::kGe:
      return "icmp sge";
    case BinaryOp::kEq:
      return "icmp eq";
    default:
      return "icmp ne";
  }
}

// false < true, as in C.
std::string_view BoolPredicate(BinaryOp op) {
  switch (op) {
    case BinaryOp::kLt:
      return "icmp ult";
    case BinaryOp::kLe:
      return "icmp ule";
    case BinaryOp::kGt:
      return "icmp ugt";
    case BinaryOp::kGe:
      return "icmp uge";
    default:
      return IntPredicate(op);
  }
}

std::string_view FloatPredicate(BinaryOp op) {
  switch (op) {
    case BinaryOp::kLt:
      return "fcmp olt";
    case BinaryOp::kLe:
      return "fcmp ole";
    case BinaryOp::kGt:
      return "fcmp ogt";
    case BinaryOp::kGe:
      return "fcmp oge";
    case BinaryOp::kEq:
      return "fcmp oeq";
    default:
      return "fcmp une";
  }
}

// contract: a product and a sum may become one multiply-add. Nothing else about floats is relaxed.
std::string_view FloatInstruction(BinaryOp op) {
  switch (op) {
    case BinaryOp::kAdd:
      return "fadd contract";
    case BinaryOp::kSub:
      return "fsub contract";
    case BinaryOp::kMul:
      return "fmul contract";
    case BinaryOp::kDiv:
      return "fdiv";
    default:
      return "";
  }
}

std::string_view IntInstruction(BinaryOp op) {
  switch (op) {
    case BinaryOp::kAdd:
      return "add";
    case BinaryOp::kSub:
      return "sub";
    case BinaryOp::kMul:
      return "mul";
    case BinaryOp::kBitAnd:
      return "and";
    case BinaryOp::kBitOr:
      return "or";
    case BinaryOp::kBitXor:
      return "xor";
    default:
      return "";
  }
}

std::string_view DivisionName(BinaryOp op) {
  switch (op) {
    case BinaryOp::kDiv:
      return "floordiv";
    case BinaryOp::kMod:
      return "floormod";
    case BinaryOp::kCeilDiv:
      return "ceildiv";
    default:
      return "";
  }
}

std::string FloatBinary(FunctionText& f, BinaryOp op, ScalarType type, const std::string& a,
                        const std::string& b) {
  const std::string_view t = TypeOf(type);
  if (op == BinaryOp::kMin || op == BinaryOp::kMax) {
    return f.Intrinsic(absl::StrCat(op == BinaryOp::kMin ? "minnum" : "maxnum",
                                    type == ScalarType::kF32 ? ".f32" : ".f64"),
                       t, {{t, a}, {t, b}});
  }
  const std::string_view instruction = FloatInstruction(op);
  return instruction.empty() ? "" : f.Binary(instruction, t, a, b);
}

std::string IntBinary(FunctionText& f, BinaryOp op, const std::string& a, const std::string& b) {
  if (op == BinaryOp::kMin || op == BinaryOp::kMax) {
    return f.Intrinsic(op == BinaryOp::kMin ? "smin.i64" : "smax.i64", "i64",
                       {{"i64", a}, {"i64", b}});
  }
  if (op == BinaryOp::kShl || op == BinaryOp::kShr) {
    const std::string count = f.Binary("and", "i64", b, "63");
    return f.Binary(op == BinaryOp::kShl ? "shl" : "ashr", "i64", a, count);
  }
  if (const std::string_view name = DivisionName(op); !name.empty()) {
    return f.Value(
        absl::StrCat("call i64 @", DivisionHelper(f.module(), name), "(i64 ", a, ", i64 ", b, ")"));
  }
  const std::string_view instruction = IntInstruction(op);
  return instruction.empty() ? "" : f.Binary(instruction, "i64", a, b);
}

std::string BoolBinary(FunctionText& f, BinaryOp op, const std::string& a, const std::string& b) {
  switch (op) {
    case BinaryOp::kAnd:
    case BinaryOp::kBitAnd:
    case BinaryOp::kMin:
    case BinaryOp::kMul:
      return f.Binary("and", "i1", a, b);
    case BinaryOp::kOr:
    case BinaryOp::kBitOr:
    case BinaryOp::kMax:
    case BinaryOp::kAdd:
      return f.Binary("or", "i1", a, b);
    case BinaryOp::kBitXor:
      return f.Binary("xor", "i1", a, b);
    default:
      return "";
  }
}

std::string Compare(FunctionText& f, BinaryOp op, ScalarType type, const std::string& a,
                    const std::string& b) {
  const std::string_view predicate = IsFloat(type)               ? FloatPredicate(op)
                                     : type == ScalarType::kBool ? BoolPredicate(op)
                                                                 : IntPredicate(op);
  return f.Binary(predicate, TypeOf(type), a, b);
}

}  // namespace

std::string_view TypeOf(ScalarType type) {
  switch (type) {
    case ScalarType::kBool:
      return "i1";
    case ScalarType::kInt:
      return "i64";
    case ScalarType::kF32:
      return "float";
    case ScalarType::kF64:
      return "double";
  }
  return "i64";
}

KernelEmitter::Text KernelEmitter::Slot(VarId id) {
  const Var& var = module_.var(id);
  if (vars_[id].empty()) vars_[id] = f_.Slot(TypeOf(var.type), 8);
  return vars_[id];
}

KernelEmitter::Text KernelEmitter::Variable(VarId id) {
  // Beyond the module's variables lie the two operands that Combine makes.
  const bool own = id < static_cast<VarId>(module_.vars.size());
  if (own && module_.var(id).role == VarRole::kMutable) {
    return f_.Value(
        absl::StrCat("load ", TypeOf(module_.var(id).type), ", ptr ", Slot(id), ", align 8"));
  }
  if (vars_[id].empty()) {
    Fail(absl::StrCat("variable ", id, " is used before it has a value"));
    return "poison";
  }
  return vars_[id];
}

KernelEmitter::Text KernelEmitter::Emit(const ExprRef& e) {
  struct Visitor {
    KernelEmitter& k;
    const ScalarType type;
    Text operator()(const IntLit& x) const { return absl::StrCat(x.value); }
    Text operator()(const FloatLit& x) const { return FloatText(x.value); }
    Text operator()(const BoolLit& x) const { return x.value ? "true" : "false"; }
    Text operator()(const VarRef& x) const { return k.Variable(x.var); }
    Text operator()(const Unary& x) const {
      const Text a = k.Emit(x.arg);
      if (type == ScalarType::kBool) return k.f_.Binary("xor", "i1", a, "true");
      if (IsFloat(type)) return k.f_.Value(absl::StrCat("fneg ", TypeOf(type), " ", a));
      return x.op == UnaryOp::kNot ? k.f_.Binary("xor", "i64", a, "-1")
                                   : k.f_.Binary("sub", "i64", "0", a);
    }
    Text operator()(const Binary& x) const { return k.EmitBinary(x); }
    Text operator()(const Select& x) const {
      return k.EmitLazy(x.cond, x.yes, x.no, TypeOf(type),
                        [this](const ExprRef& side) { return k.Emit(side); });
    }
    Text operator()(const Call& x) const { return k.EmitCall(x, type); }
    Text operator()(const Cast& x) const { return k.EmitCast(x); }
    Text operator()(const Load& x) const {
      const Text address = k.Address(x.buffer, x.index);
      return k.Widen(k.module_.buffer(x.buffer).dtype, k.LoadRaw(x.buffer, address));
    }
    Text operator()(const PartsBound&) const {
      k.Fail("parts() was not expanded");
      return "poison";
    }
    Text operator()(const IsAligned&) const {
      k.Fail("no code for this target asks where tensors start");
      return "poison";
    }
  };
  return std::visit(Visitor{*this, e->type}, e->node);
}

KernelEmitter::Text KernelEmitter::EmitBinary(const Binary& b) {
  const ScalarType type = b.lhs->type;
  const bool lazy = b.op == BinaryOp::kAnd || b.op == BinaryOp::kOr;
  if (lazy && HasLoad(b.rhs)) {
    auto emit = [this](const ExprRef& side) { return Emit(side); };
    return b.op == BinaryOp::kAnd ? EmitLazy(b.lhs, b.rhs, MakeBool(false), "i1", emit)
                                  : EmitLazy(b.lhs, MakeBool(true), b.rhs, "i1", emit);
  }
  const Text x = Emit(b.lhs);
  const Text y = Emit(b.rhs);
  Text result;
  if (IsComparison(b.op)) {
    result = Compare(f_, b.op, type, x, y);
  } else if (IsFloat(type)) {
    result = FloatBinary(f_, b.op, type, x, y);
  } else if (type == ScalarType::kInt) {
    result = IntBinary(f_, b.op, x, y);
  } else {
    result = BoolBinary(f_, b.op, x, y);
  }
  if (result.empty()) {
    Fail(absl::StrCat("operator ", Symbol(b.op), " does not take ", Name(type)));
    return "poison";
  }
  return result;
}

// A branch where a side reads memory, which must not happen unasked; a select where both may be
// computed.
KernelEmitter::Text KernelEmitter::EmitLazy(const ExprRef& cond, const ExprRef& yes,
                                            const ExprRef& no, std::string_view type,
                                            absl::FunctionRef<Text(const ExprRef&)> emit) {
  const Text c = Emit(cond);
  if (!HasLoad(yes) && !HasLoad(no)) {
    const Text a = emit(yes);
    const Text b = emit(no);
    return f_.Select(type, c, a, b);
  }
  const Text yes_label = f_.NewLabel(), no_label = f_.NewLabel(), join = f_.NewLabel();
  f_.BranchIf(c, yes_label, no_label);
  f_.Begin(yes_label);
  const Text a = emit(yes);
  const Text a_block = f_.block();
  f_.Branch(join);
  f_.Begin(no_label);
  const Text b = emit(no);
  const Text b_block = f_.block();
  f_.Branch(join);
  f_.Begin(join);
  return f_.Value(
      absl::StrCat("phi ", type, " [ ", a, ", %", a_block, " ], [ ", b, ", %", b_block, " ]"));
}

KernelEmitter::Text KernelEmitter::EmitCall(const Call& call, ScalarType type) {
  std::vector<Text> args;
  for (const ExprRef& arg : call.args) args.push_back(Emit(arg));
  return EmitMath(f_, call.fn, type, args);
}

}  // namespace tl::cpu
