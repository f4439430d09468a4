// Oracle of gemm: C = act(op(A) · op(B) + bias) + R, in double (long double where the kernel sums
// in double), with the bound of bound.h.
#ifndef TILEJIT_TESTS_ORACLE_GEMM_H_
#define TILEJIT_TESTS_ORACLE_GEMM_H_

#include <cstdint>

#include "tests/oracle/activation.h"
#include "tl/tl.h"

namespace oracle {

// What the tensors do not say.
struct Gemm {
  tl_dtype out = TL_BF16;
  tl_dtype acc = TL_F32;
  bool transpose_a = false;  // A is [K, M]
  bool transpose_b = true;   // B is [N, K]
  bool bias = false;         // the third tensor
  bool residual = false;     // the tensor before C
  Activation act = Activation::kNone;
  double reduced_eps = 0;  // of operands that the kernel may round, such as tf32
  int64_t sample = 0;      // this many random rows and as many columns are checked; 0: all
  uint64_t seed = 0;       // of the sample
};

// A tl_oracle; `user` is a Gemm. Tensors: A, B, bias and R where there are any, C.
int CheckGemm(void* user, const tl_oracle_tensor* tensors, uint32_t num_tensors,
              const int64_t* dims, const tl_scalar* scalars);

// The same for every matrix of a batch, the first dim.
int CheckGemmBatched(void* user, const tl_oracle_tensor* tensors, uint32_t num_tensors,
                     const int64_t* dims, const tl_scalar* scalars);

}  // namespace oracle

#endif  // TILEJIT_TESTS_ORACLE_GEMM_H_
