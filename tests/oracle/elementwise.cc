#include "tests/oracle/elementwise.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tests/oracle/activation.h"
#include "tests/oracle/bound.h"

namespace oracle {
namespace {

double OfValue(double, double value) { return std::fabs(value); }
// The argument of an exponential is scaled and rounded first.
double OfExponential(double x, double value) { return std::fabs(value) * (1 + std::fabs(x)); }
double OfArgument(double x, double) { return std::max(1.0, std::fabs(x)); }

template <Activation act>
double Act(double x) {
  return Activate(act, x);
}

constexpr Elementwise::Op kOps[] = {
    {"cast", [](double x) { return x; }, nullptr, true, OfValue},
    {"neg", [](double x) { return -x; }, nullptr, true, OfValue},
    {"abs", [](double x) { return std::fabs(x); }, nullptr, true, OfValue},
    {"relu", Act<Activation::kRelu>, nullptr, true, OfValue},
    {"square", [](double x) { return x * x; }, nullptr, true, OfValue},
    {"sqrt", [](double x) { return std::sqrt(x); }, nullptr, false, OfValue},
    {"rsqrt", [](double x) { return 1 / std::sqrt(x); }, nullptr, false, OfValue},
    {"exp", [](double x) { return std::exp(x); }, nullptr, false, OfExponential},
    {"log", [](double x) { return std::log(x); }, nullptr, false, OfArgument},
    {"sigmoid", Act<Activation::kSigmoid>, nullptr, false, OfArgument},
    {"tanh", [](double x) { return std::tanh(x); }, nullptr, false, OfArgument},
    {"silu", Act<Activation::kSilu>, nullptr, false, OfArgument},
    {"gelu", Act<Activation::kGelu>, nullptr, false, OfArgument},
    {"gelu_tanh", Act<Activation::kGeluTanh>, nullptr, false, OfArgument},
    {"add", nullptr, [](double x, double z) { return x + z; }, true, OfValue},
    {"sub", nullptr, [](double x, double z) { return x - z; }, true, OfValue},
    {"mul", nullptr, [](double x, double z) { return x * z; }, true, OfValue},
    {"div", nullptr, [](double x, double z) { return x / z; }, false, OfValue},
    {"max", nullptr, [](double x, double z) { return std::max(x, z); }, true, OfValue},
    {"min", nullptr, [](double x, double z) { return std::min(x, z); }, true, OfValue},
};

// Ints keep their low bits.
double Wrapped(tl_dtype t, double value) {
  const auto n = static_cast<int64_t>(value);
  switch (t) {
    case TL_I8:
      return static_cast<int8_t>(n);
    case TL_U8:
      return static_cast<uint8_t>(n);
    case TL_I16:
      return static_cast<int16_t>(n);
    case TL_U16:
      return static_cast<uint16_t>(n);
    case TL_I32:
      return static_cast<int32_t>(n);
    case TL_U32:
      return static_cast<uint32_t>(n);
    default:
      return value;
  }
}

}  // namespace

const Elementwise::Op* FindElementwiseOp(const char* name) {
  for (const Elementwise::Op& op : kOps) {
    if (std::strcmp(op.name, name) == 0) return &op;
  }
  return nullptr;
}

int CheckElementwise(void* user, const tl_oracle_tensor* tensors, uint32_t num_tensors,
                     const int64_t*, const tl_scalar* scalars) {
  const Elementwise& e = *static_cast<const Elementwise*>(user);
  const bool tensor = e.with != Other::kNone && e.with != Other::kScalar;
  if (num_tensors != (tensor ? 3u : 2u)) return 1;
  const double* x = tensors[0].input;
  const tl_oracle_tensor& y = tensors[num_tensors - 1];
  const int64_t rows = y.shape[0], columns = y.shape[1];
  const double scalar = e.with != Other::kScalar ? 0
                        : IsInt(e.t)             ? static_cast<double>(scalars[0].i)
                                                 : scalars[0].f;
  const tl_dtype acc = e.t == TL_F64 ? TL_F64 : TL_F32;
  // An exact operation is rounded twice where the element is narrower.
  const double eps = Eps(acc) * (!e.op->exact ? kFunctionEps : acc == e.out ? 0 : 0.5);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      const int64_t i = r * columns + c;
      const double z = e.with == Other::kWhole ? tensors[1].input[i]
                       : e.with == Other::kRow ? tensors[1].input[c]
                       : e.with == Other::kCol ? tensors[1].input[r]
                                               : scalar;
      double value = e.op->unary ? e.op->unary(x[i]) : e.op->binary(x[i], z);
      const double error = IsInt(e.t) ? 0 : eps * e.op->size(x[i], value);
      if (IsInt(e.out)) value = Wrapped(e.out, value);
      const Stored stored = Store(e.out, value, error);
      y.expected[i] = stored.expected;
      y.bound[i] = stored.bound;
    }
  }
  return 0;
}

}  // namespace oracle
