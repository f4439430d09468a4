// Expands every tile operation into scalar loops and decodes the grid's axes from the block's
// index.
//
// Tiles stay buffers of their own (plan_arena places them) and nothing waits yet (insert_barriers
// makes it): this pass only says what each thread computes. Which threads exist is one decision of
// two: see lowering.h.
#ifndef TILEJIT_PASSES_LOWER_TILES_H_
#define TILEJIT_PASSES_LOWER_TILES_H_

#include "base/status.h"
#include "base/target.h"
#include "ir/module.h"

namespace tl {

// `may_stage`: results may pass through shared memory so that they leave in wide accesses.
Status LowerTiles(Module& module, const Target& target, bool may_stage);

}  // namespace tl

#endif  // TILEJIT_PASSES_LOWER_TILES_H_
