// Oracle of moe_topk: the experts of the largest scores and their weights.
#ifndef TILEJIT_TESTS_ORACLE_MOE_TOPK_H_
#define TILEJIT_TESTS_ORACLE_MOE_TOPK_H_

#include <cstdint>

#include "tl/tl.h"

namespace oracle {

struct MoeTopk {
  bool sigmoid = false;
  bool bias = false;
  bool renormalize = true;
};

// A tl_oracle; `user` is a MoeTopk. Tensors: X, bias where there is one, W, I. What comes after two
// scores that rounding may exchange is not compared.
int CheckMoeTopk(void* user, const tl_oracle_tensor* tensors, uint32_t num_tensors,
                 const int64_t* dims, const tl_scalar* scalars);

}  // namespace oracle

#endif  // TILEJIT_TESTS_ORACLE_MOE_TOPK_H_
