// Reductions of fragments in registers: first over a thread's own elements, then between lanes by
// exchanges, then between warps through shared memory.
#include <utility>
#include <vector>

#include "passes/lowering.h"

namespace tl {
namespace {

// One reduction under way: `acc` holds the running values, laid out as the result.
struct Running {
  ReduceOp op;
  const FragmentLayout& src;
  int dim;
  DType type;
  BufferId acc;
  int64_t slots;
};

ExprRef Read(const Lowering& l, const Running& r, const ExprRef& slot) {
  return MakeLoad(r.acc, l.buffer(r.acc).dtype, {slot});
}

void Fold(Lowering& l, const Running& r, const ExprRef& slot, const ExprRef& value) {
  l.Emit(Store{r.acc, {slot}, StoreOp::kSet, Combine(r.op, Read(l, r, slot), value)});
}

void ReduceSlots(Lowering& l, const Running& r, BufferId src, const ExprRef& identity) {
  std::vector<int> kept;
  for (int d = 0; d < r.src.rank(); ++d) {
    if (d != r.dim) kept.push_back(d);
  }
  l.Slots("s", r.slots,
          [&](const ExprRef& s) { l.Emit(Store{r.acc, {s}, StoreOp::kSet, identity}); });
  l.ForEachElement(r.src, 1, [&](const Lowering::Element& e) {
    const ExprRef value = ConvertTo(r.type, MakeLoad(src, l.buffer(src).dtype, {e.slot}));
    Fold(l, r, Lowering::SlotOf(r.src, kept, e.slot), MakeSelect(e.real, value, identity));
  });
}

// Lanes whose numbers differ in the bits of a digit along the reduced dim hold parts of one line.
void ReduceLanes(Lowering& l, const Running& r) {
  int64_t weight = 1;
  const auto digits = *r.src.DimDigits(LayoutAxis::kLane);
  for (const FragmentLayout::DimDigit& digit : digits) {
    for (int64_t mask = weight; digit.dim == r.dim && mask < weight * digit.radix; mask *= 2) {
      l.Slots("s", r.slots, [&](const ExprRef& s) {
        const VarId other = l.module().AddVar("other", ComputeType(r.type), VarRole::kLet);
        l.Emit(LaneExchange{other, Read(l, r, s), static_cast<int>(mask)});
        Fold(l, r, s, l.Read(other));
      });
    }
    weight *= digit.radix;
  }
}

// Number of warps along the reduced dim, and this warp's among them.
struct WarpsAlong {
  int64_t count = 1;
  ExprRef mine = MakeInt(0);
};

WarpsAlong WarpsOf(const Lowering& l, const Running& r) {
  WarpsAlong w;
  int64_t weight = 1;
  const auto digits = *r.src.DimDigits(LayoutAxis::kWarp);
  for (const FragmentLayout::DimDigit& digit : digits) {
    if (digit.dim == r.dim) {
      const ExprRef rest = MakeBinary(BinaryOp::kDiv, l.warp(), MakeInt(weight));
      const ExprRef own = MakeBinary(BinaryOp::kMod, rest, MakeInt(digit.radix));
      w.mine = Add(w.mine, Mul(own, MakeInt(w.count)));
      w.count *= digit.radix;
    }
    weight *= digit.radix;
  }
  return w;
}

void ReduceWarps(Lowering& l, const Running& r, const FragmentLayout& result) {
  const WarpsAlong warps = WarpsOf(l, r);
  if (warps.count == 1) return;
  std::vector<int64_t> extents = result.padded();
  extents.insert(extents.begin(), warps.count);
  const BufferId partial = l.Scratch("partial", r.type, extents);
  const auto at = [&](const ExprRef& warp, const Coords& c) {
    Coords index = c;
    index.insert(index.begin(), warp);
    return index;
  };
  const ExprRef mine = l.Named("part", warps.mine);
  const ExprRef first =
      And(l.IsFirst(result, LayoutAxis::kLane), l.IsFirst(r.src, LayoutAxis::kWarp));
  l.ForEachElement(result, 1, [&](const Lowering::Element& e) {
    l.EmitIf(first, [&] { l.StoreAt(partial, at(mine, e.at), Read(l, r, e.slot)); });
  });
  l.ForEachElement(result, 1, [&](const Lowering::Element& e) {
    // In one order, so that every replica gets the same bits.
    l.Emit(Store{r.acc, {e.slot}, StoreOp::kSet, l.LoadAt(partial, at(MakeInt(0), e.at))});
    for (int64_t w = 1; w < warps.count; ++w) {
      Fold(l, r, e.slot, l.LoadAt(partial, at(MakeInt(w), e.at)));
    }
  });
}

}  // namespace

bool ReduceRegisters(Lowering& l, const Reduce& reduce) {
  const FragmentLayout *src = l.LayoutOf(reduce.src.buffer), *dst = l.LayoutOf(reduce.dst.buffer);
  if (!src || !dst) return false;
  const DType type = RunningType(l, reduce);
  const DType from = l.buffer(reduce.src.buffer).dtype, to = l.buffer(reduce.dst.buffer).dtype;
  const ExprRef identity =
      IdentityOf(reduce.op, ComputeType(from) == ComputeType(type) ? from : type);
  const Running r{reduce.op,   *src, reduce.dim, type, l.LocalArray("acc", type, dst->slots()),
                  dst->slots()};
  ReduceSlots(l, r, reduce.src.buffer, identity);
  ReduceLanes(l, r);
  ReduceWarps(l, r, *dst);
  l.Slots("s", r.slots, [&](const ExprRef& s) {
    ExprRef value = Read(l, r, s);
    if (!reduce.clear) {
      const ExprRef old = ConvertTo(type, MakeLoad(reduce.dst.buffer, to, {s}));
      value = Combine(reduce.op, old, value);
    }
    l.Emit(Store{reduce.dst.buffer, {s}, StoreOp::kSet, ConvertTo(to, value)});
  });
  return true;
}

}  // namespace tl
