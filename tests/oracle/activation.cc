#include "tests/oracle/activation.h"

#include <cmath>
#include <numbers>

#include "tests/oracle/bound.h"

namespace oracle {

double Activate(Activation act, double x) {
  switch (act) {
    case Activation::kNone:
      return x;
    case Activation::kRelu:
      return x < 0 ? 0 : x;
    case Activation::kGelu:
      return 0.5 * x * std::erfc(-x / std::numbers::sqrt2);
    case Activation::kGeluTanh:
      return 0.5 * x *
             (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
    case Activation::kSilu:
      return x / (1 + std::exp(-x));
    case Activation::kSigmoid:
      return 1 / (1 + std::exp(-x));
  }
  return x;
}

double ActivationBound(Activation act, double x, double error, double eps) {
  if (act == Activation::kNone || act == Activation::kRelu) return error;
  // gelu's formulas form 1 + erf or 1 + tanh, whose error is relative to 1 and not to the result.
  // An exponential's relative error grows with its argument, more slowly than silu and sigmoid
  // fall.
  const double size = act == Activation::kSigmoid ? 1 : std::fabs(x);
  return kActivationSlope * error + kFunctionEps * eps * size;
}

}  // namespace oracle
