// The tile program as written: names unresolved, parameters unbound. The parser makes it, the
// printer prints it canonically, the binder (bind.h) turns it into a Module.
//
// Statements are uniform records whose shape is given by the table in ops.h: adding an operation
// adds a row there and a case in the binder.
#ifndef TILEJIT_IR_SYNTAX_H_
#define TILEJIT_IR_SYNTAX_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace tl::syntax {

struct Expr;
using ExprRef = std::shared_ptr<const Expr>;

enum class ExprKind : uint8_t {
  kInt,     // int_value
  kFloat,   // float_value (inf and nan too)
  kBool,    // int_value
  kName,    // text
  kUnary,   // text: "-" "not"; args[0]
  kBinary,  // text: the operator as printed, "or" "and" "<" ...; args[0], args[1]
  kIf,      // args: condition, then, else
  kCall,    // text(args)
  kIndex,   // text[args]; marks[i]: the index has a ':' behind it
  kAny,     // `?`, only in strides
};

struct Expr {
  ExprKind kind;
  Span span;
  int64_t int_value = 0;
  double float_value = 0;
  std::string text;
  std::vector<ExprRef> args;
  std::vector<bool> marks;
};

struct Attr {
  std::string name;
  ExprRef value;  // null: a bare flag
  Span span;
};

struct Name {
  std::string text;
  Span span;
};

// One statement. Which members an op uses is said by its form, see ops.h:
// - alloc_*: names = op<type_args>[targets] attrs; several names make as many tiles
// - alloc_var: names = op<type_args>(operands[0])
// - view: names[0] = view operands[0] [targets]; targets are the extents
// - let: names[0] `assign` operands[0]
// - store: targets[0] `assign` operands[0]; the target is a kIndex
// - copy gemm reduce_* argmax cumsum atomic_* send recv: operands -> targets[0], attrs
// - clear fill finish: operands
// - serial unrolled vectorized pipelined: names[0] in operands[0] (or operands[0] .. operands[1]),
//   attrs, body
// - parallel: names in targets (one extent a name), body
// - if: operands[0], body, else_body; `else if` is an else_body of one if
// - on: names[0] in operands[0], body
// - lag, in_turn: operands[0] (in_turn may have none), body
struct Stmt {
  std::string op;
  Span span;  // of the whole statement's head (not the body)
  std::vector<Name> names;
  std::vector<std::string> type_args;  // "f32", "t", "sum"
  std::vector<Span> type_spans;        // of each of them
  std::string assign = "=";            // or "+=" "-=" "*=" "/="
  std::vector<ExprRef> operands;
  std::vector<ExprRef> targets;
  std::vector<Attr> attrs;
  std::vector<Stmt> body;
  std::vector<Stmt> else_body;
  bool has_else = false;
};

struct Param {
  Name name;
  std::string type;           // "int" "bool" "dtype" "enum"
  std::vector<Name> choices;  // enum
  ExprRef default_value;      // may be null
};

struct Operand {
  enum class Kind : uint8_t { kIn, kOut, kInOut, kWorkspace };
  Kind kind;
  Name name;
  std::string dtype;  // a dtype or a dtype parameter
  Span dtype_span;
  bool is_tensor = false;
  std::vector<ExprRef> shape;
  std::vector<ExprRef> strides;  // empty: contiguous
  std::vector<ExprRef> packed;   // empty or two
  bool is_const = false;
  Name stands_for;    // `for X`; may be empty
  ExprRef condition;  // `if e`; may be null
};

struct TuneParam {
  Name name;
  std::vector<ExprRef> candidates;
  std::string target_class;  // "", "cpu", "cuda", "hip", "sm_90a"
};

struct Init {
  Name operand;
  Name kind;
  std::vector<ExprRef> args;
  ExprRef condition;  // may be null
};

struct Axis {
  Name name;  // plain axis
  ExprRef extent;
  // segment (names[0..4]) in split(item in items: count, parts)
  bool is_segment = false;
  std::vector<Name> segment;
  Name item;
  ExprRef items, count, parts;
};

struct Launch {
  Span span;
  std::vector<Axis> axes;
  std::vector<Attr> attrs;  // order=row(8): a kCall expression; all but cluster=[2,1]
  std::vector<ExprRef> cluster;
  std::vector<Stmt> body;
};

// One declaration, kept in program order for printing: exactly one member is set.
struct Decl {
  Span span;
  std::vector<Operand> operands;  // in/out/inout/workspace of one clause
  std::vector<TuneParam> tune;
  ExprRef where;
  std::vector<Init> init;      // 0 or 1
  std::vector<Stmt> constant;  // 0 or 1, op "let"
};

struct Program {
  int major = 1, minor = 0;
  Name name;
  std::vector<Name> dims;
  std::vector<Param> params;
  std::vector<Decl> decls;
  std::vector<Launch> launches;
};

// Parses a whole program. Errors carry the span, what was found, what was expected and, where there
// is a near match, the word that was probably meant. Limits: docs/tile-ir.md, Text.
struct Limits {
  size_t bytes = size_t{1} << 20;
  int nesting = 200;  // of blocks, brackets, signs; and operations on the longest way down
  int statements = 100000;
};
// For the text of a bound module: constants, conversions and views are spelled out in it.
inline constexpr Limits kPrintedLimits{size_t{1} << 26, 1000, 1000000};
StatusOr<Program> Parse(std::string_view text, const Limits& limits = {});

// One expression, for `-p` values and tests.
StatusOr<ExprRef> ParseExpr(std::string_view text);

// Canonical text.
std::string Print(const Program& program);
std::string Print(const ExprRef& expr);

}  // namespace tl::syntax

#endif  // TILEJIT_IR_SYNTAX_H_
