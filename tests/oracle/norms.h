// Oracles of rms_norm and layer_norm.
#ifndef TILEJIT_TESTS_ORACLE_NORMS_H_
#define TILEJIT_TESTS_ORACLE_NORMS_H_

#include <cstdint>

#include "tl/tl.h"

namespace oracle {

struct Norm {
  tl_dtype t = TL_BF16;
  bool weight = true;
  bool bias = false;      // layer_norm
  bool residual = false;  // rms_norm
  bool silu = false;      // rms_norm
};

// tl_oracles; `user` is a Norm, the scalar is eps. Tensors: X, R, W, Y, S of rms_norm and X, W, B,
// Y of layer_norm, those that are there.
int CheckRmsNorm(void* user, const tl_oracle_tensor* tensors, uint32_t num_tensors,
                 const int64_t* dims, const tl_scalar* scalars);
int CheckLayerNorm(void* user, const tl_oracle_tensor* tensors, uint32_t num_tensors,
                   const int64_t* dims, const tl_scalar* scalars);

}  // namespace oracle

#endif  // TILEJIT_TESTS_ORACLE_NORMS_H_
