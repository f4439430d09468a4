// Persistent launches: the blocks that a device holds at the same time go through the tiles of the
// grid, each through every n-th one, where n is the number of blocks.
#ifndef TILEJIT_PASSES_EXPAND_PERSISTENT_H_
#define TILEJIT_PASSES_EXPAND_PERSISTENT_H_

#include "base/status.h"
#include "base/target.h"
#include "ir/module.h"

namespace tl {

// Level Tile, split axes expanded. The body of each persistent launch becomes
//
//     tiles = product of the axes' extents
//     serial i in ceildiv(tiles - resident, grid) {
//       block = resident + i*grid
//       …
//     }
//
// where `block` takes the place of the block's number: the axes are decoded from it (lower_tiles).
// Groups that own tiles share them out among themselves (own_tiles.h).
// The launch does all the work with any number of blocks. Elsewhere than on GPUs it stays as it is:
// there a block is no more than a call.
Status ExpandPersistent(Module& module, const Target& target);

}  // namespace tl

#endif  // TILEJIT_PASSES_EXPAND_PERSISTENT_H_
