// Instructions that read shared tiles in place see memory through another way than loads and stores
// of threads do (the async proxy of PTX). A thread that has written such a tile fences before the
// barrier that tells others.
#ifndef TILEJIT_PASSES_FENCE_PROXIES_H_
#define TILEJIT_PASSES_FENCE_PROXIES_H_

#include "base/status.h"
#include "base/target.h"
#include "ir/module.h"

namespace tl {

// Level Thread, barriers in place: a ProxyFence before every barrier that may stand between a write
// to a tile that is read in place (by products, or to leave in boxes) and that reading, or between
// a write to a tile and boxes that fill its memory as another tile's.
Status FenceProxies(Module& module, const Target& target);

}  // namespace tl

#endif  // TILEJIT_PASSES_FENCE_PROXIES_H_
