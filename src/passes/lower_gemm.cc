// c (+)= op(a) * op(b) in plain arithmetic: exact products, summed in order of k in the compute
// type of c. `precision=tf32` permits less precision than that and so needs nothing.
#include "passes/lowering.h"

namespace tl {
namespace {

// Operands as matrices: a is M×K, b is K×N, c is M×N.
struct Matrices {
  Region a, b, c;
  bool transpose_a, transpose_b, clear;
  int64_t m, n, k;
  DType acc;  // sums are kept in this

  Coords A(const ExprRef& i, const ExprRef& k) const {
    return transpose_a ? Coords{k, i} : Coords{i, k};
  }
  Coords B(const ExprRef& k, const ExprRef& j) const {
    return transpose_b ? Coords{j, k} : Coords{k, j};
  }
};

// Narrow floats would round at every step.
DType AccumulatorType(DType c) {
  if (c == DType::kI32 || c == DType::kI64) return c;
  return WideDType(ComputeType(c));
}

ExprRef Element(const Lowering& l, const Matrices& g, const Region& r, const Coords& c) {
  return ConvertTo(g.acc, l.LoadAt(r, c));
}

// An operand, turned if asked, in `dtype`.
Region CopyOf(Lowering& l, const Region& r, bool transpose, DType dtype) {
  std::vector<int64_t> extents = r.extents;
  if (transpose) std::swap(extents[0], extents[1]);
  const Region copy = l.Whole(l.Scratch("b", dtype, extents));
  l.ForEach(extents, [&](const Coords& c) {
    l.StoreAt(copy, c, l.LoadAt(r, transpose ? Coords{c[1], c[0]} : c));
  });
  return copy;
}

// ---- Flat: every thread sums small blocks of c in registers.

// Rows and columns of c per thread. Larger blocks read less shared memory per product, but leave
// threads idle when there are fewer blocks than threads.
int64_t BlockEdge(const Lowering& l, const Matrices& g) {
  for (int64_t edge : {4, 2}) {
    const int64_t blocks = ((g.m + edge - 1) / edge) * ((g.n + edge - 1) / edge);
    if (blocks >= l.team_size()) return edge;
  }
  return 1;
}

// Indices of one thread's rows or columns: those with the same remainder, so that neighbouring
// threads touch neighbouring elements.
struct Lanes {
  std::vector<ExprRef> index;    // safe to load from
  std::vector<ExprRef> is_real;  // constant true except where the extent is not a multiple
};

Lanes LanesOf(const ExprRef& first, int64_t edge, int64_t step, int64_t extent) {
  Lanes lanes;
  for (int64_t x = 0; x < edge; ++x) {
    const ExprRef i = Add(first, MakeInt(x * step));
    const bool all_real = (x + 1) * step <= extent;
    lanes.is_real.push_back(all_real ? MakeBool(true) : Less(i, MakeInt(extent)));
    lanes.index.push_back(all_real ? i : Min(i, MakeInt(extent - 1)));
  }
  return lanes;
}

void SumBlock(Lowering& l, const Matrices& g, const Lanes& rows, const Lanes& columns) {
  std::vector<VarId> sums;
  std::vector<ExprRef> is_real;
  const ExprRef zero = Zero(ComputeType(g.acc));
  for (size_t i = 0; i < rows.index.size(); ++i) {
    for (size_t j = 0; j < columns.index.size(); ++j) {
      is_real.push_back(And(rows.is_real[i], columns.is_real[j]));
      // An element past the edge would be one that another thread stores.
      const ExprRef present = Element(l, g, g.c, {rows.index[i], columns.index[j]});
      const ExprRef init = g.clear ? zero : MakeSelect(is_real.back(), present, zero);
      sums.push_back(l.Mutable("sum", g.acc, init));
    }
  }
  l.Serial("k", MakeInt(0), MakeInt(g.k), [&](const ExprRef& k) {
    std::vector<ExprRef> a, b;
    for (const ExprRef& i : rows.index) a.push_back(l.Named("a", Element(l, g, g.a, g.A(i, k))));
    for (const ExprRef& j : columns.index) b.push_back(l.Named("b", Element(l, g, g.b, g.B(k, j))));
    size_t s = 0;
    for (const ExprRef& x : a) {
      for (const ExprRef& y : b) {
        l.Set(sums[s], Add(l.Read(sums[s]), Mul(x, y)));
        ++s;
      }
    }
  });
  size_t s = 0;
  for (const ExprRef& i : rows.index) {
    for (const ExprRef& j : columns.index) {
      l.EmitIf(is_real[s], [&] { l.StoreAt(g.c, {i, j}, l.Read(sums[s])); });
      ++s;
    }
  }
}

void GemmFlat(Lowering& l, const Matrices& g) {
  const int64_t edge = BlockEdge(l, g);
  const int64_t row_step = (g.m + edge - 1) / edge;
  const int64_t column_step = (g.n + edge - 1) / edge;
  l.Threads("block", MakeInt(row_step * column_step), [&](const ExprRef& block) {
    const ExprRef steps = MakeInt(column_step);
    const ExprRef row = l.Named("row", MakeBinary(BinaryOp::kDiv, block, steps));
    const ExprRef column = l.Named("column", MakeBinary(BinaryOp::kMod, block, steps));
    SumBlock(l, g, LanesOf(row, edge, row_step, g.m), LanesOf(column, edge, column_step, g.n));
  });
}

// ---- Nested: rows of b, scaled, are added to rows of c.

constexpr int64_t kUnroll = 4;  // rows of b per pass over a row of c

void AddRows(Lowering& l, const Matrices& g, const Region& c, const ExprRef& i, const ExprRef& k0,
             int64_t count) {
  std::vector<ExprRef> factors;
  for (int64_t x = 0; x < count; ++x) {
    const ExprRef k = Add(k0, MakeInt(x));
    factors.push_back(l.Named("a", Element(l, g, g.a, g.A(i, k))));
  }
  l.Threads("j", MakeInt(g.n), [&](const ExprRef& j) {
    ExprRef sum = l.LoadAt(c, {i, j});
    for (int64_t x = 0; x < count; ++x) {
      const ExprRef k = Add(k0, MakeInt(x));
      sum = Add(sum, Mul(factors[x], Element(l, g, g.b, g.B(k, j))));
    }
    l.StoreAt(c, {i, j}, sum);
  });
}

void GemmNested(Lowering& l, Matrices g) {
  // Rows of b are read once for every row of c: let them be contiguous and widened.
  const DType b_type = l.buffer(g.b.buffer).dtype;
  const DType b_wide = IsFloat(b_type) ? WideDType(ComputeType(b_type)) : b_type;
  if (g.transpose_b || b_wide != b_type) {
    g.b = CopyOf(l, g.b, g.transpose_b, b_wide);
    g.transpose_b = false;
  }
  const bool narrow = l.buffer(g.c.buffer).dtype != g.acc;
  const Region c = narrow ? l.Whole(l.Scratch("c", g.acc, g.c.extents)) : g.c;
  if (narrow || g.clear) {
    l.ForEach(g.c.extents, [&](const Coords& at) {
      l.StoreAt(c, at, g.clear ? Zero(ComputeType(g.acc)) : l.LoadAt(g.c, at));
    });
  }
  l.Serial("i", MakeInt(0), MakeInt(g.m), [&](const ExprRef& i) {
    const int64_t whole = g.k / kUnroll;
    l.Serial("k", MakeInt(0), MakeInt(whole), [&](const ExprRef& k) {
      AddRows(l, g, c, i, l.Named("k0", Mul(k, MakeInt(kUnroll))), kUnroll);
    });
    for (int64_t k = whole * kUnroll; k < g.k; ++k) AddRows(l, g, c, i, MakeInt(k), 1);
  });
  if (narrow) {
    l.ForEach(g.c.extents, [&](const Coords& at) { l.StoreAt(g.c, at, l.LoadAt(c, at)); });
  }
}

}  // namespace

void LowerGemm(Lowering& l, const Gemm& gemm) {
  if (GemmRegisters(l, gemm)) return;
  Matrices g;
  g.a = l.Prepared(gemm.a);
  g.b = l.Prepared(gemm.b);
  g.c = l.Prepared(gemm.c);
  g.transpose_a = gemm.transpose_a;
  g.transpose_b = gemm.transpose_b;
  g.clear = gemm.clear;
  g.m = g.c.extents[0];
  g.n = g.c.extents[1];
  g.k = g.a.extents[g.transpose_a ? 0 : 1];
  g.acc = AccumulatorType(l.buffer(g.c.buffer).dtype);
  if (g.m == 0 || g.n == 0) return;
  if (l.flat()) {
    GemmFlat(l, g);
  } else {
    GemmNested(l, g);
  }
}

}  // namespace tl
