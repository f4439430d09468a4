// Errors of the functions that are approximated, over all exponents of float, against the C library
// in double. The bounds are those that maths.h promises.
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "tests/unit/cpu_testing.h"

namespace tl {
namespace {

using testing::Elementwise;

struct Case {
  MathFn fn;
  double (*want)(double);
  double ulps;
};

const Case kCases[] = {
    {MathFn::kExp, std::exp, 1.5},
    {MathFn::kExp2, std::exp2, 1.5},
    {MathFn::kLog, std::log, 1.5},
    {MathFn::kLog2, std::log2, 2},
    {MathFn::kTanh, std::tanh, 2},
    {MathFn::kErf, std::erf, 1.5},
    {MathFn::kSigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }, 3},
    {MathFn::kRsqrt, [](double x) { return 1 / std::sqrt(x); }, 1.5},
    {MathFn::kSin, std::sin, 1},
    {MathFn::kCos, std::cos, 1},
};

// Distance in units in the last place of the float nearest to `want`.
double UlpsOff(float got, double want) {
  const float nearest = static_cast<float>(want);
  if (std::isnan(nearest) || std::isnan(got)) {
    return std::isnan(nearest) && std::isnan(got) ? 0 : INFINITY;
  }
  if (std::isinf(nearest) || std::isinf(got)) return got == nearest ? 0 : INFINITY;
  int exponent;
  std::frexp(nearest, &exponent);
  return std::fabs(got - want) / std::ldexp(1.0, std::max(exponent - 24, -149));
}

std::vector<float> Sweep() {
  std::vector<float> x;
  // A stride without regular low bits, and every value around the places where formulas change.
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += 4093) {
    x.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  }
  for (float edge : {0.625f, 0.921875f, 4.0f, 1.0f, 0.70710678f, 1.41421356f, 88.72284f, -103.97f,
                     -87.3f, 128.0f, -126.0f, -149.0f, -150.0f, 1.1754944e-38f, 0.5f, 0.0f}) {
    const uint32_t middle = std::bit_cast<uint32_t>(edge);
    for (uint32_t d = 0; d < 4000; ++d) {
      x.push_back(std::bit_cast<float>(middle + d - 2000));
      x.push_back(-x.back());
    }
  }
  return x;
}

TEST(CpuMaths, ErrorsOfF32) {
  std::vector<float> x = Sweep();
  Elementwise e{{DType::kF32}, {}, static_cast<int64_t>(x.size())};
  for (const Case& c : kCases) {
    e.outputs.push_back(
        {DType::kF32, [fn = c.fn](const std::vector<ExprRef>& v) { return MakeCall(fn, {v[0]}); }});
  }
  for (const char* target : {"cpu", "cpu:x86-64"}) {
    const auto out = e.Run({x.data()}, target);
    ASSERT_TRUE(out.ok()) << out.status();
    for (size_t k = 0; k < std::size(kCases); ++k) {
      double worst = 0;
      float where = 0;
      for (size_t i = 0; i < x.size(); ++i) {
        const double off = UlpsOff(testing::As<float>((*out)[k])[i], kCases[k].want(x[i]));
        if (off > worst) worst = off, where = x[i];
      }
      EXPECT_LE(worst, kCases[k].ulps) << Name(kCases[k].fn) << "(" << where << ") on " << target;
      RecordProperty(std::string(Name(kCases[k].fn)), std::to_string(worst));
    }
  }
}

TEST(CpuMaths, F64AndPow) {
  std::vector<double> x, y;
  for (double a : {0.0, 1.0, -1.0, 0.3, 7.5, -20.25, 700.0, 1e-5, 1e10}) {
    for (double b : {0.0, 1.0, 2.0, -3.0, 0.5}) {
      x.push_back(a);
      y.push_back(b);
    }
  }
  Elementwise e{{DType::kF64, DType::kF64}, {}, static_cast<int64_t>(x.size())};
  for (const Case& c : kCases) {
    e.outputs.push_back(
        {DType::kF64, [fn = c.fn](const std::vector<ExprRef>& v) { return MakeCall(fn, {v[0]}); }});
  }
  e.outputs.push_back({DType::kF64, [](const std::vector<ExprRef>& v) {
                         return MakeCall(MathFn::kPow, {v[0], v[1]});
                       }});
  e.outputs.push_back(
      {DType::kF32, [](const std::vector<ExprRef>& v) {
         return MakeCall(MathFn::kPow, {MakeCast(DType::kF32, v[0]), MakeCast(DType::kF32, v[1])});
       }});
  const auto out = e.Run({x.data(), y.data()});
  ASSERT_TRUE(out.ok()) << out.status();
  const auto close = [](double a, double b, double eps) {
    return (std::isnan(a) && std::isnan(b)) || a == b || std::fabs(a - b) <= eps * std::fabs(b);
  };
  for (size_t i = 0; i < x.size(); ++i) {
    size_t k = 0;
    for (const Case& c : kCases) {
      const double got = testing::As<double>((*out)[k++])[i];
      EXPECT_TRUE(close(got, c.want(x[i]), 1e-15)) << Name(c.fn) << "(" << x[i] << ") is " << got;
    }
    EXPECT_TRUE(close(testing::As<double>((*out)[k])[i], std::pow(x[i], y[i]), 1e-15));
    const float want = std::pow(static_cast<float>(x[i]), static_cast<float>(y[i]));
    EXPECT_TRUE(close(testing::As<float>((*out)[k + 1])[i], want, 2e-7)) << x[i] << " " << y[i];
  }
}

}  // namespace
}  // namespace tl
