// Replays lagged bodies: `lag k` becomes a guarded copy of its body in the loop and one in a short
// loop behind it, for the last k iterations.
//
// What the body replays (tiles that a copy from a tensor fills in the loop, values defined in it)
// is kept in a ring of k slots beside the present value: the body runs on the oldest slot, which
// then takes the present value. The ring starts with the loop, so nested loops and `down` need
// nothing. Tiles keep their one present value everywhere else. `in_turn` becomes two marks on the
// way (Turn).
#ifndef TILEJIT_PASSES_EXPAND_LAG_H_
#define TILEJIT_PASSES_EXPAND_LAG_H_

#include "base/status.h"
#include "base/target.h"
#include "ir/module.h"

namespace tl {

Status ExpandLag(Module& module, const Target& target);

}  // namespace tl

#endif  // TILEJIT_PASSES_EXPAND_LAG_H_
