// A gemm as matrix instructions see it: rows of a left factor by rows of a right one. Straight, the
// left factor is a, whose rows are those of c, and the right one is b, whose rows are c's columns.
// Swapped, they change places, and the instructions compute the transpose of c:
//
//   c = a * b    is    c^T = b^T * a^T
//
// Nothing but the layout of c tells one from the other.
#ifndef TILEJIT_PASSES_PRODUCT_H_
#define TILEJIT_PASSES_PRODUCT_H_

#include <cstdint>

#include "base/matrix_atom.h"
#include "ir/module.h"

namespace tl {

struct Factor {
  Region region;
  bool depth_first;  // stored as depth x rows
  int64_t rows;
  int warps;  // that share its rows
};

struct Product {
  Factor left, right;
  int64_t depth;
};

// Of a gemm at any level (warps: from level Selected on).
Product ProductOf(const Gemm& g);

// Does the program permit what the instruction rounds?
inline bool Permits(const Gemm& g, const MatrixAtom& atom) {
  return (!atom.tf32 || g.precision == GemmPrecision::kTF32) &&
         (!atom.narrow_sums || g.precision == GemmPrecision::kFastAccum);
}

// The region of `g` that is its left (right) factor.
inline Region& LeftOf(Gemm& g) { return g.swapped ? g.b : g.a; }
inline Region& RightOf(Gemm& g) { return g.swapped ? g.a : g.b; }

}  // namespace tl

#endif  // TILEJIT_PASSES_PRODUCT_H_
