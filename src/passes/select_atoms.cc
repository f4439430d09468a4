#include "passes/select_atoms.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/int_math.h"
#include "ir/visit.h"
#include "passes/notes.h"

namespace tl {
namespace {

// The first row of the target's table that takes the gemm's types.
int AtomFor(const Module& m, const Target& target, const Gemm& g) {
  const Buffer& c = m.buffer(g.c.buffer);
  if (c.scope != Scope::kFragment || !IsWhole(c, g.c)) return kNoAtom;
  const DType a = m.buffer(g.a.buffer).dtype, b = m.buffer(g.b.buffer).dtype;
  for (size_t i = 0; i < target.matrix_atoms.size(); ++i) {
    const MatrixAtom& atom = target.matrix_atoms[i];
    const bool exact = !atom.tf32 || g.precision == GemmPrecision::kTF32;
    if (atom.a == a && atom.b == b && atom.c == c.dtype && exact) return static_cast<int>(i);
  }
  return kNoAtom;
}

// What one warp handles at a time.
struct Unit {
  int64_t rows, cols;
};
Unit UnitOf(const Target& target, int atom) {
  // Plain arithmetic: four lanes by eight, each with a few neighbours along a row.
  if (atom == kNoAtom) return {4, 32};
  return {target.matrix_atoms[atom].m, target.matrix_atoms[atom].n};
}

// Padded elements first (they cost instructions), then what the warps read of the operands.
std::pair<int64_t, int64_t> CostOf(const Gemm& g, Unit unit, int64_t rows, int64_t cols) {
  const int64_t m = CeilDiv(g.c.extents[0], unit.rows * rows) * unit.rows;
  const int64_t n = CeilDiv(g.c.extents[1], unit.cols * cols) * unit.cols;
  return {m * n, m + n};
}

void LayWarps(const Target& target, int64_t warps, Gemm& g) {
  const Unit unit = UnitOf(target, g.atom);
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
  // A warp holds up to 64 x 64 elements of a product: 128 registers of a thread.
  const int64_t wanted = product > 0 ? product / (64 * 64) : CeilDiv(vectors, warp);
  int64_t warps = product > 0 ? 4 : 1;
  const int64_t most = std::min<int64_t>(8, target.max_threads_per_block / launch.groups / warp);
  while (warps < wanted && warps < most) warps *= 2;
  if (launch.groups > 1) warps = 4;
  return warps * warp;
}

class Selector : public StmtMapper {
 public:
  Selector(Module& module, const Target& target, Launch& launch)
      : m_(module), target_(target), launch_(launch) {}

  void Run() {
    if (launch_.threads == 0) {
      launch_.threads = static_cast<int>(ThreadsFor(m_, target_, launch_));
    }
    warps_ = int64_t{launch_.threads} * launch_.groups / target_.warp_size;
    launch_.body = MapBlock(launch_.body);
  }

  StmtRef MapStmt(const StmtRef& s) override {
    if (const Copy* copy = As<Copy>(s)) OrderTransfer(*copy);
    if (As<OnGroup>(s)) {
      const int64_t outer = std::exchange(warps_, launch_.threads / target_.warp_size);
      StmtRef mapped = StmtMapper::MapStmt(s);
      warps_ = outer;
      return mapped;
    }
    const Gemm* gemm = As<Gemm>(s);
    if (!gemm) return StmtMapper::MapStmt(s);
    Gemm g = *gemm;
    g.atom = AtomFor(m_, target_, g);
    LayWarps(target_, warps_, g);
    m_.notes.push_back(Note(g, s->span));
    if (g.atom != kNoAtom) {
      OrderRows(g.a.buffer);
      OrderRows(g.b.buffer);
    }
    return MakeStmt(std::move(g), s->span, s->id);
  }

 private:
  // Which instruction, and where there is none, why.
  std::string Note(const Gemm& g, Span span) const {
    std::string note = absl::StrCat("gemm", At(span), ": ");
    if (g.atom != kNoAtom) {
      absl::StrAppend(&note, target_.matrix_atoms[g.atom].name);
    } else {
      absl::StrAppend(&note, "plain arithmetic (", WhyPlain(g), ")");
    }
    return absl::StrCat(note, ", ", g.warp_rows, " x ", g.warp_cols, " warps");
  }
  std::string WhyPlain(const Gemm& g) const {
    const Buffer& c = m_.buffer(g.c.buffer);
    if (c.scope != Scope::kFragment || !IsWhole(c, g.c)) return "the result is no whole fragment";
    const DType a = m_.buffer(g.a.buffer).dtype, b = m_.buffer(g.b.buffer).dtype;
    const std::string types = absl::StrCat(Name(a), " x ", Name(b), " + ", Name(c.dtype));
    Gemm rounded = g;
    rounded.precision = GemmPrecision::kTF32;
    const bool tf32 = AtomFor(m_, target_, rounded) != kNoAtom;
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
  void OrderRows(BufferId id) {
    Buffer& b = m_.buffers[id];
    // A fragment may yet come to lie in shared memory.
    if ((b.scope != Scope::kShared && b.scope != Scope::kFragment) || b.rank() < 2) return;
    b.swizzle = SwizzleFor(b.extents.back() * static_cast<int64_t>(SizeOf(b.dtype)));
  }

  Module& m_;
  const Target& target_;
  Launch& launch_;
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
