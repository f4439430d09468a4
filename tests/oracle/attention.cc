#include "tests/oracle/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "tests/oracle/bound.h"
#include "tests/oracle/parallel.h"

namespace oracle {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

// Where the results of one query go.
struct Result {
  const tl_oracle_tensor& out;
  const tl_oracle_tensor* lse;  // null where it is not asked for
  int64_t out_row, lse_at;
};

// One query against keys 0 ... keys - 1: zeros and -inf where there is no key.
struct Query {
  const Attention& options;
  const double* data;
  int64_t depth, width;  // of keys and of values
  double scale;          // of exponents to base 2

  template <typename Key, typename Value>
  void Solve(int64_t keys, Key key, Value value, const Result& result) const {
    std::vector<double> weight(static_cast<size_t>(keys));
    double top = -kInf, largest = 0;
    for (int64_t j = 0; j < keys; ++j) {
      double size = 0;
      const double* k = key(j);
      for (int64_t x = 0; x < depth; ++x) {
        const double product = data[x] * k[x] * scale;
        weight[j] += product;
        size += std::fabs(product);
      }
      top = std::max(top, weight[j]);
      largest = std::max(largest, size);
    }
    double sum = 0;
    for (double& w : weight) sum += w = std::exp2(w - top);
    const double eps = Eps(TL_F32);
    // Relative error of a weight: that of its score, which is summed up in f32 and then scaled.
    const double weight_error =
        2 * SumBound(static_cast<double>(depth), eps, largest) + kFunctionEps * eps;
    std::vector<double> total(static_cast<size_t>(width)), magnitude(static_cast<size_t>(width));
    for (int64_t j = 0; j < keys; ++j) {
      const double* v = value(j);
      for (int64_t x = 0; x < width; ++x) {
        total[x] += weight[j] / sum * v[x];
        magnitude[x] += std::fabs(weight[j] / sum * v[x]);
      }
    }
    for (int64_t x = 0; x < width; ++x) {
      // Weights are rounded to the type of the values.
      const double error = SumBound(static_cast<double>(keys), eps + Eps(options.t), magnitude[x]) +
                           2 * weight_error * magnitude[x];
      const Stored stored = Store(options.t, total[x], error);
      result.out.expected[result.out_row * width + x] = stored.expected;
      result.out.bound[result.out_row * width + x] = stored.bound;
    }
    if (!result.lse) return;
    const double log = keys == 0 ? -kInf : (top + std::log2(sum)) * std::numbers::ln2;
    const double error = weight_error + SumBound(static_cast<double>(keys), eps, 1) +
                         kFunctionEps * eps * (std::fabs(top) + std::fabs(log));
    const Stored stored = Store(TL_F32, log, error);
    result.lse->expected[result.lse_at] = stored.expected;
    result.lse->bound[result.lse_at] = stored.bound;
  }
};

double ScaleOf(const Attention& a, const tl_scalar* scalars) {
  return a.base_2 ? scalars[0].f : scalars[0].f * std::numbers::log2e;
}

}  // namespace

int CheckAttention(void* user, const tl_oracle_tensor* t, uint32_t count, const int64_t*,
                   const tl_scalar* scalars) {
  const Attention& a = *static_cast<const Attention*>(user);
  if (count != 4u + a.lse) return 1;
  const int64_t Sq = t[0].shape[1], H = t[0].shape[2], D = t[0].shape[3];
  const int64_t Sk = t[1].shape[1], Hkv = t[1].shape[2], Dv = t[2].shape[3];
  ParallelFor(t[0].shape[0] * Sq * H, [&](int64_t row) {
    const int64_t b = row / (Sq * H), i = row / H % Sq, h = row % H, g = h * Hkv / H;
    const int64_t keys = a.causal ? std::clamp<int64_t>(i + Sk - Sq + 1, 0, Sk) : Sk;
    const auto at = [&](int which, int64_t width) {
      const double* base = t[which].input + (b * Sk * Hkv + g) * width;
      return [base, step = Hkv * width](int64_t j) { return base + j * step; };
    };
    const Query query{a, t[0].input + row * D, D, Dv, ScaleOf(a, scalars)};
    query.Solve(keys, at(1, D), at(2, Dv),
                {t[3], a.lse ? &t[4] : nullptr, row, (b * H + h) * Sq + i});
  });
  return 0;
}

int CheckAttentionDecode(void* user, const tl_oracle_tensor* t, uint32_t count, const int64_t*,
                         const tl_scalar* scalars) {
  const Attention& a = *static_cast<const Attention*>(user);
  if (count != 5u + a.paged + a.lse) return 1;
  const int64_t H = t[0].shape[1], D = t[0].shape[2];
  const int64_t length = t[1].shape[1], Hkv = t[1].shape[2], Dv = t[2].shape[3];
  const tl_oracle_tensor &len = t[3 + a.paged], &out = t[4 + a.paged];
  ParallelFor(t[0].shape[0] * H, [&](int64_t row) {
    const int64_t b = row / H, g = row % H * Hkv / H;
    // The row of K and V in which token j lies.
    const auto token = [&](int64_t j) {
      if (!a.paged) return b * length + j;
      const double page = t[3].input[b * t[3].shape[1] + j / a.page];
      return static_cast<int64_t>(page) * a.page + j % a.page;
    };
    const auto at = [&](int which, int64_t width) {
      return [&, which, width](int64_t j) { return t[which].input + (token(j) * Hkv + g) * width; };
    };
    const Query query{a, t[0].input + row * D, D, Dv, ScaleOf(a, scalars)};
    query.Solve(static_cast<int64_t>(len.input[b]), at(1, D), at(2, Dv),
                {out, a.lse ? &out + 1 : nullptr, row, row});
  });
  return 0;
}

int CheckMlaDecode(void* user, const tl_oracle_tensor* t, uint32_t count, const int64_t*,
                   const tl_scalar* scalars) {
  const Attention& a = *static_cast<const Attention*>(user);
  if (count != 5u + a.lse) return 1;
  const int64_t H = t[0].shape[1], D = t[0].shape[2], Dv = t[4].shape[2];
  ParallelFor(t[0].shape[0] * H, [&](int64_t row) {
    const int64_t b = row / H;
    const auto key = [&](int64_t j) {
      const double page = t[2].input[b * t[2].shape[1] + j / a.page];
      return t[1].input + (static_cast<int64_t>(page) * a.page + j % a.page) * D;
    };
    const Query query{a, t[0].input + row * D, D, Dv, ScaleOf(a, scalars)};
    query.Solve(static_cast<int64_t>(t[3].input[b]), key, key,
                {t[4], a.lse ? &t[5] : nullptr, row, row});
  });
  return 0;
}

}  // namespace oracle
