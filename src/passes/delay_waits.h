// Matrix instructions that run beside the threads are waited for where their result is needed, not
// where they are issued.
#ifndef TILEJIT_PASSES_DELAY_WAITS_H_
#define TILEJIT_PASSES_DELAY_WAITS_H_

#include "base/status.h"
#include "base/target.h"
#include "ir/module.h"

namespace tl {

// Level Thread, barriers and fences in place. A wait moves down within its block, past statements
// that touch neither the registers nor the tiles of what it waits for and tell nobody about them.
// Where it passes younger groups it leaves those under way:
//
//     s = q k; wait 0; o += p v; wait 0; f(s); g(o)  ->  s = q k; o += p v; wait 1; f(s); wait 0;
//     g(o)
Status DelayWaits(Module& module, const Target& target);

}  // namespace tl

#endif  // TILEJIT_PASSES_DELAY_WAITS_H_
