#include "passes/pipeline_plan.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tl {

std::string_view Name(Transport t) {
  switch (t) {
    case Transport::kAsyncCopy:
      return "asynchronous copies";
    case Transport::kRegisters:
      return "registers";
    case Transport::kBoxes:
      return "boxes";
  }
  return "";
}

namespace {

void PlanAsyncCopies(const Ring& ring, Agent& agent) {
  const int ahead = ring.depth - 1 - ring.trailing;
  for (int i = 0; i < ahead; ++i) {
    agent.prologue.push_back({.kind = StepKind::kIssue, .iteration = i});
    agent.prologue.push_back({.kind = StepKind::kCommit});
    agent.prologue.push_back({.kind = StepKind::kNextFill});
  }
  // In iteration t the groups of iterations 0 ... t + ahead - 1 are committed.
  agent.body = {{.kind = StepKind::kWait, .pending = ahead - 1},
                {.kind = StepKind::kBarrier},
                {.kind = StepKind::kIssue, .iteration = ahead},
                {.kind = StepKind::kCommit},
                {.kind = StepKind::kNextFill},
                {.kind = StepKind::kUse},
                {.kind = StepKind::kNextUse}};
}

void PlanBoxes(const Ring& ring, Agent& agent) {
  const int ahead = ring.depth - 1 - ring.trailing;
  for (int i = 0; i < ahead; ++i) {
    agent.prologue.push_back({.kind = StepKind::kIssue, .iteration = i});
    agent.prologue.push_back({.kind = StepKind::kNextFill});
  }
  agent.body = {{.kind = StepKind::kAwait},
                {.kind = StepKind::kBarrier},
                {.kind = StepKind::kIssue, .iteration = ahead},
                {.kind = StepKind::kNextFill},
                {.kind = StepKind::kUse},
                {.kind = StepKind::kNextUse}};
}

void PlanRegisters(int depth, Agent& agent) {
  for (int i = 0; i < depth - 1; ++i) {
    agent.prologue.push_back({.kind = StepKind::kFetch, .iteration = i});
    agent.prologue.push_back({.kind = StepKind::kPut, .iteration = i});
    agent.prologue.push_back({.kind = StepKind::kNextFill});
  }
  agent.body = {{.kind = StepKind::kBarrier},  {.kind = StepKind::kFetch, .iteration = depth - 1},
                {.kind = StepKind::kUse},      {.kind = StepKind::kPut, .iteration = depth - 1},
                {.kind = StepKind::kNextFill}, {.kind = StepKind::kNextUse}};
}

}  // namespace

LoopPlan MakeLoopPlan(Ring ring) {
  Agent agent{"threads", {}, {}};
  if (ring.transport == Transport::kAsyncCopy) {
    PlanAsyncCopies(ring, agent);
  } else if (ring.transport == Transport::kBoxes) {
    PlanBoxes(ring, agent);
  } else {
    PlanRegisters(ring.depth, agent);
  }
  LoopPlan plan;
  plan.rings.push_back(std::move(ring));
  plan.agents.push_back(std::move(agent));
  return plan;
}

namespace {

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
      case StepKind::kAwait:
        if (r.slots[r.use].phase == Phase::kFlying) r.slots[r.use].phase = Phase::kArrived;
        return;
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

}  // namespace

Status VerifyPlan(const LoopPlan& plan) {
  if (plan.agents.size() != 1) return absl::InternalError("a plan for other than one agent");
  int depth = 0;
  for (const Ring& r : plan.rings) {
    depth = std::max(depth, r.depth);
    if (r.depth < 1 || r.tiles.empty()) return absl::InternalError("a ring without slots or tiles");
    if (r.trailing > 0 && r.depth < 2 + r.trailing) {
      return absl::InternalError("a ring with too few slots for uses that trail");
    }
  }
  for (int trips = 0; trips <= 2 * depth + 1; ++trips) {
    TL_RETURN_IF_ERROR(Simulation(plan).Run(trips, 2));
  }
  return absl::OkStatus();
}

}  // namespace tl
