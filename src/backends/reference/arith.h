// Scalar arithmetic of both modes: values, and in kExact their error bounds.
#ifndef TILEJIT_BACKENDS_REFERENCE_ARITH_H_
#define TILEJIT_BACKENDS_REFERENCE_ARITH_H_

#include "backends/reference/value.h"
#include "base/dtype.h"
#include "ir/expr.h"
#include "ir/module.h"

namespace tl::reference {

class Arith {
 public:
  explicit Arith(Mode mode) : exact_(mode == Mode::kExact) {}

  bool exact() const { return exact_; }

  Value Unary(UnaryOp op, ScalarType type, const Value& a) const;
  // Operands of type `type`. An int divisor of 0 is the caller's to report; the result is 0.
  Value Binary(BinaryOp op, ScalarType type, const Value& a, const Value& b) const;
  // `b` counts for functions of two arguments only.
  Value Call(MathFn fn, ScalarType type, const Value& a, const Value& b) const;
  // The value as an element of dtype `to`, then widened again.
  Value Convert(DType to, ScalarType from, const Value& a) const;

 private:
  Value FloatBinary(BinaryOp op, ScalarType type, const Value& a, const Value& b) const;
  Value IntBinary(BinaryOp op, const Value& a, const Value& b) const;
  // A float result v whose operands' errors cause `prop`, with `own` of the operation itself.
  Value Finish(double v, double prop, double own, ScalarType type, BufferId undefined) const;
  Value RoundFloat(DType to, ScalarType from, const Value& a) const;
  Value FloatToInt(DType to, const Value& a) const;

  bool exact_;
};

// Float to integer: toward zero, saturating, NaN is 0.
int64_t TruncateTo(DType t, double v);

}  // namespace tl::reference

#endif  // TILEJIT_BACKENDS_REFERENCE_ARITH_H_
