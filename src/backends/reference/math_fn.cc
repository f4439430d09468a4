#include "backends/reference/math_fn.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace tl::reference {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

// e^x - 1 for x >= 0, cheap where errors usually are.
double ExpM1(double x) { return x < 1e-3 ? x * (1 + x) : std::expm1(x); }

// Largest of |ln(1 ± r)|.
double LogSpread(double r) { return r < 1 ? -std::log1p(-r) : kInf; }

double SpreadOfSteps(MathFn fn, double v, double a, double ea) {
  return std::max(Apply(fn, a + ea, 0) - v, v - Apply(fn, a - ea, 0));
}

double SpreadOfPow(double v, double a, double ea, double b, double eb) {
  if (!(a > ea)) return kInf;
  return std::fabs(v) *
         ExpM1((std::fabs(b) + eb) * LogSpread(ea / a) + eb * std::fabs(std::log(a)));
}

}  // namespace

double Apply(MathFn fn, double a, double b) {
  switch (fn) {
    case MathFn::kExp:
      return std::exp(a);
    case MathFn::kExp2:
      return std::exp2(a);
    case MathFn::kLog:
      return std::log(a);
    case MathFn::kLog2:
      return std::log2(a);
    case MathFn::kSqrt:
      return std::sqrt(a);
    case MathFn::kRsqrt:
      return 1 / std::sqrt(a);
    case MathFn::kTanh:
      return std::tanh(a);
    case MathFn::kErf:
      return std::erf(a);
    case MathFn::kSigmoid:
      return 1 / (1 + std::exp(-a));
    case MathFn::kSin:
      return std::sin(a);
    case MathFn::kCos:
      return std::cos(a);
    case MathFn::kPow:
      return std::pow(a, b);
    case MathFn::kAbs:
      return std::fabs(a);
    case MathFn::kFloor:
      return std::floor(a);
    case MathFn::kCeil:
      return std::ceil(a);
    case MathFn::kRound:
      return std::nearbyint(a);
    case MathFn::kFin:
      return std::isfinite(a) ? a : 0;
  }
  return 0;
}

double PropagateError(MathFn fn, double v, double a, double ea, double b, double eb) {
  if (ea == 0 && eb == 0) return 0;
  if (ea == kInf || eb == kInf) return kInf;
  switch (fn) {
    case MathFn::kExp:
      return v * ExpM1(ea);
    case MathFn::kExp2:
      return v * ExpM1(ea * std::numbers::ln2);
    case MathFn::kLog:
      return a > ea ? LogSpread(ea / a) : kInf;
    case MathFn::kLog2:
      return a > ea ? LogSpread(ea / a) * std::numbers::log2e : kInf;
    // Where the error reaches below zero the result is taken to be no worse than a zero's.
    case MathFn::kSqrt:
      return a > ea ? v - std::sqrt(a - ea) : std::sqrt(std::fabs(a) + ea);
    case MathFn::kRsqrt:
      return a > ea ? 1 / std::sqrt(a - ea) - v : kInf;
    case MathFn::kTanh:
      return ea * std::min(1.0, 1 - v * v + ea);
    case MathFn::kErf: {
      const double nearest = std::max(std::fabs(a) - ea, 0.0);
      return ea * 2 * std::numbers::inv_sqrtpi * std::exp(-nearest * nearest);
    }
    case MathFn::kSigmoid:
      return ea * std::min(0.25, v * (1 - v) + ea);
    case MathFn::kSin:
      return ea * std::min(1.0, std::fabs(std::cos(a)) + ea);
    case MathFn::kCos:
      return ea * std::min(1.0, std::fabs(std::sin(a)) + ea);
    case MathFn::kPow:
      return SpreadOfPow(v, a, ea, b, eb);
    case MathFn::kAbs:
      return ea;
    case MathFn::kFloor:
    case MathFn::kCeil:
    case MathFn::kRound:
      return SpreadOfSteps(fn, v, a, ea);
    case MathFn::kFin:
      return ea;
  }
  return kInf;
}

}  // namespace tl::reference
