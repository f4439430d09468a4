// Oracle of elementwise: Y = op(X) or op(X, Z), rounded once.
#ifndef TILEJIT_TESTS_ORACLE_ELEMENTWISE_H_
#define TILEJIT_TESTS_ORACLE_ELEMENTWISE_H_

#include <cstdint>

#include "tl/tl.h"

namespace oracle {

enum class Other { kNone, kWhole, kRow, kCol, kScalar };

struct Elementwise {
  // One row of the table of operations below; of one operand those without `binary`.
  struct Op {
    const char* name;
    double (*unary)(double x);
    double (*binary)(double x, double z);
    // Correctly rounded by any kernel, and ints take it as well.
    bool exact;
    // The result's error, in eps, is relative to this.
    double (*size)(double x, double value);
  };
  const Op* op = nullptr;
  Other with = Other::kNone;
  tl_dtype t = TL_BF16, out = TL_BF16;
};

const Elementwise::Op* FindElementwiseOp(const char* name);

// A tl_oracle; `user` is an Elementwise. Tensors: X, Z where it is one, Y.
int CheckElementwise(void* user, const tl_oracle_tensor* tensors, uint32_t num_tensors,
                     const int64_t* dims, const tl_scalar* scalars);

}  // namespace oracle

#endif  // TILEJIT_TESTS_ORACLE_ELEMENTWISE_H_
