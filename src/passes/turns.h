// Groups that take turns (`in_turn`): while one multiplies, the others do what lies between their
// products.
//
// A group waits for its turn at an mbarrier of its own, where the warps of the group before it
// arrive at the end of theirs. The first group's first turn needs no arrival:
//
//     begin:  wait for this group's mbarrier, phase after phase
//     end:    each warp arrives at the next group's
//
// Turns order nothing but time. So they are given up, with a note, where groups would wait for each
// other for good: all that is waited for within a turn must come without the turns of others.
#ifndef TILEJIT_PASSES_TURNS_H_
#define TILEJIT_PASSES_TURNS_H_

#include "base/status.h"
#include "base/target.h"
#include "ir/module.h"

namespace tl {

// Level Planned: makes the mbarriers where groups can take turns; elsewhere turns are dissolved.
Status PlanTurns(Module& module, const Target& target);

// Level Thread, barriers and waits in place: turns become waits and arrivals. They end where their
// last matrix instructions have been issued, before the waits for them.
Status EndTurns(Module& module, const Target& target);

}  // namespace tl

#endif  // TILEJIT_PASSES_TURNS_H_
