// Copy, fill and atomic: elementwise movement between tensors and tiles.
//
// A tensor's side needs bounds: outside it, reads give 0 and writes do nothing. In the flat shape
// every element tests for itself; in the nested shape the innermost loop is cut to the valid range
// instead, so that it runs without tests.
#include <string>

#include "absl/strings/str_cat.h"
#include "ir/visit.h"
#include "passes/lowering.h"

namespace tl {
ExprRef InsideWindow(const Lowering& l, const Region& r, const Coords& c, const ExprRef& rows,
                     int skip) {
  ExprRef inside = l.Inside(r.buffer, Lowering::Index(r, c), skip);
  const bool rows_skipped = !rows || r.rank() == 0 || r.dims[0] == skip;
  return rows_skipped ? inside : And(std::move(inside), Less(c[0], rows));
}

namespace {

// A copy with prepared regions. `rows` limits dim 0 of the tensor sides.
struct Move {
  Region src, dst;
  ExprRef rows;
  bool transpose = false;

  // Coordinates of the source for those of the destination.
  Coords SourceOf(const Coords& c) const { return transpose ? Coords{c[1], c[0]} : c; }
};

ExprRef SourceValue(const Lowering& l, const Move& m, const Coords& dst_coords) {
  const Coords c = m.SourceOf(dst_coords);
  const ExprRef value = l.LoadAt(m.src, c);
  if (!l.IsGlobal(m.src)) return value;
  return MakeSelect(InsideWindow(l, m.src, c, m.rows), value, Zero(value->type));
}

// Part [lo, hi) of the innermost loop in which the elements of `window` lie inside their tensor.
struct ValidRange {
  ExprRef lo, hi;
};

// `outer`: coordinates of the window with 0 in place of the innermost one, tile dim `inner`.
ValidRange InnerRange(Lowering& l, const Region& window, const Coords& outer, int inner,
                      const ExprRef& rows) {
  const int dim = window.dims[inner];
  const ExprRef& offset = window.offset[dim];
  const ExprRef& size = l.buffer(window.buffer).shape[dim];
  const int64_t extent = window.extents[inner];
  const Interval start = l.intervals().Of(l.module(), offset);
  const Interval limit = l.intervals().Of(l.module(), size);
  ExprRef hi = MakeInt(extent);
  if (start.hi == Interval::kMax || start.hi > limit.lo - extent) hi = Min(hi, Sub(size, offset));
  if (inner == 0 && rows) hi = Min(hi, rows);
  hi = MakeSelect(InsideWindow(l, window, outer, rows, dim), hi, MakeInt(0));
  hi = Max(hi, MakeInt(0));
  if (!IntValue(hi)) hi = l.Named("valid", hi);
  ExprRef lo = MakeInt(0);
  if (start.lo < 0) lo = l.Named("first", Min(Max(Sub(MakeInt(0), offset), MakeInt(0)), hi));
  return {lo, hi};
}

// Runs `body` on the coordinates inside the tensor and `other` (may be null) on the rest of the
// window's. Coordinates are those of the destination, whose extents are `extents`; `window` is the
// tensor's side, read with swapped coordinates if `swapped`.
using CoordsFn = absl::FunctionRef<void(const Coords&)>;
void ForEachInside(Lowering& l, const std::vector<int64_t>& extents, const Region& window,
                   bool swapped, const ExprRef& rows, CoordsFn body, const CoordsFn* other) {
  const int last = static_cast<int>(extents.size()) - 1;
  const auto inner_loops = [&](Coords c) {
    c[last] = MakeInt(0);
    const Coords outer = swapped ? Coords{c[1], c[0]} : c;
    const ValidRange valid = InnerRange(l, window, outer, swapped ? 0 : last, rows);
    const auto part = [&](const ExprRef& begin, const ExprRef& end, CoordsFn fn) {
      l.Threads("x", Sub(end, begin), [&](const ExprRef& x) {
        c[last] = Add(begin, x);
        fn(c);
      });
    };
    part(valid.lo, valid.hi, body);
    if (!other) return;
    part(valid.hi, MakeInt(extents[last]), *other);
    part(MakeInt(0), valid.lo, *other);
  };
  Coords coords(extents.size());
  const auto nest = [&](auto& self, int d) -> void {
    if (d == last) return inner_loops(coords);
    l.Serial(std::string(1, static_cast<char>('i' + d)), MakeInt(0), MakeInt(extents[d]),
             [&](const ExprRef& i) {
               coords[d] = i;
               self(self, d + 1);
             });
  };
  nest(nest, 0);
}

void MoveFlat(Lowering& l, const Move& m) {
  l.ForEach(m.dst.extents, [&](const Coords& c) {
    const auto store = [&] { l.StoreAt(m.dst, c, SourceValue(l, m, c)); };
    if (!l.IsGlobal(m.dst)) return store();
    l.EmitIf(InsideWindow(l, m.dst, c, m.rows), store);
  });
}

void MoveNested(Lowering& l, const Move& m) {
  if (l.IsGlobal(m.dst)) {
    ForEachInside(
        l, m.dst.extents, m.dst, false, m.rows,
        [&](const Coords& c) { l.StoreAt(m.dst, c, SourceValue(l, m, c)); }, nullptr);
    return;
  }
  const auto load = [&](const Coords& c) { l.StoreAt(m.dst, c, l.LoadAt(m.src, m.SourceOf(c))); };
  const ExprRef zero = Zero(ComputeType(l.buffer(m.dst.buffer).dtype));
  const auto clear = [&](const Coords& c) { l.StoreAt(m.dst, c, zero); };
  const CoordsFn clear_fn = clear;
  ForEachInside(l, m.dst.extents, m.src, m.transpose, m.rows, load, &clear_fn);
}

void LowerMove(Lowering& l, const Move& m) {
  const bool bounded = l.IsGlobal(m.src) || l.IsGlobal(m.dst);
  if (l.flat() || !bounded || m.dst.rank() == 0) return MoveFlat(l, m);
  MoveNested(l, m);
}

// select_atoms has put the rows of tiles into panels for which nothing else speaks against it.
bool LeavesInBoxes(Lowering& l, const Copy& copy) {
  const Buffer& tile = l.buffer(copy.src.buffer);
  if (!l.stores().wanted() || l.IsGlobal(copy.src) || !l.IsGlobal(copy.dst)) return false;
  std::string why = l.stores().WhyNot(copy);
  if (why.empty() && !tile.in_place) why = "its tile's rows lie otherwise";
  return MayLeaveInBoxes(l, copy.dst, why);
}

}  // namespace

void CopyElements(Lowering& l, const Copy& prepared) {
  LowerMove(l, {prepared.src, prepared.dst, prepared.rows, prepared.transpose});
}

Copy PreparedCopy(Lowering& l, const Copy& copy) {
  Copy out = copy;
  out.src = l.Prepared(copy.src);
  out.dst = l.Prepared(copy.dst);
  if (copy.rows) out.rows = l.Fixed("rows", l.Lowered(copy.rows));
  return out;
}

void LowerCopy(Lowering& l, const Copy& copy) {
  if (CopyRegisters(l, copy)) return;
  const Copy c = PreparedCopy(l, copy);
  if (c.dst.num_elements() == 0) return;
  if (c.src.buffer != c.dst.buffer) {
    if (LeavesInBoxes(l, c)) return StoreBoxes(l, c);
    const auto by_element = [&] { CopyElements(l, c); };
    if (!CopyVectors(l, c, by_element)) by_element();
    return;
  }
  // Within one buffer: all is read before anything is written.
  if (!l.IsGlobal(c.src) && !c.transpose && Lowering::SameWindow(c.src, c.dst)) return;
  const DType dtype = l.buffer(c.src.buffer).dtype;
  const Region scratch = l.Whole(l.Scratch("copied", dtype, c.src.extents));
  LowerMove(l, {c.src, scratch, c.rows, false});
  LowerMove(l, {scratch, c.dst, c.rows, c.transpose});
}

void LowerAtomic(Lowering& l, const Atomic& atomic) {
  const Region src = l.Prepared(atomic.src), dst = l.Prepared(atomic.dst);
  const auto add = [&](const Coords& c) {
    const DType dtype = l.buffer(dst.buffer).dtype;
    l.Emit(AtomicElement{atomic.op,
                         dst.buffer,
                         {l.Offset(dst.buffer, Lowering::Index(dst, c))},
                         ElementValue(dtype, l.LoadAt(src, c))});
  };
  if (dst.num_elements() == 0) return;
  if (const FragmentLayout* layout = l.LayoutOf(src.buffer)) {
    const ExprRef owner = l.IsOwner(*layout);
    return l.ForEachElement(*layout, 1, [&](const Lowering::Element& e) {
      const ExprRef inside = And(And(owner, e.real), InsideWindow(l, dst, e.at, nullptr));
      l.EmitIf(inside, [&] {
        const DType dtype = l.buffer(dst.buffer).dtype;
        const ExprRef value = MakeLoad(src.buffer, l.buffer(src.buffer).dtype, {e.slot});
        l.Emit(AtomicElement{atomic.op,
                             dst.buffer,
                             {l.Offset(dst.buffer, Lowering::Index(dst, e.at))},
                             ElementValue(dtype, value)});
      });
    });
  }
  if (!l.flat() && l.IsGlobal(dst) && dst.rank() > 0) {
    return ForEachInside(l, src.extents, dst, false, nullptr, add, nullptr);
  }
  l.ForEach(src.extents, [&](const Coords& c) {
    if (!l.IsGlobal(dst)) return add(c);
    l.EmitIf(InsideWindow(l, dst, c, nullptr), [&] { add(c); });
  });
}

void LowerFill(Lowering& l, const Fill& fill) {
  const Region dst = l.Prepared(fill.dst);
  const ExprRef value = l.Fixed("value", l.Lowered(fill.value));
  if (const FragmentLayout* layout = l.LayoutOf(dst.buffer)) {
    const DType dtype = l.buffer(dst.buffer).dtype;
    return l.Slots("s", layout->slots(), [&](const ExprRef& s) {
      l.Emit(Store{dst.buffer, {s}, StoreOp::kSet, ConvertTo(dtype, value)});
    });
  }
  l.ForEach(dst.extents, [&](const Coords& c) { l.StoreAt(dst, c, value); });
}

}  // namespace tl
