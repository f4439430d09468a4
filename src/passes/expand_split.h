// Turns a split axis into a plain grid axis, the number of the run, and a loop over the items that
// have units in it. `parts(b)` becomes a range computed from the same sums of counts, once for all
// loops of a block over the same item.
//
// Every block adds up the counts for itself, its threads together: they are few and stay in the
// cache, and no launch has to be added in front, which would take longer than they do.
#ifndef TILEJIT_PASSES_EXPAND_SPLIT_H_
#define TILEJIT_PASSES_EXPAND_SPLIT_H_

#include "base/status.h"
#include "base/target.h"
#include "ir/module.h"

namespace tl {

Status ExpandSplit(Module& module, const Target& target);

}  // namespace tl

#endif  // TILEJIT_PASSES_EXPAND_SPLIT_H_
