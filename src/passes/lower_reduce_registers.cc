// Reductions and running sums of fragments in registers: first over a thread's own elements, then
// between lanes by exchanges, then between warps through shared memory.
#include <bit>
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

void ReduceLanes(Lowering& l, const Running& r, const std::vector<int>& masks) {
  for (int mask : masks) {
    l.Slots("s", r.slots, [&](const ExprRef& s) {
      const VarId other = l.module().AddVar("other", ComputeType(r.type), VarRole::kLet);
      l.Emit(LaneExchange{other, Read(l, r, s), mask});
      Fold(l, r, s, l.Read(other));
    });
  }
}

// Number of warps along the reduced dim, and this warp's among them.
struct WarpsAlong {
  int64_t count = 1;
  ExprRef mine = MakeInt(0);
};

WarpsAlong WarpsOf(const Lowering& l, const FragmentLayout& src, int dim) {
  WarpsAlong w;
  int64_t weight = 1;
  const auto digits = *src.DimDigits(LayoutAxis::kWarp);
  for (const FragmentLayout::DimDigit& digit : digits) {
    if (digit.dim == dim) {
      const ExprRef rest = MakeBinary(BinaryOp::kDiv, l.warp(), MakeInt(weight));
      const ExprRef own = MakeBinary(BinaryOp::kMod, rest, MakeInt(digit.radix));
      w.mine = Add(w.mine, Mul(own, MakeInt(w.count)));
      w.count *= digit.radix;
    }
    weight *= digit.radix;
  }
  return w;
}

// One value of every warp for each element of `result`, where all threads can read them.
class Partials {
 public:
  // `values`: laid out as `result`, what is left of `src` without the dim.
  Partials(Lowering& l, const FragmentLayout& src, const FragmentLayout& result, DType type,
           BufferId values, const WarpsAlong& warps)
      : l_(l) {
    std::vector<int64_t> extents = result.padded();
    extents.insert(extents.begin(), warps.count);
    tile_ = l.Scratch("partial", type, extents);
    mine_ = l.Named("part", warps.mine);
    const ExprRef first =
        And(l.IsFirst(result, LayoutAxis::kLane), l.IsFirst(src, LayoutAxis::kWarp));
    l.ForEachElement(result, 1, [&](const Lowering::Element& e) {
      l.EmitIf(first, [&] { l.StoreAt(tile_, At(mine_, e), MakeLoad(values, type, {e.slot})); });
    });
  }

  const ExprRef& mine() const { return mine_; }
  ExprRef Of(int64_t warp, const Lowering::Element& e) const {
    return l_.LoadAt(tile_, At(MakeInt(warp), e));
  }

 private:
  static Coords At(const ExprRef& warp, const Lowering::Element& e) {
    Coords index = e.at;
    index.insert(index.begin(), warp);
    return index;
  }

  Lowering& l_;
  BufferId tile_;
  ExprRef mine_;
};

void ReduceWarps(Lowering& l, const Running& r, const FragmentLayout& result) {
  const WarpsAlong warps = WarpsOf(l, r.src, r.dim);
  if (warps.count == 1) return;
  const Partials partials(l, r.src, result, r.type, r.acc, warps);
  l.ForEachElement(result, 1, [&](const Lowering::Element& e) {
    // In one order, so that every replica gets the same bits.
    l.Emit(Store{r.acc, {e.slot}, StoreOp::kSet, partials.Of(0, e)});
    for (int64_t w = 1; w < warps.count; ++w) Fold(l, r, e.slot, partials.Of(w, e));
  });
}

// Running sums along one dim of a layout that RunsInOrder.
class Scan {
 public:
  Scan(Lowering& l, const FragmentLayout& layout, const CumSum& cumsum)
      : l_(l),
        layout_(layout),
        result_(*layout.Project(cumsum.dim)),
        dim_(cumsum.dim),
        reverse_(cumsum.reverse),
        from_(l.buffer(cumsum.src.buffer).dtype),
        to_(l.buffer(cumsum.dst.buffer).dtype),
        type_(WideDType(std::max(ComputeType(from_), ComputeType(to_)))),
        sums_(l.LocalArray("sums", type_, layout.slots())),
        total_(l.LocalArray("total", type_, result_.slots())),
        before_(l.LocalArray("before", type_, result_.slots())) {
    int64_t weight = 1;
    const auto digits = *layout.DimDigits(LayoutAxis::kSlot);
    for (const FragmentLayout::DimDigit& digit : digits) {
      if (digit.dim == dim_) own_ = digit.radix, step_ = weight;
      weight *= digit.radix;
    }
    for (int d = 0; d < layout.rank(); ++d) {
      if (d != dim_) kept_.push_back(d);
    }
  }

  void Run(BufferId src, BufferId dst) {
    AddSlots(src);
    AddLanes();
    AddWarps();
    l_.Slots("s", layout_.slots(), [&](const ExprRef& s) {
      const ExprRef sum = Add(Read(before_, Line(s)), Read(sums_, s));
      l_.Emit(Store{dst, {s}, StoreOp::kSet, ConvertTo(to_, sum)});
    });
  }

 private:
  ExprRef Read(BufferId array, const ExprRef& slot) const { return MakeLoad(array, type_, {slot}); }
  void Set(BufferId array, const ExprRef& slot, const ExprRef& value) {
    l_.Emit(Store{array, {slot}, StoreOp::kSet, value});
  }
  ExprRef Line(const ExprRef& slot) const { return Lowering::SlotOf(layout_, kept_, slot); }

  // Within each thread; `total_` is what it adds up to.
  void AddSlots(BufferId src) {
    const ExprRef zero = Zero(ComputeType(type_));
    l_.ForEachElement(layout_, 1, [&](const Lowering::Element& e) {
      const ExprRef value = ConvertTo(type_, MakeLoad(src, from_, {e.slot}));
      Set(sums_, e.slot, MakeSelect(e.real, value, zero));
    });
    l_.Slots("s", layout_.slots(), [&](const ExprRef& i) {
      const ExprRef s = reverse_ ? Sub(MakeInt(layout_.slots() - 1), i) : i;
      const ExprRef index = Mod(Div(s, step_), own_);
      const ExprRef first = MakeInt(reverse_ ? own_ - 1 : 0);
      const ExprRef last = MakeInt(reverse_ ? 0 : own_ - 1);
      const ExprRef before = Add(s, MakeInt(reverse_ ? step_ : -step_));
      l_.EmitIf(MakeBinary(BinaryOp::kNe, index, first),
                [&] { Set(sums_, s, Add(Read(sums_, before), Read(sums_, s))); });
      l_.EmitIf(MakeBinary(BinaryOp::kEq, index, last),
                [&] { Set(total_, Line(s), Read(sums_, s)); });
    });
  }

  // Pairs of lanes, pairs of pairs and so on: whoever comes later adds the others' total.
  void AddLanes() {
    const ExprRef zero = Zero(ComputeType(type_));
    l_.Slots("s", result_.slots(), [&](const ExprRef& s) { Set(before_, s, zero); });
    int64_t weight = 1;
    const auto digits = *layout_.DimDigits(LayoutAxis::kLane);
    for (const FragmentLayout::DimDigit& digit : digits) {
      for (int64_t mask = weight; digit.dim == dim_ && mask < weight * digit.radix; mask *= 2) {
        const ExprRef bit = Mod(Div(l_.lane(), mask), 2);
        const ExprRef later = MakeBinary(BinaryOp::kEq, bit, MakeInt(reverse_ ? 0 : 1));
        l_.Slots("s", result_.slots(), [&](const ExprRef& s) {
          const VarId other = l_.module().AddVar("other", ComputeType(type_), VarRole::kLet);
          l_.Emit(LaneExchange{other, Read(total_, s), static_cast<int>(mask)});
          Set(before_, s, Add(MakeSelect(later, l_.Read(other), zero), Read(before_, s)));
          Set(total_, s, Add(Read(total_, s), l_.Read(other)));
        });
      }
      weight *= digit.radix;
    }
  }

  void AddWarps() {
    const WarpsAlong warps = WarpsOf(l_, layout_, dim_);
    if (warps.count == 1) return;
    const Partials partials(l_, layout_, result_, type_, total_, warps);
    const ExprRef zero = Zero(ComputeType(type_));
    l_.ForEachElement(result_, 1, [&](const Lowering::Element& e) {
      for (int64_t i = 0; i < warps.count; ++i) {
        // From the nearest to the farthest.
        const int64_t w = reverse_ ? i : warps.count - 1 - i;
        const ExprRef earlier =
            reverse_ ? Less(partials.mine(), MakeInt(w)) : Less(MakeInt(w), partials.mine());
        const ExprRef value = MakeSelect(earlier, partials.Of(w, e), zero);
        Set(before_, e.slot, Add(value, Read(before_, e.slot)));
      }
    });
  }

  Lowering& l_;
  const FragmentLayout& layout_;
  const FragmentLayout result_;
  const int dim_;
  const bool reverse_;
  const DType from_, to_, type_;
  const BufferId sums_, total_, before_;  // before_: of the threads that come earlier
  std::vector<int> kept_;
  int64_t own_ = 1, step_ = 1;  // elements of a line that a thread holds, that many slots apart
};

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
  if (!l.LanesOf(reduce.dst.buffer)) ReduceLanes(l, r, LanesAlong(r.src, r.dim));
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

void FinishReducer(Lowering& l, BufferId reducer) {
  const std::vector<int>* lanes = l.LanesOf(reducer);
  if (!lanes) return;
  const FragmentLayout& layout = *l.LayoutOf(reducer);
  ReduceLanes(l, {ReduceOp::kSum, layout, 0, l.buffer(reducer).dtype, reducer, layout.slots()},
              *lanes);
}

bool RunsInOrder(const FragmentLayout& layout, int dim) {
  int64_t behind = 1;
  int slot_digits = 0;
  for (LayoutAxis axis : {LayoutAxis::kSlot, LayoutAxis::kLane, LayoutAxis::kWarp}) {
    const auto digits = *layout.DimDigits(axis);
    for (const FragmentLayout::DimDigit& digit : digits) {
      if (digit.dim != dim) continue;
      const bool bits = std::has_single_bit(static_cast<uint64_t>(digit.radix));
      if (digit.step != behind || (axis == LayoutAxis::kLane && !bits)) return false;
      if (axis == LayoutAxis::kSlot && ++slot_digits > 1) return false;
      behind *= digit.radix;
    }
  }
  return true;
}

bool CumSumRegisters(Lowering& l, const CumSum& cumsum) {
  const FragmentLayout* layout = l.LayoutOf(cumsum.dst.buffer);
  if (!layout) return false;
  Scan(l, *layout, cumsum).Run(cumsum.src.buffer, cumsum.dst.buffer);
  return true;
}

}  // namespace tl
