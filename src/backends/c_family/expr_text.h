// Expressions of the IR as C text: precedence-minimal parentheses, 32-bit arithmetic where
// intervals prove that it suffices, floor division as `/` where they prove the signs.
#ifndef TILEJIT_BACKENDS_C_FAMILY_EXPR_TEXT_H_
#define TILEJIT_BACKENDS_C_FAMILY_EXPR_TEXT_H_

#include <string>
#include <string_view>
#include <vector>

#include "backends/c_family/range.h"
#include "base/dtype.h"
#include "base/status.h"
#include "ir/expr.h"
#include "ir/module.h"

namespace tl {

// Types of the values that C expressions have here. An int of the language is kI32 or kI64.
enum class CType : uint8_t { kBool, kI32, kI64, kF32, kF64 };
std::string_view Name(CType t);  // "long long"
CType CTypeOf(ScalarType t);     // kI64 for ints
// What an element is in memory: "tl_bf16", "unsigned char" for bool.
std::string_view StorageName(DType t);

// Binding strength of C operators; larger binds tighter.
enum Precedence {
  kTernary = 2,
  kOrOr,
  kAndAnd,
  kBitOr,
  kBitXor,
  kBitAnd,
  kEquality,
  kRelation,
  kShift,
  kSum,
  kProduct,
  kPrefix,
  kPostfix
};

struct Text {
  std::string text;
  int precedence = kPostfix;
  CType type = CType::kI64;
  Range range;  // ints only
};

// How the emitted program calls things. Filled by the statement emitter as variables come into
// scope.
struct Names {
  struct Variable {
    std::string name;  // empty: not in scope
    CType type = CType::kI64;
    Range range;
  };
  std::vector<Variable> vars;        // by VarId
  std::vector<std::string> buffers;  // by BufferId
};

class ExprEmitter {
 public:
  ExprEmitter(const Module& module, const Names& names) : module_(module), names_(names) {}

  StatusOr<Text> Emit(const ExprRef& e) const;
  // `e` as an operand of something that binds with `precedence`.
  StatusOr<std::string> Emit(const ExprRef& e, int precedence) const;
  // An element of storage type `t` made of a value: the right side of a store.
  StatusOr<std::string> EmitStored(const ExprRef& value, DType t) const;
  // "a0[v1 * 64 + v2]", the element itself.
  StatusOr<std::string> EmitElement(BufferId buffer, const std::vector<ExprRef>& index) const;

 private:
  StatusOr<Text> EmitNode(const Expr& e) const;
  StatusOr<Text> EmitUnary(const Unary& u) const;
  StatusOr<Text> EmitBinary(const Binary& b) const;
  StatusOr<Text> EmitInt(BinaryOp op, const Text& a, const Text& b) const;
  StatusOr<Text> EmitSelect(const Select& s) const;
  StatusOr<Text> EmitCall(const Call& c, ScalarType type) const;
  StatusOr<Text> EmitCast(const Cast& c) const;
  StatusOr<Text> EmitLoad(const Load& l) const;

  const Module& module_;
  const Names& names_;
};

// `text` in parentheses unless it binds at least as tightly as `precedence`.
std::string Wrap(const Text& text, int precedence);
// Exact literals.
Text IntText(int64_t value);
Text FloatText(double value, CType type);
// The rounding function's suffix of a type: "bf16" in tl_to_bf16.
std::string_view Suffix(DType t);

}  // namespace tl

#endif  // TILEJIT_BACKENDS_C_FAMILY_EXPR_TEXT_H_
