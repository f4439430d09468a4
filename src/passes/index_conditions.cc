#include "passes/index_conditions.h"

#include <algorithm>
#include <cstdlib>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "ir/visit.h"

namespace tl {
namespace {

// So that sums and products of two of them are exact.
constexpr int64_t kMostFactor = int64_t{1} << 20;
constexpr int64_t kMostConstant = int64_t{1} << 40;

ExprRef Op(BinaryOp op, ExprRef a, ExprRef b) { return MakeBinary(op, std::move(a), std::move(b)); }

// What a block defines or assigns.
class Definitions : public StmtMapper {
 public:
  explicit Definitions(absl::flat_hash_set<VarId>& found) : found_(found) {}
  VarId MapDefinition(VarId v) override { return found_.insert(v), v; }
  VarId MapAssigned(VarId v) override { return found_.insert(v), v; }

 private:
  absl::flat_hash_set<VarId>& found_;
};

// ---- Ranges

// A distance known only if both are: the greater or the smaller of them.
std::optional<int64_t> OfBoth(bool greater, std::optional<int64_t> a, std::optional<int64_t> b) {
  if (!a || !b) return std::nullopt;
  return greater ? std::max(*a, *b) : std::min(*a, *b);
}

// Is `part` among what `e` takes the greatest or smallest of?
bool Takes(BinaryOp op, const ExprRef& e, const ExprRef& part) {
  const Binary* b = As<Binary>(e);
  return Equal(e, part) ||
         (b && b->op == op && (Takes(op, b->lhs, part) || Takes(op, b->rhs, part)));
}

// The later (kMax) or earlier (kMin) of two cuts.
std::optional<Cut> Choose(BinaryOp op, const std::optional<Cut>& a, const std::optional<Cut>& b) {
  if (!a) return b;
  if (!b || Takes(op, a->at, b->at)) return a;
  const bool later = op == BinaryOp::kMax;
  return Cut{MakeBinary(op, a->at, b->at), OfBoth(later, a->from_begin, b->from_begin),
             OfBoth(!later, a->from_end, b->from_end)};
}

// One range of the union: all of it if that is one, else the one that has most iterations.
std::optional<IndexRange> Union(const std::optional<IndexRange>& a,
                                const std::optional<IndexRange>& b) {
  if (!a) return b;
  if (!b) return a;
  if (!a->from && !b->from && a->to && b->to) {
    return IndexRange{std::nullopt, Choose(BinaryOp::kMax, a->to, b->to)};
  }
  if (!a->to && !b->to && a->from && b->from) {
    return IndexRange{Choose(BinaryOp::kMin, a->from, b->from), std::nullopt};
  }
  if (a->IsMost()) return a;
  if (b->IsMost() || a->IsFew()) return b;
  return b->IsFew() ? a : std::nullopt;
}

}  // namespace

bool IndexRange::IsMost() const { return (!from || from->from_begin) && (!to || to->from_end); }

bool IndexRange::IsFew() const { return (from && from->from_end) || (to && to->from_begin); }

int64_t IndexRange::Outside() const {
  return (from ? from->from_begin.value_or(0) : 0) + (to ? to->from_end.value_or(0) : 0);
}

IndexRange Intersection(const IndexRange& a, const IndexRange& b) {
  return {Choose(BinaryOp::kMax, a.from, b.from), Choose(BinaryOp::kMin, a.to, b.to)};
}

// ---- Linear values

IndexConditions::IndexConditions(const Module& module, const Varying& varying, const For& loop,
                                 ExprRef begin, ExprRef end)
    : module_(module),
      varying_(varying),
      loop_(loop),
      begin_(std::move(begin)),
      end_(std::move(end)) {
  std::string ignored;
  linear_begin_ = LinearOf(loop.begin, ignored);
  linear_end_ = LinearOf(loop.end, ignored);
  NoteChanges();
}

void IndexConditions::NoteChanges() {
  Definitions(changing_).MapBlock(loop_.body);
  VisitStmts(loop_.body, [&](const StmtRef& s) {
    const Let* let = As<Let>(s);
    if (!let || module_.var(let->var).role == VarRole::kMutable) return;
    std::string ignored;
    if (let->value->type == ScalarType::kBool) {
      const bool of_others = AnyNode(let->value, [&](const ExprRef& node) {
        return As<VarRef>(node) && conditions_.contains(As<VarRef>(node)->var);
      });
      if (!of_others) conditions_.emplace(let->var, let->value);
    } else if (let->value->type == ScalarType::kInt) {
      auto value = LinearOf(let->value, ignored);
      if (value) values_.emplace(let->var, *std::move(value));
    }
  });
}

ExprRef IndexConditions::ValueOf(const Linear& sum) {
  ExprRef value = MakeInt(0);
  for (const bool negative : {false, true}) {  // `a - b`, not `-b + a`
    for (const auto& [term, factor] : sum.terms) {
      if ((factor < 0) != negative) continue;
      value = Op(negative ? BinaryOp::kSub : BinaryOp::kAdd, value,
                 Op(BinaryOp::kMul, term, MakeInt(std::abs(factor))));
    }
  }
  return value;
}

void IndexConditions::Add(Linear& to, const Linear& other, int64_t factor) {
  to.index += factor * other.index;
  to.constant += factor * other.constant;
  for (const auto& [term, times] : other.terms) {
    const auto known =
        absl::c_find_if(to.terms, [&](const auto& t) { return Equal(t.first, term); });
    if (known == to.terms.end()) {
      to.terms.emplace_back(term, factor * times);
    } else if ((known->second += factor * times) == 0) {
      to.terms.erase(known);
    }
  }
}

bool IndexConditions::InRange(const Linear& sum) {
  return std::abs(sum.index) <= kMostFactor && std::abs(sum.constant) <= kMostConstant &&
         absl::c_all_of(sum.terms, [](const auto& t) { return std::abs(t.second) <= kMostFactor; });
}

std::optional<IndexConditions::Linear> IndexConditions::LinearOf(const ExprRef& e,
                                                                 std::string& why) const {
  if (const int64_t* value = IntValue(e)) {
    if (*value >= -kMostConstant && *value <= kMostConstant) return Linear{.constant = *value};
    why = "has a number out of range";
    return std::nullopt;
  }
  if (const VarRef* ref = As<VarRef>(e)) {
    if (ref->var == loop_.var) return Linear{.index = 1};
    if (const auto known = values_.find(ref->var); known != values_.end()) return known->second;
  }
  if (const Unary* negated = As<Unary>(e)) {
    const auto arg = LinearOf(negated->arg, why);
    if (!arg) return std::nullopt;
    Linear out;
    Add(out, *arg, -1);
    return out;
  }
  return As<Binary>(e) ? LinearOfBinary(e, why) : Term(e, why);
}

std::optional<IndexConditions::Linear> IndexConditions::LinearOfBinary(const ExprRef& e,
                                                                       std::string& why) const {
  const Binary& b = *As<Binary>(e);
  const bool sum = b.op == BinaryOp::kAdd || b.op == BinaryOp::kSub;
  const int64_t* factor = IntValue(b.rhs) ? IntValue(b.rhs) : IntValue(b.lhs);
  const bool scaled =
      b.op == BinaryOp::kMul && factor && *factor >= -kMostFactor && *factor <= kMostFactor;
  if (!sum && !scaled) return Term(e, why);
  Linear out;
  if (scaled) {
    const auto arg = LinearOf(IntValue(b.rhs) ? b.lhs : b.rhs, why);
    if (!arg) return std::nullopt;
    Add(out, *arg, *factor);
  } else {
    const auto lhs = LinearOf(b.lhs, why), rhs = LinearOf(b.rhs, why);
    if (!lhs || !rhs) return std::nullopt;
    Add(out, *lhs, 1);
    Add(out, *rhs, b.op == BinaryOp::kAdd ? 1 : -1);
  }
  if (InRange(out)) return out;
  why = "has a number out of range";
  return std::nullopt;
}

// A value from outside of the loop.
std::optional<IndexConditions::Linear> IndexConditions::Term(const ExprRef& e,
                                                             std::string& why) const {
  bool of_index = false;
  VarId changes = kNoId;
  VisitExpr(e, [&](const ExprRef& node) {
    const VarRef* ref = As<VarRef>(node);
    if (!ref) return;
    of_index = of_index || ref->var == loop_.var;
    if (changing_.contains(ref->var)) changes = ref->var;
  });
  if (of_index) {
    why = "is not linear in the index";
  } else if (changes != kNoId) {
    why = absl::StrCat("takes '", module_.var(changes).name, "', which is made in the loop");
  } else if (HasLoad(e)) {
    why = "reads an element";
  } else if (varying_.Has(e)) {
    why = "differs between threads";
  } else {
    Linear out;
    out.terms.emplace_back(e, 1);
    return out;
  }
  return std::nullopt;
}

// ---- Conditions

std::optional<IndexRange> IndexConditions::Known(const ExprRef& cond, bool value,
                                                 std::string& why) const {
  if (const Unary* negated = As<Unary>(cond)) return Known(negated->arg, !value, why);
  if (const VarRef* ref = As<VarRef>(cond)) {
    const auto named = conditions_.find(ref->var);
    return named == conditions_.end() ? std::nullopt : Known(named->second, value, why);
  }
  const Binary* b = As<Binary>(cond);
  if (!b) return std::nullopt;
  if (IsComparison(b->op)) return KnownComparison(*b, value, why);
  if (b->op != BinaryOp::kAnd && b->op != BinaryOp::kOr) return std::nullopt;
  const auto lhs = Known(b->lhs, value, why), rhs = Known(b->rhs, value, why);
  if ((b->op == BinaryOp::kOr) == value) return Union(lhs, rhs);
  if (!lhs || !rhs) return std::nullopt;
  return Intersection(*lhs, *rhs);
}

std::optional<IndexRange> IndexConditions::KnownComparison(const Binary& compare, bool value,
                                                           std::string& why) const {
  if (compare.lhs->type != ScalarType::kInt) return std::nullopt;
  std::string reason;
  const auto lhs = LinearOf(compare.lhs, reason), rhs = LinearOf(compare.rhs, reason);
  if (!lhs || !rhs) {
    if (why.empty()) why = std::move(reason);
    return std::nullopt;
  }
  // All of them in terms of `a < b`, so that nobody has to add 1 to a bound.
  const auto below = [&](const Linear& a, const Linear& b, bool wanted) {
    Linear difference = a;
    Add(difference, b, -1);
    return BelowZero(difference, wanted);
  };
  switch (compare.op) {
    case BinaryOp::kLt:
      return below(*lhs, *rhs, value);
    case BinaryOp::kGe:
      return below(*lhs, *rhs, !value);
    case BinaryOp::kGt:
      return below(*rhs, *lhs, value);
    case BinaryOp::kLe:
      return below(*rhs, *lhs, !value);
    default:
      break;
  }
  // They may be equal in one iteration.
  const auto less = below(*lhs, *rhs, true), more = below(*rhs, *lhs, true);
  const bool equal = (compare.op == BinaryOp::kEq) == value;
  auto out = equal ? std::nullopt : Union(less, more);
  if (!out && less && why.empty()) why = "may hold in any one iteration";
  return out;
}

std::optional<IndexRange> IndexConditions::BelowZero(const Linear& difference, bool value) const {
  if (difference.index == 0) return std::nullopt;
  // index * factor < bound where the index comes with a positive factor, else not.
  const bool rising = difference.index > 0;
  Linear bound;
  Add(bound, difference, rising ? -1 : 1);
  bound.index = 0;
  bound.constant += rising ? 0 : 1;
  const Cut cut = CutAt(bound, std::abs(difference.index));
  IndexRange out;
  if (rising == value) {
    if (cut.from_end != 0) out.to = cut;
  } else {
    if (cut.from_begin != 0) out.from = cut;
  }
  return out;
}

// The first index of which `factor` times is not below the bound, within the loop: without
// iterations its begin, so that limit counts last. The limits come before a constant or a sign
// does: a bound that is one value may be any number.
ExprRef IndexConditions::PlaceOf(const Linear& bound, int64_t factor) const {
  constexpr BinaryOp kMin = BinaryOp::kMin, kMax = BinaryOp::kMax, kSub = BinaryOp::kSub;
  const ExprRef k = MakeInt(factor), constant = MakeInt(bound.constant);
  const ExprRef begin = Op(BinaryOp::kMul, begin_, k), end = Op(BinaryOp::kMul, end_, k);
  ExprRef place;
  if (bound.terms.empty()) {
    place = Op(kMax, Op(kMin, constant, end), begin);
  } else if (absl::c_any_of(bound.terms, [](const auto& t) { return t.second > 0; })) {
    const ExprRef lowest = Op(kSub, begin, constant), highest = Op(kSub, end, constant);
    place = Op(BinaryOp::kAdd, Op(kMax, Op(kMin, ValueOf(bound), highest), lowest), constant);
  } else {
    Linear negative;
    Add(negative, bound, -1);
    const ExprRef lowest = Op(kSub, constant, end), highest = Op(kSub, constant, begin);
    place = Op(kSub, constant, Op(kMin, Op(kMax, ValueOf(negative), lowest), highest));
  }
  return Op(BinaryOp::kCeilDiv, place, k);
}

Cut IndexConditions::CutAt(const Linear& bound, int64_t factor) const {
  Cut cut{PlaceOf(bound, factor), {}, {}};
  const auto distance = [&](const std::optional<Linear>& end, bool behind) {
    std::optional<int64_t> out;
    if (!end) return out;
    Linear d;
    Add(d, bound, behind ? 1 : -1);
    Add(d, *end, behind ? -factor : factor);
    if (d.index == 0 && d.terms.empty()) {
      out = std::max<int64_t>(
          EvalInt(behind ? BinaryOp::kCeilDiv : BinaryOp::kDiv, d.constant, factor), 0);
    }
    return out;
  };
  cut.from_begin = distance(linear_begin_, true);
  cut.from_end = distance(linear_end_, false);
  return cut;
}

}  // namespace tl
