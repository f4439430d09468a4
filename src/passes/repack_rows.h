// Rows that no box describes, because their bytes are no multiple of 16, are copied to a workspace
// where they are, by a launch in front of the others. Copies that would come as boxes but for this
// read the workspace instead: reading and writing an operand once costs far less than copying the
// tiles of every block element by element.
//
// Not one of the passes of Lower: what it adds is launched like the program's own, so the service
// runs it on the program that it caches and launches.
//
// Where only the launch knows how long rows are, the workspace is empty, and the launch in front
// has no blocks, unless they need it (Buffer::stands_for): the copies still name the operand, and
// the service describes one or the other to them.
#ifndef TILEJIT_PASSES_REPACK_ROWS_H_
#define TILEJIT_PASSES_REPACK_ROWS_H_

#include "base/target.h"
#include "ir/module.h"

namespace tl {

// `module` at level Tile.
void RepackRows(Module& module, const Target& target);

}  // namespace tl

#endif  // TILEJIT_PASSES_REPACK_ROWS_H_
