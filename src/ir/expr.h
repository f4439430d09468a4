// Scalar expressions of a bound tile program: immutable trees shared by reference.
//
// Every node carries its compute type (see base/dtype.h); the binder inserts Cast nodes wherever
// types meet, so the two sides of a Binary always agree and later stages never convert implicitly.
#ifndef TILEJIT_IR_EXPR_H_
#define TILEJIT_IR_EXPR_H_

#include <cstdint>
#include <memory>
#include <string_view>
#include <variant>
#include <vector>

#include "base/dtype.h"
#include "base/status.h"

namespace tl {

using VarId = int;     // index into Module::vars
using BufferId = int;  // index into Module::buffers
inline constexpr int kNoId = -1;

struct Expr;
using ExprRef = std::shared_ptr<const Expr>;

enum class UnaryOp : uint8_t { kNeg, kNot };

enum class BinaryOp : uint8_t {
  kAdd,
  kSub,
  kMul,
  kDiv,      // floats: IEEE quotient; ints: floor division (5 / -2 == -3)
  kMod,      // ints only: sign of the divisor, a == (a/b)*b + a%b
  kCeilDiv,  // ints only
  kMin,
  kMax,  // a NaN operand loses against a number
  kAnd,
  kOr,  // bool
  kBitAnd,
  kBitOr,
  kBitXor,
  kShl,
  kShr,  // ints; shr is arithmetic
  kLt,
  kLe,
  kGt,
  kGe,
  kEq,
  kNe,  // bool result
};

// Maths of one argument unless noted, f32 or f64 in, the same out.
enum class MathFn : uint8_t {
  kExp,
  kExp2,
  kLog,
  kLog2,
  kSqrt,
  kRsqrt,
  kTanh,
  kErf,
  kSigmoid,
  kSin,
  kCos,
  kPow,  // two arguments
  kAbs,  // ints too
  kFloor,
  kCeil,
  kRound,  // half to even
  kFin,    // x, or 0 where x is infinite or NaN
};

struct IntLit {
  int64_t value;
};
struct FloatLit {
  double value;
};  // already rounded to the node's type
struct BoolLit {
  bool value;
};
struct VarRef {
  VarId var;
};
struct Unary {
  UnaryOp op;
  ExprRef arg;
};
struct Binary {
  BinaryOp op;
  ExprRef lhs, rhs;
};
// Only the chosen side is evaluated: an out-of-bounds Load in the other is no access.
struct Select {
  ExprRef cond, yes, no;
};
struct Call {
  MathFn fn;
  std::vector<ExprRef> args;
};
// Rounds to `to` (rules of RoundTo / WrapTo), then widens to its compute type.
struct Cast {
  DType to;
  ExprRef arg;
};
// One element of a buffer, widened. At level Tile one index per dimension; from level Thread on one
// flat element offset into the buffer's storage. Reading a global tensor out of bounds is an error
// of the program (the reference reports it); copy is the operation that pads.
struct Load {
  BufferId buffer;
  std::vector<ExprRef> index;
};
// First (end: one past the last) workspace slot of the pieces that `item` was cut into by the split
// axis of launch number `launch`. Expanded by passes/expand_split; int.
struct PartsBound {
  int launch;
  ExprRef item;
  bool end;
};

// Level Thread: does the storage of a global tensor start at a multiple of `bytes`? bool.
struct IsAligned {
  BufferId buffer;
  int bytes;
};

struct Expr {
  using Node = std::variant<IntLit, FloatLit, BoolLit, VarRef, Unary, Binary, Select, Call, Cast,
                            Load, PartsBound, IsAligned>;
  Node node;
  ScalarType type;
  Span span;
};

template <typename T>
const T* As(const ExprRef& e) {
  return std::get_if<T>(&e->node);
}

// Constructors. They fold constants (with the semantics above) and the identities x+0, x*1, x*0 of
// ints, so that bound programs stay small; both operands must already have one type.
ExprRef MakeInt(int64_t value, Span span = {});
ExprRef MakeFloat(double value, ScalarType type, Span span = {});
ExprRef MakeBool(bool value, Span span = {});
ExprRef MakeVar(VarId var, ScalarType type, Span span = {});
ExprRef MakeUnary(UnaryOp op, ExprRef arg, Span span = {});
ExprRef MakeBinary(BinaryOp op, ExprRef lhs, ExprRef rhs, Span span = {});
ExprRef MakeSelect(ExprRef cond, ExprRef yes, ExprRef no, Span span = {});
ExprRef MakeCall(MathFn fn, std::vector<ExprRef> args, Span span = {});
ExprRef MakeCast(DType to, ExprRef arg, Span span = {});
ExprRef MakeLoad(BufferId buffer, DType dtype, std::vector<ExprRef> index, Span span = {});
ExprRef MakePartsBound(int launch, ExprRef item, bool end, Span span = {});
ExprRef MakeIsAligned(BufferId buffer, int bytes, Span span = {});

// Literal value, if it is one.
const int64_t* IntValue(const ExprRef& e);
bool IsInt(const ExprRef& e, int64_t value);

std::string_view Name(MathFn fn);      // "exp2"
std::string_view Symbol(BinaryOp op);  // "+", "min", "ceildiv"
std::string_view Symbol(UnaryOp op);   // "-", "not"
// kMin, kMax and kCeilDiv print as calls.
bool IsCallLike(BinaryOp op);
bool IsComparison(BinaryOp op);

// Value semantics of the int operators, shared by every evaluator. Division by zero yields 0 (the
// evaluators report it where they can); overflow wraps.
int64_t EvalInt(BinaryOp op, int64_t a, int64_t b);

// Structural equality (spans ignored).
bool Equal(const ExprRef& a, const ExprRef& b);

}  // namespace tl

#endif  // TILEJIT_IR_EXPR_H_
