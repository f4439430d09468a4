#include "passes/delay_waits.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "ir/visit.h"

namespace tl {
namespace {

using Buffers = absl::flat_hash_set<BufferId>;

const WgmmaSync* SyncOf(const StmtRef& s, WgmmaSync::Op op) {
  const WgmmaSync* sync = As<WgmmaSync>(s);
  return sync && sync->op == op ? sync : nullptr;
}

class Delayer : public StmtMapper {
 public:
  Block MapBlock(const Block& b) override {
    Block out;
    for (const StmtRef& s : b) Append(MapStmt(s), out);
    SinkFences(out);
    // The last ones first: they make way.
    for (size_t i = out.size(); i-- > 0;) {
      const WgmmaSync* wait = SyncOf(out[i], WgmmaSync::Op::kWait);
      if (wait && wait->pending == 0) Sink(out, i);
    }
    return out;
  }

 private:
  // Behind barriers, to their instructions: a wait that stops at the barrier stands before them.
  static void SinkFences(Block& block) {
    for (size_t i = 0; i + 1 < block.size(); ++i) {
      const bool passes = As<Barrier>(block[i + 1]) || As<ProxyFence>(block[i + 1]);
      if (passes && SyncOf(block[i], WgmmaSync::Op::kFence)) std::swap(block[i], block[i + 1]);
    }
  }

  // A wait that ends a branch stands behind the branches, if the sum is known there and was the
  // thread's throughout: where none is needed it costs nothing.
  static void Append(const StmtRef& s, Block& out) {
    const If* branch = As<If>(s);
    if (!branch || branch->then_body.empty()) return out.push_back(s);
    const WgmmaSync* wait = SyncOf(branch->then_body.back(), WgmmaSync::Op::kWait);
    if (!wait || wait->pending > 0 || wait->c == kNoId || MadeIn(branch->then_body, wait->c) ||
        Trails(branch->then_body, wait->c)) {
      return out.push_back(s);
    }
    If shorter = *branch;
    const StmtRef moved = shorter.then_body.back();
    shorter.then_body.pop_back();
    out.push_back(MakeStmt(std::move(shorter), s->span, s->id));
    out.push_back(moved);
  }

  static bool MadeIn(const Block& block, BufferId c) {
    return absl::c_any_of(block, [&](const StmtRef& s) {
      const Alloc* alloc = As<Alloc>(s);
      return alloc && alloc->buffer == c;
    });
  }

  static bool Trails(const Block& block, BufferId c) {
    bool found = false;
    VisitStmts(block, [&](const StmtRef& s) {
      const Wgmma* w = As<Wgmma>(s);
      found = found || (w && w->trailing && w->c == c);
    });
    return found;
  }

  // The wait at `at`, down as far as it may go.
  void Sink(Block& block, size_t at) const {
    const StmtRef original = block[at];
    WgmmaSync wait = *As<WgmmaSync>(original);
    const Buffers tiles = OperandsOf(block, at, wait.c);
    size_t to = at;
    while (to + 1 < block.size() && MayPass(block[to + 1], wait.c, tiles)) {
      ++to;
      if (SyncOf(block[to], WgmmaSync::Op::kCommit)) ++wait.pending;
    }
    const StmtRef moved = MakeStmt(wait, original->span, original->id);
    block.erase(block.begin() + static_cast<ptrdiff_t>(at));
    const If* branch = to < block.size() ? As<If>(block[to]) : nullptr;
    if (branch && HoldsInstructions(*branch)) {
      block[to] = WithWait(block[to], *branch, moved, tiles);
    } else {
      block.insert(block.begin() + static_cast<ptrdiff_t>(to), moved);
    }
  }

  // Into both branches: how many groups are younger behind the one with instructions is its own
  // business.
  StmtRef WithWait(const StmtRef& s, const If& branch, const StmtRef& wait,
                   const Buffers& tiles) const {
    If out = branch;
    for (Block* body : {&out.then_body, &out.else_body}) {
      const WgmmaSync& w = *As<WgmmaSync>(wait);
      size_t to = 0;
      int pending = w.pending;
      while (to < body->size() && MayPass((*body)[to], w.c, tiles)) {
        if (SyncOf((*body)[to++], WgmmaSync::Op::kCommit)) ++pending;
      }
      body->insert(body->begin() + static_cast<ptrdiff_t>(to),
                   MakeStmt(WgmmaSync{w.op, w.c, pending}, wait->span, wait->id));
    }
    return MakeStmt(std::move(out), s->span, s->id);
  }

  static bool HoldsInstructions(const If& branch) {
    const auto is = [](const StmtRef& s) { return As<Wgmma>(s) != nullptr; };
    return absl::c_any_of(branch.then_body, is);
  }

  // What the instructions read that add to c in this block before the wait, its branches included:
  // their waits stand behind them.
  static Buffers OperandsOf(const Block& block, size_t wait, BufferId c) {
    Buffers out;
    const auto end = block.begin() + static_cast<ptrdiff_t>(wait);
    VisitStmts(Block(block.begin(), end), [&](const StmtRef& s) {
      const Wgmma* w = As<Wgmma>(s);
      if (w && (c == kNoId || w->c == c)) out.insert({w->a.buffer, w->b.buffer});
    });
    return out;
  }

  static bool MayPass(const StmtRef& root, BufferId c, const Buffers& operands) {
    bool ok = true;
    VisitStmts({root}, [&](const StmtRef& s) {
      // These tell others, or are about the same instructions; a block entered may be left again.
      if (As<Barrier>(s) || As<Mbarrier>(s) || As<ChannelRelease>(s)) ok = false;
      if (s != root && (As<WgmmaSync>(s) || As<Wgmma>(s))) ok = false;
      if (const WgmmaSync* sync = As<WgmmaSync>(s)) {
        if (sync->op == WgmmaSync::Op::kWait || sync->c == c) ok = false;
      }
      VisitAccesses(*s, [&](BufferId id, const ExprRef&, bool write) {
        if (id == c || (write && operands.contains(id))) ok = false;
      });
      VisitStmtExprs(*s, [&](const ExprRef& e) {
        if (AnyNode(e, [&](const ExprRef& node) {
              const Load* load = As<Load>(node);
              return load && load->buffer == c;
            })) {
          ok = false;
        }
      });
    });
    return ok;
  }
};

}  // namespace

Status DelayWaits(Module& module, const Target& target) {
  const auto in_place = [](const MatrixAtom& atom) { return atom.in_place(); };
  if (absl::c_none_of(target.matrix_atoms, in_place)) return absl::OkStatus();
  for (Launch& launch : module.launches) launch.body = Delayer().MapBlock(launch.body);
  return absl::OkStatus();
}

}  // namespace tl
