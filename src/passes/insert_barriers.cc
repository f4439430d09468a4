#include "passes/insert_barriers.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "ir/visit.h"

namespace tl {
namespace {

// Accesses since a barrier, one entry a buffer.
class Accesses {
 public:
  // `own`: element e is touched by nobody but the thread that runs iteration e of a ThreadFor, and
  // that is the same thread in all of them.
  void Add(BufferId buffer, bool write, bool own) {
    for (Entry& e : entries_) {
      if (e.buffer == buffer) {
        e.write = e.write || write;
        e.own = e.own && own;
        return;
      }
    }
    entries_.push_back({buffer, write, own});
  }
  void AddAll(const Accesses& other) {
    for (const Entry& e : other.entries_) Add(e.buffer, e.write, e.own);
  }
  std::vector<BufferId> written() const {
    std::vector<BufferId> out;
    for (const Entry& e : entries_) {
      if (e.write) out.push_back(e.buffer);
    }
    return out;
  }
  void Clear() { entries_.clear(); }
  bool empty() const { return entries_.empty(); }
  // Accesses to the slots of one of `rings` do not conflict with each other: their order is
  // planned.
  bool ConflictsWith(const Accesses& other, const Module& module,
                     const absl::flat_hash_set<BufferId>& rings) const {
    for (const Entry& a : entries_) {
      for (const Entry& b : other.entries_) {
        if (!a.write && !b.write) continue;
        if (a.buffer == b.buffer && rings.contains(a.buffer)) continue;
        if (a.buffer == b.buffer ? !(a.own && b.own) : Overlap(module, a.buffer, b.buffer)) {
          return true;
        }
      }
    }
    return false;
  }

 private:
  struct Entry {
    BufferId buffer;
    bool write, own;
  };

  // Tiles that live one after the other may lie in one place.
  static bool Overlap(const Module& module, BufferId x, BufferId y) {
    const Buffer& a = module.buffer(x);
    const Buffer& b = module.buffer(y);
    if (a.arena_offset < 0 || b.arena_offset < 0) return false;
    return a.arena_offset < b.arena_offset + Bytes(b) && b.arena_offset < a.arena_offset + Bytes(a);
  }
  static int64_t Bytes(const Buffer& b) {
    return b.num_elements() * (b.scope == Scope::kChannel ? b.depth : 1) *
           static_cast<int64_t>(SizeOf(b.dtype));
  }

  std::vector<Entry> entries_;
};

class Inserter {
 public:
  Inserter(const Module& module, const Launch& launch) : module_(module), launch_(launch) {}

  Block Run() {
    Accesses pending;
    return Walk(launch_.body, pending);
  }

 private:
  // `pending`: accesses since the last barrier, in and out.
  Block Walk(const Block& block, Accesses& pending) {
    Block out;
    for (const StmtRef& s : block) {
      if (const For* loop = As<For>(s)) {
        WaitFor(HeadOf(*s), pending, out);
        out.push_back(WalkLoop(s, *loop, pending));
      } else if (const If* branch = As<If>(s)) {
        WaitFor(HeadOf(*s), pending, out);
        out.push_back(WalkIf(s, *branch, pending));
      } else if (const OnGroup* on = As<OnGroup>(s)) {
        WalkGroup(s, *on, pending, out);
      } else if (As<Barrier>(s)) {
        pending.Clear();
        out.push_back(s);
      } else {
        WaitFor(AllOf(s), pending, out);
        out.push_back(s);
      }
    }
    return out;
  }

  // A barrier if `next` conflicts with what is pending; then `next` is pending too.
  void WaitFor(const Accesses& next, Accesses& pending, Block& out) {
    if (pending.ConflictsWith(next, module_, rings_)) {
      out.push_back(MakeStmt(Barrier{team_}));
      pending.Clear();
    }
    pending.AddAll(next);
  }

  StmtRef WalkLoop(const StmtRef& s, const For& loop, Accesses& pending) {
    const absl::flat_hash_set<BufferId> outer = rings_;
    NoteRings(loop.body);
    StmtRef out = WalkLoopBody(s, loop, pending);
    rings_ = outer;
    return out;
  }

  // A loop that waits for asynchronous copies is a planned one: it orders its accesses to the rings
  // that it fills by the barrier behind that wait.
  void NoteRings(const Block& body) {
    const bool planned = std::any_of(body.begin(), body.end(),
                                     [](const StmtRef& s) { return As<AsyncWait>(s) != nullptr; });
    if (!planned) return;
    for (const StmtRef& s : body) {
      for (BufferId id : AllOf(s).written()) {
        if (module_.buffer(id).ring) rings_.insert(id);
      }
    }
  }

  StmtRef WalkLoopBody(const StmtRef& s, const For& loop, Accesses& pending) {
    For copy = loop;
    Accesses inside = pending;
    copy.body = Walk(loop.body, inside);
    Accesses body;
    for (const StmtRef& child : loop.body) body.AddAll(AllOf(child));
    if (inside.ConflictsWith(body, module_, rings_)) {
      copy.body.push_back(MakeStmt(Barrier{team_}));
    } else {
      pending.AddAll(inside);
    }
    // Without a single trip, what was pending before still is.
    return MakeStmt(std::move(copy), s->span, s->id);
  }

  StmtRef WalkIf(const StmtRef& s, const If& branch, Accesses& pending) {
    If copy = branch;
    Accesses other = pending;
    copy.then_body = Walk(branch.then_body, pending);
    copy.else_body = Walk(branch.else_body, other);
    pending.AddAll(other);
    return MakeStmt(std::move(copy), s->span, s->id);
  }

  void WalkGroup(const StmtRef& s, const OnGroup& on, Accesses& pending, Block& out) {
    if (!pending.empty()) out.push_back(MakeStmt(Barrier{Team::kBlock}));
    out.push_back(MakeStmt(Let{on.var, MakeVar(launch_.group, ScalarType::kInt)}, s->span, s->id));
    team_ = Team::kGroup;
    Accesses inside;
    Block body = Walk(on.body, inside);
    team_ = Team::kBlock;
    out.insert(out.end(), body.begin(), body.end());
    out.push_back(MakeStmt(Barrier{Team::kBlock}));
    pending.Clear();
  }

  // What evaluating the statement's own expressions reads. `own` is the variable of the ThreadFor
  // around it.
  Accesses HeadOf(const Stmt& s, VarId own = kNoId) const {
    Accesses a;
    VisitStmtExprs(s, [&](const ExprRef& e) {
      VisitExpr(e, [&](const ExprRef& node) {
        if (const Load* load = As<Load>(node)) AddShared(a, load->buffer, load->index, false, own);
      });
    });
    return a;
  }

  Accesses AllOf(const StmtRef& root) const {
    const ThreadFor* loop = As<ThreadFor>(root);
    const VarId own = loop ? loop->var : kNoId;
    Accesses a;
    VisitStmts({root}, [&](const StmtRef& s) {
      a.AddAll(HeadOf(*s, own));
      VisitAccesses(*s, [&](BufferId id, const ExprRef& offset, bool write) {
        AddShared(a, id, {offset}, write, own);
      });
    });
    return a;
  }

  // Local arrays are each thread's own. Slots of a channel are handed over by acquire and release.
  void AddShared(Accesses& a, BufferId id, const std::vector<ExprRef>& index, bool write,
                 VarId own) const {
    const Scope scope = module_.buffer(id).scope;
    if (scope == Scope::kLocal || scope == Scope::kChannel) return;
    const VarRef* at = As<VarRef>(index[0]);
    a.Add(id, write, own != kNoId && at && at->var == own);
  }

  const Module& module_;
  const Launch& launch_;
  Team team_ = Team::kBlock;
  absl::flat_hash_set<BufferId> rings_;  // of the planned loops around
};

}  // namespace

Status InsertBarriers(Module& module, const Target& target) {
  for (Launch& launch : module.launches) {
    // One thread runs the block, groups one after the other: nothing to wait for, no `on` left.
    if (!target.simt && !(target.channels && launch.groups > 1)) continue;
    launch.body = Inserter(module, launch).Run();
  }
  return absl::OkStatus();
}

}  // namespace tl
