// Conversions against base/dtype: all values of the 8- and 16-bit types, dense sweeps of the
// others. On this processor and on one without half-precision instructions.
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/unit/cpu_testing.h"

namespace tl {
namespace {

using testing::Elementwise;

constexpr DType kNarrow[] = {DType::kE4M3, DType::kE5M2, DType::kF16, DType::kBF16};
constexpr DType kAll[] = {DType::kBool, DType::kI8,   DType::kU8,  DType::kI16,  DType::kU16,
                          DType::kI32,  DType::kU32,  DType::kI64, DType::kE4M3, DType::kE5M2,
                          DType::kF16,  DType::kBF16, DType::kF32, DType::kF64};
constexpr const char* kTargets[] = {"cpu", "cpu:x86-64"};

bool SameValue(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}

// Stores `input` (values of compute type `from`) as every type and compares with `want`.
void CheckStores(DType from, const std::vector<char>& input, int64_t count,
                 const std::vector<DType>& types, const char* target,
                 const std::function<void(DType to, const char* in, char* out)>& want) {
  SCOPED_TRACE(absl::StrCat("from ", Name(from), " on ", target));
  Elementwise e{{from}, {}, count};
  for (DType to : types) {
    e.outputs.push_back({to, [to](const std::vector<ExprRef>& x) { return MakeCast(to, x[0]); }});
  }
  std::vector<char> copy = input;
  const auto out = e.Run({copy.data()}, target);
  ASSERT_TRUE(out.ok()) << out.status();
  const size_t in_size = SizeOf(from);
  for (size_t k = 0; k < types.size(); ++k) {
    const size_t size = SizeOf(types[k]);
    int shown = 0;
    for (int64_t i = 0; i < count && shown < 5; ++i) {
      char expected[8];
      want(types[k], &input[i * in_size], expected);
      const double x = LoadElement(types[k], expected);
      const double y = LoadElement(types[k], &(*out)[k][i * size]);
      const bool same = types[k] == DType::kI64 ? !std::memcmp(expected, &(*out)[k][i * size], size)
                                                : SameValue(x, y);
      if (same) continue;
      ++shown;
      ADD_FAILURE() << LoadElement(from, &input[i * in_size]) << " as " << Name(types[k]) << " is "
                    << y << ", should be " << x;
    }
  }
}

void FromFloat(DType from, const std::vector<char>& input, int64_t count, const char* target) {
  CheckStores(from, input, count, {std::begin(kAll), std::end(kAll)}, target,
              [from](DType to, const char* in, char* out) {
                StoreElement(to, out, LoadElement(from, in));
              });
}

TEST(CpuConvert, EveryNarrowValueToEveryType) {
  for (const char* target : kTargets) {
    for (DType from : kNarrow) {
      const int64_t count = int64_t{1} << (8 * SizeOf(from));
      std::vector<char> input(count * SizeOf(from));
      for (int64_t i = 0; i < count; ++i) std::memcpy(&input[i * SizeOf(from)], &i, SizeOf(from));
      FromFloat(from, input, count, target);
    }
  }
}

TEST(CpuConvert, EveryNarrowIntToEveryType) {
  for (DType from : {DType::kBool, DType::kI8, DType::kU8, DType::kI16, DType::kU16}) {
    const int64_t count = from == DType::kBool ? 2 : int64_t{1} << (8 * SizeOf(from));
    std::vector<char> input(count * SizeOf(from));
    for (int64_t i = 0; i < count; ++i) std::memcpy(&input[i * SizeOf(from)], &i, SizeOf(from));
    CheckStores(
        from, input, count, {std::begin(kAll), std::end(kAll)}, "cpu",
        [from](DType to, const char* in, char* out) { StoreInt(to, out, LoadInt(from, in)); });
  }
}

// All combinations of sign, exponent and the mantissa bits that the narrow types keep, with rests
// below, at and above the ties.
TEST(CpuConvert, FloatSweep) {
  std::vector<float> values;
  for (uint32_t high = 0; high < 0x10000; ++high) {
    for (uint32_t low : {0x0000u, 0x0001u, 0x7FFFu, 0x8000u, 0x8001u, 0x1000u, 0xFFFFu}) {
      values.push_back(std::bit_cast<float>(high << 16 | low));
    }
  }
  // Ties of f16 lie in the lower half.
  for (uint32_t high = 0; high < 0x10000; ++high) {
    values.push_back(std::bit_cast<float>(high << 16 | 0x3000));
    values.push_back(std::bit_cast<float>(high << 16 | 0x2FFF));
    values.push_back(std::bit_cast<float>(high << 16 | 0x3001));
  }
  std::vector<char> input(values.size() * sizeof(float));
  std::memcpy(input.data(), values.data(), input.size());
  for (const char* target : kTargets) {
    FromFloat(DType::kF32, input, static_cast<int64_t>(values.size()), target);
  }
}

// Doubles around every tie of the narrow types: rounding by way of float must not round twice.
TEST(CpuConvert, DoubleTies) {
  std::vector<double> values = {0,       -0.0,         1e300,        -1e300,      1e-300,
                                5e-324,  INFINITY,     -INFINITY,    NAN,         9.3e18,
                                -9.3e18, 4294967295.5, 4294967296.0, 2147483648.0};
  for (DType t : kNarrow) {
    const int64_t count = int64_t{1} << (8 * SizeOf(t) - 1);
    for (int64_t i = 0; i + 1 < count; ++i) {
      const double a = LoadElement(t, &i);
      const int64_t j = i + 1;
      const double tie = a + (LoadElement(t, &j) - a) / 2;
      if (!std::isfinite(tie)) continue;
      for (double v : {tie, std::nextafter(tie, 0), std::nextafter(tie, 1e308)}) {
        values.push_back(v);
        values.push_back(-v);
      }
    }
  }
  std::mt19937_64 rng(7);
  for (int i = 0; i < 20000; ++i) values.push_back(std::bit_cast<double>(rng()));
  std::vector<char> input(values.size() * sizeof(double));
  std::memcpy(input.data(), values.data(), input.size());
  for (const char* target : kTargets) {
    FromFloat(DType::kF64, input, static_cast<int64_t>(values.size()), target);
  }
}

TEST(CpuConvert, WideInts) {
  std::vector<int64_t> values = {0,
                                 1,
                                 -1,
                                 127,
                                 128,
                                 255,
                                 256,
                                 -128,
                                 -129,
                                 32767,
                                 32768,
                                 65535,
                                 65536,
                                 2147483647,
                                 2147483648,
                                 4294967295,
                                 4294967296,
                                 std::numeric_limits<int64_t>::max(),
                                 std::numeric_limits<int64_t>::min()};
  // Ties of the narrow floats among the integers; beyond 2^53 double itself would round first.
  for (int shift = 1; shift < 50; ++shift) {
    for (int64_t mantissa = 0; mantissa < 64; ++mantissa) {
      const int64_t v = (int64_t{64} + mantissa) << shift >> 5;
      for (int64_t d : {-1, 0, 1}) {
        values.push_back(v + d);
        values.push_back(-v - d);
      }
    }
  }
  std::vector<char> input(values.size() * sizeof(int64_t));
  std::memcpy(input.data(), values.data(), input.size());
  for (const char* target : kTargets) {
    CheckStores(
        DType::kI64, input, static_cast<int64_t>(values.size()), {std::begin(kAll), std::end(kAll)},
        target,
        [](DType to, const char* in, char* out) { StoreInt(to, out, LoadInt(DType::kI64, in)); });
  }
}

// A copy keeps the bits: also of NaNs, and without widening in between.
TEST(CpuConvert, CopiesKeepBits) {
  for (DType t : kNarrow) {
    const int64_t count = int64_t{1} << (8 * SizeOf(t));
    std::vector<char> input(count * SizeOf(t));
    for (int64_t i = 0; i < count; ++i) std::memcpy(&input[i * SizeOf(t)], &i, SizeOf(t));
    Elementwise e{{t}, {{t, [](const std::vector<ExprRef>& x) { return x[0]; }}}, count};
    const auto out = e.Run({input.data()});
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_EQ((*out)[0], input) << Name(t);
  }
}

}  // namespace
}  // namespace tl
