// Reduce, argmax and cumsum: one running value per line of the source along `dim`.
#include <algorithm>
#include <cmath>

#include "passes/lowering.h"

namespace tl {

ExprRef Combine(ReduceOp op, const ExprRef& acc, const ExprRef& x) {
  switch (op) {
    case ReduceOp::kSum:
      return Add(acc, x);
    case ReduceOp::kMax:
      return Max(acc, x);
    case ReduceOp::kMin:
      return Min(acc, x);
    case ReduceOp::kAbsMax:
      return Max(acc, MakeCall(MathFn::kAbs, {x}));
    case ReduceOp::kProd:
      return Mul(acc, x);
    case ReduceOp::kAny:
      return MakeBinary(BinaryOp::kOr, acc, x);
    case ReduceOp::kAll:
      break;
  }
  return And(acc, x);
}

DType RunningType(const Lowering& l, const Reduce& reduce) {
  if (reduce.op == ReduceOp::kAny || reduce.op == ReduceOp::kAll) return DType::kBool;
  const ScalarType src = ComputeType(l.buffer(reduce.src.buffer).dtype);
  const ScalarType dst = ComputeType(l.buffer(reduce.dst.buffer).dtype);
  return WideDType(std::max(src, dst));
}

namespace {

// Source coordinates: those of the line with k put in at `dim`. A rank-1 source has one line, at
// coordinate 0 of a destination of one element.
Coords OnLine(const Region& src, const Coords& line, int dim, const ExprRef& k) {
  if (src.rank() == 1) return {k};
  Coords c = line;
  c.insert(c.begin() + dim, k);
  return c;
}

// A reduction with prepared regions.
struct Lines {
  ReduceOp op;
  Region src, dst;
  int dim;
  bool clear;
  DType acc;       // type of the running value
  int64_t length;  // of a line
};

ExprRef Start(const Lowering& l, const Lines& r) {
  const DType src = l.buffer(r.src.buffer).dtype;
  return IdentityOf(r.op, ComputeType(src) == ComputeType(r.acc) ? src : r.acc);
}

ExprRef ElementOf(const Lowering& l, const Lines& r, const Coords& line, const ExprRef& k) {
  return ConvertTo(r.acc, l.LoadAt(r.src, OnLine(r.src, line, r.dim, k)));
}

// Folds the line's result into the destination and stores it.
void StoreResult(Lowering& l, const Lines& r, const Coords& line, ExprRef value) {
  if (!r.clear) value = Combine(r.op, ConvertTo(r.acc, l.LoadAt(r.dst, line)), value);
  l.StoreAt(r.dst, line, value);
}

// One thread per line.
void ReduceLines(Lowering& l, const Lines& r) {
  l.ForEach(r.dst.extents, [&](const Coords& line) {
    const VarId acc = l.Mutable("acc", r.acc, Start(l, r));
    l.Serial("k", MakeInt(0), MakeInt(r.length), [&](const ExprRef& k) {
      l.Set(acc, Combine(r.op, l.Read(acc), ElementOf(l, r, line, k)));
    });
    StoreResult(l, r, line, l.Read(acc));
  });
}

// How many threads share a line when there are fewer lines than threads: as many steps in each
// thread as partial results afterwards is the quickest.
int64_t PartsPerLine(const Lowering& l, const Lines& r) {
  const int64_t lines = std::max<int64_t>(r.dst.num_elements(), 1);
  const int64_t most =
      std::min<int64_t>(l.team_size() / lines, static_cast<int64_t>(std::sqrt(r.length)) * 2);
  int64_t parts = 1;
  while (parts * 2 <= most) parts *= 2;
  return parts >= 4 ? parts : 1;
}

// Several threads per line leave partial results, which one thread per line combines.
void ReduceInParts(Lowering& l, const Lines& r, int64_t parts) {
  std::vector<int64_t> extents = r.dst.extents;
  extents.push_back(parts);
  const Region partial = l.Whole(l.Scratch("partial", r.acc, extents));
  l.ForEach(extents, [&](const Coords& c) {
    const Coords line(c.begin(), c.end() - 1);
    const ExprRef& part = c.back();
    const VarId acc = l.Mutable("acc", r.acc, Start(l, r));
    const ExprRef step = MakeInt(parts);
    const ExprRef count = MakeBinary(BinaryOp::kCeilDiv, Sub(MakeInt(r.length), part), step);
    l.Serial("k", MakeInt(0), count, [&](const ExprRef& k) {
      l.Set(acc, Combine(r.op, l.Read(acc), ElementOf(l, r, line, Add(part, Mul(k, step)))));
    });
    l.StoreAt(partial, c, l.Read(acc));
  });
  l.ForEach(r.dst.extents, [&](const Coords& line) {
    const VarId acc = l.Mutable("acc", r.acc, Start(l, r));
    l.Serial("part", MakeInt(0), MakeInt(parts), [&](const ExprRef& part) {
      Coords c = line;
      c.push_back(part);
      // Partial results of absmax are not negative, so taking their size again changes nothing.
      l.Set(acc, Combine(r.op, l.Read(acc), l.LoadAt(partial, c)));
    });
    StoreResult(l, r, line, l.Read(acc));
  });
}

// Can the destination itself hold the running value without rounding at every step?
bool HoldsRunningValue(const Lowering& l, const Lines& r) {
  return l.buffer(r.dst.buffer).dtype == r.acc && r.dst.buffer != r.src.buffer;
}

// Nested shape, another dim than the last: whole rows of the source are combined into the
// destination's, which vectorises.
void ReduceRows(Lowering& l, const Lines& r) {
  if (r.clear) {
    l.ForEach(r.dst.extents, [&](const Coords& c) { l.StoreAt(r.dst, c, Start(l, r)); });
  }
  l.Serial("k", MakeInt(0), MakeInt(r.length), [&](const ExprRef& k) {
    l.ForEach(r.dst.extents, [&](const Coords& line) {
      const ExprRef acc = l.LoadAt(r.dst, line);
      l.StoreAt(r.dst, line, Combine(r.op, acc, ElementOf(l, r, line, k)));
    });
  });
}

constexpr int64_t kLanes = 16;

// Nested shape, the last dim: the line is combined into a few lanes side by side, which vectorises,
// and the lanes into the result.
void ReduceLanes(Lowering& l, const Lines& r) {
  Coords line(r.dst.extents.size());
  const auto one_line = [&] {
    const Region lanes = l.Whole(l.Scratch("lanes", r.acc, {kLanes}));
    l.ForEach({kLanes}, [&](const Coords& c) { l.StoreAt(lanes, c, Start(l, r)); });
    const auto step = [&](const ExprRef& base, int64_t count) {
      l.Threads("x", MakeInt(count), [&](const ExprRef& x) {
        const ExprRef acc = l.LoadAt(lanes, {x});
        l.StoreAt(lanes, {x}, Combine(r.op, acc, ElementOf(l, r, line, Add(base, x))));
      });
    };
    const int64_t whole = r.length / kLanes;
    l.Serial("k", MakeInt(0), MakeInt(whole),
             [&](const ExprRef& k) { step(l.Named("base", Mul(k, MakeInt(kLanes))), kLanes); });
    step(MakeInt(whole * kLanes), r.length % kLanes);
    const VarId acc = l.Mutable("acc", r.acc, Start(l, r));
    l.Serial("lane", MakeInt(0), MakeInt(kLanes), [&](const ExprRef& lane) {
      l.Set(acc, Combine(r.op, l.Read(acc), l.LoadAt(lanes, {lane})));
    });
    StoreResult(l, r, line, l.Read(acc));
  };
  const auto nest = [&](auto& self, size_t d) -> void {
    if (d == line.size()) return one_line();
    l.Serial("i", MakeInt(0), MakeInt(r.dst.extents[d]), [&](const ExprRef& i) {
      line[d] = i;
      self(self, d + 1);
    });
  };
  nest(nest, 0);
}

}  // namespace

void LowerReduce(Lowering& l, const Reduce& reduce) {
  if (ReduceRegisters(l, reduce)) return;
  Lines r{reduce.op,    l.Prepared(reduce.src), l.Prepared(reduce.dst),        reduce.dim,
          reduce.clear, RunningType(l, reduce), reduce.src.extents[reduce.dim]};
  if (r.dst.num_elements() == 0) return;
  if (l.flat()) {
    const int64_t parts = PartsPerLine(l, r);
    return parts > 1 ? ReduceInParts(l, r, parts) : ReduceLines(l, r);
  }
  const bool last = r.dim == r.src.rank() - 1;
  // A team of several threads may not share the lanes of one line.
  if (last && r.length >= 2 * kLanes && !l.cooperative()) return ReduceLanes(l, r);
  if (!last && HoldsRunningValue(l, r)) return ReduceRows(l, r);
  ReduceLines(l, r);
}

void LowerArgMax(Lowering& l, const ArgMax& argmax) {
  const Region src = l.Prepared(argmax.src), dst = l.Prepared(argmax.dst);
  const int dim = argmax.dim;
  const ScalarType type = ComputeType(l.buffer(src.buffer).dtype);
  const DType wide = type == ScalarType::kBool ? DType::kI64 : WideDType(type);
  if (src.extents[dim] == 0) return;
  l.ForEach(dst.extents, [&](const Coords& line) {
    const auto at = [&](const ExprRef& k) {
      return ConvertTo(wide, l.LoadAt(src, OnLine(src, line, dim, k)));
    };
    const VarId best = l.Mutable("best", wide, at(MakeInt(0)));
    const VarId index = l.Mutable("best_index", DType::kI64, MakeInt(0));
    l.Serial("k", MakeInt(1), MakeInt(src.extents[dim]), [&](const ExprRef& k) {
      const ExprRef x = l.Named("x", at(k));
      ExprRef wins = MakeBinary(BinaryOp::kGt, x, l.Read(best));
      if (IsFloat(x->type)) {  // a number wins against a NaN that came first
        const ExprRef nan = MakeBinary(BinaryOp::kNe, l.Read(best), l.Read(best));
        const ExprRef number = MakeBinary(BinaryOp::kEq, x, x);
        wins = MakeBinary(BinaryOp::kOr, wins, And(nan, number));
      }
      l.EmitIf(wins, [&] {
        l.Set(best, x);
        l.Set(index, k);
      });
    });
    l.StoreAt(dst, line, l.Read(index));
  });
}

void LowerCumSum(Lowering& l, const CumSum& cumsum) {
  if (CumSumRegisters(l, cumsum)) return;
  Region src = l.Prepared(cumsum.src);
  const Region dst = l.Prepared(cumsum.dst);
  const int dim = cumsum.dim;
  const DType wide = WideDType(
      std::max(ComputeType(l.buffer(src.buffer).dtype), ComputeType(l.buffer(dst.buffer).dtype)));
  const std::vector<int64_t> lines = Without(src.extents, dim);
  // In place, every line is read and written by one thread; another window of the same tile could
  // be overwritten before it is read.
  if (src.buffer == dst.buffer && !Lowering::SameWindow(src, dst)) {
    const Region copy = l.Whole(l.Scratch("summed", l.buffer(src.buffer).dtype, src.extents));
    l.ForEach(src.extents, [&](const Coords& c) { l.StoreAt(copy, c, l.LoadAt(src, c)); });
    src = copy;
  }
  l.ForEach(lines, [&](const Coords& line) {
    const VarId acc = l.Mutable("acc", wide, Zero(ComputeType(wide)));
    l.Serial(
        "k", MakeInt(0), MakeInt(src.extents[dim]),
        [&](const ExprRef& k) {
          const Coords c = OnLine(src, line, dim, k);
          l.Set(acc, Add(l.Read(acc), ConvertTo(wide, l.LoadAt(src, c))));
          l.StoreAt(dst, c, l.Read(acc));
        },
        cumsum.reverse);
  });
}

}  // namespace tl
