// Gemm by instructions of four warps that read shared tiles where they lie.
#include <algorithm>
#include <utility>

#include "base/int_math.h"
#include "ir/address.h"
#include "passes/lowering.h"
#include "passes/product.h"

namespace tl {
namespace {

constexpr int64_t kWarpsTogether = 4;
constexpr int64_t kMostColumns = 256;
// Instructions of one statement: enough that the code stays short, few enough that most kernels
// have one kind.
constexpr int64_t kMostSteps = 4;

int64_t BytesOf(const Buffer& b) { return static_cast<int64_t>(SizeOf(b.dtype)); }

// One operand as a matrix of rows by depth, `k` of it at a step.
class Operand {
 public:
  Operand(Lowering& l, const Factor& factor, int64_t k)
      : l_(l), region_(l.Prepared(factor.region)), depth_first_(factor.depth_first), k_(k) {}

  bool in_registers() const { return l_.LayoutOf(region_.buffer) != nullptr; }
  // Steps from `step` on that lie evenly apart.
  int64_t EvenSteps(int64_t step) const {
    if (in_registers() || depth_first_) return kMostSteps;
    const int64_t per_panel = tile().PanelElements() / k_;
    return per_panel - (FirstDepth() / k_ + step) % per_panel;
  }

  // Rows from which on they can be read are multiples of it.
  int64_t RowStep() const { return depth_first_ ? tile().PanelElements() : 8; }

  // From `row` and step `step` of the depth on.
  MatrixInPlace At(const ExprRef& row, int64_t step) const {
    const Buffer& b = tile();
    const int64_t panel = b.PanelElements() * BytesOf(b);
    const int64_t rows = b.extents[b.rank() - 2];
    const ExprRef depth = MakeInt(step * k_);
    MatrixInPlace m;
    m.buffer = region_.buffer;
    m.offset = OffsetOf(depth_first_ ? Coords{depth, row} : Coords{row, depth});
    m.row_bytes = static_cast<int>(panel);
    m.leading = static_cast<int>(rows * panel);
    m.stride = static_cast<int>(8 * panel);
    m.depth_first = depth_first_;
    m.step = static_cast<int>(depth_first_ ? k_ * panel : k_ * BytesOf(b));
    return m;
  }

 private:
  const Buffer& tile() const { return l_.buffer(region_.buffer); }
  // Within its panel.
  int64_t FirstDepth() const {
    const int64_t* first = IntValue(region_.offset[region_.dims[1]]);
    return first ? *first : 0;
  }

  // The permutation of chunks is the hardware's, which applies it to whole addresses.
  ExprRef OffsetOf(const Coords& c) const {
    const PanelOffset place = OffsetInPanels(tile(), Lowering::Index(region_, c));
    return Add(Add(l_.GroupOffset(region_.buffer), place.row), place.col);
  }

  Lowering& l_;
  const Region region_;
  const bool depth_first_;
  const int64_t k_;
};

// Operand A that lies in registers as the instructions take it: steps first, then blocks of rows.
MatrixInPlace InRegisters(BufferId a, int64_t slots, int64_t block, int64_t blocks, int64_t step,
                          int64_t steps) {
  MatrixInPlace m;
  m.buffer = a;
  m.offset = MakeInt((block * steps + step) * (slots / blocks / steps));
  return m;
}

// Columns of the next instruction when so many are left: alike where that goes. Behind a panel's
// first columns no other may begin (`step`), and sums of integers come in few widths.
int64_t ColumnsOfOne(int64_t left, int64_t step, bool integers) {
  constexpr int64_t kOfIntegers = 16, kMostOdd = 32;
  if (integers && left > kMostOdd) step = std::max(step, kOfIntegers);
  const int64_t width = CeilDiv(CeilDiv(left, CeilDiv(left, kMostColumns)), step) * step;
  if (width <= left) return width;
  return integers && left > kMostOdd ? left / step * step : left;
}

}  // namespace

void GemmInPlace(Lowering& l, const Gemm& g) {
  const MatrixAtom& atom = l.target().matrix_atoms[g.atom];
  const BufferId c = g.c.buffer;
  const Product p = ProductOf(g);
  const Operand a(l, p.left, atom.k), b(l, p.right, atom.k);
  const BufferId left = p.left.region.buffer;
  const int64_t steps = p.depth / atom.k;
  const int64_t down = p.left.warps / kWarpsTogether, across = p.right.warps;
  const int64_t rows = p.left.rows / down, cols = p.right.rows / across;
  const int64_t blocks = rows / atom.m;
  const ExprRef group = Div(l.warp(), kWarpsTogether);
  const ExprRef first_row = l.Named("row", Mul(Div(group, across), MakeInt(rows)));
  const ExprRef first_col = l.Named("col", Mul(Mod(group, across), MakeInt(cols)));

  // A sum that goes on from one iteration to the next is not the thread's in between.
  const BufferId settled = g.trailing ? kNoId : c;
  l.Emit(WgmmaSync{WgmmaSync::Op::kFence, settled});
  for (int64_t block = 0; block < blocks; ++block) {
    for (int64_t col = 0, width = 0; col < cols; col += width) {
      width = ColumnsOfOne(cols - col, b.RowStep(), !IsFloat(atom.c));
      for (int64_t step = 0, next = 0; step < steps; step = next) {
        next = std::min(
            {steps, step + kMostSteps, step + a.EvenSteps(step), step + b.EvenSteps(step)});
        const ExprRef row = Add(first_row, MakeInt(block * atom.m));
        Wgmma w{g.atom, static_cast<int>(width), static_cast<int>(next - step)};
        w.a = a.in_registers()
                  ? InRegisters(left, l.LayoutOf(left)->slots(), block, blocks, step, steps)
                  : a.At(row, step);
        w.b = b.At(Add(first_col, MakeInt(col)), step);
        w.c = c;
        // Of 8 columns a thread holds 2 in each of 2 rows.
        w.c_offset = MakeInt((block * cols + col) / 2);
        w.add = !g.clear || step > 0;
        w.trailing = g.trailing;
        l.Emit(std::move(w));
      }
    }
  }
  l.Emit(WgmmaSync{WgmmaSync::Op::kCommit, kNoId});
  l.EmitDeferred();
  l.Emit(WgmmaSync{WgmmaSync::Op::kWait, settled, g.under_way});
}

}  // namespace tl
