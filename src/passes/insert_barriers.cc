#include "passes/insert_barriers.h"

#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "ir/visit.h"
#include "passes/plan_arena.h"
#include "passes/varying.h"

namespace tl {
namespace {

using Buffers = absl::flat_hash_set<BufferId>;

// Accesses since a barrier, one entry a buffer.
class Accesses {
 public:
  // `own`: element e is touched by nobody but the thread that runs iteration e of a ThreadFor, and
  // that is the same thread in all of them. `product`: by an instruction of four warps.
  void Add(BufferId buffer, bool write, bool own, bool product = false) {
    Add({buffer, !write, write, own, !write && !product, false});
  }
  // A box reads it in its own time.
  void AddSent(BufferId buffer) { Add({buffer, true, false, false, false, true}); }
  Accesses Sent() const {
    Accesses out;
    for (const Entry& e : entries_) {
      if (e.sent) out.AddSent(e.buffer);
    }
    return out;
  }
  void AddAll(const Accesses& other) {
    for (const Entry& e : other.entries_) Add(e);
  }
  // What fills slots of rings.
  Accesses Fills(const Module& module) const {
    Accesses out;
    for (const Entry& e : entries_) {
      if (e.write && module.buffer(e.buffer).ring) out.Add(e.buffer, true, false);
    }
    return out;
  }
  // Have threads themselves read slots that they give back?
  bool HasLoadsOfHandedBack(const Module& module) const {
    return absl::c_any_of(
        entries_, [&](const Entry& e) { return e.loaded && module.buffer(e.buffer).handed_back; });
  }
  void Clear() { entries_.clear(); }
  bool empty() const { return entries_.empty(); }
  // `planned`: rings whose accesses are ordered by the plan of a loop around.
  bool ConflictsWith(const Accesses& other, const Module& module, const Buffers& planned) const {
    for (const Entry& a : entries_) {
      for (const Entry& b : other.entries_) {
        if (!a.write && !b.write) continue;
        if (a.buffer != b.buffer) {
          if (ShareMemory(module.buffer(a.buffer), module.buffer(b.buffer))) return true;
        } else if (module.buffer(a.buffer).scope == Scope::kChannel) {
          continue;  // its groups acquire and release the slots
        } else if (module.buffer(a.buffer).ring) {
          if (module.buffer(a.buffer).handed_back) continue;
          // Copies into a ring never meet each other: see the header.
          if ((a.read || b.read) && !planned.contains(a.buffer)) return true;
        } else if (!(a.own && b.own)) {
          return true;
        }
      }
    }
    return false;
  }

 private:
  struct Entry {
    BufferId buffer;
    bool read, write, own;
    bool loaded;  // by threads
    bool sent;    // in boxes
  };

  void Add(const Entry& entry) {
    for (Entry& e : entries_) {
      if (e.buffer != entry.buffer) continue;
      e.read = e.read || entry.read;
      e.write = e.write || entry.write;
      e.own = e.own && entry.own;
      e.loaded = e.loaded || entry.loaded;
      e.sent = e.sent || entry.sent;
      return;
    }
    entries_.push_back(entry);
  }

  std::vector<Entry> entries_;
};

// Local arrays are each thread's own.
bool IsShared(const Buffer& b) { return b.scope != Scope::kLocal; }

// Every Load of shared or global memory in the expressions of one statement.
void VisitLoads(const Module& module, const Stmt& s,
                absl::FunctionRef<void(BufferId, const ExprRef& offset)> visit) {
  VisitStmtExprs(s, [&](const ExprRef& e) {
    VisitExpr(e, [&](const ExprRef& node) {
      const Load* load = As<Load>(node);
      if (load && IsShared(module.buffer(load->buffer))) visit(load->buffer, load->index[0]);
    });
  });
}

// Which loop orders the accesses to which rings: the innermost one that both fills and reads it.
class PlannedLoops {
 public:
  PlannedLoops(const Module& module, const Block& body) : module_(module) {
    for (const Buffer& b : module.buffers) any_ = any_ || b.ring;
    Uses uses;
    if (any_) Walk(body, uses);
  }

  // Null: none.
  const Buffers* RingsOf(const Stmt& loop) const {
    const auto it = rings_.find(&loop);
    return it == rings_.end() ? nullptr : &it->second;
  }

 private:
  struct Uses {
    Buffers filled, read;
  };

  void Walk(const Block& block, Uses& uses) {
    for (const StmtRef& s : block) {
      VisitLoads(module_, *s, [&](BufferId id, const ExprRef&) { Note(id, false, uses); });
      VisitAccesses(*s, [&](BufferId id, const ExprRef&, bool write) { Note(id, write, uses); });
      if (!As<For>(s)) {
        VisitBlocks(*s, [&](const Block& b) { Walk(b, uses); });
        continue;
      }
      Uses inside;
      Walk(As<For>(s)->body, inside);
      for (BufferId ring : inside.filled) {
        if (inside.read.contains(ring) && owned_.insert(ring).second) rings_[s.get()].insert(ring);
      }
      uses.filled.insert(inside.filled.begin(), inside.filled.end());
      uses.read.insert(inside.read.begin(), inside.read.end());
    }
  }

  void Note(BufferId id, bool write, Uses& uses) {
    if (module_.buffer(id).ring) (write ? uses.filled : uses.read).insert(id);
  }

  const Module& module_;
  bool any_ = false;
  Buffers owned_;
  absl::flat_hash_map<const Stmt*, Buffers> rings_;
};

class Inserter {
 public:
  Inserter(const Module& module, const Launch& launch)
      : module_(module), launch_(launch), varying_(module, launch), loops_(module, launch.body) {}

  Block Run() {
    Accesses pending;
    Block body = Walk(launch_.body, pending);
    // Behind the last statement no thread of the block waits for another.
    const Barrier* last = body.empty() ? nullptr : As<Barrier>(body.back());
    if (last && last->team != Team::kCluster) body.pop_back();
    return body;
  }

 private:
  // `pending`: accesses since the last barrier, in and out.
  Block Walk(const Block& block, Accesses& pending) {
    Block out;
    for (const StmtRef& s : block) {
      const For* loop = As<For>(s);
      const If* branch = As<If>(s);
      if (loop && !varying_.Has(loop->begin) && !varying_.Has(loop->end)) {
        WaitFor(HeadOf(*s), pending, out);
        WaitBeforeLoop(s, *loop, pending, out);
        out.push_back(WalkLoop(s, *loop, pending));
      } else if (branch && !varying_.Has(branch->cond)) {
        WaitFor(HeadOf(*s), pending, out);
        WaitBeforeFills(s, pending, out);
        out.push_back(WalkIf(s, *branch, pending));
      } else if (const OnGroup* on = As<OnGroup>(s)) {
        WalkGroup(s, *on, pending, out);
      } else if (IsBarrier(s)) {
        pending.Clear();
        out.push_back(s);
      } else if (As<OnProducer>(s)) {
        out.push_back(s);  // its plan orders all that it does
      } else {
        // One unit: threads go through it at their own pace.
        WaitFor(AllOf(s), pending, out);
        if (GivesBack(s) && pending.HasLoadsOfHandedBack(module_)) {
          out.push_back(MakeStmt(Barrier{team_}));
          pending.Clear();
        }
        out.push_back(s);
      }
    }
    return out;
  }

  // A barrier for all of the present team?
  bool IsBarrier(const StmtRef& s) const {
    const Barrier* barrier = As<Barrier>(s);
    return barrier && (barrier->team != Team::kGroup || team_ == Team::kGroup);
  }

  // A barrier if `next` conflicts with what is pending; then `next` is pending too.
  void WaitFor(const Accesses& next, Accesses& pending, Block& out) {
    WaitIfConflicting(next, pending, out);
    pending.AddAll(next);
  }
  void WaitIfConflicting(const Accesses& next, Accesses& pending, Block& out) {
    if (!pending.ConflictsWith(next, module_, planned_)) return;
    out.push_back(MakeStmt(Barrier{team_}));
    pending.Clear();
  }

  // An arrival of one lane for its warp.
  static bool GivesBack(const StmtRef& s) {
    const OnFirstThread* first = As<OnFirstThread>(s);
    return first && first->team == Team::kWarp;
  }

  // What is pending may take a barrier in every iteration that only the first one needs.
  void WaitBeforeLoop(const StmtRef& s, const For& loop, Accesses& pending, Block& out) {
    if (!pending.ConflictsWith(AllOf(s), module_, planned_)) return;
    Accesses before = pending, none;
    const auto barriers = [&](Accesses& accesses) {
      int count = 0;
      VisitStmts({WalkLoop(s, loop, accesses)}, [&](const StmtRef& b) { count += IsBarrier(b); });
      return count;
    };
    if (barriers(none) == barriers(before)) return;
    out.push_back(MakeStmt(Barrier{team_}));
    pending.Clear();
  }

  // The first slots of a ring are filled under one condition each: a barrier before the first
  // serves all.
  void WaitBeforeFills(const StmtRef& s, Accesses& pending, Block& out) {
    WaitIfConflicting(AllOf(s).Fills(module_), pending, out);
  }

  StmtRef WalkLoop(const StmtRef& s, const For& loop, Accesses& pending) {
    const Buffers* const rings = loops_.RingsOf(*s);
    const Buffers outer = planned_;
    if (rings) planned_.insert(rings->begin(), rings->end());
    For copy = loop;
    Accesses inside = pending;
    inside.AddAll(SentBy(s, loop.body));
    copy.body = Walk(loop.body, inside);
    // Without a single trip, what was pending before still is.
    const int64_t *begin = IntValue(loop.begin), *end = IntValue(loop.end);
    if (begin && end && *begin < *end) pending.Clear();
    if (inside.ConflictsWith(FirstOf(copy.body), module_, planned_)) {
      copy.body.push_back(MakeStmt(Barrier{team_}));
    } else {
      pending.AddAll(inside);
    }
    planned_ = outer;
    return MakeStmt(std::move(copy), s->span, s->id);
  }

  // Boxes that an iteration sends leave while the next one runs: it waits for them where their
  // memory is written again, not where it begins.
  Accesses SentBy(const StmtRef& loop, const Block& body) {
    if (const auto known = sent_by_.find(loop.get()); known != sent_by_.end()) {
      return known->second;
    }
    bool any = false;
    VisitStmts(body, [&](const StmtRef& s) { any = any || As<BulkStore>(s); });
    Accesses left;
    if (any) Walk(body, left);
    return sent_by_.emplace(loop.get(), left.Sent()).first->second;
  }

  // What a loop's body does up to its first barrier: what an iteration leaves behind meets that.
  Accesses FirstOf(const Block& body) const {
    Accesses first;
    for (const StmtRef& s : body) {
      if (IsBarrier(s)) break;
      first.AddAll(AllOf(s));
    }
    return first;
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
    VisitLoads(module_, s,
               [&](BufferId id, const ExprRef& offset) { a.Add(id, false, IsOwn(offset, own)); });
    return a;
  }

  Accesses AllOf(const StmtRef& root) const {
    const ThreadFor* loop = As<ThreadFor>(root);
    const VarId own = loop ? loop->var : kNoId;
    Accesses a;
    VisitStmts({root}, [&](const StmtRef& s) {
      a.AddAll(HeadOf(*s, own));
      // Wider accesses touch the elements of other threads.
      const bool single = As<Store>(s) || As<AtomicElement>(s);
      VisitAccesses(*s, [&](BufferId id, const ExprRef& offset, bool write) {
        const bool product = As<Wgmma>(s) != nullptr;
        if (As<BulkStore>(s)) return a.AddSent(id);
        if (IsShared(module_.buffer(id))) a.Add(id, write, single && IsOwn(offset, own), product);
      });
    });
    return a;
  }

  static bool IsOwn(const ExprRef& offset, VarId own) {
    const VarRef* at = As<VarRef>(offset);
    return own != kNoId && at && at->var == own;
  }

  const Module& module_;
  const Launch& launch_;
  const Varying varying_;
  const PlannedLoops loops_;
  Team team_ = Team::kBlock;
  Buffers planned_;                                     // rings of the loops around
  absl::flat_hash_map<const Stmt*, Accesses> sent_by_;  // by loop: each is walked once for it
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
