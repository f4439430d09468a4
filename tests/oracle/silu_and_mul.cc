#include "tests/oracle/silu_and_mul.h"

#include <cmath>

#include "tests/oracle/bound.h"

namespace oracle {

int CheckSiluAndMul(void* user, const tl_oracle_tensor* tensors, uint32_t num_tensors,
                    const int64_t*, const tl_scalar*) {
  if (num_tensors != 2) return 1;
  const SiluAndMul& f = *static_cast<const SiluAndMul*>(user);
  const tl_oracle_tensor& y = tensors[1];
  const int64_t n = y.shape[1];
  const double eps = Eps(TL_F32);
  for (int64_t r = 0; r < y.shape[0]; ++r) {
    const double *x = tensors[0].input + r * 2 * n, *up = x + n;
    for (int64_t c = 0; c < n; ++c) {
      const double value = Activate(f.act, x[c]) * up[c];
      const double error = ActivationBound(f.act, x[c], 0, eps) * std::fabs(up[c]);
      const Stored stored = Store(f.t, value, error + eps * std::fabs(value));
      y.expected[r * n + c] = stored.expected;
      y.bound[r * n + c] = stored.bound;
    }
  }
  return 0;
}

}  // namespace oracle
