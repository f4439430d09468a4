#include "tests/oracle/gemm.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "tests/oracle/bound.h"
#include "tests/oracle/parallel.h"

namespace oracle {
namespace {

// A matrix in memory: element (i, j) at data[i*row + j*column].
struct Matrix {
  const double* data;
  int64_t row, column;
  Matrix Transposed() const { return {data, column, row}; }
};

// sum[j] = Σk x[k]·m(k, j) and magnitude[j] = Σk |x[k]·m(k, j)|.
template <typename T>
struct Products {
  std::vector<T> sum, magnitude;

  Products(const std::vector<double>& x, const Matrix& m, int64_t n)
      : sum(static_cast<size_t>(n)), magnitude(static_cast<size_t>(n)) {
    const int64_t k = static_cast<int64_t>(x.size());
    if (m.column == 1) {
      // Rows of m are contiguous.
      for (int64_t p = 0; p < k; ++p)
        for (int64_t j = 0; j < n; ++j) Add(j, x[p], m.data[p * m.row + j]);
    } else {
      for (int64_t j = 0; j < n; ++j)
        for (int64_t p = 0; p < k; ++p) Add(j, x[p], m.data[p * m.row + j * m.column]);
    }
  }

 private:
  void Add(int64_t j, double a, double b) {
    const T product = static_cast<T>(a) * b;
    sum[j] += product;
    magnitude[j] += std::fabs(product);
  }
};

uint32_t TensorsOf(const Gemm& g) { return 3u + g.bias + g.residual; }

class Solver {
 public:
  Solver(const Gemm& g, const tl_oracle_tensor* t) : g_(g), bias_(g.bias ? t[2].input : nullptr) {
    const tl_oracle_tensor& c = t[TensorsOf(g) - 1];
    if (g.residual) residual_ = t[TensorsOf(g) - 2].input;
    expected_ = c.expected;
    bound_ = c.bound;
    m_ = c.shape[0];
    n_ = c.shape[1];
    k_ = t[0].shape[g.transpose_a ? 0 : 1];
    a_ = {t[0].input, t[0].shape[1], 1};
    b_ = {t[1].input, t[1].shape[1], 1};
    if (g.transpose_a) a_ = a_.Transposed();
    if (g.transpose_b) b_ = b_.Transposed();
  }

  void Solve() {
    if (g_.sample == 0 || (m_ <= g_.sample && n_ <= g_.sample)) {
      ParallelFor(m_, [&](int64_t i) { SolveRow(i); });
      return;
    }
    std::fill_n(bound_, m_ * n_, -1);
    const std::vector<int64_t> rows = Sample(m_, g_.seed), columns = Sample(n_, g_.seed + 1);
    ParallelFor(static_cast<int64_t>(rows.size()), [&](int64_t i) { SolveRow(rows[i]); });
    ParallelFor(static_cast<int64_t>(columns.size()), [&](int64_t j) { SolveColumn(columns[j]); });
  }

 private:
  // Distinct numbers below n, always with the first and the last.
  std::vector<int64_t> Sample(int64_t n, uint64_t seed) const {
    std::vector<int64_t> all(static_cast<size_t>(n));
    std::iota(all.begin(), all.end(), 0);
    if (n <= g_.sample) return all;
    std::shuffle(all.begin() + 1, all.end() - 1, std::mt19937_64(seed));
    std::swap(all[1], all.back());
    all.resize(static_cast<size_t>(g_.sample));
    return all;
  }

  void SolveRow(int64_t i) {
    if (g_.acc == TL_F64) {
      Row<long double>(i);
    } else {
      Row<double>(i);
    }
  }

  void SolveColumn(int64_t j) {
    if (g_.acc == TL_F64) {
      Column<long double>(j);
    } else {
      Column<double>(j);
    }
  }

  template <typename T>
  void Row(int64_t i) {
    std::vector<double> x(static_cast<size_t>(k_));
    for (int64_t p = 0; p < k_; ++p) x[p] = a_.data[i * a_.row + p * a_.column];
    const Products<T> products(x, b_, n_);
    for (int64_t j = 0; j < n_; ++j) Finish(i, j, products.sum[j], products.magnitude[j]);
  }

  // A row of the transposed problem.
  template <typename T>
  void Column(int64_t j) {
    std::vector<double> x(static_cast<size_t>(k_));
    for (int64_t p = 0; p < k_; ++p) x[p] = b_.data[p * b_.row + j * b_.column];
    const Products<T> products(x, a_.Transposed(), m_);
    for (int64_t i = 0; i < m_; ++i) Finish(i, j, products.sum[i], products.magnitude[i]);
  }

  template <typename T>
  void Finish(int64_t i, int64_t j, T sum, T magnitude) {
    const double eps = Eps(g_.acc);
    double error =
        SumBound(static_cast<double>(k_), eps + g_.reduced_eps, static_cast<double>(magnitude));
    if (bias_) {
      sum += bias_[j];
      error += eps * std::fabs(static_cast<double>(sum));
    }
    const double x = static_cast<double>(sum);
    double value = Activate(g_.act, x);
    error = ActivationBound(g_.act, x, error, eps);
    if (residual_) {
      value += residual_[i * n_ + j];
      error += eps * std::fabs(value);
    }
    const Stored stored = Store(g_.out, value, error);
    expected_[i * n_ + j] = stored.expected;
    bound_[i * n_ + j] = stored.bound;
  }

  const Gemm& g_;
  const double* bias_;
  const double* residual_ = nullptr;
  double* expected_;
  double* bound_;
  int64_t m_, n_, k_;
  Matrix a_, b_;  // M×K and K×N
};

}  // namespace

int CheckGemm(void* user, const tl_oracle_tensor* tensors, uint32_t num_tensors, const int64_t*,
              const tl_scalar*) {
  const Gemm& g = *static_cast<const Gemm*>(user);
  if (num_tensors != TensorsOf(g)) return 1;
  Solver(g, tensors).Solve();
  return 0;
}

int CheckGemmBatched(void* user, const tl_oracle_tensor* tensors, uint32_t num_tensors,
                     const int64_t*, const tl_scalar*) {
  const Gemm& g = *static_cast<const Gemm*>(user);
  if (num_tensors != 3 || TensorsOf(g) != 3) return 1;
  for (int64_t l = 0; l < tensors[2].shape[0]; ++l) {
    tl_oracle_tensor one[3];
    for (int i = 0; i < 3; ++i) {
      one[i] = tensors[i];
      ++one[i].shape;
      const int64_t at = l * one[i].shape[0] * one[i].shape[1];
      if (one[i].input) one[i].input += at;
      if (one[i].expected) one[i].expected += at;
      if (one[i].bound) one[i].bound += at;
    }
    Solver(g, one).Solve();
  }
  return 0;
}

}  // namespace oracle
