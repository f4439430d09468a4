// Where the operands of matrix instructions lie in the registers of a warp.
#ifndef TILEJIT_LAYOUT_MATRIX_FRAGMENTS_H_
#define TILEJIT_LAYOUT_MATRIX_FRAGMENTS_H_

#include <cstdint>
#include <optional>

#include "base/matrix_atom.h"
#include "layout/fragment_layout.h"

namespace tl {

// Layouts of one warp for one instruction. A is m x k, B is given as n x k (its rows are columns of
// the matrix), C is m x n.
FragmentLayout AtomA(const MatrixAtom& atom);
FragmentLayout AtomB(const MatrixAtom& atom);
FragmentLayout AtomC(const MatrixAtom& atom);

// A tile dealt out to warp_rows x warp_cols warps, neighbouring warps along the columns. Each warp
// holds ceil(rows / (atom rows * warp_rows)) by ceil(...) instructions side by side: a contiguous
// block. Slots: those of the atom first, then instructions along the columns, then along the rows.
// The tile is padded to whole blocks.
FragmentLayout TiledC(const MatrixAtom& atom, int64_t rows, int64_t cols, int warp_rows,
                      int warp_cols);
// Operand A of such a tile, rows x depth: every warp of a row of warps holds the same (stride 0).
// Slots: atom, then instructions along the depth, then along the rows.
FragmentLayout TiledA(const MatrixAtom& atom, int64_t rows, int64_t depth, int warp_rows,
                      int warp_cols);

// Which 16 bytes of the operand each lane's address names in `ldmatrix` (.x1 to .x4: as many 8 x 8
// matrices as the operand has registers): the lane's slots are those elements. Lanes beyond the
// matrices repeat. The instruction gives each lane what AtomA and AtomB say.
FragmentLayout LdmatrixA(const MatrixAtom& atom);
FragmentLayout LdmatrixB(const MatrixAtom& atom);

// How a tile of 16-bit elements, dealt out as results of matrix instructions or their transposes
// are, leaves by `stmatrix`: so many slots at a time make `matrices` (4, 2, 1), and the lanes'
// addresses name the rows of `addresses`, 8 elements each. `down`: rows of what is written run down
// the tile's columns. nullopt: its lanes hold other elements, or several of them the same, or
// nothing real.
struct MatrixStores {
  int matrices;
  bool transpose;  // by the instruction
  FragmentLayout addresses;
};
std::optional<MatrixStores> StmatrixOf(const FragmentLayout& tile, bool down);

// wgmma, four warps: the accumulator, 64 x n, and operand A from registers, 64 x 32 bytes.
FragmentLayout WgmmaC(int n);
FragmentLayout WgmmaA(DType type);

// AMD's accumulators as the instructions give them, m x m. MFMA on 64 lanes (m 16 or 32, f32 and
// i32) and RDNA 3's WMMA on 32 lanes (16 x 16). Read in the ISA documents, not tried on silicon.
FragmentLayout MfmaC(int m);
FragmentLayout RdnaWmmaC();

}  // namespace tl

#endif  // TILEJIT_LAYOUT_MATRIX_FRAGMENTS_H_
