// reduce_*, argmax and cumsum: along one dim, in float64 with bounds or in the compute type.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "backends/reference/agent.h"
#include "backends/reference/error_model.h"

namespace tl::reference {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

// The lines of `src` along `dim`, and where their results go.
struct Lines {
  TileView src, dst;
  int dim;
  int64_t n;
};

// The position of a line's result: `dst` lacks the dim, or is a lone element.
int64_t ResultAt(const Lines& l, const Index& c) {
  if (l.dst.rank == l.src.rank) return l.dst.At(c);  // rank 1 into [1], c[dim] is 0
  Index d{};
  for (int i = 0, j = 0; i < l.src.rank; ++i) {
    if (i != l.dim) d[j++] = c[i];
  }
  return l.dst.At(d);
}

// fn(start of a line in src, its step, coordinates with c[dim] = 0).
template <typename Fn>
void ForEachLine(const Lines& l, Fn fn) {
  Index outer = l.src.extent;
  outer[l.dim] = 1;
  ForEachCoordinate(l.src.rank, outer,
                    [&](const Index& c) { fn(l.src.At(c), l.src.stride[l.dim], c); });
}

BinaryOp OperatorOf(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return BinaryOp::kAdd;
    case ReduceOp::kProd:
      return BinaryOp::kMul;
    case ReduceOp::kMin:
      return BinaryOp::kMin;
    case ReduceOp::kAny:
      return BinaryOp::kOr;
    case ReduceOp::kAll:
      return BinaryOp::kAnd;
    default:
      return BinaryOp::kMax;
  }
}

// A float sum with its bound: in any order, see error_model.h.
Value ExactSum(const TileView& src, int64_t at, int64_t step, int64_t n, ScalarType type) {
  double sum = 0, magnitude = 0, err = 0;
  Value r;
  for (int64_t i = 0; i < n; ++i, at += step) {
    const Value v = src.Get(at);
    sum += v.c.f;
    magnitude += std::fabs(v.c.f);
    err += v.err;
    if (v.undefined != kNoId) r.undefined = v.undefined;
  }
  r.c.f = sum;
  if (std::isfinite(sum)) {
    r.err = err + kSumFactor * std::sqrt(static_cast<double>(n)) * ComputeEps(type) * magnitude;
  } else {
    r.err = err == kInf ? kInf : 0;
  }
  return r;
}

// Whether `candidate` beats the best so far; NaN never does.
bool Larger(DType t, Cell candidate, Cell best) {
  return IsFloat(t) ? candidate.f > best.f : candidate.i > best.i;
}

Value LargestOf(const TileView& src, int64_t start, int64_t step, int64_t n) {
  int64_t best = -1;
  Value r;
  for (int64_t i = 0; i < n; ++i) {
    const Value v = src.Get(start + i * step);
    if (v.undefined != kNoId) r.undefined = v.undefined;
    if (IsFloat(src.dtype) && std::isnan(v.c.f)) continue;
    if (best < 0 || Larger(src.dtype, v.c, src.cell[start + best * step])) best = i;
  }
  r.c.i = std::max<int64_t>(best, 0);
  if (src.err == nullptr || best < 0 || !IsFloat(src.dtype)) return r;
  // Elements that are the largest within their errors may be chosen as well.
  const Value top = src.Get(start + best * step);
  for (int64_t i = 0; i < n; ++i) {
    const Value v = src.Get(start + i * step);
    const double slack = v.err + top.err;
    if (slack > 0 && !(top.c.f - v.c.f > slack)) {
      r.err = std::max(r.err, static_cast<double>(std::abs(i - best)));
    }
  }
  return r;
}

}  // namespace

bool Agent::Exec(const Stmt& s, const Reduce& reduce) {
  Lines l;
  l.dim = reduce.dim;
  if (!ReadView(reduce.src, s.span, &l.src) || !View(reduce.dst, s.span, &l.dst)) {
    return false;
  }
  l.n = l.src.extent[l.dim];
  const DType t = l.src.dtype;
  const ScalarType type = ComputeType(t);
  const ScalarType dst_type = ComputeType(l.dst.dtype);
  const BinaryOp op = OperatorOf(reduce.op);
  const bool logical = reduce.op == ReduceOp::kAny || reduce.op == ReduceOp::kAll;
  const auto load = [&](int64_t at) {
    Value v = l.src.Get(at);
    if (reduce.op == ReduceOp::kAbsMax) v = arith_.Call(MathFn::kAbs, type, v, {});
    if (logical) v = arith_.Convert(DType::kBool, type, v);
    return v;
  };
  ForEachLine(l, [&](int64_t at, int64_t step, const Index& c) {
    if (l.n == 0) return;
    const ScalarType fold = logical ? ScalarType::kBool : type;
    Value r;
    if (exact_ && IsFloat(t) && reduce.op == ReduceOp::kSum) {
      r = ExactSum(l.src, at, step, l.n, type);
    } else {
      r = load(at);
      for (int64_t i = 1; i < l.n; ++i) r = arith_.Binary(op, fold, r, load(at + i * step));
    }
    const int64_t to = ResultAt(l, c);
    // In the wider of the two types, rounded once.
    const ScalarType wide = std::max(fold, dst_type);
    const DType as = wide == ScalarType::kF64   ? DType::kF64
                     : wide == ScalarType::kF32 ? DType::kF32
                     : wide == ScalarType::kInt ? DType::kI64
                                                : DType::kBool;
    r = arith_.Convert(as, fold, r);
    if (!reduce.clear) {
      Value old = arith_.Convert(as, dst_type, l.dst.Get(to));
      if (logical && wide != ScalarType::kBool) {
        old = arith_.Convert(as, ScalarType::kBool, arith_.Convert(DType::kBool, wide, old));
      }
      r = arith_.Binary(op, wide, old, r);
    }
    l.dst.Set(to, arith_.Convert(l.dst.dtype, wide, r));
  });
  block_->work += reduce.src.num_elements();
  return !failed();
}

bool Agent::Exec(const Stmt& s, const ArgMax& argmax) {
  Lines l;
  l.dim = argmax.dim;
  if (!ReadView(argmax.src, s.span, &l.src) || !View(argmax.dst, s.span, &l.dst)) {
    return false;
  }
  l.n = l.src.extent[l.dim];
  ForEachLine(l, [&](int64_t at, int64_t step, const Index& c) {
    Value r = LargestOf(l.src, at, step, l.n);
    l.dst.Set(ResultAt(l, c), arith_.Convert(l.dst.dtype, ScalarType::kInt, r));
  });
  block_->work += argmax.src.num_elements();
  return true;
}

bool Agent::Exec(const Stmt& s, const CumSum& cumsum) {
  Lines l;
  l.dim = cumsum.dim;
  if (!ReadView(cumsum.src, s.span, &l.src) || !View(cumsum.dst, s.span, &l.dst)) {
    return false;
  }
  l.n = l.src.extent[l.dim];
  const ScalarType type = ComputeType(l.src.dtype);
  const double eps = IsFloat(type) ? ComputeEps(type) : 0;
  ForEachLine(l, [&](int64_t at, int64_t step, const Index& c) {
    Index to = c;
    Value sum;
    double magnitude = 0, err = 0;
    for (int64_t k = 0; k < l.n; ++k) {
      const int64_t i = cumsum.reverse ? l.n - 1 - k : k;
      const Value v = l.src.Get(at + i * step);
      sum = k == 0 ? v : arith_.Binary(BinaryOp::kAdd, type, sum, v);
      if (exact_ && IsFloat(type)) {
        // In any order, like a sum of k + 1 terms.
        magnitude += std::fabs(v.c.f);
        err += v.err;
        const double own = kSumFactor * std::sqrt(static_cast<double>(k)) * eps * magnitude;
        sum.err = std::isfinite(sum.c.f) ? err + own : 0;
      }
      to[l.dim] = i;
      l.dst.Set(l.dst.At(to), arith_.Convert(l.dst.dtype, type, sum));
    }
  });
  block_->work += cumsum.src.num_elements();
  return true;
}

}  // namespace tl::reference
