#include "tests/oracle/rope.h"

#include <cmath>

#include "tests/oracle/bound.h"

namespace oracle {

int CheckRope(void* user, const tl_oracle_tensor* tensors, uint32_t num_tensors, const int64_t*,
              const tl_scalar*) {
  if (num_tensors != 4) return 1;
  const Rope& rope = *static_cast<const Rope*>(user);
  const tl_oracle_tensor& y = tensors[3];
  const int64_t heads = y.shape[1], depth = y.shape[2], half = rope.rotated / 2;
  for (int64_t row = 0; row < y.shape[0] * heads; ++row) {
    const double* x = tensors[0].input + row * depth;
    const auto position = static_cast<int64_t>(tensors[1].input[row / heads]);
    const double *cosine = tensors[2].input + position * rope.rotated, *sine = cosine + half;
    const auto put = [&](int64_t at, double p, double q) {
      const double error = 2 * Eps(TL_F32) * (std::fabs(p) + std::fabs(q));
      const Stored stored = Store(rope.t, p + q, error);
      y.expected[row * depth + at] = stored.expected;
      y.bound[row * depth + at] = stored.bound;
    };
    for (int64_t i = 0; i < half; ++i) {
      const int64_t a = rope.interleaved ? 2 * i : i;
      const int64_t b = rope.interleaved ? 2 * i + 1 : half + i;
      put(a, x[a] * cosine[i], -x[b] * sine[i]);
      put(b, x[b] * cosine[i], x[a] * sine[i]);
    }
    for (int64_t i = rope.rotated; i < depth; ++i) put(i, x[i], 0);
  }
  return 0;
}

}  // namespace oracle
