// Gemm whose result lies in registers: by matrix instructions, or in plain arithmetic where the
// target has none for the types.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/int_math.h"
#include "ir/address.h"
#include "layout/matrix_fragments.h"
#include "passes/bank_notes.h"
#include "passes/lowering.h"
#include "passes/product.h"

namespace tl {
namespace {

void Clear(Lowering& l, BufferId c) {
  const ExprRef zero = Zero(ComputeType(l.buffer(c).dtype));
  l.Slots("s", l.LayoutOf(c)->slots(),
          [&](const ExprRef& s) { l.Emit(Store{c, {s}, StoreOp::kSet, zero}); });
}

// One operand, as a matrix of rows by depth.
struct Operand {
  Region region;
  bool depth_first;  // stored as depth x rows
  int64_t rows, depth;

  Coords At(const ExprRef& row, const ExprRef& k) const {
    return depth_first ? Coords{k, row} : Coords{row, k};
  }
};

Operand OperandOf(Lowering& l, const Factor& factor, int64_t depth) {
  return {l.Prepared(factor.region), factor.depth_first, factor.rows, depth};
}

// ---- Plain arithmetic

// A padded tile's threads read some row that exists; what they compute of it is never looked at.
ExprRef Clamped(const ExprRef& index, int64_t extent, int64_t padded) {
  return padded > extent ? Min(index, MakeInt(extent - 1)) : index;
}

void GemmPlain(Lowering& l, const Gemm& g) {
  const BufferId c = g.c.buffer;
  const FragmentLayout& layout = *l.LayoutOf(c);
  const DType type = l.buffer(c).dtype;
  // Narrow floats would round at every step.
  const DType wide =
      type == DType::kI32 || type == DType::kI64 ? type : WideDType(ComputeType(type));
  const Product p = ProductOf(g);
  const Operand a = OperandOf(l, p.left, p.depth), b = OperandOf(l, p.right, p.depth);
  const bool narrow = wide != type;
  const BufferId acc = narrow ? l.LocalArray("sum", wide, layout.slots()) : c;
  if (g.clear) {
    l.Slots("s", layout.slots(), [&](const ExprRef& s) {
      l.Emit(Store{acc, {s}, StoreOp::kSet, Zero(ComputeType(wide))});
    });
  } else if (narrow) {
    l.Slots("s", layout.slots(), [&](const ExprRef& s) {
      l.Emit(Store{acc, {s}, StoreOp::kSet, MakeLoad(c, type, {s})});
    });
  }
  l.Serial("k", MakeInt(0), MakeInt(a.depth), [&](const ExprRef& k) {
    l.ForEachElement(layout, 1, [&](const Lowering::Element& e) {
      const ExprRef i = Clamped(e.at[0], a.rows, layout.padded()[0]);
      const ExprRef j = Clamped(e.at[1], b.rows, layout.padded()[1]);
      const ExprRef product = Mul(ConvertTo(wide, l.LoadAt(a.region, a.At(i, k))),
                                  ConvertTo(wide, l.LoadAt(b.region, b.At(j, k))));
      l.Emit(Store{acc, {e.slot}, StoreOp::kSet, Add(MakeLoad(acc, wide, {e.slot}), product)});
    });
  });
  if (!narrow) return;
  l.Slots("s", layout.slots(), [&](const ExprRef& s) {
    l.Emit(Store{c, {s}, StoreOp::kSet, ConvertTo(type, MakeLoad(acc, wide, {s}))});
  });
}

// ---- Matrix instructions

// How one operand gets into registers, a step of the instruction's depth at a time.
class OperandRegisters {
 public:
  // `atom`: the operand's layout in one instruction. `tiles` instructions of `tile_rows` rows each
  // belong to this warp, from row `first` on; `padded`: the warps' rows run past the operand's. Two
  // sets of registers alternate.
  OperandRegisters(Lowering& l, Operand operand, const MatrixAtom& instruction, FragmentLayout atom,
                   int64_t tiles, ExprRef first, bool padded, std::string_view name)
      : l_(l),
        o_(std::move(operand)),
        instruction_(instruction),
        atom_(std::move(atom)),
        tiles_(tiles),
        first_(std::move(first)),
        padded_(padded) {
    const DType dtype = l.buffer(o_.region.buffer).dtype;
    bytes_ = static_cast<int64_t>(SizeOf(dtype));
    array_ = l.LocalArray(name, dtype, 2 * set_size());
    if (HasMatrixLoads()) {
      NoteMatrixConflicts(l, "reading", o_.region);
    } else if (l.target().matrix_loads && instruction.form == AtomForm::kMma && o_.depth_first) {
      l.Note(absl::StrCat("operand ", l.buffer(o_.region.buffer).name),
             bytes_ == 2 ? "read element by element: its rows are no multiples of 8 elements"
                         : "read element by element: its rows do not run along the depth, and "
                           "matrix loads transpose elements of 16 bits only");
    }
  }

  BufferId array() const { return array_; }
  // Registers of tile `i` in set `set`.
  ExprRef At(const ExprRef& set, const ExprRef& i) const {
    return Add(Mul(set, MakeInt(set_size())), Mul(i, MakeInt(atom_.slots())));
  }

  // Fills set `set` with the instruction's step `step` along the depth.
  void Load(const ExprRef& step, const ExprRef& set) {
    const ExprRef k = l_.Named("k", Mul(step, MakeInt(instruction_.k)));
    if (HasMatrixLoads()) {
      LoadMatrices(k, set);
    } else {
      LoadElements(k, set);
    }
  }

  // By rows of 16 bytes; else every element for itself.
  bool HasMatrixLoads() const {
    const Buffer& b = l_.buffer(o_.region.buffer);
    const int64_t chunk = 16 / bytes_;
    if (!l_.target().matrix_loads || instruction_.form != AtomForm::kMma) return false;
    if (b.scope == Scope::kGlobal || b.rank() < 2 || b.extents.back() % chunk != 0) return false;
    const Region& r = o_.region;
    if (r.dims[1] != b.rank() - 1 || o_.depth % instruction_.k != 0) return false;
    if (l_.DivisorOf(r.offset.back()) % chunk != 0) return false;
    return !o_.depth_first || (bytes_ == 2 && o_.rows % 8 == 0);
  }

 private:
  int64_t set_size() const { return tiles_ * atom_.slots(); }
  int64_t tile_rows() const { return atom_.extents()[0]; }

  // An instruction's operand is made of matrices of 8 rows by 16 bytes. Their order in registers is
  // that of the slots: rows first (A has two halves), then depth.
  void LoadMatrices(const ExprRef& k, const ExprRef& set) {
    const int64_t chunk = 16 / bytes_;
    const int64_t row_halves = tile_rows() / 8, depth_halves = instruction_.k / chunk;
    const int64_t per_tile = row_halves * depth_halves;
    // B's are half as tall: two (on some targets four) instructions' share at a time.
    int64_t together = 1;
    while (tiles_ % (together * 2) == 0 && per_tile * together * 2 <= 4) together *= 2;
    const int64_t matrices = per_tile * together;
    const Named n = LaneOf(matrices, row_halves, depth_halves);
    const int64_t stride = together * tile_rows();
    l_.Slots("t", tiles_ / together, [&](const ExprRef& t) {
      const ExprRef at = CanSplit(stride) ? SplitOffset(n, k, Mul(t, MakeInt(stride)))
                                          : WholeOffset(n, k, Mul(t, MakeInt(stride)));
      l_.Emit(LoadMatrix{array_, At(set, Mul(t, MakeInt(together))), o_.region.buffer, at,
                         static_cast<int>(matrices), o_.depth_first});
    });
  }

  // The row of 16 bytes that this lane names: which row of c it (or its first element) belongs to,
  // counted from the warp's first, and which depth, counted from the step's.
  struct Named {
    ExprRef row, depth;
  };
  Named LaneOf(int64_t matrices, int64_t row_halves, int64_t depth_halves) const {
    const ExprRef q = Mod(Div(l_.lane(), 8), matrices), line = Mod(l_.lane(), 8);
    const ExprRef half_row = Mul(Mod(q, row_halves), MakeInt(8));
    const ExprRef half_depth = Mod(Div(q, row_halves), depth_halves);
    const ExprRef tile = Mul(Div(q, row_halves * depth_halves), MakeInt(tile_rows()));
    const ExprRef row = Add(tile, half_row);
    if (o_.depth_first) return {row, Add(Mul(half_depth, MakeInt(8)), line)};
    return {Add(row, line), Mul(half_depth, MakeInt(16 / bytes_))};
  }

  ExprRef WholeOffset(const Named& n, const ExprRef& k, const ExprRef& t) {
    ExprRef row = Add(Add(first_, n.row), t);
    const int64_t last = o_.depth_first ? o_.rows - 8 : o_.rows - 1;
    if (padded_) row = Min(std::move(row), MakeInt(last));
    const Coords index = Lowering::Index(o_.region, o_.At(row, Add(k, n.depth)));
    return l_.Offset(o_.region.buffer, index);
  }

  // The offset is a sum and a xor of what only the lane knows and what only the step knows, so that
  // the former is computed once. That holds where the permutation of chunks within a row depends on
  // the lane alone: everything else moves by whole periods of 8 rows, or by bits that it does not
  // use.
  bool CanSplit(int64_t stride) const {
    const Region& r = o_.region;
    const int64_t chunk = 16 / bytes_, period = chunk * 8;
    if (l_.buffer(r.buffer).swizzle.panel_bytes > 0) return false;
    if (padded_ || stride % 8 != 0 || l_.DivisorOf(r.offset[r.dims[0]]) % 8 != 0) return false;
    if (!o_.depth_first) return l_.DivisorOf(r.offset[r.dims[1]]) % (2 * chunk) == 0;
    return stride == 16 && l_.DivisorOf(first_) % period == 0 &&
           l_.DivisorOf(r.offset[r.dims[1]]) % period == 0;
  }

  ExprRef SplitOffset(const Named& n, const ExprRef& k, const ExprRef& t) {
    const Region& r = o_.region;
    const Buffer& b = l_.buffer(r.buffer);
    const ExprRef width = MakeInt(b.extents.back());
    if (!base_) {
      // Row and column of storage that the lane brings.
      const ExprRef row = o_.depth_first ? n.depth : Add(first_, n.row);
      const ExprRef col = o_.depth_first ? n.row : n.depth;
      const ExprRef along = Mul(row, width);
      base_ = l_.Pinned("base", o_.depth_first ? Add(along, first_) : along);
      turn_ = l_.Pinned("turn", Swizzled(b, row, col));
    }
    Coords index = r.offset;
    index[r.dims[0]] = Add(index[r.dims[0]], o_.depth_first ? k : t);
    ExprRef col = Add(index[r.dims[1]], o_.depth_first ? t : k);
    index[r.dims[1]] = MakeInt(0);
    const ExprRef rows = Add(l_.GroupOffset(r.buffer), RowMajorOffset(b, index));
    return Add(Add(rows, base_), MakeBinary(BinaryOp::kBitXor, std::move(col), turn_));
  }

  static ExprRef RowMajorOffset(const Buffer& b, const Coords& index) {
    ExprRef offset = MakeInt(0);
    for (size_t d = 0; d < index.size(); ++d) {
      offset = Add(Mul(std::move(offset), MakeInt(b.extents[d])), index[d]);
    }
    return offset;
  }

  // Neighbours along the depth that can be moved together.
  int64_t Neighbours() const {
    const Buffer& b = l_.buffer(o_.region.buffer);
    const Region& r = o_.region;
    const int64_t n = atom_.vector();
    if (l_.target().matrix_loads || b.scope == Scope::kGlobal || b.rank() < 2) return 1;
    if (o_.depth_first || r.dims[1] != b.rank() - 1) return 1;
    const bool whole = o_.depth % instruction_.k == 0 && b.extents.back() % n == 0 &&
                       l_.DivisorOf(r.offset.back()) % n == 0;
    return whole ? n : 1;
  }

  void LoadElements(const ExprRef& k, const ExprRef& set) {
    const int64_t together = Neighbours();
    l_.Slots("t", tiles_, [&](const ExprRef& t) {
      const ExprRef row0 = Add(first_, Mul(t, MakeInt(tile_rows())));
      const ExprRef base = At(set, t);
      l_.ForEachElement(atom_, together, [&](const Lowering::Element& e) {
        ExprRef row = Add(row0, e.at[0]);
        if (padded_) row = Min(std::move(row), MakeInt(o_.rows - 1));
        const ExprRef depth = Add(k, e.at[1]);
        if (together > 1) {
          const Coords index = Lowering::Index(o_.region, o_.At(row, depth));
          l_.Emit(VectorMove{array_, Add(base, e.slot), o_.region.buffer,
                             l_.Offset(o_.region.buffer, index), static_cast<int>(together)});
          return;
        }
        ExprRef value = l_.LoadAt(o_.region, o_.At(row, depth));
        if (o_.depth % instruction_.k != 0) {
          const ExprRef zero = Zero(value->type);
          value = MakeSelect(Less(depth, MakeInt(o_.depth)), std::move(value), zero);
        }
        const DType dtype = l_.buffer(array_).dtype;
        l_.Emit(Store{array_, {Add(base, e.slot)}, StoreOp::kSet, ConvertTo(dtype, value)});
      });
    });
  }

  Lowering& l_;
  const Operand o_;
  const MatrixAtom& instruction_;
  const FragmentLayout atom_;
  const int64_t tiles_;
  const ExprRef first_;
  const bool padded_;
  int64_t bytes_;
  BufferId array_;
  ExprRef base_, turn_;  // see SplitOffset
};

// One operand that lies in registers already, as the instruction takes it.
struct ReadyOperand {
  BufferId array;
  int64_t steps, slots;
  ExprRef At(const ExprRef& step, const ExprRef& i) const {
    return Mul(Add(Mul(i, MakeInt(steps)), step), MakeInt(slots));
  }
};

void GemmByAtoms(Lowering& l, const Gemm& g) {
  const MatrixAtom& atom = l.target().matrix_atoms[g.atom];
  const BufferId c = g.c.buffer;
  if (g.clear) Clear(l, c);
  const Product p = ProductOf(g);
  const Operand a = OperandOf(l, p.left, p.depth), b = OperandOf(l, p.right, p.depth);
  const int64_t rows = CeilDiv(a.rows, int64_t{atom.m} * p.left.warps);
  const int64_t cols = CeilDiv(b.rows, int64_t{atom.n} * p.right.warps);
  const int64_t steps = CeilDiv(a.depth, atom.k);
  const FragmentLayout atom_a = AtomA(atom), atom_b = AtomB(atom), atom_c = AtomC(atom);
  if (steps == 0) return;

  const ExprRef first_row = Mul(Div(l.warp(), p.right.warps), MakeInt(rows * atom.m));
  const ExprRef first_col = Mul(Mod(l.warp(), p.right.warps), MakeInt(cols * atom.n));
  const bool ready = l.LayoutOf(p.left.region.buffer) != nullptr;
  const ReadyOperand in_place{p.left.region.buffer, steps, atom_a.slots()};
  std::optional<OperandRegisters> ra;
  if (!ready) {
    const bool padded = rows * atom.m * p.left.warps > a.rows;
    ra.emplace(l, a, atom, atom_a, rows, first_row, padded, "a");
  }
  OperandRegisters rb(l, b, atom, atom_b, cols, first_col, cols * atom.n * p.right.warps > b.rows,
                      "b");

  const auto load = [&](const ExprRef& step, const ExprRef& set) {
    if (ra) ra->Load(step, set);
    rb.Load(step, set);
  };
  const auto multiply = [&](const ExprRef& step, const ExprRef& set) {
    l.Slots("m", rows, [&](const ExprRef& i) {
      l.Slots("n", cols, [&](const ExprRef& j) {
        const ExprRef at = Mul(Add(Mul(i, MakeInt(cols)), j), MakeInt(atom_c.slots()));
        l.Emit(Mma{g.atom, ready ? in_place.array : ra->array(),
                   ready ? in_place.At(step, i) : ra->At(set, i), rb.array(), rb.At(set, j), c,
                   at});
      });
    });
  };
  // While one step is multiplied, the operands of the next are on their way. Long products are cut,
  // so that the code stays short.
  constexpr int64_t kMostUnrolled = 8;
  int64_t inner = steps;
  for (int64_t n = kMostUnrolled; inner > kMostUnrolled; --n) {
    if (steps % n == 0) inner = n;
  }
  const auto part = [&](const ExprRef& first) {
    const auto one = [&](const ExprRef& s) {
      const ExprRef next = Add(s, MakeInt(1));
      l.EmitIf(Less(next, MakeInt(inner)), [&] { load(Add(first, next), Mod(next, 2)); });
      multiply(Add(first, s), Mod(s, 2));
    };
    load(first, MakeInt(0));
    if (!l.has_deferred() || inner < 2) return l.Slots("step", inner, one);
    one(MakeInt(0));
    l.EmitDeferred();
    l.Slots("step", inner - 1, [&](const ExprRef& s) { one(Add(s, MakeInt(1))); });
  };
  if (inner == steps) return part(MakeInt(0));
  l.EmitDeferred();
  const auto chunk = [&](const ExprRef& p) { part(l.Named("step", Mul(p, MakeInt(inner)))); };
  // Registers that are ready are found by number: the loop has to be unrolled.
  if (ready) return l.Slots("part", steps / inner, chunk);
  l.Serial("part", MakeInt(0), MakeInt(steps / inner), chunk);
}

}  // namespace

bool GemmRegisters(Lowering& l, const Gemm& gemm) {
  if (!l.LayoutOf(gemm.c.buffer)) return false;
  if (gemm.c.num_elements() == 0) return true;
  if (gemm.atom == kNoAtom) {
    GemmPlain(l, gemm);
  } else if (l.target().matrix_atoms[gemm.atom].in_place()) {
    GemmInPlace(l, gemm);
  } else {
    GemmByAtoms(l, gemm);
  }
  return true;
}

}  // namespace tl
