// Fragments in registers: which elements a thread holds, as expressions of its place.
#include <string>
#include <utility>

#include "passes/divisor.h"
#include "passes/lowering.h"

namespace tl {
namespace {

// Digit number i of `index` in the mixed radix of `digits`.
ExprRef DigitOf(const std::vector<FragmentLayout::DimDigit>& digits, size_t i,
                const ExprRef& index) {
  int64_t before = 1;
  for (size_t d = 0; d < i; ++d) before *= digits[d].radix;
  const ExprRef rest = Div(index, before);
  return i + 1 == digits.size() ? rest : Mod(rest, digits[i].radix);
}

void AddCoords(const std::vector<FragmentLayout::DimDigit>& digits, const ExprRef& index,
               Coords& at) {
  for (size_t i = 0; i < digits.size(); ++i) {
    if (digits[i].dim < 0) continue;
    ExprRef& coord = at[digits[i].dim];
    coord = Add(coord, Mul(DigitOf(digits, i, index), MakeInt(digits[i].step)));
  }
}

}  // namespace

void Lowering::NameThread() {
  const int64_t warp_size = target_.warp_size;
  const ExprRef thread = Read(launch_.thread);
  // Producers run code of their own.
  intervals_.Set(launch_.thread, {0, team_size() - 1});
  lane_ = Named("lane", Mod(thread, warp_size));
  warp_ = Named("warp", Div(thread, warp_size));
  const bool groups = launch_.groups > 1;
  group_warp_ = groups ? Named("group_warp", Mod(warp_, launch_.threads / warp_size)) : warp_;
  start_ = out_->size();
}

void Lowering::EnterProducer() {
  const int64_t others = warps();
  in_producer_ = true;
  if (!has_registers()) return;
  const ExprRef warp = Div(Read(launch_.thread), target_.warp_size);
  producer_warp_ = Named("producer_warp", Sub(warp, MakeInt(others)));
  intervals_.Set(As<VarRef>(producer_warp_)->var, {0, warps() - 1});
}

ExprRef Lowering::Pinned(std::string_view name, ExprRef value) {
  if (As<IntLit>(value)) return value;
  for (const StmtRef& s : at_start_) {
    const Let* let = As<Let>(s);
    if (let && let->pinned && Equal(let->value, value)) return Read(let->var);
  }
  const VarId var = m_.AddVar(std::string(name), ScalarType::kInt, VarRole::kLet, span_);
  intervals_.Set(var, intervals_.Of(m_, value));
  divisors_[var] = DivisorOf(value);
  at_start_.push_back(MakeStmt(Let{var, std::move(value), true}, span_, id_));
  return Read(var);
}

void Lowering::AtStart(absl::FunctionRef<void()> make) {
  const Block made = Capture(make);
  at_start_.insert(at_start_.end(), made.begin(), made.end());
}

void Lowering::InsertAtStart(Block& body) const {
  body.insert(body.begin() + static_cast<int64_t>(start_), at_start_.begin(), at_start_.end());
}

BufferId Lowering::LocalArray(std::string_view name, DType dtype, int64_t count) {
  Buffer b;
  b.name = std::string(name);
  b.span = span_;
  b.scope = Scope::kLocal;
  b.dtype = dtype;
  b.extents = {count};
  const BufferId id = m_.AddBuffer(std::move(b));
  Emit(Alloc{id});
  return id;
}

void Lowering::Slots(std::string_view name, int64_t count,
                     absl::FunctionRef<void(const ExprRef&)> body) {
  if (count == 1) return body(MakeInt(0));
  const VarId var = m_.AddVar(std::string(name), ScalarType::kInt, VarRole::kLoop, span_);
  intervals_.Set(var, {0, count - 1});
  Block block = Capture([&] { body(Read(var)); });
  Emit(SlotFor{var, count, std::move(block)});
}

Coords Lowering::OfThread(const FragmentLayout& layout) const {
  Coords at(layout.rank(), MakeInt(0));
  AddCoords(*layout.DimDigits(LayoutAxis::kLane), lane_, at);
  AddCoords(*layout.DimDigits(LayoutAxis::kWarp), warp(), at);
  return at;
}

void Lowering::ForEachElement(const FragmentLayout& layout, int64_t step,
                              absl::FunctionRef<void(const Element&)> body) {
  Coords first = OfThread(layout);
  for (size_t d = 0; d < first.size(); ++d) {
    first[d] = Named(std::string(1, static_cast<char>('i' + d)), std::move(first[d]));
  }
  const auto digits = *layout.DimDigits(LayoutAxis::kSlot);
  Slots("s", layout.slots() / step, [&](const ExprRef& group) {
    Element e{Mul(group, MakeInt(step)), first, MakeBool(true), Coords(first.size(), MakeInt(0))};
    AddCoords(digits, e.slot, e.from_slot);
    for (int d = 0; d < layout.rank(); ++d) {
      e.at[d] = Add(first[d], e.from_slot[d]);
      const int64_t extent = layout.extents()[d];
      if (layout.padded()[d] != extent) {
        e.real = And(std::move(e.real), Less(e.at[d], MakeInt(extent)));
      }
    }
    body(e);
  });
}

ExprRef Lowering::IsFirst(const FragmentLayout& layout, LayoutAxis axis) {
  ExprRef first = MakeBool(true);
  const auto digits = *layout.DimDigits(axis);
  for (size_t i = 0; i < digits.size(); ++i) {
    if (digits[i].dim >= 0) continue;
    const ExprRef digit = DigitOf(digits, i, axis == LayoutAxis::kLane ? lane_ : warp());
    first = And(std::move(first), MakeBinary(BinaryOp::kEq, digit, MakeInt(0)));
  }
  return first;
}

ExprRef Lowering::IsOwner(const FragmentLayout& layout) {
  const ExprRef first = And(IsFirst(layout, LayoutAxis::kLane), IsFirst(layout, LayoutAxis::kWarp));
  return As<BoolLit>(first) ? first : Named("owner", first);
}

ExprRef Lowering::SlotOf(const FragmentLayout& layout, const std::vector<int>& kept,
                         const ExprRef& slot) {
  if (static_cast<int>(kept.size()) == layout.rank()) return slot;
  const auto digits = *layout.DimDigits(LayoutAxis::kSlot);
  ExprRef out = MakeInt(0);
  int64_t weight = 1;
  for (size_t i = 0; i < digits.size(); ++i) {
    bool keep = false;
    for (int d : kept) keep = keep || d == digits[i].dim;
    if (!keep) continue;
    out = Add(std::move(out), Mul(DigitOf(digits, i, slot), MakeInt(weight)));
    weight *= digits[i].radix;
  }
  return out;
}

void Lowering::ForEachMapped(const FragmentLayout& layout, const std::vector<VarId>& vars,
                             bool all_holders, absl::FunctionRef<void()> body) {
  const ExprRef owner = IsOwner(layout), always = MakeBool(true);
  EmitIf(all_holders ? always : owner, [&] {
    ForEachElement(layout, 1, [&](const Element& e) {
      for (size_t d = 0; d < vars.size(); ++d) {
        intervals_.Set(vars[d], {0, layout.extents()[d] - 1});
        Emit(Let{vars[d], e.at[d]});
      }
      mapped_ = {&layout, vars, e.slot, all_holders ? owner : always};
      EmitIf(e.real, body);
      mapped_ = {};
    });
  });
}

void Lowering::EmitOnce(absl::FunctionRef<void()> body) {
  if (!mapped_.layout) return body();
  EmitIf(mapped_.owner, body);
}

ExprRef Lowering::SlotOfIndex(BufferId, const Coords& index) const {
  std::vector<int> kept;
  for (const ExprRef& e : index) {
    const VarRef* ref = As<VarRef>(e);
    for (size_t d = 0; ref && d < mapped_.vars.size(); ++d) {
      if (mapped_.vars[d] == ref->var) kept.push_back(static_cast<int>(d));
    }
  }
  return SlotOf(*mapped_.layout, kept, mapped_.slot);
}

int64_t Lowering::DivisorOf(const ExprRef& e) const { return tl::DivisorOf(e, divisors_); }

}  // namespace tl
