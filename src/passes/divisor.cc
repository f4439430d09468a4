#include "passes/divisor.h"

#include <numeric>

namespace tl {

int64_t DivisorOf(const ExprRef& e, const Divisors& known) {
  if (const int64_t* v = IntValue(e)) return *v < 0 ? -*v : *v;
  if (const VarRef* ref = As<VarRef>(e)) {
    const auto it = known.find(ref->var);
    return it == known.end() ? 1 : it->second;
  }
  if (const Select* s = As<Select>(e)) {
    return std::gcd(DivisorOf(s->yes, known), DivisorOf(s->no, known));
  }
  const Binary* b = As<Binary>(e);
  if (!b || e->type != ScalarType::kInt) return 1;
  const int64_t x = DivisorOf(b->lhs, known), y = DivisorOf(b->rhs, known);
  switch (b->op) {
    case BinaryOp::kAdd:
    case BinaryOp::kSub:
    case BinaryOp::kMin:
    case BinaryOp::kMax:
      return std::gcd(x, y);
    case BinaryOp::kMul:
      // Far below an overflow: more than this nobody asks for.
      return std::gcd(x, int64_t{1} << 20) * std::gcd(y, int64_t{1} << 20);
    default:
      return 1;
  }
}

}  // namespace tl
