// What the matrix instructions compute, from the vendor's description of who holds which element
// ("Matrix Fragments", PTX ISA; matrix arithmetic instructions, AMD Instinct MI200 ISA: not tried
// on silicon), written independently of the compiler's layouts.
#ifndef TILEJIT_BACKENDS_EMULATE_MMA_H_
#define TILEJIT_BACKENDS_EMULATE_MMA_H_

#include <string_view>

#include "base/matrix_atom.h"

namespace tl::emulate {

inline constexpr int kNumAtoms = 15;  // of TL_ATOMS
// Facts of atom number `atom` of TL_ATOMS and, behind them, TL_WAVE_ATOMS, taken from its name.
const MatrixAtom& AtomNumber(int atom);

// Where element `i` (counted in storage elements) of a lane's operand is in the matrix.
struct Position {
  int row, col;
};
Position PlaceInA(const MatrixAtom& atom, int lane, int i);  // m x k
Position PlaceInB(const MatrixAtom& atom, int lane, int i);  // k x n
Position PlaceInC(const MatrixAtom& atom, int lane, int i);  // m x n
// Lanes of the warp that runs it.
int LanesOf(const MatrixAtom& atom);
int ElementsA(const MatrixAtom& atom);  // per lane
int ElementsB(const MatrixAtom& atom);
int ElementsC(const MatrixAtom& atom);

// The instruction itself; one pointer per lane to its elements. Products are exact, the sum is
// rounded once.
void Mma(const MatrixAtom& atom, void* const* c, const void* const* a, const void* const* b);

}  // namespace tl::emulate

#endif  // TILEJIT_BACKENDS_EMULATE_MMA_H_
