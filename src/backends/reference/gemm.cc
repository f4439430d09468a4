// c += op(a) · op(b) over packed rows of doubles, floats or ints.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "backends/reference/agent.h"
#include "backends/reference/error_model.h"

namespace tl::reference {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

// An operand as a rows × cols matrix, transposed on the way if asked.
struct Matrix {
  TileView view;
  bool transpose;
  int64_t rows() const { return view.extent[transpose ? 1 : 0]; }
  int64_t cols() const { return view.extent[transpose ? 0 : 1]; }
  int64_t At(int64_t i, int64_t j) const {
    return i * view.stride[transpose ? 1 : 0] + j * view.stride[transpose ? 0 : 1];
  }
};

float ToTf32(float f) {
  uint32_t bits;
  std::memcpy(&bits, &f, sizeof(bits));
  if ((bits & 0x7f800000u) != 0x7f800000u) {
    bits += 0xfffu + ((bits >> 13) & 1);  // nearest even in 10 bits
    bits &= ~0x1fffu;
  }
  std::memcpy(&f, &bits, sizeof(f));
  return f;
}

template <typename T, typename F>
std::vector<T> Pack(const Matrix& m, F get) {
  std::vector<T> out(static_cast<size_t>(m.rows() * m.cols()));
  size_t n = 0;
  for (int64_t i = 0; i < m.rows(); ++i) {
    for (int64_t j = 0; j < m.cols(); ++j) out[n++] = get(m.At(i, j));
  }
  return out;
}

// c[M][N] += a[M][K] · b[K][N], k ascending.
template <typename T>
void Multiply(int64_t m, int64_t n, int64_t k, const T* a, const T* b, T* c) {
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t p = 0; p < k; ++p) {
      const T x = a[i * k + p];
      const T* row = b + p * n;
      T* out = c + i * n;
      for (int64_t j = 0; j < n; ++j) out[j] += x * row[j];
    }
  }
}

template <typename T, typename In, typename Out>
void MultiplyAs(const Matrix& a, const Matrix& b, const TileView& c, In in, Out out) {
  const Matrix cm{c, false};
  const int64_t m = a.rows(), n = b.cols(), k = a.cols();
  const std::vector<T> pa = Pack<T>(a, [&](int64_t at) { return in(a.view.cell[at]); });
  const std::vector<T> pb = Pack<T>(b, [&](int64_t at) { return in(b.view.cell[at]); });
  std::vector<T> pc = Pack<T>(cm, [&](int64_t at) { return static_cast<T>(out(c.cell[at])); });
  Multiply(m, n, k, pa.data(), pb.data(), pc.data());
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) out(c.cell[cm.At(i, j)]) = pc[i * n + j];
  }
}

std::vector<double> Magnitudes(const std::vector<double>& v) {
  std::vector<double> out(v.size());
  std::transform(v.begin(), v.end(), out.begin(), [](double x) { return std::fabs(x); });
  return out;
}

bool AnyError(const std::vector<double>& err) {
  return std::any_of(err.begin(), err.end(), [](double e) { return e != 0; });
}

// What sums in `c` lose at every step. A narrow result may be summed in its own type, as tensor
// cores do with f16.
double AccumulatorEps(DType c) {
  return c == DType::kF64 ? kF64Eps : c == DType::kF32 ? kF32Eps : Epsilon(c);
}

std::vector<double> Squares(const std::vector<double>& v) {
  std::vector<double> out(v.size());
  std::transform(v.begin(), v.end(), out.begin(), [](double x) { return x * x; });
  return out;
}

// Float64 product with the running error bound of docs in error_model.h.
void MultiplyExact(const Matrix& a, const Matrix& b, const TileView& c, GemmPrecision precision) {
  const double operand_eps = precision == GemmPrecision::kTF32 ? kTf32Eps : 0;
  const Matrix cm{c, false};
  const int64_t m = a.rows(), n = b.cols(), k = a.cols();
  const auto values = [](const Matrix& x) {
    return Pack<double>(x, [&](int64_t at) { return x.view.cell[at].f; });
  };
  const auto errors = [](const Matrix& x) {
    return Pack<double>(x, [&](int64_t at) { return x.view.err[at]; });
  };
  const std::vector<double> va = values(a), vb = values(b);
  const std::vector<double> ea = errors(a), eb = errors(b);
  std::vector<double> vc = values(cm), ec = errors(cm);
  std::vector<double> sum(vc.size());
  const std::vector<double> ma = Magnitudes(va), mb = Magnitudes(vb);
  Multiply(m, n, k, va.data(), vb.data(), vc.data());
  Multiply(m, n, k, ma.data(), mb.data(), sum.data());
  if (AnyError(eb)) Multiply(m, n, k, ma.data(), eb.data(), ec.data());
  if (AnyError(ea)) {
    std::vector<double> reach = mb;
    for (size_t i = 0; i < reach.size(); ++i) reach[i] += eb[i];
    Multiply(m, n, k, ea.data(), reach.data(), ec.data());
  }
  std::vector<double> squares;  // Σ of the terms'
  if (precision == GemmPrecision::kFastAccum) {
    squares.resize(vc.size());
    const std::vector<double> sa = Squares(va), sb = Squares(vb);
    Multiply(m, n, k, sa.data(), sb.data(), squares.data());
  }
  const double steps = std::ceil(static_cast<double>(k) / kFastStep);
  const double own_eps = AccumulatorEps(c.dtype);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      const int64_t at = cm.At(i, j), from = i * n + j;
      const double v = vc[from], before = c.cell[at].f;
      // What c held before is one more term.
      const double factor = kSumFactor * std::sqrt(static_cast<double>(k + (before != 0)));
      double e =
          ec[from] + factor * ((own_eps + operand_eps) * sum[from] + own_eps * std::fabs(before));
      if (!squares.empty()) {
        const double reach =
            std::fabs(v) + std::fabs(before) + kSumFactor * std::sqrt(squares[from]);
        e += steps * kFastStepEps * reach;
      }
      if (!std::isfinite(v)) {
        e = e == kInf ? kInf : 0;
      } else if (std::isnan(e) ||
                 (c.dtype == DType::kF32 && std::fabs(v) + e > MaxValue(DType::kF32))) {
        e = kInf;
      }
      c.cell[at].f = v;
      c.err[at] = e;
    }
  }
}

// A row or column with an undefined element makes a row or column of c undefined.
void SpreadUndefined(const Matrix& a, const Matrix& b, const TileView& c) {
  const Matrix cm{c, false};
  std::vector<uint8_t> rows(a.rows(), 1), cols(b.cols(), 1);
  for (int64_t k = 0; k < a.cols(); ++k) {
    for (int64_t i = 0; i < a.rows(); ++i) rows[i] &= a.view.def[a.At(i, k)];
    for (int64_t j = 0; j < b.cols(); ++j) cols[j] &= b.view.def[b.At(k, j)];
  }
  for (int64_t i = 0; i < a.rows(); ++i) {
    for (int64_t j = 0; j < b.cols(); ++j) c.def[cm.At(i, j)] &= rows[i] & cols[j];
  }
}

double& AsDouble(Cell& c) { return c.f; }
int64_t& AsInt(Cell& c) { return c.i; }

}  // namespace

bool Agent::Exec(const Stmt& s, const Gemm& gemm) {
  TileView a, b, c;
  if (!ReadView(gemm.a, s.span, &a) || !ReadView(gemm.b, s.span, &b) || !View(gemm.c, s.span, &c)) {
    return false;
  }
  const Matrix ma{a, gemm.transpose_a}, mb{b, gemm.transpose_b}, mc{c, false};
  if (ma.cols() != mb.rows() || mc.rows() != ma.rows() || mc.cols() != mb.cols()) {
    Fail(s.span, absl::StrCat("gemm of ", ma.rows(), "x", ma.cols(), " and ", mb.rows(), "x",
                              mb.cols(), " into ", mc.rows(), "x", mc.cols()));
    return false;
  }
  if (gemm.clear) {
    ForEachCoordinate(c.rank, c.extent, [&](const Index& i) { c.Set(c.At(i), Value{}); });
  }
  const bool tf32 = gemm.precision == GemmPrecision::kTF32 && a.dtype == DType::kF32;
  if (!IsFloat(c.dtype)) {
    MultiplyAs<uint64_t>(ma, mb, c, [](Cell x) { return static_cast<uint64_t>(x.i); }, AsInt);
    ForEachCoordinate(c.rank, c.extent, [&](const Index& i) {
      Cell& cell = c.cell[c.At(i)];
      cell.i = WrapTo(c.dtype, cell.i);
    });
  } else if (exact_) {
    MultiplyExact(ma, mb, c, gemm.precision);
  } else if (c.dtype == DType::kF64) {
    MultiplyAs<double>(ma, mb, c, [](Cell x) { return x.f; }, AsDouble);
  } else {
    MultiplyAs<float>(
        ma, mb, c,
        [tf32](Cell x) { return tf32 ? ToTf32(static_cast<float>(x.f)) : static_cast<float>(x.f); },
        AsDouble);
  }
  if (IsFloat(c.dtype) && c.dtype != DType::kF32 && c.dtype != DType::kF64) {
    ForEachCoordinate(c.rank, c.extent, [&](const Index& i) {
      const int64_t at = c.At(i);
      c.Set(at, arith_.Convert(c.dtype, ScalarType::kF32, c.Get(at)));
    });
  }
  if (exact_) SpreadUndefined(ma, mb, c);
  block_->work += ma.rows() * ma.cols() * mb.cols();
  return true;
}

}  // namespace tl::reference
