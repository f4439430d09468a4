#include "ir/host_eval.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"

namespace tl {
namespace {

constexpr int64_t kMin64 = std::numeric_limits<int64_t>::min();

// Floor division and its family on int64; false on overflow or a zero divisor.
bool CheckedDivide(BinaryOp op, int64_t a, int64_t b, int64_t* out) {
  if (b == 0 || (a == kMin64 && b == -1)) return false;
  const int64_t q = a / b, r = a % b;
  const bool exact = r == 0, same_sign = (r < 0) == (b < 0);
  switch (op) {
    case BinaryOp::kDiv:
      *out = exact || same_sign ? q : q - 1;
      return true;
    case BinaryOp::kMod:
      *out = exact || same_sign ? r : r + b;
      return true;
    default:
      *out = exact || !same_sign ? q : q + 1;
      return true;  // kCeilDiv
  }
}

bool CheckedShl(int64_t a, int64_t b, int64_t* out) {
  if (b < 0 || b > 62) {
    *out = 0;
    return a == 0;
  }
  return !__builtin_mul_overflow(a, int64_t{1} << b, out);
}

// False on overflow and division by zero.
bool CheckedBinary(BinaryOp op, int64_t a, int64_t b, int64_t* out) {
  switch (op) {
    case BinaryOp::kAdd:
      return !__builtin_add_overflow(a, b, out);
    case BinaryOp::kSub:
      return !__builtin_sub_overflow(a, b, out);
    case BinaryOp::kMul:
      return !__builtin_mul_overflow(a, b, out);
    case BinaryOp::kDiv:
    case BinaryOp::kMod:
    case BinaryOp::kCeilDiv:
      return CheckedDivide(op, a, b, out);
    case BinaryOp::kShl:
      return CheckedShl(a, b, out);
    case BinaryOp::kMin:
      *out = std::min(a, b);
      return true;
    case BinaryOp::kMax:
      *out = std::max(a, b);
      return true;
    case BinaryOp::kAnd:
      *out = a && b;
      return true;
    case BinaryOp::kOr:
      *out = a || b;
      return true;
    case BinaryOp::kLt:
      *out = a < b;
      return true;
    case BinaryOp::kLe:
      *out = a <= b;
      return true;
    case BinaryOp::kGt:
      *out = a > b;
      return true;
    case BinaryOp::kGe:
      *out = a >= b;
      return true;
    case BinaryOp::kEq:
      *out = a == b;
      return true;
    case BinaryOp::kNe:
      *out = a != b;
      return true;
    default:
      *out = EvalInt(op, a, b);
      return true;  // bits: cannot fail
  }
}

bool IsIntegral(ScalarType t) { return t == ScalarType::kInt || t == ScalarType::kBool; }

void AppendVarint(int64_t value, std::string* out) {
  // Zigzag: small negative numbers stay short.
  uint64_t bits = (static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63);
  while (bits >= 0x80) {
    out->push_back(static_cast<char>(bits | 0x80));
    bits >>= 7;
  }
  out->push_back(static_cast<char>(bits));
}

bool ReadVarint(std::string_view* in, int64_t* value) {
  uint64_t bits = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (in->empty()) return false;
    const uint8_t byte = static_cast<uint8_t>(in->front());
    in->remove_prefix(1);
    bits |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) {
      *value = static_cast<int64_t>(bits >> 1) ^ -static_cast<int64_t>(bits & 1);
      return true;
    }
  }
  return false;
}

Status BadBytes(std::string_view what) {
  return absl::DataLossError(absl::StrCat("host expression: ", what));
}

}  // namespace

class HostExprCompiler {
 public:
  explicit HostExprCompiler(const Module& module) : module_(module) {}

  Status Emit(const ExprRef& e) {
    if (!IsIntegral(e->type)) return Refuse(e, "a float value");
    if (const auto* lit = As<IntLit>(e)) return Push(HostExpr::Op::kLiteral, lit->value);
    if (const auto* lit = As<BoolLit>(e)) return Push(HostExpr::Op::kLiteral, lit->value);
    if (const auto* ref = As<VarRef>(e)) return EmitVar(e, ref->var);
    if (const auto* unary = As<Unary>(e)) {
      TL_RETURN_IF_ERROR(Emit(unary->arg));
      return Push(unary->op == UnaryOp::kNeg ? HostExpr::Op::kNeg : HostExpr::Op::kNot, 0);
    }
    if (const auto* binary = As<Binary>(e)) return EmitBinary(*binary);
    if (const auto* select = As<Select>(e)) {
      return EmitChoice(select->cond, select->yes, select->no);
    }
    if (const auto* cast = As<Cast>(e)) {
      TL_RETURN_IF_ERROR(Emit(cast->arg));
      if (cast->to == DType::kI64) return absl::OkStatus();
      return Push(HostExpr::Op::kWrap, static_cast<int64_t>(cast->to));
    }
    if (const auto* call = As<Call>(e); call != nullptr && call->fn == MathFn::kAbs) {
      TL_RETURN_IF_ERROR(Emit(call->args[0]));
      return Push(HostExpr::Op::kAbs, 0);
    }
    return Refuse(e, As<Load>(e) ? "an element of a tensor" : "an operation on floats");
  }

  HostExpr Take() && { return std::move(result_); }

 private:
  using Op = HostExpr::Op;

  Status Push(Op op, int64_t arg) {
    if (result_.code_.size() >= static_cast<size_t>(HostExpr::kMaxLength)) {
      return LimitError({}, "expression of launch arguments is too long");
    }
    result_.code_.push_back({op, arg});
    return absl::OkStatus();
  }

  Status Refuse(const ExprRef& e, std::string_view what) {
    return SemanticError(e->span, absl::StrCat("must be known at launch, but it contains ", what,
                                               "; only dims, strides and int scalars are"));
  }

  Status EmitVar(const ExprRef& e, VarId var) {
    const VarRole role = module_.var(var).role;
    const std::vector<VarId>* list = role == VarRole::kDim      ? &module_.dims
                                     : role == VarRole::kStride ? &module_.strides
                                     : role == VarRole::kScalar ? &module_.scalars
                                                                : nullptr;
    if (list == nullptr) {
      return Refuse(e, absl::StrCat("'", module_.var(var).name, "'"));
    }
    const auto it = std::find(list->begin(), list->end(), var);
    if (it == list->end()) return Refuse(e, absl::StrCat("'", module_.var(var).name, "'"));
    const Op op = role == VarRole::kDim      ? Op::kDim
                  : role == VarRole::kStride ? Op::kStride
                                             : Op::kScalar;
    return Push(op, it - list->begin());
  }

  Status EmitBinary(const Binary& binary) {
    if (!IsIntegral(binary.lhs->type)) return Refuse(binary.lhs, "a comparison of floats");
    if (binary.op == BinaryOp::kAnd) return EmitChoice(binary.lhs, binary.rhs, MakeBool(false));
    if (binary.op == BinaryOp::kOr) return EmitChoice(binary.lhs, MakeBool(true), binary.rhs);
    TL_RETURN_IF_ERROR(Emit(binary.lhs));
    TL_RETURN_IF_ERROR(Emit(binary.rhs));
    return Push(Op::kBinary, static_cast<int64_t>(binary.op));
  }

  Status EmitChoice(const ExprRef& cond, const ExprRef& yes, const ExprRef& no) {
    TL_RETURN_IF_ERROR(Emit(cond));
    const size_t to_no = result_.code_.size();
    TL_RETURN_IF_ERROR(Push(Op::kJumpIfNot, 0));
    TL_RETURN_IF_ERROR(Emit(yes));
    const size_t to_end = result_.code_.size();
    TL_RETURN_IF_ERROR(Push(Op::kJump, 0));
    result_.code_[to_no].arg = static_cast<int64_t>(result_.code_.size());
    TL_RETURN_IF_ERROR(Emit(no));
    result_.code_[to_end].arg = static_cast<int64_t>(result_.code_.size());
    return absl::OkStatus();
  }

  const Module& module_;
  HostExpr result_;
};

StatusOr<HostExpr> HostExpr::Compile(const Module& module, const ExprRef& expr) {
  HostExprCompiler compiler(module);
  TL_RETURN_IF_ERROR(compiler.Emit(expr));
  HostExpr result = std::move(compiler).Take();
  if (!result.Verify().ok())
    return LimitError(expr->span, "expression of launch arguments is too deep");
  return result;
}

StatusOr<int64_t> HostExpr::Eval(const HostArgs& args) const {
  int64_t stack[kMaxDepth];
  int top = -1;
  const size_t size = code_.size();
  for (size_t pc = 0; pc < size; ++pc) {
    const Instr& in = code_[pc];
    const size_t index = static_cast<size_t>(in.arg);
    bool ok = true;
    switch (in.op) {
      case Op::kLiteral:
        stack[++top] = in.arg;
        break;
      case Op::kDim:
        if (index >= args.dims.size()) return absl::InvalidArgumentError("too few dims");
        stack[++top] = args.dims[index];
        break;
      case Op::kStride:
        if (index >= args.strides.size()) return absl::InvalidArgumentError("too few strides");
        stack[++top] = args.strides[index];
        break;
      case Op::kScalar:
        if (index >= args.scalars.size()) return absl::InvalidArgumentError("too few scalars");
        stack[++top] = args.scalars[index].i;
        break;
      case Op::kNeg:
        ok = !__builtin_sub_overflow(int64_t{0}, stack[top], &stack[top]);
        break;
      case Op::kNot:
        stack[top] = !stack[top];
        break;
      case Op::kAbs:
        if (stack[top] < 0) ok = !__builtin_sub_overflow(int64_t{0}, stack[top], &stack[top]);
        break;
      case Op::kWrap:
        stack[top] = WrapTo(static_cast<DType>(in.arg), stack[top]);
        break;
      case Op::kBinary:
        --top;
        ok = CheckedBinary(static_cast<BinaryOp>(in.arg), stack[top], stack[top + 1], &stack[top]);
        break;
      case Op::kJump:
        pc = index - 1;
        break;
      case Op::kJumpIfNot:
        if (!stack[top--]) pc = index - 1;
        break;
      case Op::kNumOps:
        break;
    }
    if (!ok) return absl::OutOfRangeError("integer overflow or division by zero");
  }
  return top == 0 ? stack[0] : 0;
}

bool HostExpr::is_constant() const {
  return std::none_of(code_.begin(), code_.end(), [](const Instr& in) {
    return in.op == Op::kDim || in.op == Op::kStride || in.op == Op::kScalar;
  });
}

// Jumps only lead forward, so one pass knows the depth at every instruction.
Status HostExpr::Verify() const {
  if (code_.empty()) return absl::OkStatus();
  if (code_.size() > static_cast<size_t>(kMaxLength)) return BadBytes("too long");
  const int64_t size = static_cast<int64_t>(code_.size());
  constexpr int kUnknown = -1;
  std::vector<int> depth(size + 1, kUnknown);
  const auto flow = [&](int64_t target, int d) {
    if (target > size || (depth[target] != kUnknown && depth[target] != d)) return false;
    depth[target] = d;
    return true;
  };
  depth[0] = 0;
  for (int64_t pc = 0; pc < size; ++pc) {
    const Instr& in = code_[pc];
    int d = depth[pc];
    if (d == kUnknown) return BadBytes("unreachable code");
    const bool pushes = in.op <= Op::kScalar;
    const int needs = pushes || in.op == Op::kJump ? 0 : in.op == Op::kBinary ? 2 : 1;
    if (in.op >= Op::kNumOps || d < needs || (pushes && d >= kMaxDepth))
      return BadBytes("bad stack");
    if (in.op == Op::kBinary && (in.arg < 0 || in.arg > static_cast<int64_t>(BinaryOp::kNe))) {
      return BadBytes("bad operator");
    }
    if (in.op == Op::kWrap &&
        (in.arg < 0 || in.arg >= kNumDTypes || IsFloat(static_cast<DType>(in.arg)))) {
      return BadBytes("bad dtype");
    }
    d += pushes ? 1 : in.op == Op::kBinary || in.op == Op::kJumpIfNot ? -1 : 0;
    const bool jumps = in.op == Op::kJump || in.op == Op::kJumpIfNot;
    if (jumps && (in.arg <= pc || !flow(in.arg, d))) return BadBytes("bad jump");
    if (in.op != Op::kJump && !flow(pc + 1, d)) return BadBytes("bad jump");
  }
  return depth[size] == 1 ? absl::OkStatus() : BadBytes("leaves no single value");
}

std::string HostExpr::Serialize() const {
  std::string out;
  for (const Instr& in : code_) {
    out.push_back(static_cast<char>(in.op));
    AppendVarint(in.arg, &out);
  }
  return out;
}

StatusOr<HostExpr> HostExpr::Parse(std::string_view bytes) {
  HostExpr result;
  while (!bytes.empty()) {
    Instr in;
    in.op = static_cast<Op>(bytes.front());
    bytes.remove_prefix(1);
    if (!ReadVarint(&bytes, &in.arg)) return BadBytes("truncated");
    result.code_.push_back(in);
    if (result.code_.size() > static_cast<size_t>(kMaxLength)) return BadBytes("too long");
  }
  TL_RETURN_IF_ERROR(result.Verify());
  return result;
}

StatusOr<int64_t> EvalHost(const Module& module, const ExprRef& expr, const HostArgs& args) {
  TL_ASSIGN_OR_RETURN(const HostExpr compiled, HostExpr::Compile(module, expr));
  return compiled.Eval(args);
}

}  // namespace tl
