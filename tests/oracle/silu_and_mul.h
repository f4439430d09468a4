// Oracle of silu_and_mul: Y = act(X[:, :N]) * X[:, N:].
#ifndef TILEJIT_TESTS_ORACLE_SILU_AND_MUL_H_
#define TILEJIT_TESTS_ORACLE_SILU_AND_MUL_H_

#include <cstdint>

#include "tests/oracle/activation.h"
#include "tl/tl.h"

namespace oracle {

struct SiluAndMul {
  tl_dtype t = TL_BF16;
  Activation act = Activation::kSilu;
};

// A tl_oracle; `user` is a SiluAndMul. Tensors: X, Y.
int CheckSiluAndMul(void* user, const tl_oracle_tensor* tensors, uint32_t num_tensors,
                    const int64_t* dims, const tl_scalar* scalars);

}  // namespace oracle

#endif  // TILEJIT_TESTS_ORACLE_SILU_AND_MUL_H_
