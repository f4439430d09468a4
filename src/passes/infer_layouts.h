// Planned to Mapped: which fragments live in registers, and where each element of them lies.
//
// 1. Every use of a fragment says what it needs. Uses that registers cannot serve (elements at
//    computed indices, windows of a fragment, argmax) leave it in shared memory.
// 2. Fragments that one `parallel` indexes alike form a class: they get one layout.
// 3. Classes get layouts in this order: the result of a matrix product has to lie as the
//    instruction leaves it (the dearest product first); an operand as the instruction takes it;
//    what is derived from those: a reduced or broadcast fragment is the projection of the larger
//    one, a copied one or one of running sums lies like its source; then the largest of the rest by
//    default, and what is derived from it.
// 4. Where a use needs another layout than its fragment has, a copy before (and after) it converts.
#ifndef TILEJIT_PASSES_INFER_LAYOUTS_H_
#define TILEJIT_PASSES_INFER_LAYOUTS_H_

#include "base/status.h"
#include "base/target.h"
#include "ir/module.h"

namespace tl {

Status InferLayouts(Module& module, const Target& target);

// Layout of a product's result in plain arithmetic (PlainUnitOf).
FragmentLayout PlainC(int64_t rows, int64_t cols, int warp_size, int warp_rows, int warp_cols);

// `layout` without the dims that are not in `kept`.
FragmentLayout Restrict(const FragmentLayout& layout, const std::vector<int>& kept);

}  // namespace tl

#endif  // TILEJIT_PASSES_INFER_LAYOUTS_H_
