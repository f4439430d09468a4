#include "tests/oracle/moe_topk.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "tests/oracle/bound.h"
#include "tests/oracle/parallel.h"

namespace oracle {
namespace {

// p and how far a kernel's may be off.
struct Scores {
  std::vector<double> p;
  double error = 0;  // relative

  Scores(bool sigmoid, const double* x, int64_t count) : p(static_cast<size_t>(count)) {
    const double eps = Eps(TL_F32);
    const double top = *std::max_element(x, x + count);
    double sum = 0, argument = 0;
    for (int64_t i = 0; i < count; ++i) {
      p[i] = sigmoid ? 1 / (1 + std::exp(-x[i])) : std::exp(x[i] - top);
      sum += p[i];
      // An exponential's relative error grows with its argument.
      argument = std::max(argument, sigmoid ? std::fabs(x[i]) : top - x[i]);
    }
    if (!sigmoid) {
      for (double& value : p) value /= sum;
    }
    error = eps * (2 * argument + 2 * kFunctionEps) +
            (sigmoid ? 0 : SumBound(static_cast<double>(count), eps, 1));
  }
};

}  // namespace

int CheckMoeTopk(void* user, const tl_oracle_tensor* tensors, uint32_t num_tensors, const int64_t*,
                 const tl_scalar*) {
  const MoeTopk& topk = *static_cast<const MoeTopk*>(user);
  if (num_tensors != 3u + topk.bias) return 1;
  const tl_oracle_tensor &weights = tensors[num_tensors - 2], &indices = tensors[num_tensors - 1];
  const int64_t experts = tensors[0].shape[1], k = weights.shape[1];
  ParallelFor(weights.shape[0], [&](int64_t r) {
    const double* x = tensors[0].input + r * experts;
    const Scores scores(topk.sigmoid, x, experts);
    const auto rank = [&](int64_t i) {
      return topk.bias ? scores.p[i] + tensors[1].input[i] : x[i];
    };
    std::vector<int64_t> order(static_cast<size_t>(experts));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return rank(a) > rank(b); });
    double sum = 0;
    for (int64_t i = 0; i < k; ++i) sum += scores.p[order[i]];
    // With a bias the order is one of rounded sums, otherwise of the inputs themselves.
    const double near = topk.bias ? 2 * (scores.error + Eps(TL_F32)) : 0;
    bool sure = true;
    for (int64_t i = 0; i < k; ++i) {
      const double p = scores.p[order[i]];
      const double value = topk.renormalize ? p / sum : p;
      const double error = value * (topk.renormalize ? 3 : 1) * scores.error;
      const Stored stored = Store(TL_F32, value, error);
      weights.expected[r * k + i] = stored.expected;
      weights.bound[r * k + i] = stored.bound;
      indices.expected[r * k + i] = static_cast<double>(order[i]);
      sure = sure && (i + 1 == experts || near == 0 || rank(order[i]) - rank(order[i + 1]) > near);
      indices.bound[r * k + i] = sure ? 0 : -1;
      if (!sure) weights.bound[r * k + i] = -1;
    }
    // The sum depends on the last one chosen.
    if (!sure && topk.renormalize) std::fill_n(weights.bound + r * k, k, -1);
  });
  return 0;
}

}  // namespace oracle
