// Makes threads of a block wait for each other wherever one may touch what another has touched.
//
// Between two barriers of a team, every access is assumed to be made by a different thread. The
// pass follows the statements in order with the set of accesses since the last barrier and puts a
// barrier before the first one that conflicts (same memory, at least one writes). Loops repeat, so
// what their body leaves behind is compared with what it does first. Control flow around tile
// operations is the same in all threads of the team, so a barrier may stand anywhere in it.
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
