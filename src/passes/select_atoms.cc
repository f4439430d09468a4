#include "passes/select_atoms.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "base/int_math.h"
#include "ir/visit.h"
#include "passes/bulk_stores.h"
#include "passes/divisor.h"
#include "passes/notes.h"
#include "passes/product.h"

namespace tl {
namespace {

// In the orientation that `g` has.
bool TakesTypes(const Module& m, const MatrixAtom& atom, const Gemm& g) {
  const Product p = ProductOf(g);
  const auto type = [&](const Region& r) { return m.buffer(r.buffer).dtype; };
  return Permits(g, atom) && atom.a == type(p.left.region) && atom.b == type(p.right.region) &&
         atom.c == type(g.c);
}

bool IsWholeFragment(const Module& m, const Region& r) {
  return m.buffer(r.buffer).scope == Scope::kFragment && IsWhole(m.buffer(r.buffer), r);
}

// Rows and columns of c.
WarpUnit UnitOf(const Target& target, int atom, bool swapped) {
  if (atom == kNoAtom) return PlainUnitOf(target.warp_size);
  const MatrixAtom& a = target.matrix_atoms[atom];
  return swapped ? WarpUnit{a.n, a.m} : WarpUnit{a.m, a.n};
}

bool WantsSwapped(const Gemm& g) { return g.orientation == GemmOrientation::kSwapped; }

// Padded elements first (they cost instructions), then what the warps read of the operands.
std::pair<int64_t, int64_t> CostOf(const Gemm& g, WarpUnit unit, int64_t rows, int64_t cols) {
  const int64_t m = CeilDiv(g.c.extents[0], unit.rows * rows) * unit.rows;
  const int64_t n = CeilDiv(g.c.extents[1], unit.cols * cols) * unit.cols;
  return {m * n, m + n};
}

void LayWarps(const Target& target, int atom, int64_t warps, Gemm& g) {
  const WarpUnit unit = UnitOf(target, atom, g.swapped);
  g.warp_rows = 0;
  std::pair<int64_t, int64_t> best;
  for (int64_t rows = 1; rows <= warps; ++rows) {
    if (warps % rows != 0) continue;
    const int64_t cols = warps / rows;
    // The policies keep whole rows (columns) within one warp.
    if (g.policy == GemmPolicy::kFullRow && rows < warps) continue;
    if (g.policy == GemmPolicy::kFullCol && cols < warps) continue;
    const auto cost = CostOf(g, unit, rows, cols);
    if (g.warp_rows != 0 && best <= cost) continue;
    best = cost;
    g.warp_rows = static_cast<int>(rows);
    g.warp_cols = static_cast<int>(cols);
  }
}

// Threads per group where the program does not say.
int64_t ThreadsFor(const Module& m, const Target& target, const Launch& launch) {
  const int64_t warp = target.warp_size;
  int64_t product = 0, vectors = 0;
  VisitStmts(launch.body, [&](const StmtRef& s) {
    if (const Gemm* g = As<Gemm>(s)) product = std::max(product, g->c.num_elements());
    if (const Alloc* alloc = As<Alloc>(s)) {
      const Buffer& b = m.buffer(alloc->buffer);
      if (b.scope != Scope::kFragment && b.scope != Scope::kShared) return;
      // Narrow elements come and go in vectors of 16 bytes.
      vectors = std::max(vectors, b.num_elements() * 2 / 16);
    }
  });
  // A thread holds up to 128 elements of a product.
  const int64_t wanted = product > 0 ? product / (128 * warp) : CeilDiv(vectors, warp);
  int64_t warps = product > 0 ? 4 : 1;
  const int64_t most = std::min<int64_t>(8, target.max_threads_per_block / launch.groups / warp);
  while (warps < wanted && warps < most) warps *= 2;
  if (launch.groups > 1) warps = 4;
  return warps * warp;
}

// ---- Instructions of four warps that read their operands in place

// What keeps a factor from being read so; empty: nothing.
std::string WhyNotInPlace(const Module& m, const Divisors& divisors, const MatrixAtom& atom,
                          const Factor& factor) {
  const Region& r = factor.region;
  const bool depth_first = factor.depth_first;
  const Buffer& b = m.buffer(r.buffer);
  const auto bytes = static_cast<int64_t>(SizeOf(b.dtype));
  const auto why = [&](std::string_view what) { return absl::StrCat(b.name, " ", what); };
  if (b.scope == Scope::kGlobal || b.rank() < 2) return why("is no tile of rows");
  if (r.dims[0] != b.rank() - 2 || r.dims[1] != b.rank() - 1) return why("is cut across its rows");
  if (b.extents.back() * bytes % 32 != 0) return why("has rows that are no multiple of 32 bytes");
  if (b.extents[b.rank() - 2] % 8 != 0) return why("has a number of rows that is no multiple of 8");
  if (depth_first && bytes != 2) return why("runs along the depth, which takes 16-bit elements");
  const int64_t panel = PanelsFor(b.extents.back() * bytes).panel_bytes / bytes;
  const int64_t whole = panel > 0 ? panel : b.extents.back();
  const ExprRef &row = r.offset[r.dims[0]], &col = r.offset[r.dims[1]];
  const int64_t row_step = depth_first ? atom.k : 8;
  // Where in its panel the depth begins must be known.
  const int64_t col_step = !depth_first && IntValue(col) ? atom.k : whole;
  if (DivisorOf(row, divisors) % row_step != 0 || DivisorOf(col, divisors) % col_step != 0) {
    return why("is used from a place on that is no multiple of what is read at once");
  }
  return "";
}

std::string WhyNotInPlace(const Module& m, const Divisors& divisors, const MatrixAtom& atom,
                          const Gemm& g) {
  const Product p = ProductOf(g);
  const auto no_multiple = [&](int64_t count, bool columns, int of) {
    return absl::StrCat(count, columns ? " columns" : " rows", " are no multiple of ", of);
  };
  if (p.left.rows % atom.m != 0) return no_multiple(p.left.rows, g.swapped, atom.m);
  if (p.right.rows % atom.n != 0) return no_multiple(p.right.rows, !g.swapped, atom.n);
  if (p.depth % atom.k != 0) {
    return absl::StrCat("a depth of ", p.depth, " is no multiple of ", atom.k);
  }
  if (p.left.rows * p.right.rows * p.depth == 0) return "it is empty";
  std::string why = WhyNotInPlace(m, divisors, atom, p.left);
  return why.empty() ? WhyNotInPlace(m, divisors, atom, p.right) : why;
}

// Teams of four warps over c: of all ways the one that reads least, in the widest instructions.
// False: there is none.
bool LayWarpgroups(const Module& m, const MatrixAtom& atom, int64_t warps, Gemm& g) {
  constexpr int64_t kTogether = 4;
  if (warps % kTogether != 0) return false;
  const Product p = ProductOf(g);
  const Buffer& right = m.buffer(p.right.region.buffer);
  const auto bytes = static_cast<int64_t>(SizeOf(right.dtype));
  const int64_t panel = PanelsFor(right.extents.back() * bytes).panel_bytes / bytes;
  // Where the right factor's rows run along the tile's, a group's first one begins a panel.
  const int64_t step = p.right.depth_first ? std::max<int64_t>(panel, atom.n) : atom.n;
  const int64_t groups = warps / kTogether;
  int64_t best = 0;
  for (int64_t down = groups; down >= 1; --down) {
    const int64_t across = groups / down;
    if (groups % down != 0 || p.left.rows % (atom.m * down) != 0) continue;
    if (across > 1 && p.right.rows % (step * across) != 0) continue;
    // The policies keep whole rows (columns) of c within one team.
    if (g.policy == GemmPolicy::kFullRow && (g.swapped ? down : across) > 1) continue;
    if (g.policy == GemmPolicy::kFullCol && (g.swapped ? across : down) > 1) continue;
    const int64_t instructions = p.left.rows / atom.m * across;
    const int64_t read = instructions * (atom.m + p.right.rows / across);
    if (best != 0 && best <= read) continue;
    best = read;
    g.warp_rows = static_cast<int>(g.swapped ? across : down * kTogether);
    g.warp_cols = static_cast<int>(g.swapped ? down * kTogether : across);
  }
  return best != 0;
}

class Selector : public StmtMapper {
 public:
  Selector(Module& module, const Target& target, Launch& launch)
      : m_(module), target_(target), launch_(launch), stores_(module, target, launch) {}

  void Run() {
    if (launch_.threads == 0) {
      launch_.threads = static_cast<int>(ThreadsFor(m_, target_, launch_));
    }
    warps_ = int64_t{launch_.threads} * launch_.groups / target_.warp_size;
    launch_.body = MapBlock(launch_.body);
  }

  StmtRef MapStmt(const StmtRef& s) override {
    if (const Copy* copy = As<Copy>(s)) {
      OrderTransfer(*copy);
      OrderStore(*copy);
    }
    if (As<OnGroup>(s)) {
      const int64_t outer = std::exchange(warps_, launch_.threads / target_.warp_size);
      StmtRef mapped = StmtMapper::MapStmt(s);
      warps_ = outer;
      return mapped;
    }
    if (const Let* let = As<Let>(s)) divisors_[let->var] = DivisorOf(let->value, divisors_);
    const Gemm* gemm = As<Gemm>(s);
    if (!gemm) return StmtMapper::MapStmt(s);
    Gemm g = *gemm;
    std::string slower;
    Choose(g, slower);
    m_.notes.push_back(absl::StrCat(Note(g, s->span), slower));
    if (g.atom != kNoAtom) {
      const bool in_place = target_.matrix_atoms[g.atom].in_place();
      for (BufferId operand : {g.a.buffer, g.b.buffer}) {
        if (in_place) OrderPanels(operand);
        OrderRows(operand);
      }
    }
    return MakeStmt(std::move(g), s->span, s->id);
  }

 private:
  // The first row of the target's table that reads the gemm in place, else the one that pads least.
  // Swapped where the program wants that, or else straight. `slower`: why it is not an earlier one.
  void Choose(Gemm& g, std::string& slower) const {
    g.atom = kNoAtom;
    const bool wanted = WantsSwapped(g);
    if (IsWholeFragment(m_, g.c)) {
      if (wanted) TakeInPlace(true, g, slower);
      if (g.atom == kNoAtom) TakeInPlace(false, g, slower);
      if (g.atom == kNoAtom) TakeLeastPadded(wanted, g);
      if (g.atom == kNoAtom && wanted) TakeLeastPadded(false, g);
    }
    if (g.atom == kNoAtom) LayWarps(target_, kNoAtom, warps_, g);
  }
  void TakeInPlace(bool swapped, Gemm& g, std::string& slower) const {
    g.swapped = swapped;
    for (size_t i = 0; i < target_.matrix_atoms.size() && g.atom == kNoAtom; ++i) {
      const MatrixAtom& atom = target_.matrix_atoms[i];
      if (atom.in_place() && TakesTypes(m_, atom, g)) TakeInPlace(i, g, slower);
    }
  }
  void TakeInPlace(size_t number, Gemm& g, std::string& slower) const {
    const MatrixAtom& atom = target_.matrix_atoms[number];
    std::string why = WhyNotInPlace(m_, divisors_, atom, g);
    if (why.empty() && !LayWarpgroups(m_, atom, warps_, g)) {
      why = absl::StrCat(warps_, " warps cannot share it by fours");
    }
    if (why.empty()) {
      g.atom = static_cast<int>(number);
    } else {
      absl::StrAppend(&slower, "; not ", atom.name, g.swapped ? " swapped: " : ": ", why);
    }
  }
  void TakeLeastPadded(bool swapped, Gemm& g) const {
    g.swapped = swapped;
    int64_t best = 0;
    for (size_t i = 0; i < target_.matrix_atoms.size(); ++i) {
      const MatrixAtom& atom = target_.matrix_atoms[i];
      if (atom.in_place() || !TakesTypes(m_, atom, g)) continue;
      const int number = static_cast<int>(i);
      Gemm laid = g;
      LayWarps(target_, number, warps_, laid);
      const WarpUnit unit = UnitOf(target_, number, g.swapped);
      const int64_t padded = CostOf(laid, unit, laid.warp_rows, laid.warp_cols).first *
                             laid.warp_rows * laid.warp_cols;
      if (best != 0 && best <= padded) continue;
      best = padded;
      g = std::move(laid);
      g.atom = number;
    }
  }

  // Which instruction, and where there is none, why.
  std::string Note(const Gemm& g, Span span) const {
    std::string note = absl::StrCat("gemm", At(span), ": ");
    if (g.atom != kNoAtom) {
      absl::StrAppend(&note, target_.matrix_atoms[g.atom].name);
    } else {
      absl::StrAppend(&note, "plain arithmetic (", WhyPlain(g), ")");
    }
    absl::StrAppend(&note, ", ", g.warp_rows, " x ", g.warp_cols, " warps",
                    g.swapped ? ", swapped" : "");
    if (g.atom != kNoAtom && AccumulatesFaster(g)) {
      absl::StrAppend(&note, "; precision=fast_accum would permit a faster one");
    }
    return note;
  }
  // Would fast accumulation permit an instruction that reads the factors where they lie?
  bool AccumulatesFaster(Gemm g) const {
    if (g.precision != GemmPrecision::kExact) return false;
    g.precision = GemmPrecision::kFastAccum;
    return absl::c_any_of(target_.matrix_atoms, [&](const MatrixAtom& atom) {
      return atom.narrow_sums && atom.in_place() && TakesTypes(m_, atom, g) &&
             WhyNotInPlace(m_, divisors_, atom, g).empty();
    });
  }
  std::string WhyPlain(const Gemm& g) const {
    if (!IsWholeFragment(m_, g.c)) return "the result is no whole fragment";
    const Buffer& c = m_.buffer(g.c.buffer);
    const DType a = m_.buffer(g.a.buffer).dtype, b = m_.buffer(g.b.buffer).dtype;
    const std::string types = absl::StrCat(Name(a), " x ", Name(b), " + ", Name(c.dtype));
    Gemm rounded = g;
    rounded.precision = GemmPrecision::kTF32;
    const bool tf32 = absl::c_any_of(target_.matrix_atoms, [&](const MatrixAtom& atom) {
      return TakesTypes(m_, atom, rounded);
    });
    return absl::StrCat("no matrix instruction of ", target_.name, " takes ", types,
                        tf32 ? "; precision=tf32 would permit one" : "");
  }

  // Lanes that hold a fragment's rows write (or read) one column of chunks together.
  void OrderTransfer(const Copy& copy) {
    for (const auto& [tile, other] : {std::pair(copy.src.buffer, copy.dst.buffer),
                                      std::pair(copy.dst.buffer, copy.src.buffer)}) {
      if (m_.buffer(tile).scope != Scope::kShared) continue;
      if (m_.buffer(other).scope == Scope::kFragment) OrderRows(tile);
    }
  }
  // Tiles that leave in boxes lie as boxes do.
  void OrderStore(const Copy& copy) {
    const Buffer& tile = m_.buffer(copy.src.buffer);
    const bool leaves =
        tile.scope == Scope::kShared && m_.buffer(copy.dst.buffer).scope == Scope::kGlobal;
    if (leaves && stores_.wanted() && stores_.WhyNot(copy).empty()) OrderPanels(copy.src.buffer);
  }
  void OrderPanels(BufferId id) {
    Buffer& b = m_.buffers[id];
    b.swizzle = PanelsFor(b.extents.back() * static_cast<int64_t>(SizeOf(b.dtype)));
    b.in_place = true;
  }
  void OrderRows(BufferId id) {
    Buffer& b = m_.buffers[id];
    if (b.in_place) return;
    // A fragment may yet come to lie in shared memory.
    if ((b.scope != Scope::kShared && b.scope != Scope::kFragment) || b.rank() < 2) return;
    b.swizzle = SwizzleFor(b.extents.back() * static_cast<int64_t>(SizeOf(b.dtype)));
  }

  Module& m_;
  const Target& target_;
  Launch& launch_;
  const BulkStores stores_;
  Divisors divisors_;  // of names
  int64_t warps_ = 0;  // of the team that works on a statement
};

}  // namespace

// Lanes and warps have to be whole.
bool UsesRegisters(const Target& target, const Launch& launch) {
  return target.register_fragments && launch.threads % target.warp_size == 0;
}

namespace {

// A group's barrier counts warps: two groups cannot share one.
void RoundGroups(Module& m, const Target& target, Launch& launch) {
  const int asked = launch.threads;
  if (!target.simt || launch.groups == 1 || asked % target.warp_size == 0) return;
  launch.threads = static_cast<int>(CeilDiv(asked, target.warp_size)) * target.warp_size;
  m.notes.push_back(absl::StrCat("launch", At(launch.span), ": ", launch.threads,
                                 " threads in a group instead of ", asked,
                                 ", which are no whole warps"));
}

}  // namespace

Status SelectAtoms(Module& module, const Target& target) {
  for (Launch& launch : module.launches) {
    RoundGroups(module, target, launch);
    if (UsesRegisters(target, launch)) Selector(module, target, launch).Run();
  }
  module.level = Level::kSelected;
  return absl::OkStatus();
}

}  // namespace tl
