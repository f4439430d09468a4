#include "passes/await_stores.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "ir/visit.h"
#include "passes/plan_arena.h"

namespace tl {
namespace {

using Buffers = absl::flat_hash_set<BufferId>;

bool RunsAtLeastOnce(const For& loop) {
  const int64_t *begin = IntValue(loop.begin), *end = IntValue(loop.end);
  return begin && end && *begin < *end;
}

bool HasStores(const Block& block) {
  bool found = false;
  VisitStmts(block, [&](const StmtRef& s) { found = found || As<BulkStore>(s); });
  return found;
}

class Awaiter {
 public:
  Awaiter(const Module& module, const Launch& launch)
      : m_(module), team_(launch.owns == kNoId ? Team::kBlock : Team::kGroup) {}

  Block Run(const Block& body) {
    Buffers sent;
    Block out = Walk(body, sent, {});
    out.push_back(WaitOfSender(BulkSync::Op::kWait));
    return out;
  }

 private:
  StmtRef WaitOfSender(BulkSync::Op op) const {
    return MakeStmt(OnFirstThread{team_, {MakeStmt(BulkSync{op})}});
  }
  bool IsBarrier(const StmtRef& s) const {
    const Barrier* barrier = As<Barrier>(s);
    return barrier && (barrier->team == team_ || barrier->team == Team::kBlock ||
                       barrier->team == Team::kEveryone);
  }

  // `sent`: tiles whose boxes may yet have to be read, in and out. `behind`: what is written behind
  // the block, up to the next barrier.
  Block Walk(const Block& block, Buffers& sent, const Buffers& behind) {
    Block out;
    for (size_t i = 0; i < block.size(); ++i) {
      const StmtRef& s = block[i];
      Buffers next;
      if (!CollectFrom(block, i + 1, next)) next.insert(behind.begin(), behind.end());
      if (const For* loop = As<For>(s)) {
        out.push_back(WalkLoop(s, *loop, sent, std::move(next)));
      } else if (const If* branch = As<If>(s)) {
        out.push_back(WalkIf(s, *branch, sent, next));
      } else {
        if (IsBarrier(s) && Meet(sent, next)) {
          out.push_back(WaitOfSender(BulkSync::Op::kWaitRead));
          sent.clear();
        }
        NoteStores(s, sent);
        out.push_back(s);
      }
    }
    return out;
  }

  StmtRef WalkLoop(const StmtRef& s, const For& loop, Buffers& sent, Buffers behind) {
    (void)CollectFrom(loop.body, 0, behind);  // the next iteration comes behind this one
    Buffers inside = sent;
    for (const StmtRef& inner : loop.body) NoteStores(inner, inside);
    For out = loop;
    out.body = Walk(loop.body, inside, behind);
    sent.insert(inside.begin(), inside.end());
    return MakeStmt(std::move(out), s->span, s->id);
  }

  StmtRef WalkIf(const StmtRef& s, const If& branch, Buffers& sent, const Buffers& behind) {
    Buffers other = sent;
    If out{branch.cond, Walk(branch.then_body, sent, behind), {}};
    out.else_body = Walk(branch.else_body, other, behind);
    sent.insert(other.begin(), other.end());
    return MakeStmt(std::move(out), s->span, s->id);
  }

  static void NoteStores(const StmtRef& root, Buffers& sent) {
    VisitStmts({root}, [&](const StmtRef& s) {
      if (const BulkStore* store = As<BulkStore>(s)) sent.insert(store->src);
    });
  }

  // Adds what is written up to the next barrier. True: there is one on every way.
  bool CollectFrom(const Block& block, size_t begin, Buffers& written) const {
    for (size_t i = begin; i < block.size(); ++i) {
      if (Collect(block[i], written)) return true;
    }
    return false;
  }
  bool Collect(const StmtRef& s, Buffers& written) const {
    if (IsBarrier(s)) return true;
    if (As<OnProducer>(s)) return false;  // its plan orders what it fills
    if (const If* branch = As<If>(s)) {
      const bool yes = CollectFrom(branch->then_body, 0, written);
      return CollectFrom(branch->else_body, 0, written) && yes;
    }
    VisitAccesses(*s, [&](BufferId id, const ExprRef&, bool write) {
      if (write && m_.buffer(id).arena_offset >= 0) written.insert(id);
    });
    const For* loop = As<For>(s);
    bool stops = false;
    VisitBlocks(*s, [&](const Block& b) { stops = CollectFrom(b, 0, written); });
    return stops && loop && RunsAtLeastOnce(*loop);
  }

  bool Meet(const Buffers& sent, const Buffers& written) const {
    return absl::c_any_of(sent, [&](BufferId a) {
      return absl::c_any_of(written,
                            [&](BufferId b) { return ShareMemory(m_.buffer(a), m_.buffer(b)); });
    });
  }

  const Module& m_;
  const Team team_;  // whose first thread sends: boxes leave outside of `on`, or for a tile's owner
};

}  // namespace

Status AwaitStores(Module& module, const Target&) {
  for (Launch& launch : module.launches) {
    if (HasStores(launch.body)) launch.body = Awaiter(module, launch).Run(launch.body);
  }
  return absl::OkStatus();
}

}  // namespace tl
