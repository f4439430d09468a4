// Runs plans step by step (see pipeline_plan.h).
#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "passes/pipeline_plan.h"

namespace tl {
namespace {

// ---- Barriers
//
// All threads run the same steps, and only barriers tie one to another. So it is enough to follow
// one thread and to note what may be different in others: `epoch` counts barriers, and two things
// that happen in one epoch have no order between threads.
class Simulation {
 public:
  explicit Simulation(const LoopPlan& plan) : plan_(plan), state_(plan.rings.size()) {
    for (size_t r = 0; r < state_.size(); ++r) state_[r].slots.resize(plan.rings[r].depth);
  }

  Status Run(int trips, int passes) {
    trips_ = trips;
    for (int pass = 0; pass < passes && ok(); ++pass) {
      Barrier();
      RunPass();
      // Iterations of another pass are other iterations.
      first_ += trips;
    }
    if (ok()) return absl::OkStatus();
    return absl::InternalError(absl::StrCat("with ", trips, " iterations, ", fault_));
  }

 private:
  enum class Phase : uint8_t {
    kNothing,
    kFlying,   // moves under way
    kArrived,  // in place for the thread that made them
    kVisible,  // for all threads
  };
  struct Slot {
    Phase phase = Phase::kNothing;
    int iteration = -1;
    int group = -1;       // of the moves
    int read_epoch = -1;  // of the last use
    bool trails = false;  // the last use runs on
  };
  struct RingState {
    std::vector<Slot> slots;
    int fill = 0, use = 0;
    int fetched = -1;  // iteration in registers
  };

  bool ok() const { return fault_.empty(); }
  void Fail(std::string what) {
    if (ok()) fault_ = std::move(what);
  }

  void RunPass() {
    const Agent& agent = plan_.agents[0];
    for (RingState& r : state_) r.fill = r.use = 0;
    for (const Step& s : agent.prologue) Do(s, s.iteration);
    for (now_ = 0; now_ < trips_ && ok(); ++now_) {
      for (const Step& s : agent.body) Do(s, now_ + s.iteration);
    }
    if (uses_ != trips_) Fail("not every iteration is computed once");
    uses_ = 0;
    for (RingState& r : state_) {
      for (Slot& slot : r.slots) {
        if (slot.phase == Phase::kFlying) Fail("copies are under way after the loop");
        slot.trails = false;  // the loop is followed by a wait
      }
    }
  }

  void Do(const Step& s, int iteration) {
    RingState& r = state_[s.ring];
    const int depth = static_cast<int>(r.slots.size());
    switch (s.kind) {
      case StepKind::kIssue:
        if (iteration < trips_) Fill(r, iteration, Phase::kFlying);
        return;
      case StepKind::kCommit:
        ++groups_;
        return;
      case StepKind::kWait:
        return Wait(s.pending);
      case StepKind::kFetch:
        if (iteration < trips_) r.fetched = iteration;
        return;
      case StepKind::kPut:
        if (iteration < trips_) Put(r, iteration);
        return;
      case StepKind::kBarrier:
        return Barrier();
      case StepKind::kUse:
        ++uses_;
        for (size_t i = 0; i < state_.size(); ++i) Use(state_[i], plan_.rings[i].trailing);
        return;
      case StepKind::kNextFill:
        r.fill = r.fill + 1 == depth ? 0 : r.fill + 1;
        return;
      case StepKind::kNextUse:
        r.use = r.use + 1 == depth ? 0 : r.use + 1;
        return;
      case StepKind::kAwait:
      case StepKind::kAcquire:
      case StepKind::kRelease:
        return Fail("there are no mbarriers");
    }
  }

  void Fill(RingState& r, int iteration, Phase phase) {
    Slot& slot = r.slots[r.fill];
    if (slot.read_epoch == epoch_ || slot.trails) {
      Fail(absl::StrCat("slot ", r.fill, " is filled for iteration ", iteration,
                        " while iteration ", slot.iteration - first_, " may still read it"));
    }
    if (slot.phase == Phase::kFlying || slot.phase == Phase::kArrived) {
      Fail(absl::StrCat("slot ", r.fill, " is filled twice at a time"));
    }
    slot.phase = phase;
    slot.iteration = first_ + iteration;
    slot.group = groups_;
  }

  void Put(RingState& r, int iteration) {
    if (r.fetched != iteration) {
      Fail(absl::StrCat("registers hold iteration ", r.fetched, ", not ", iteration));
    }
    Fill(r, iteration, Phase::kArrived);
  }

  // Group g is complete if at least `pending` younger ones are committed.
  void Wait(int pending) {
    for (RingState& r : state_) {
      for (Slot& slot : r.slots) {
        if (slot.phase != Phase::kFlying) continue;
        if (slot.group == groups_) Fail("a wait leaves out moves that no group holds");
        if (slot.group < groups_ - pending) slot.phase = Phase::kArrived;
      }
    }
  }

  void Barrier() {
    ++epoch_;
    for (RingState& r : state_) {
      for (Slot& slot : r.slots) {
        if (slot.phase == Phase::kArrived) slot.phase = Phase::kVisible;
      }
    }
  }

  void Use(RingState& r, int trailing) {
    Slot& slot = r.slots[r.use];
    if (slot.iteration != first_ + now_) {
      Fail(absl::StrCat("iteration ", now_, " reads slot ", r.use, ", which holds ",
                        slot.iteration < first_
                            ? std::string("nothing of this loop")
                            : absl::StrCat("iteration ", slot.iteration - first_)));
    } else if (slot.phase == Phase::kFlying) {
      Fail(absl::StrCat("iteration ", now_, " reads slot ", r.use, " before its copies are done"));
    } else if (slot.phase == Phase::kArrived) {
      Fail(absl::StrCat("iteration ", now_, " reads slot ", r.use,
                        " without a barrier behind the copies of other threads"));
    }
    slot.trails = trailing > 0;
    slot.read_epoch = epoch_;
    if (trailing == 0 || now_ < trailing) return;
    // It ends within this use.
    const int depth = static_cast<int>(r.slots.size());
    Slot& over = r.slots[(r.use + depth - trailing) % depth];
    over.trails = false;
    over.read_epoch = epoch_;
  }

  const LoopPlan& plan_;
  std::vector<RingState> state_;
  int trips_ = 0;
  int now_ = 0;     // iteration of this pass
  int first_ = 0;   // iterations of earlier passes
  int groups_ = 0;  // committed so far
  int uses_ = 0;    // of this pass
  int epoch_ = 0;
  std::string fault_;
};

// ---- Mbarriers
//
// Two threads of every agent, of which the first fills; of each block, where several fill their
// slots together. Each knows of what the others have done up to some time of theirs, by waiting at
// mbarriers; so it is enough to let them run in a few orders.
enum class Turns : uint8_t {
  kFirst,
  kLast,
  kEach
};  // whose turn it is: who comes first, last, all

class Handover {
 public:
  Handover(const LoopPlan& plan, int trips, int passes) : plan_(plan), trips_(trips) {
    for (const Ring& r : plan.rings) blocks_ = std::max(blocks_, r.blocks);
    for (int block = 0; block < blocks_; ++block) {
      for (const Agent& agent : plan.agents) AddThreads(agent, block, passes);
    }
    for (Thread& t : threads_) t.known.resize(threads_.size(), 0);
    for (int block = 0; block < blocks_; ++block) {
      for (const Ring& r : plan.rings) {
        RingState& state = rings_.emplace_back();
        state.slots.resize(r.depth);
        for (Slot& slot : state.slots) slot.readers.resize(threads_.size(), kNotAtAll);
      }
    }
  }

  Status Run(Turns turns) {
    while (ok() && Turn(turns)) {
    }
    for (const Thread& t : threads_) {
      if (t.next < t.todo.size()) return Report(WhoWaits());
      if (t.uses_left != 0) Fail("not every iteration is computed once");
    }
    for (const RingState& r : rings_) {
      for (const Slot& slot : r.slots) {
        if (slot.shares > 0 || (slot.iteration >= 0 && !slot.awaited)) {
          Fail("copies are under way after the loop");
        }
      }
    }
    return ok() ? absl::OkStatus() : Report(fault_);
  }

 private:
  static constexpr int kThreadsOfAgent = 2, kNotAtAll = -1;
  static constexpr int kStill = std::numeric_limits<int>::max();
  using Times = std::vector<int>;  // by thread

  struct Mbarrier {
    int phase = 0;
    std::vector<const void*> arrived;  // threads, in this phase
    Times gathered, told;              // in this phase, in those before
  };
  struct Slot {
    int iteration = -1;
    bool awaited = false;
    int shares = 0;  // that are there, of the next fill
    Mbarrier filled, free;
    Times readers;  // when each thread has read it, in its own time; kStill: it still may
  };
  struct RingState {
    std::vector<Slot> slots;
  };
  struct Position {
    int slot = 0, round = 0;
    int parity() const { return round % 2; }
    void Next(int depth) {
      if (++slot < depth) return;
      slot = 0;
      ++round;
    }
  };
  struct Instance {
    Step step;
    int iteration;  // of all passes
    bool exists;
  };
  struct Places {
    Position fill, use;
    int seen = -1;  // iteration whose copies this thread has waited for
    // How often each slot was filled, or given back, by this thread.
    std::vector<int> filled, released;
  };
  struct Thread {
    const Agent* agent = nullptr;
    int block = 0;
    bool fills = false;
    std::vector<Instance> todo;
    size_t next = 0;
    int uses_left = 0;
    std::vector<Places> at;  // by ring
    Times known;             // its own: the present
  };

  bool ok() const { return fault_.empty(); }
  void Fail(std::string what) {
    if (ok()) fault_ = std::move(what);
  }
  Status Report(std::string_view fault) const {
    return absl::InternalError(absl::StrCat("with ", trips_, " iterations, ", fault));
  }

  void AddThreads(const Agent& agent, int block, int passes) {
    const auto uses = [](const Step& s) { return s.kind == StepKind::kUse; };
    const bool user = absl::c_any_of(agent.body, uses);
    users_ += user && block == 0 ? kThreadsOfAgent : 0;
    for (int i = 0; i < kThreadsOfAgent; ++i) {
      Thread& t = threads_.emplace_back();
      t.agent = &agent;
      t.block = block;
      t.fills = i == 0;
      for (const Ring& r : plan_.rings) {
        t.at.push_back({.filled = Times(r.depth), .released = Times(r.depth)});
      }
      for (int pass = 0; pass < passes; ++pass) AddPass(agent, pass * trips_, t.todo);
      t.uses_left = user ? passes * trips_ : 0;
    }
  }
  void AddPass(const Agent& agent, int first, std::vector<Instance>& out) const {
    const auto add = [&](const Step& s, int iteration) {
      out.push_back({s, first + iteration, iteration >= 0 && iteration < trips_});
    };
    for (const Step& s : agent.prologue) add(s, s.iteration);
    for (int now = 0; now < trips_; ++now) {
      for (const Step& s : agent.body) add(s, now + s.iteration);
    }
    for (const Step& s : agent.epilogue) add(s, trips_ + s.iteration);
  }

  RingState& RingOf(int block, size_t ring) { return rings_[block * plan_.rings.size() + ring]; }
  // The slots of this number that the thread's block fills, or gives back: of all blocks, or its
  // own.
  template <typename F>
  void ForEachSlot(const Thread& t, size_t ring, int slot, F visit) {
    const bool all = plan_.rings[ring].blocks > 1;
    for (int block = all ? 0 : t.block; block <= (all ? blocks_ - 1 : t.block); ++block) {
      visit(RingOf(block, ring).slots[slot]);
    }
  }

  // False: nobody can go on.
  bool Turn(Turns turns) {
    bool any = false;
    for (size_t i = 0; i < threads_.size() && ok(); ++i) {
      Thread& t = threads_[turns == Turns::kLast ? threads_.size() - 1 - i : i];
      while (ok() && t.next < t.todo.size() && Do(t, t.todo[t.next])) {
        ++t.next;
        any = true;
        if (turns == Turns::kEach) break;
      }
      if (any && turns != Turns::kEach) return true;
    }
    return any;
  }

  // False: the thread has to wait.
  bool Do(Thread& t, const Instance& i) {
    Places& at = t.at[i.step.ring];
    RingState& r = RingOf(t.block, i.step.ring);
    const int depth = static_cast<int>(r.slots.size());
    switch (i.step.kind) {
      case StepKind::kAcquire:
        if (at.filled[at.fill.slot] > at.fill.round)
          Fail("a slot is waited for and filled already");
        return !i.exists || Wait(t, r.slots[at.fill.slot].free, at.fill.parity() ^ 1);
      case StepKind::kIssue:
        if (i.exists && t.fills) Fill(t, i.step.ring, at.fill.slot, i.iteration);
        if (i.exists) ++at.filled[at.fill.slot];
        return true;
      case StepKind::kNextFill:
        if (i.exists) at.fill.Next(depth);
        return true;
      case StepKind::kAwait:
        // Who fills need not wait any longer: the phase may be over, and the next one too.
        if (at.released[at.use.slot] > at.use.round)
          Fail("a slot is waited for and given back already");
        if (!Wait(t, r.slots[at.use.slot].filled, at.use.parity())) return false;
        r.slots[at.use.slot].awaited = true;
        at.seen = r.slots[at.use.slot].iteration;
        return true;
      case StepKind::kUse:
        --t.uses_left;
        for (size_t ring = 0; ring < plan_.rings.size(); ++ring) Use(t, ring, i.iteration);
        return true;
      case StepKind::kRelease:
        if (i.exists) {
          const int slot = Wrapped(at.use.slot + i.step.iteration, depth);
          ++at.released[slot];
          const int users = users_ * plan_.rings[i.step.ring].blocks;
          ForEachSlot(t, i.step.ring, slot, [&](Slot& s) { Arrive(t, s.free, users); });
          ++t.known[IndexOf(t)];
        }
        return true;
      case StepKind::kNextUse:
        at.use.Next(depth);
        return true;
      default:
        Fail("a step that goes with barriers");
        return true;
    }
  }

  static int Wrapped(int slot, int depth) { return (slot % depth + depth) % depth; }

  bool Wait(Thread& t, const Mbarrier& m, int parity) {
    if (m.phase % 2 == parity) return false;
    for (size_t i = 0; i < m.told.size(); ++i) t.known[i] = std::max(t.known[i], m.told[i]);
    return true;
  }

  void Arrive(Thread& t, Mbarrier& m, int users) {
    if (absl::c_linear_search(m.arrived, &t)) return Fail("a slot is given back twice");
    Gather(t, m);
    if (static_cast<int>(m.arrived.size()) == users) EndPhase(m);
  }
  void Gather(Thread& t, Mbarrier& m) {
    m.arrived.push_back(&t);
    m.gathered.resize(threads_.size(), 0);
    for (size_t i = 0; i < t.known.size(); ++i) {
      m.gathered[i] = std::max(m.gathered[i], t.known[i]);
    }
  }
  static void EndPhase(Mbarrier& m) {
    ++m.phase;
    m.told = std::exchange(m.gathered, {});
    m.arrived.clear();
  }
  size_t IndexOf(const Thread& t) const { return static_cast<size_t>(&t - threads_.data()); }

  // This block's share of every slot; what others have done is not told by theirs of its own.
  void Fill(Thread& t, size_t ring, int number, int iteration) {
    Slot& own = RingOf(t.block, ring).slots[number];
    Gather(t, own.filled);
    ++t.known[IndexOf(t)];
    const int shares = plan_.rings[ring].blocks;
    ForEachSlot(t, ring, number, [&](Slot& slot) {
      CheckMayFill(t, slot, iteration);
      slot.iteration = iteration;
      slot.awaited = false;
      if (++slot.shares < shares) return;
      absl::c_fill(slot.readers, kNotAtAll);
      slot.shares = 0;
      EndPhase(slot.filled);
    });
  }
  void CheckMayFill(const Thread& t, const Slot& slot, int iteration) {
    for (size_t i = 0; i < threads_.size(); ++i) {
      const int read = slot.readers[i];
      if (read == kNotAtAll || (i == IndexOf(t) ? read != kStill : read <= t.known[i])) continue;
      Fail(absl::StrCat("iteration ", Number(iteration), " is copied to the slot of iteration ",
                        Number(slot.iteration), ", which ", threads_[i].agent->name,
                        " may still read"));
    }
    const bool more = slot.shares > 0 && slot.iteration == iteration;
    if (slot.iteration >= 0 && !slot.awaited && !more) Fail("a slot is filled twice at a time");
  }

  void Use(Thread& t, size_t ring, int iteration) {
    const int trailing = plan_.rings[ring].trailing;
    std::vector<Slot>& slots = RingOf(t.block, ring).slots;
    const int depth = static_cast<int>(slots.size()), use = t.at[ring].use.slot;
    Slot& slot = slots[use];
    if (slot.iteration != iteration) {
      Fail(absl::StrCat("iteration ", Number(iteration), " reads slot ", use, ", which holds ",
                        slot.iteration < 0 ? std::string("nothing")
                                           : absl::StrCat("iteration ", Number(slot.iteration))));
    }
    if (t.at[ring].seen != iteration) {
      Fail(absl::StrCat("iteration ", Number(iteration), " reads slot ", use,
                        " before its copies are done"));
    }
    slot.readers[IndexOf(t)] = trailing > 0 ? kStill : t.known[IndexOf(t)];
    // What ends within this use, and at the end of the loop.
    const bool last = iteration % trips_ == trips_ - 1;
    for (int i = last ? 0 : trailing; trailing > 0 && i <= trailing; ++i) {
      int& read = slots[Wrapped(use - i, depth)].readers[IndexOf(t)];
      if (read == kStill) read = t.known[IndexOf(t)];
    }
  }

  // As the loop counts them.
  int Number(int iteration) const { return trips_ > 0 ? iteration % trips_ : iteration; }

  std::string WhoWaits() const {
    std::vector<std::string> waits;
    for (const Thread& t : threads_) {
      if (t.next == t.todo.size()) continue;
      const Instance& i = t.todo[t.next];
      const Places& at = t.at[i.step.ring];
      const bool fills = i.step.kind == StepKind::kAcquire;
      waits.push_back(absl::StrCat(
          t.agent->name, " wait", " for slot ", fills ? at.fill.slot : at.use.slot, " to be ",
          fills ? "free" : "filled", " for iteration ", Number(i.iteration)));
    }
    return absl::StrCat("nobody can go on: ", absl::StrJoin(waits, ", "));
  }

  const LoopPlan& plan_;
  const int trips_;
  int blocks_ = 1;
  int users_ = 0;  // threads of a block that read slots
  std::vector<Thread> threads_;
  std::vector<RingState> rings_;  // by block, then by ring
  std::string fault_;
};

Status VerifyHandover(const LoopPlan& plan, int trips) {
  const bool again = absl::c_any_of(plan.rings, [](const Ring& r) { return r.again; });
  for (Turns turns : {Turns::kFirst, Turns::kLast, Turns::kEach}) {
    TL_RETURN_IF_ERROR(Handover(plan, trips, again ? 2 : 1).Run(turns));
  }
  return absl::OkStatus();
}

}  // namespace

Status VerifyPlan(const LoopPlan& plan) {
  const bool mbarriers =
      absl::c_any_of(plan.rings, [](const Ring& r) { return r.transport == Transport::kBoxes; });
  if (plan.agents.size() != 1 && !mbarriers) {
    return absl::InternalError("a plan for other than one agent");
  }
  int depth = 0;
  for (const Ring& r : plan.rings) {
    depth = std::max(depth, r.depth);
    if (r.depth < 1 || r.tiles.empty()) return absl::InternalError("a ring without slots or tiles");
    if (r.blocks > 1 && (plan.agents.size() < 2 || r.transport != Transport::kBoxes)) {
      return absl::InternalError("blocks fill slots together without a producer, or by no boxes");
    }
    if (r.trailing > 0 && r.depth < 2 + r.trailing) {
      return absl::InternalError("a ring with too few slots for uses that trail");
    }
  }
  for (int trips = 0; trips <= 2 * depth + 1; ++trips) {
    TL_RETURN_IF_ERROR(mbarriers ? VerifyHandover(plan, trips) : Simulation(plan).Run(trips, 2));
  }
  return absl::OkStatus();
}

}  // namespace tl
