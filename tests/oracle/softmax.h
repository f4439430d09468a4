// Oracle of softmax over the last dim, in double.
#ifndef TILEJIT_TESTS_ORACLE_SOFTMAX_H_
#define TILEJIT_TESTS_ORACLE_SOFTMAX_H_

#include <cstdint>

#include "tl/tl.h"

namespace oracle {

struct Softmax {
  tl_dtype out = TL_BF16;
};

// One row: y = exp(x - max x) / Σ exp(x - max x). NaN throughout where PyTorch gives that: a NaN or
// +inf in the row, or nothing but -inf.
void SoftmaxRow(const Softmax& softmax, const double* x, int64_t n, double* expected,
                double* bound);

// A tl_oracle; `user` is a Softmax. Tensors: X, Y.
int CheckSoftmax(void* user, const tl_oracle_tensor* tensors, uint32_t num_tensors,
                 const int64_t* dims, const tl_scalar* scalars);

}  // namespace oracle

#endif  // TILEJIT_TESTS_ORACLE_SOFTMAX_H_
