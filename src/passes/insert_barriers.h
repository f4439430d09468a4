// Makes threads of a block wait for each other wherever one may touch what another has touched.
//
// Between two barriers of a team, every access is assumed to be made by a different thread. The
// pass follows the statements in order with the set of accesses since the last barrier and puts a
// barrier before the first one that conflicts (same memory, at least one writes). Loops repeat, so
// what their body leaves behind is compared with what it does up to its first barrier.
//
// A barrier stands only where all threads of the team come by: loops over threads or slots, and
// conditions that differ between threads, are taken as a whole. So is a condition that reads a
// tensor which the launch writes, since other blocks may write between two threads' reads;
// lower_tiles leaves none (Lowering::Lowered).
//
// Rings (Buffer::ring). In the innermost loop that both fills and reads a ring, the plan of the
// loop orders these accesses by waits and barriers of its own (pipeline_plan.h), and none is added
// for them. Everywhere else they count like others: what the last iterations have read is still
// pending behind the loop, so that the next loop's tiles in the same memory, or the next pass of a
// loop around, wait. Two fills never conflict: a fill in iteration t is for a later iteration,
// whose barrier comes after it.
//
// Slots that are handed back (Buffer::handed_back) are in nobody else's way: their plan orders all
// accesses to them by mbarriers, wherever they stand. One lane arrives for what its warp's products
// have read; where threads have read the slot themselves, they meet before. So are a channel's
// slots, which its groups acquire and release. Another tile in the same memory waits for both as
// for any.
//
// A barrier says nothing about asynchronous moves, but none is under way where this pass relies on
// one: inside the planned loop the plan waits before its barrier, and behind the loop all moves
// have been waited for (plan_pipelines.h). In between, the ring's memory belongs to no other tile,
// since the ring is in use from the first fill to the end of the loop.
//
// The pass also dissolves `on g`: the group's number is the launch's `group`, and the block waits
// at its end. A block index that is reused by the emitter (persistent blocks) needs a barrier of
// its own.
#ifndef TILEJIT_PASSES_INSERT_BARRIERS_H_
#define TILEJIT_PASSES_INSERT_BARRIERS_H_

#include "base/status.h"
#include "base/target.h"
#include "ir/module.h"

namespace tl {

Status InsertBarriers(Module& module, const Target& target);

}  // namespace tl

#endif  // TILEJIT_PASSES_INSERT_BARRIERS_H_
