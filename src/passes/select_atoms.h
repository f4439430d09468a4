// Tile to Selected: which matrix instruction every gemm uses and how the warps share its result,
// how many threads a block has, and in which order the rows of gemm operands lie in shared memory.
#ifndef TILEJIT_PASSES_SELECT_ATOMS_H_
#define TILEJIT_PASSES_SELECT_ATOMS_H_

#include "base/status.h"
#include "base/target.h"
#include "ir/module.h"

namespace tl {

// Do the fragments of this launch live in registers at all?
bool UsesRegisters(const Target& target, const Launch& launch);

Status SelectAtoms(Module& module, const Target& target);

}  // namespace tl

#endif  // TILEJIT_PASSES_SELECT_ATOMS_H_
