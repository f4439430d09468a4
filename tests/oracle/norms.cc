#include "tests/oracle/norms.h"

#include <cmath>

#include "tests/oracle/activation.h"
#include "tests/oracle/bound.h"
#include "tests/oracle/parallel.h"

namespace oracle {
namespace {

const double kEps = Eps(TL_F32);

void Put(const tl_oracle_tensor& tensor, int64_t i, const Stored& stored) {
  tensor.expected[i] = stored.expected;
  tensor.bound[i] = stored.bound;
}

}  // namespace

int CheckRmsNorm(void* user, const tl_oracle_tensor* tensors, uint32_t num_tensors, const int64_t*,
                 const tl_scalar* scalars) {
  const Norm& norm = *static_cast<const Norm*>(user);
  if (num_tensors != 2u + 2 * norm.residual + norm.weight) return 1;
  const tl_oracle_tensor* next = tensors;
  const double* x = next++->input;
  const double* residual = norm.residual ? next++->input : nullptr;
  const double* weight = norm.weight ? next++->input : nullptr;
  const tl_oracle_tensor& y = *next++;
  const int64_t n = y.shape[1];
  ParallelFor(y.shape[0], [&](int64_t r) {
    const auto at = [&](int64_t c) { return x[r * n + c] + (residual ? residual[r * n + c] : 0); };
    double squares = 0;
    for (int64_t c = 0; c < n; ++c) squares += at(c) * at(c);
    // Its terms are rounded before they are added.
    const double sum_error = SumBound(static_cast<double>(n), kEps, squares) + 3 * kEps * squares;
    const double mean = squares / static_cast<double>(n) + scalars[0].f;
    const double scale = 1 / std::sqrt(mean);
    const double scale_error =
        0.5 * sum_error / (mean * static_cast<double>(n)) + kFunctionEps * kEps;
    for (int64_t c = 0; c < n; ++c) {
      const double z = at(c) * scale * (weight ? weight[c] : 1);
      const double z_error = std::fabs(z) * (scale_error + 2 * kEps);
      const Activation act = norm.silu ? Activation::kSilu : Activation::kNone;
      Put(y, r * n + c, Store(norm.t, Activate(act, z), ActivationBound(act, z, z_error, kEps)));
      if (residual) Put(*next, r * n + c, Store(norm.t, at(c), 0.5 * kEps * std::fabs(at(c))));
    }
  });
  return 0;
}

int CheckLayerNorm(void* user, const tl_oracle_tensor* tensors, uint32_t num_tensors,
                   const int64_t*, const tl_scalar* scalars) {
  const Norm& norm = *static_cast<const Norm*>(user);
  if (num_tensors != 2u + norm.weight + norm.bias) return 1;
  const tl_oracle_tensor* next = tensors;
  const double* x = next++->input;
  const double* weight = norm.weight ? next++->input : nullptr;
  const double* bias = norm.bias ? next++->input : nullptr;
  const tl_oracle_tensor& y = *next;
  const int64_t n = y.shape[1];
  const double count = static_cast<double>(n);
  ParallelFor(y.shape[0], [&](int64_t r) {
    const double* row = x + r * n;
    double sum = 0, magnitude = 0, squares = 0, deviations = 0;
    for (int64_t c = 0; c < n; ++c) sum += row[c], magnitude += std::fabs(row[c]);
    const double mean = sum / count;
    const double mean_error = SumBound(count, kEps, magnitude) / count;
    for (int64_t c = 0; c < n; ++c) {
      squares += (row[c] - mean) * (row[c] - mean);
      deviations += std::fabs(row[c] - mean);
    }
    // Of a sum of squared deviations, each off by the mean's error and its own rounding.
    const double sum_error = SumBound(count, kEps, squares) + 3 * kEps * squares +
                             2 * deviations * mean_error + count * mean_error * mean_error;
    const double variance = squares / count + scalars[0].f;
    const double scale = 1 / std::sqrt(variance);
    const double scale_error = 0.5 * sum_error / (variance * count) + kFunctionEps * kEps;
    for (int64_t c = 0; c < n; ++c) {
      const double w = weight ? weight[c] : 1, b = bias ? bias[c] : 0;
      const double z = (row[c] - mean) * scale * w;
      const double error = std::fabs(z) * (scale_error + 3 * kEps) +
                           std::fabs(w) * scale * mean_error + kEps * (std::fabs(z) + std::fabs(b));
      Put(y, r * n + c, Store(norm.t, z + b, error));
    }
  });
  return 0;
}

}  // namespace oracle
