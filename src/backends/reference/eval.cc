// Expressions.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "backends/reference/agent.h"

namespace tl::reference {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

bool IsDivision(BinaryOp op) {
  return op == BinaryOp::kDiv || op == BinaryOp::kMod || op == BinaryOp::kCeilDiv;
}

std::string IndexString(const Index& index, int rank) {
  return absl::StrCat("[", absl::StrJoin(index.begin(), index.begin() + rank, ", "), "]");
}

}  // namespace

Value Agent::Eval(const Expr& e) {
  if (const auto* ref = std::get_if<VarRef>(&e.node)) return vars_[ref->var];
  if (const auto* binary = std::get_if<Binary>(&e.node)) return EvalBinary(e, *binary);
  if (const auto* load = std::get_if<Load>(&e.node)) return EvalLoad(e, *load);
  if (const auto* lit = std::get_if<IntLit>(&e.node)) return IntOf(lit->value);
  if (const auto* lit = std::get_if<FloatLit>(&e.node)) return FloatOf(lit->value);
  if (const auto* lit = std::get_if<BoolLit>(&e.node)) return IntOf(lit->value);
  if (const auto* unary = std::get_if<Unary>(&e.node)) {
    return arith_.Unary(unary->op, e.type, Eval(unary->arg));
  }
  if (const auto* select = std::get_if<Select>(&e.node)) return EvalSelect(*select);
  if (const auto* cast = std::get_if<Cast>(&e.node)) {
    return arith_.Convert(cast->to, cast->arg->type, Eval(cast->arg));
  }
  if (const auto* call = std::get_if<Call>(&e.node)) {
    const Value a = Eval(call->args[0]);
    const Value b = call->args.size() > 1 ? Eval(call->args[1]) : Value{};
    return arith_.Call(call->fn, e.type, a, b);
  }
  return EvalParts(e, std::get<PartsBound>(e.node));
}

Value Agent::EvalBinary(const Expr& e, const Binary& binary) {
  const Value a = Eval(binary.lhs);
  // The other side is evaluated only where it can matter.
  if (binary.op == BinaryOp::kAnd && !a.c.i && a.err == 0 && a.undefined == kNoId) return a;
  if (binary.op == BinaryOp::kOr && a.c.i && a.err == 0 && a.undefined == kNoId) return a;
  const Value b = Eval(binary.rhs);
  const ScalarType type = binary.lhs->type;
  if (type == ScalarType::kInt && b.c.i == 0 && IsDivision(binary.op) && !failed()) {
    Fail(e.span, absl::StrCat("integer division by zero in '", Symbol(binary.op), "'"));
  }
  return arith_.Binary(binary.op, type, a, b);
}

// Where the condition is closer than its error the value covers both sides.
Value Agent::EvalSelect(const Select& select) {
  const Value cond = Eval(select.cond);
  Value chosen = Eval(cond.c.i ? select.yes : select.no);
  if (cond.undefined != kNoId) chosen.undefined = cond.undefined;
  if (cond.err == 0 || failed()) return chosen;
  const Value other = Eval(cond.c.i ? select.no : select.yes);
  if (failed()) {  // an access that the condition was to prevent
    block_->status = absl::OkStatus();
    chosen.err = kInf;
    return chosen;
  }
  return WidenByOther(chosen, other, select.yes->type);
}

Value Agent::WidenByOther(Value chosen, const Value& other, ScalarType type) const {
  const double a = IsFloat(type) ? chosen.c.f : static_cast<double>(chosen.c.i);
  const double b = IsFloat(type) ? other.c.f : static_cast<double>(other.c.i);
  const bool same = a == b || (std::isnan(a) && std::isnan(b));
  const double gap = same ? 0 : std::fabs(a - b);
  chosen.err = std::isnan(gap) ? kInf : std::max(chosen.err, gap + other.err);
  return chosen;
}

Value Agent::EvalLoad(const Expr& e, const Load& load) {
  Index index;
  bool uncertain = false;
  if (!EvalIndex(load.index, load.buffer, "read", e.span, &index, &uncertain)) return {};
  const Buffer& b = buffer(load.buffer);
  Value v;
  if (b.scope == Scope::kGlobal) {
    Tensor& tensor = machine_->tensor(load.buffer);
    v = tensor.Get(tensor.Offset(index));
  } else {
    Tile* tile = FindTile(load.buffer, e.span);
    if (tile == nullptr || !CheckReadable(load.buffer, e.span)) return {};
    int64_t at = 0;
    for (size_t d = 0; d < b.extents.size(); ++d) at = at * b.extents[d] + index[d];
    v.c = tile->data.cell[at];
    if (exact_) {
      v.err = tile->data.err[at];
      if (!tile->data.def[at]) v.undefined = load.buffer;
      if (!CheckRace(*tile, at, e.span, "reads")) return {};
    }
  }
  if (uncertain) v.err = kInf;
  return v;
}

Value Agent::EvalParts(const Expr& e, const PartsBound& parts) {
  const int64_t item = EvalInt(parts.item, "item of parts()");
  const SplitPlan* plan = machine_->plan(parts.launch);
  if (failed()) return {};
  if (plan == nullptr) {
    Fail(e.span, "parts() of a launch that has not run");
    return {};
  }
  if (item < 0 || item >= plan->items()) {
    Fail(e.span,
         absl::StrCat("parts(", item, ") outside the ", plan->items(), " items of the split"));
    return {};
  }
  return IntOf(parts.end ? plan->EndSlot(item) : plan->FirstSlot(item));
}

int64_t Agent::EvalInt(const ExprRef& e, std::string_view what) {
  const Value v = Eval(e);
  if (v.undefined != kNoId && !failed()) {
    Fail(e->span, absl::StrCat(what, " depends on an element of ", Quoted(v.undefined),
                               " that nothing has written"));
  }
  return v.c.i;
}

bool Agent::EvalIndex(const std::vector<ExprRef>& exprs, BufferId id, std::string_view action,
                      const Span& span, Index* out, bool* uncertain) {
  const Buffer& b = buffer(id);
  const bool global = b.scope == Scope::kGlobal;
  const Tensor* tensor = global ? &machine_->tensor(id) : nullptr;
  bool inside = true;
  for (size_t d = 0; d < exprs.size(); ++d) {
    const Value v = Eval(exprs[d]);
    if (v.undefined != kNoId) EvalInt(exprs[d], "an index");
    if (v.err > 0) *uncertain = true;
    (*out)[d] = v.c.i;
    const int64_t extent = global ? tensor->extent(static_cast<int>(d)) : b.extents[d];
    inside = inside && v.c.i >= 0 && v.c.i < extent;
  }
  if (failed()) return false;
  if (inside) return true;
  const std::string shape =
      global ? tensor->ShapeString() : absl::StrCat("[", absl::StrJoin(b.extents, ", "), "]");
  Fail(span, absl::StrCat(action, " of ", b.name, IndexString(*out, static_cast<int>(exprs.size())),
                          ", outside its shape ", shape));
  return false;
}

}  // namespace tl::reference
