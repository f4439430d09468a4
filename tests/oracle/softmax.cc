#include "tests/oracle/softmax.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/oracle/bound.h"
#include "tests/oracle/parallel.h"

namespace oracle {

void SoftmaxRow(const Softmax& softmax, const double* x, int64_t n, double* expected,
                double* bound) {
  const double inf = std::numeric_limits<double>::infinity();
  double top = -inf;
  bool undefined = false;
  for (int64_t i = 0; i < n; ++i) {
    undefined = undefined || std::isnan(x[i]) || x[i] == inf;
    top = std::max(top, x[i]);
  }
  if (undefined || top == -inf) {
    std::fill_n(expected, n, std::nan(""));
    std::fill_n(bound, n, 0);
    return;
  }
  double sum = 0, spread = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double e = std::exp(x[i] - top);
    sum += e;
    if (e > 0) spread += e * (top - x[i]);
  }
  const double eps = Eps(TL_F32);
  // An exponential's argument is x - top, rounded, times log2 e, rounded: its relative error grows
  // with the argument. Numerator and denominator both have it; the denominator is rescaled as well,
  // once a block of columns, which the terms of a sum allow for.
  const double sum_error =
      SumBound(static_cast<double>(n), eps, sum) + eps * (kFunctionEps * sum + 2 * spread);
  for (int64_t i = 0; i < n; ++i) {
    const double e = std::exp(x[i] - top);
    const double value = e / sum;
    const double argument = e > 0 ? 2 * (top - x[i]) : 0;
    const double error =
        value * (eps * (2 * kFunctionEps + argument) + sum_error / sum) + 2 * SmallestStep(TL_F32);
    const Stored stored = Store(softmax.out, value, error);
    expected[i] = stored.expected;
    bound[i] = stored.bound;
  }
}

int CheckSoftmax(void* user, const tl_oracle_tensor* tensors, uint32_t num_tensors, const int64_t*,
                 const tl_scalar*) {
  if (num_tensors != 2) return 1;
  const Softmax& softmax = *static_cast<const Softmax*>(user);
  const tl_oracle_tensor &x = tensors[0], &y = tensors[1];
  const int64_t n = x.shape[1];
  ParallelFor(x.shape[0], [&](int64_t r) {
    SoftmaxRow(softmax, x.input + r * n, n, y.expected + r * n, y.bound + r * n);
  });
  return 0;
}

}  // namespace oracle
