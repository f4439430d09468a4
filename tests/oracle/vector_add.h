// Oracle of vector_add: C = A + B, rounded once.
#ifndef TILEJIT_TESTS_ORACLE_VECTOR_ADD_H_
#define TILEJIT_TESTS_ORACLE_VECTOR_ADD_H_

#include <cstdint>

#include "tl/tl.h"

namespace oracle {

struct VectorAdd {
  tl_dtype t = TL_F32;
};

// A tl_oracle; `user` is a VectorAdd. Tensors: A, B, C.
int CheckVectorAdd(void* user, const tl_oracle_tensor* tensors, uint32_t num_tensors,
                   const int64_t* dims, const tl_scalar* scalars);

}  // namespace oracle

#endif  // TILEJIT_TESTS_ORACLE_VECTOR_ADD_H_
