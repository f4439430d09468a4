#include "tests/oracle/vector_add.h"

#include <cmath>

#include "tests/oracle/bound.h"

namespace oracle {

int CheckVectorAdd(void* user, const tl_oracle_tensor* tensors, uint32_t num_tensors,
                   const int64_t*, const tl_scalar*) {
  if (num_tensors != 3) return 1;
  const tl_dtype t = static_cast<const VectorAdd*>(user)->t;
  const tl_oracle_tensor &a = tensors[0], &b = tensors[1], &c = tensors[2];
  for (int64_t i = 0; i < c.shape[0]; ++i) {
    const double sum = a.input[i] + b.input[i];
    // Narrow floats are added in f32, which rounds before the element is rounded.
    const double error = Eps(t) > Eps(TL_F32) ? 0.5 * Eps(TL_F32) * std::fabs(sum) : 0;
    const Stored stored = Store(t, sum, error);
    c.expected[i] = stored.expected;
    c.bound[i] = stored.bound;
  }
  return 0;
}

}  // namespace oracle
