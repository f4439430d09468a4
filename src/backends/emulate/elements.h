// Elements of matrices as the matrix instructions see them.
#ifndef TILEJIT_BACKENDS_EMULATE_ELEMENTS_H_
#define TILEJIT_BACKENDS_EMULATE_ELEMENTS_H_

#include "base/dtype.h"

namespace tl::emulate {

// Of the array of `t` at `p`, the element `i`. Any type of at most 16 bits, i32, f32, f64.
double ElementValue(DType t, const void* p, int i);
// Adds to it and rounds once; integers wrap.
void AddToElement(DType t, void* p, int i, double sum);

}  // namespace tl::emulate

#endif  // TILEJIT_BACKENDS_EMULATE_ELEMENTS_H_
