// How the copies of a loop run ahead of its computation, as data: what is decided
// (plan_loops.cc) is checked here before anything is rewritten by it.
//
// A ring is one or more tiles with `depth` slots each. The copies of iteration i fill one slot of
// every tile of the ring while older iterations are computed with. Example, a ring of three slots
// filled by asynchronous copies:
//
//     prologue:  issue 0, commit, next slot   issue 1, commit, next slot
//     body t:    wait 1, barrier, issue t+2, commit, next slot   use   free the slot
//
// Every step on iteration t+n happens only if the loop has that iteration, except commits: empty
// groups are counted too, so that the number in `wait` is a constant. Slots are counted, one
// counter for filling and one for using, and never derived from the loop's index.
//
// With `trailing` uses one fewer iteration is ahead: the slot that is filled in iteration t is that
// of t-2, whose use has ended within t-1.
//
// What the barrier of iteration t is for: the moves that each thread has waited for are seen by all
// of them, and the slot that is filled next is the one that iteration t-1 used, which all have
// left.
//
// Boxes need none. Each slot has two mbarriers: `filled`, at which its boxes arrive, and `free`, at
// which all warps arrive when their use of it is over:
//
//     prologue:  acquire, issue 0, next slot   acquire, issue 1, next slot
//     body t:    await   acquire, issue t+2, next slot   use   release
//
// Here the slot to fill moves on only where one is filled, so that the counters, made once for the
// launch, go on from one run of the loop to the next, whatever its number of iterations.
#ifndef TILEJIT_PASSES_PIPELINE_PLAN_H_
#define TILEJIT_PASSES_PIPELINE_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "ir/module.h"

namespace tl {

// How data comes from global memory into a slot.
enum class Transport : uint8_t {
  kAsyncCopy,  // moves that run beside the threads, waited for by groups
  kRegisters,  // loaded into registers before the computation, stored to the slot after it
  kBoxes,      // moved by one thread, waited for at an mbarrier of the slot
};
std::string_view Name(Transport t);

struct Ring {
  std::vector<BufferId> tiles;
  int depth = 1;
  Transport transport = Transport::kAsyncCopy;
  // So many iterations later a use may still read its slot: instructions that run beside the
  // threads are waited for then.
  int trailing = 0;
  // The loop stands in another one: its slots may hold data of an earlier run.
  bool again = false;
  // Blocks that fill their slots together, each a share of every one's: a slot is free when the
  // threads of all of them have given it back, and filled when all shares are there. With boxes and
  // a producer only.
  int blocks = 1;
};

enum class StepKind : uint8_t {
  kIssue,     // asynchronous copies of an iteration into the slot to fill
  kCommit,    // closes the group of the moves issued since the last commit
  kWait,      // for all groups but the `pending` newest
  kAwait,     // for the slot to use to be filled: its mbarrier
  kAcquire,   // waits for the slot to fill to be free, if there is such an iteration
  kRelease,   // the slot of an iteration that is over is free, as far as this thread knows
  kFetch,     // copies of an iteration into registers
  kPut,       // the registers into the slot to fill
  kBarrier,   // all threads of the loop's team
  kUse,       // the computation of the iteration itself, reading the slot to use of every ring
  kNextFill,  // the slot to fill is the next one; with boxes only if there is such an iteration
  kNextUse,   // the slot to use is the next one
};

struct Step {
  StepKind kind;
  int ring = 0;
  // Prologue: number of the iteration. Body: how far ahead of the one being computed. Epilogue: how
  // far ahead of the one behind the last.
  int iteration = 0;
  int pending = 0;  // kWait
};

// Who runs steps: all threads of the loop's team do everything, or producers fill and the others
// use:
//
//     producer:  acquire, issue t, next slot
//     threads:   await   use   release
struct Agent {
  std::string name;
  std::vector<Step> prologue, body, epilogue;
};

struct LoopPlan {
  std::vector<Ring> rings;
  std::vector<Agent> agents;
};

// The plan for one ring; `producer`: boxes are asked for by an agent of its own, the first one.
LoopPlan MakeLoopPlan(Ring ring, bool producer = false);

// Runs the plan for every number of iterations from 0 to 2 * depth + 1, each twice in a row as in a
// loop around the loop. INTERNAL if an iteration would read a slot that does not hold its data, a
// slot would be filled while some thread may still read it, a wait would leave moves out that were
// never committed, threads would wait for each other for good, or something were in flight after
// the loop.
//
// Without mbarriers one barrier is assumed between the two passes, which insert_barriers makes: the
// second prologue fills slots that the first pass has read.
Status VerifyPlan(const LoopPlan& plan);

}  // namespace tl

#endif  // TILEJIT_PASSES_PIPELINE_PLAN_H_
