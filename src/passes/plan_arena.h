// Gives every tile and channel its place in the block's arena (shared memory of a GPU, scratch of a
// CPU).
//
// A tile's content matters from the first to the last statement that touches it, seen from the
// block of statements in which it is allocated: entered again, it is undefined again. Tiles whose
// ranges do not meet share memory. RESOURCE_EXHAUSTED when the sum exceeds the budget.
#ifndef TILEJIT_PASSES_PLAN_ARENA_H_
#define TILEJIT_PASSES_PLAN_ARENA_H_

#include <cstdint>

#include "base/status.h"
#include "base/target.h"
#include "ir/module.h"

namespace tl {

// `shared_budget`: bytes per block; 0: the target's limit.
Status PlanArena(Module& module, const Target& target, int64_t shared_budget);

// Do both have a place, and do these overlap? Tiles that live one after the other may share memory.
bool ShareMemory(const Buffer& a, const Buffer& b);

}  // namespace tl

#endif  // TILEJIT_PASSES_PLAN_ARENA_H_
