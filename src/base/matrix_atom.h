// One matrix instruction of a target, as facts: which types and extents it takes. Where its
// operands lie in the registers follows from the facts (layout/matrix_fragments.h).
#ifndef TILEJIT_BASE_MATRIX_ATOM_H_
#define TILEJIT_BASE_MATRIX_ATOM_H_

#include <cstdint>
#include <string_view>

#include "base/dtype.h"

namespace tl {

// How an instruction's registers are dealt to the lanes.
enum class AtomForm : uint8_t {
  kMma,   // NVIDIA's mma.sync: 8 rows of lanes by 4, pairs of neighbours along the columns of C
  kDmma,  // mma.sync m8n8k4 on f64
  // Hopper's wgmma, by four warps: 64 rows, n is what columns come in multiples of (up to 256). B,
  // and A unless it is in registers, is read where it lies in shared memory, while the threads go
  // on.
  kWgmma,
  // AMD's MFMA on a wave of 64 lanes, m = n: a lane holds neighbours along the depth, and of the
  // result neighbours along a row (the prelude's function swaps the operands).
  kMfma,
};

struct MatrixAtom {
  std::string_view name;  // of the prelude's function that issues it
  AtomForm form = AtomForm::kMma;
  DType a, b;  // operands
  DType c;     // accumulator
  int m, n, k;
  bool tf32 = false;         // f32 operands, rounded to tf32
  bool narrow_sums = false;  // of 8-bit floats, with 13 bits behind the point

  bool in_place() const { return form == AtomForm::kWgmma; }
};

}  // namespace tl

#endif  // TILEJIT_BASE_MATRIX_ATOM_H_
