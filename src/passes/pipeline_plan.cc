#include "passes/pipeline_plan.h"

#include <utility>

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

void Refill(int iteration, bool acquire, std::vector<Step>& steps) {
  if (acquire) steps.push_back({.kind = StepKind::kAcquire, .iteration = iteration});
  steps.push_back({.kind = StepKind::kIssue, .iteration = iteration});
  steps.push_back({.kind = StepKind::kNextFill, .iteration = iteration});
}

// A slot is given back when its use has ended; the last ones only matter to another run.
void PlanUses(const Ring& ring, Agent& agent) {
  agent.body.push_back({.kind = StepKind::kUse});
  agent.body.push_back({.kind = StepKind::kRelease, .iteration = -ring.trailing});
  agent.body.push_back({.kind = StepKind::kNextUse});
  for (int i = ring.trailing; ring.again && i > 0; --i) {
    agent.epilogue.push_back({.kind = StepKind::kRelease, .iteration = -i});
  }
}

void PlanBoxes(const Ring& ring, Agent& agent) {
  const int ahead = ring.depth - 1 - ring.trailing;
  for (int i = 0; i < ahead; ++i) Refill(i, ring.again, agent.prologue);
  agent.body.push_back({.kind = StepKind::kAwait});
  Refill(ahead, true, agent.body);
  PlanUses(ring, agent);
}

void PlanProducer(const Ring& ring, Agent& producer, Agent& user) {
  Refill(0, true, producer.body);
  user.body.push_back({.kind = StepKind::kAwait});
  PlanUses(ring, user);
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

LoopPlan MakeLoopPlan(Ring ring, bool producer) {
  Agent agent{"threads", {}, {}, {}};
  LoopPlan plan;
  if (producer) {
    PlanProducer(ring, plan.agents.emplace_back(Agent{"the producer", {}, {}, {}}), agent);
  } else if (ring.transport == Transport::kAsyncCopy) {
    PlanAsyncCopies(ring, agent);
  } else if (ring.transport == Transport::kBoxes) {
    PlanBoxes(ring, agent);
  } else {
    PlanRegisters(ring.depth, agent);
  }
  plan.rings.push_back(std::move(ring));
  plan.agents.push_back(std::move(agent));
  return plan;
}

}  // namespace tl
