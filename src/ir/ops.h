// The table of the language's statements: for each its word, which members of syntax::Stmt it uses
// and which attributes it takes. The parser, the printer and the error messages are driven by it.
#ifndef TILEJIT_IR_OPS_H_
#define TILEJIT_IR_OPS_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/types/span.h"

namespace tl::syntax {

// How a statement is written.
enum class Form : uint8_t {
  kAlloc,     // names = op<type_args>[targets] attrs
  kAllocVar,  // names = op<type_args>(operands[0])
  kView,      // names[0] = view operands[0] [targets]
  kLet,       // names[0] assign operands[0]
  kStore,     // targets[0] assign operands[0]
  kMove,      // op operands -> targets[0] attrs
  kList,      // op operands
  kLoop,      // op names[0] in operands[0] [.. operands[1]] attrs { body }
  kParallel,  // op names in [targets] { body }
  kIf,        // op operands[0] { body } [else { else_body }]
  kOn,        // op names[0] in operands[0] { body }
  kBlock,     // op operands[0] { body }
};

enum class AttrKind : uint8_t {
  kFlag,    // alone, or with the compile-time bool that switches it
  kValue,   // name=e
  kChoice,  // name=word, the word being one of `choices`; `row(8)` where `argument`
  kList,    // name=[e, ...]
};

struct AttrSpec {
  std::string_view name;
  AttrKind kind;
  absl::Span<const std::string_view> choices = {};
  bool argument = false;
};

// What stands at operand i of a kMove or kList statement.
enum class OperandKind : uint8_t {
  kRegion,  // a tile, a window or a channel: x or x[...]
  kExpr,    // any expression
};

struct OpSpec {
  std::string_view name;
  Form form;
  // kMove, kList: how many operands (0: one or more) and what the last one is. kAlloc: how many
  // type arguments.
  int count = 1;
  OperandKind last = OperandKind::kRegion;
  absl::Span<const AttrSpec> attrs = {};  // in canonical order
};

absl::Span<const OpSpec> Ops();
// By the value of Stmt::op ("let" and "store" included); null if there is none.
const OpSpec* FindOp(std::string_view name);
// True if a statement may start with the op's word, unlike those whose word is behind a `=`.
bool StartsStatement(const OpSpec& op);

// Attributes of `launch`, in canonical order.
absl::Span<const AttrSpec> LaunchAttrs();
const AttrSpec* FindAttr(absl::Span<const AttrSpec> attrs, std::string_view name);
// True if any statement has an attribute of that name.
bool IsAttrOfSomeOp(std::string_view name);

// Words that cannot be names because expressions and statements would be ambiguous.
bool IsReserved(std::string_view word);

// Binding strength of expressions, loosest first. Printer and parser agree through this.
enum Precedence : int {
  kPrecNone = 0,
  kPrecIf,
  kPrecOr,
  kPrecAnd,
  kPrecNot,
  kPrecCompare,
  kPrecBits,
  kPrecShift,
  kPrecSum,
  kPrecProduct,
  kPrecUnary,
  kPrecPrimary,
};
// Of a binary operator, kPrecNone if the word is none.
Precedence BinaryPrecedence(std::string_view op);

// Words for "did you mean".
std::vector<std::string_view> StatementWords();
std::vector<std::string_view> AllocWords();
std::vector<std::string_view> AttrNames(absl::Span<const AttrSpec> attrs);

}  // namespace tl::syntax

#endif  // TILEJIT_IR_OPS_H_
