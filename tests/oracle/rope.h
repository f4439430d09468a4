// Oracle of rope: pairs of elements turned by the angle of their token.
#ifndef TILEJIT_TESTS_ORACLE_ROPE_H_
#define TILEJIT_TESTS_ORACLE_ROPE_H_

#include <cstdint>

#include "tl/tl.h"

namespace oracle {

struct Rope {
  tl_dtype t = TL_BF16;
  int64_t rotated = 128;  // R
  bool interleaved = false;
};

// A tl_oracle; `user` is a Rope. Tensors: X, pos, T, Y.
int CheckRope(void* user, const tl_oracle_tensor* tensors, uint32_t num_tensors,
              const int64_t* dims, const tl_scalar* scalars);

}  // namespace oracle

#endif  // TILEJIT_TESTS_ORACLE_ROPE_H_
