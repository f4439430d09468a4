// Tile to Selected: which matrix instruction every gemm uses and how the warps share its result,
// how many threads a block has, and in which order the rows of gemm operands lie in shared memory.
#ifndef TILEJIT_PASSES_SELECT_ATOMS_H_
#define TILEJIT_PASSES_SELECT_ATOMS_H_

#include <cstdint>

#include "base/status.h"
#include "base/target.h"
#include "ir/module.h"

namespace tl {

// Do the fragments of this launch live in registers at all?
bool UsesRegisters(const Target& target, const Launch& launch);

// Elements of a product's result that a warp handles at a time.
struct WarpUnit {
  int64_t rows, cols;
};
// In plain arithmetic: rows of eight lanes, each with four neighbours along the row.
inline WarpUnit PlainUnitOf(int warp_size) { return {warp_size / 8, 32}; }

Status SelectAtoms(Module& module, const Target& target);

}  // namespace tl

#endif  // TILEJIT_PASSES_SELECT_ATOMS_H_
