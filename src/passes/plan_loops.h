// The plans of a launch's pipelined loops: what copies run ahead, through rings of which tiles, how
// many slots there is memory for, and who fills them. Nothing but notes, and the launch's
// producers, is changed by it; plan_pipelines.h rewrites the loops.
#ifndef TILEJIT_PASSES_PLAN_LOOPS_H_
#define TILEJIT_PASSES_PLAN_LOOPS_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/status.h"
#include "base/target.h"
#include "ir/module.h"
#include "passes/early_copies.h"
#include "passes/pipeline_plan.h"

namespace tl {

// What a lag of one iteration replays: `lag` would be a copy of the ring's `tile` of the iteration
// before. The slot itself serves where the ring has one more.
struct KeptTile {
  BufferId tile, lag;
};

struct PlannedLoop {
  LoopCopies copies;
  LoopPlan plan;
  BufferId trailing = kNoId;  // the sum of the product that runs on into the next iteration
  std::vector<KeptTile> kept;
  // Copy::together of what fills these tiles.
  absl::flat_hash_map<BufferId, unsigned> together;
};
using PlannedLoops = absl::flat_hash_map<VarId, PlannedLoop>;

// By the loops' variables. `limit`: bytes of on-chip memory, 0: none; a ring has at most
// `max_slots`.
StatusOr<PlannedLoops> PlanLoops(Module& module, const Target& target, int64_t limit, int max_slots,
                                 Launch& launch);

// Of a block, producers aside.
int WarpsOf(const Launch& launch, const Target& target);

}  // namespace tl

#endif  // TILEJIT_PASSES_PLAN_LOOPS_H_
