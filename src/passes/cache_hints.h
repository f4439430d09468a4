// What copies say about how long the L2 cache shall keep what they move (Copy::evict).
#ifndef TILEJIT_PASSES_CACHE_HINTS_H_
#define TILEJIT_PASSES_CACHE_HINTS_H_

#include "base/status.h"
#include "base/target.h"
#include "ir/module.h"

namespace tl {

// A pass, at level Tile: keeps the hints on a target that takes them; else the report says that
// they have no effect, once.
Status CheckHints(Module& module, const Target& target);

}  // namespace tl

#endif  // TILEJIT_PASSES_CACHE_HINTS_H_
