// The mathematical functions of generated HIP code, run on this host: their largest errors are what
// the prelude says, with a hardware root that is one unit off.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

namespace {
namespace device {

#define TL_FN static inline
TL_FN unsigned tl_bits(float x) { return std::bit_cast<unsigned>(x); }
TL_FN float tl_float(unsigned x) { return std::bit_cast<float>(x); }
TL_FN float tl_fma(float x, float y, float z) { return std::fma(x, y, z); }
TL_FN double tl_fma(double x, double y, double z) { return std::fma(x, y, z); }
TL_FN float tl_ldexp(float x, int n) { return std::ldexp(x, n); }
TL_FN double tl_ldexp(double x, int n) { return std::ldexp(x, n); }
TL_FN float tl_rough_sqrt(float x) {
  const float root = __builtin_sqrtf(x);
  const bool finite = x > 0 && x < std::numeric_limits<float>::infinity();
  return finite ? tl_float(tl_bits(root) + tl_bits(x) % 3 - 1) : root;
}
TL_FN double tl_rough_sqrt(double x) {
  const double root = __builtin_sqrt(x);
  return x > 0 && x < std::numeric_limits<double>::infinity() ? root * (1 + 1e-9) : root;
}
#include "src/backends/hip/maths.hip"
#undef expf
#undef exp2f
#undef logf
#undef log2f
#undef tanhf
#undef erff
#undef sqrtf
#undef rsqrtf
#undef sqrt
#undef rsqrt
#undef sinf
#undef cosf
#undef powf

}  // namespace device

// Distance in units in the last place of the nearest float; NaNs and infinities must agree.
double Ulps(float got, long double want) {
  constexpr double kWrong = 1e9;
  const auto nearest = static_cast<float>(want);
  if (std::isnan(nearest) || std::isnan(got)) {
    return std::isnan(nearest) == std::isnan(got) ? 0 : kWrong;
  }
  if (std::isinf(nearest) || std::isinf(got)) return nearest == got ? 0 : kWrong;
  int exponent = 0;
  std::frexp(want == 0 ? 1 : want, &exponent);
  const long double unit = std::ldexp(1.0L, std::max(exponent - 24, -149));
  return static_cast<double>(std::fabs(got - want) / unit);
}

template <class Function, class Exact>
void ExpectWithin(double ulps, Function function, Exact exact) {
  constexpr uint64_t kStep = 9973;  // of all floats
  double worst = 0;
  float at = 0;
  for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += kStep) {
    const auto x = std::bit_cast<float>(static_cast<uint32_t>(bits));
    const double error = Ulps(function(x), exact(static_cast<long double>(x)));
    if (error > worst) worst = error, at = x;
  }
  EXPECT_LE(worst, ulps) << "at " << at;
}

using Long = long double;

TEST(HipMaths, FunctionsOfOneFloatAreAsExactAsDocumented) {
  ExpectWithin(2, device::tl_expf, [](Long x) { return std::exp(x); });
  ExpectWithin(2, device::tl_exp2f, [](Long x) { return std::exp2(x); });
  ExpectWithin(2, device::tl_logf, [](Long x) { return std::log(x); });
  ExpectWithin(2, device::tl_log2f, [](Long x) { return std::log2(x); });
  ExpectWithin(2, device::tl_tanhf, [](Long x) { return std::tanh(x); });
  ExpectWithin(2, device::tl_erff, [](Long x) { return std::erf(x); });
  ExpectWithin(0.5, device::tl_sqrtf, [](Long x) { return std::sqrt(x); });
  ExpectWithin(1, device::tl_sinf, [](Long x) { return std::sin(x); });
  ExpectWithin(1, device::tl_cosf, [](Long x) { return std::cos(x); });
}

TEST(HipMaths, PowersAreAsCHasThem) {
  std::mt19937 random(1);
  double worst = 0;
  for (int i = 0; i < 300000; ++i) {
    const auto x = std::bit_cast<float>(static_cast<uint32_t>(random()));
    float y = std::bit_cast<float>(static_cast<uint32_t>(random()));
    if (i % 2 != 0) y = static_cast<float>(static_cast<int>(random() % 200) - 100) / 4;
    worst = std::max(worst, Ulps(device::tl_powf(x, y), std::pow(Long{x}, Long{y})));
  }
  EXPECT_LE(worst, 1);
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const float special[] = {0,    -0.0f, 1,     -1,    2,      -2,       3,        -3,  0.5,
                           -0.5, kInf,  -kInf, 1e30f, 1e-40f, 16777216, 16777214, 3.5, NAN};
  for (float x : special) {
    for (float y : special) {
      const float got = device::tl_powf(x, y), want = std::pow(x, y);
      EXPECT_LE(Ulps(got, std::pow(Long{x}, Long{y})), 1) << x << " " << y;
      if (!std::isnan(want)) {
        EXPECT_EQ(std::signbit(got), std::signbit(want)) << x << " " << y;
      }
    }
  }
}

TEST(HipMaths, RootsOfDoublesAreRoundedCorrectly) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 300000; ++i) {
    const double x = std::fabs(std::bit_cast<double>(random()));
    if (!std::isnan(x)) {
      ASSERT_EQ(device::tl_sqrt(x), std::sqrt(x)) << x;
    }
  }
}

}  // namespace
