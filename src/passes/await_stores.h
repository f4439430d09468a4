// Boxes leave shared memory in their own time: who has sent them waits, before their memory is
// written again and before the block ends.
#ifndef TILEJIT_PASSES_AWAIT_STORES_H_
#define TILEJIT_PASSES_AWAIT_STORES_H_

#include "base/status.h"
#include "base/target.h"
#include "ir/module.h"

namespace tl {

// Level Thread, barriers in place, of which one stands between a BulkStore and whatever writes its
// memory next: the last such barrier gets a wait of the storing thread in front of it, until the
// boxes have been read. At the launch's end that thread waits until all are written.
Status AwaitStores(Module& module, const Target& target);

}  // namespace tl

#endif  // TILEJIT_PASSES_AWAIT_STORES_H_
