// Plans how the copies of `pipelined` loops overlap with their computation, and rewrites the loops
// accordingly (pipeline_plan.h says what a plan is). Level Selected (or Tile) to Planned: no
// pipelined loop is left.
//
// A copy may start early if it fills a whole shared tile from a tensor that the launch does not
// write, the tile is filled by nothing else in the loop and used only there and behind the copy,
// and where it reads from is known before the earlier iterations have run. Several copies that fill
// a part each, and all of the tile together, count as one; `unrolled` loops that do nothing but
// copy are their iterations. The tiles of such copies become a ring: they get a leading dim of
// `stages` slots, fewer where memory is short. Every other copy stays where it stands, and a note
// in Module::notes says why.
//
// What comes out, for `pipelined j in n stages=3 { copy X[j*8] -> x  … x … }`:
//
//     if 0 < n { copy_async X[0*8] -> x[0] }   async_commit
//     if 1 < n { copy_async X[1*8] -> x[1] }   async_commit
//     fill = 2  use = 0
//     serial j in n {
//       async_wait 1   barrier
//       if j + 2 < n { copy_async X[(j+2)*8] -> x[fill] }   async_commit
//       fill = if fill + 1 == 3 then 0 else fill + 1
//       slot = use
//       … x[slot] …
//       use = if slot + 1 == 3 then 0 else slot + 1
//     }
//
// Behind the loop nothing is under way: the last stages-1 groups are empty, since no iteration was
// left to copy for, and all others have been waited for. Accesses of other threads to the ring's
// slots, though, are ordered only by the next barrier, as with any tile.
//
// Without asynchronous copies the data of the next iteration is loaded into a fragment before the
// computation and stored to the other of two slots behind it; the barrier alone orders that.
//
// Waits count the groups of a thread, whoever made them. A loop inside the loop only adds younger
// ones: the outer wait then waits for more than it must, never for less.
#ifndef TILEJIT_PASSES_PLAN_PIPELINES_H_
#define TILEJIT_PASSES_PLAN_PIPELINES_H_

#include "base/status.h"
#include "base/target.h"
#include "ir/module.h"

namespace tl {

// `shared_budget` as in PlanArena; a ring has at most `max_slots`. INTERNAL if a plan does not
// stand VerifyPlan.
Status PlanPipelines(Module& module, const Target& target, int64_t shared_budget, int max_slots);

}  // namespace tl

#endif  // TILEJIT_PASSES_PLAN_PIPELINES_H_
