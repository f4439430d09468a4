// Integer expressions that the host needs at every launch: grid extents, tensor shapes, workspace
// sizes. A HostExpr is such an expression compiled to a small postfix program: it evaluates without
// allocation, checks every step for overflow, and travels with a kernel as a short string.
#ifndef TILEJIT_IR_HOST_EVAL_H_
#define TILEJIT_IR_HOST_EVAL_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "base/status.h"
#include "ir/expr.h"
#include "ir/module.h"

namespace tl {

// A runtime scalar; the declared dtype says which member counts (ints and bool: i).
union ScalarValue {
  int64_t i;
  double f;
  constexpr ScalarValue() : i(0) {}
  constexpr explicit ScalarValue(int64_t value) : i(value) {}
  constexpr explicit ScalarValue(double value) : f(value) {}
};

// The arguments of a launch, in the order of Module::dims, strides and scalars.
struct HostArgs {
  absl::Span<const int64_t> dims;
  absl::Span<const int64_t> strides;
  absl::Span<const ScalarValue> scalars;
};

class HostExpr {
 public:
  HostExpr() = default;  // the constant 0

  // INVALID_ARGUMENT where the expression holds more than ints and bools made of literals, dims,
  // strides and integer scalars.
  static StatusOr<HostExpr> Compile(const Module& module, const ExprRef& expr);

  // OUT_OF_RANGE on overflow and division by zero; bools are 0 and 1.
  StatusOr<int64_t> Eval(const HostArgs& args) const;

  // A few bytes an operator. Parse takes nothing on trust: what it accepts cannot read outside its
  // stack or make Eval run long. Eval checks the indices of arguments against `args`.
  std::string Serialize() const;
  static StatusOr<HostExpr> Parse(std::string_view bytes);

  // The value, if no argument is needed.
  bool is_constant() const;

  friend bool operator==(const HostExpr&, const HostExpr&) = default;

 private:
  friend class HostExprCompiler;

  enum class Op : uint8_t {
    kLiteral,
    kDim,
    kStride,
    kScalar,  // push; arg: value or index
    kNeg,
    kNot,
    kAbs,
    kWrap,       // arg: DType
    kBinary,     // arg: BinaryOp
    kJump,       // arg: target
    kJumpIfNot,  // pops; arg: target
    kNumOps,
  };
  struct Instr {
    Op op;
    int64_t arg;
    friend bool operator==(const Instr&, const Instr&) = default;
  };
  static constexpr int kMaxDepth = 256;
  static constexpr int kMaxLength = 1 << 16;

  Status Verify() const;

  std::vector<Instr> code_;
};

// One-off form of the same.
StatusOr<int64_t> EvalHost(const Module& module, const ExprRef& expr, const HostArgs& args);

}  // namespace tl

#endif  // TILEJIT_IR_HOST_EVAL_H_
