#include "requests.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace server {
namespace {

using tilejit::TensorView;

TensorView Bf16(void* data, TensorView::Extents shape) { return TensorView(data, TL_BF16, shape); }

// Causal self-attention of one sequence, four heads of queries to one of keys.
class Attention : public Request {
 public:
  std::string name() const override { return "attention"; }
  tilejit::Program program() const override {
    return tilejit::Family("attention", {{"D", kD}, {"causal", true}, {"t", "bf16"}});
  }
  std::vector<int64_t> Sizes(int64_t n) const override {
    return {n * kHeads * kD, n * kKeyHeads * kD, n * kKeyHeads * kD, n * kHeads * kD};
  }
  std::vector<TensorView> Views(const std::vector<void*>& data, int64_t n) const override {
    return {Bf16(data[0], {1, n, kHeads, kD}), Bf16(data[1], {1, n, kKeyHeads, kD}),
            Bf16(data[2], {1, n, kKeyHeads, kD}), Bf16(data[3], {1, n, kHeads, kD})};
  }
  std::vector<tilejit::Scalar> Scalars() const override { return {kScale}; }
  Values Expected(const std::vector<Values>& in, int64_t n) const override {
    Values out(n * kHeads * kD);
    for (int64_t h = 0; h < kHeads; ++h) {
      for (int64_t i = 0; i < n; ++i) Row(in, i, h, &out[(i * kHeads + h) * kD]);
    }
    return out;
  }

 private:
  static constexpr int64_t kHeads = 8, kKeyHeads = 2, kD = 64;
  static constexpr double kScale = 0.125;  // 1 / sqrt(kD)

  static void Row(const std::vector<Values>& in, int64_t i, int64_t h, double* out) {
    const int64_t g = h * kKeyHeads / kHeads;
    Values weight(i + 1);
    for (int64_t j = 0; j <= i; ++j) {
      for (int64_t d = 0; d < kD; ++d)
        weight[j] += in[0][(i * kHeads + h) * kD + d] * in[1][(j * kKeyHeads + g) * kD + d];
    }
    const double top = *std::max_element(weight.begin(), weight.end());
    double sum = 0;
    for (double& w : weight) sum += w = std::exp(kScale * (w - top));
    for (int64_t j = 0; j <= i; ++j) {
      for (int64_t d = 0; d < kD; ++d)
        out[d] += weight[j] / sum * in[2][(j * kKeyHeads + g) * kD + d];
    }
  }
};

class RmsNorm : public Request {
 public:
  std::string name() const override { return "rms_norm"; }
  tilejit::Program program() const override { return tilejit::Family("rms_norm", {{"t", "bf16"}}); }
  std::vector<int64_t> Sizes(int64_t n) const override { return {n * kC, kC, n * kC}; }
  std::vector<TensorView> Views(const std::vector<void*>& data, int64_t n) const override {
    return {Bf16(data[0], {n, kC}), Bf16(data[1], {kC}), Bf16(data[2], {n, kC})};
  }
  std::vector<tilejit::Scalar> Scalars() const override { return {kEps}; }
  Values Expected(const std::vector<Values>& in, int64_t n) const override {
    Values out(n * kC);
    for (int64_t i = 0; i < n; ++i) {
      const double* x = &in[0][i * kC];
      double squares = 0;
      for (int64_t c = 0; c < kC; ++c) squares += x[c] * x[c];
      const double scale = 1 / std::sqrt(squares / kC + kEps);
      for (int64_t c = 0; c < kC; ++c) out[i * kC + c] = x[c] * scale * in[1][c];
    }
    return out;
  }

 private:
  static constexpr int64_t kC = 512;
  static constexpr double kEps = 1e-5;
};

// The first half of a feed-forward layer.
class GemmSilu : public Request {
 public:
  std::string name() const override { return "gemm+silu"; }
  tilejit::Program program() const override {
    return tilejit::Family("gemm", {{"t", "bf16"}, {"N", kN}, {"K", kK}, {"act", "silu"}});
  }
  std::vector<int64_t> Sizes(int64_t n) const override { return {n * kK, kN * kK, n * kN}; }
  std::vector<TensorView> Views(const std::vector<void*>& data, int64_t n) const override {
    return {Bf16(data[0], {n, kK}), Bf16(data[1], {kN, kK}), Bf16(data[2], {n, kN})};
  }
  Values Expected(const std::vector<Values>& in, int64_t n) const override {
    Values out(n * kN);
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < kN; ++j) {
        double sum = 0;
        for (int64_t k = 0; k < kK; ++k) sum += in[0][i * kK + k] * in[1][j * kK + k];
        out[i * kN + j] = sum / (1 + std::exp(-sum));
      }
    }
    return out;
  }

 private:
  static constexpr int64_t kN = 1024, kK = 512;
};

}  // namespace

uint16_t ToBf16(double value) {
  const float f = static_cast<float>(value);
  uint32_t bits;
  std::memcpy(&bits, &f, sizeof(bits));
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

double FromBf16(uint16_t half) {
  const uint32_t bits = static_cast<uint32_t>(half) << 16;
  float f;
  std::memcpy(&f, &bits, sizeof(f));
  return f;
}

std::vector<std::unique_ptr<Request>> AllRequests() {
  std::vector<std::unique_ptr<Request>> all;
  all.push_back(std::make_unique<Attention>());
  all.push_back(std::make_unique<RmsNorm>());
  all.push_back(std::make_unique<GemmSilu>());
  return all;
}

}  // namespace server
