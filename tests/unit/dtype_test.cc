// Conversions are checked over every code of the narrow types, against arithmetic in double.
#include "base/dtype.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>

#include "gtest/gtest.h"

namespace tl {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr int64_t kMinInt = std::numeric_limits<int64_t>::min();
constexpr int64_t kMaxInt = std::numeric_limits<int64_t>::max();

struct Narrow {
  DType type;
  int exponent_bits;
  int mantissa_bits;
  bool has_inf;    // the top exponent means infinity and NaN
  bool saturates;  // on overflow
};
constexpr Narrow kNarrow[] = {
    {DType::kE4M3, 4, 3, false, true},
    {DType::kE5M2, 5, 2, true, true},
    {DType::kF16, 5, 10, true, false},
    {DType::kBF16, 8, 7, true, false},
};

// The value of a code without sign, by the definition of the format.
double ValueOfCode(const Narrow& n, uint32_t code) {
  const int bias = (1 << (n.exponent_bits - 1)) - 1;
  const int field = static_cast<int>(code >> n.mantissa_bits);
  const double fraction =
      std::ldexp(static_cast<double>(code & ((1u << n.mantissa_bits) - 1)), -n.mantissa_bits);
  const int top = (1 << n.exponent_bits) - 1;
  if (n.has_inf && field == top) return fraction == 0 ? kInf : kNan;
  if (!n.has_inf && code == (1u << (n.exponent_bits + n.mantissa_bits)) - 1) return kNan;
  if (field == 0) return std::ldexp(fraction, 1 - bias);
  return std::ldexp(1 + fraction, field - bias);
}

uint32_t NumCodes(const Narrow& n) { return 1u << (n.exponent_bits + n.mantissa_bits); }

double LoadCode(const Narrow& n, uint32_t code) {
  const uint16_t wide = static_cast<uint16_t>(code);
  const uint8_t byte = static_cast<uint8_t>(code);
  return LoadElement(n.type, SizeOf(n.type) == 1 ? static_cast<const void*>(&byte) : &wide);
}

uint32_t StoreCode(const Narrow& n, double value) {
  uint16_t wide = 0;
  uint8_t byte = 0;
  if (SizeOf(n.type) == 1) {
    StoreElement(n.type, &byte, value);
    return byte;
  }
  StoreElement(n.type, &wide, value);
  return wide;
}

// Same bits, or both NaN.
bool Same(double a, double b) {
  return std::isnan(a) ? std::isnan(b) : std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
}

class NarrowTest : public testing::TestWithParam<Narrow> {};

TEST_P(NarrowTest, EveryCodeReadsAsDefined) {
  const Narrow& n = GetParam();
  for (uint32_t code = 0; code < NumCodes(n); ++code) {
    const double value = ValueOfCode(n, code);
    ASSERT_TRUE(Same(LoadCode(n, code), value)) << code;
    ASSERT_TRUE(Same(LoadCode(n, code | NumCodes(n)), -value)) << code;
  }
}

TEST_P(NarrowTest, EveryCodeSurvivesARoundTrip) {
  const Narrow& n = GetParam();
  for (uint32_t code = 0; code < 2 * NumCodes(n); ++code) {
    const double value = LoadCode(n, code);
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(RoundTo(n.type, value))) << code;
    } else if (std::isinf(value) && n.saturates) {
      ASSERT_EQ(RoundTo(n.type, value), std::copysign(MaxValue(n.type), value));
    } else {
      ASSERT_EQ(StoreCode(n, value), code);
      ASSERT_TRUE(Same(RoundTo(n.type, value), value)) << code;
    }
  }
}

// Between every two neighbours: the middle goes to the even one, everything else to the nearer one.
TEST_P(NarrowTest, RoundsToNearestEven) {
  const Narrow& n = GetParam();
  for (uint32_t code = 0; code + 1 < NumCodes(n); ++code) {
    const double low = ValueOfCode(n, code), high = ValueOfCode(n, code + 1);
    if (!std::isfinite(low) || !std::isfinite(high)) continue;
    const double middle = (low + high) / 2;
    for (const double sign : {1.0, -1.0}) {
      const uint32_t bit = sign < 0 ? NumCodes(n) : 0;
      ASSERT_EQ(StoreCode(n, sign * middle), bit | (code + (code & 1))) << middle;
      ASSERT_EQ(StoreCode(n, sign * std::nextafter(middle, 0)), bit | code) << middle;
      ASSERT_EQ(StoreCode(n, sign * std::nextafter(middle, kInf)), bit | (code + 1)) << middle;
      ASSERT_EQ(StoreCode(n, sign * std::nextafter(high, 0)), bit | (code + 1)) << high;
    }
  }
}

TEST_P(NarrowTest, Overflow) {
  const Narrow& n = GetParam();
  const double max = MaxValue(n.type);
  const double beyond = n.saturates ? max : kInf;
  // The first value that rounds to what would be the next one.
  const double step = max - ValueOfCode(n, StoreCode(n, max) - 1);
  EXPECT_EQ(RoundTo(n.type, std::nextafter(max + step / 2, 0)), max);
  EXPECT_EQ(RoundTo(n.type, max + step / 2), beyond);
  EXPECT_EQ(RoundTo(n.type, 1e300), beyond);
  EXPECT_EQ(RoundTo(n.type, kInf), beyond);
  EXPECT_EQ(RoundTo(n.type, -kInf), -beyond);
  EXPECT_TRUE(std::isnan(RoundTo(n.type, kNan)));
  EXPECT_TRUE(std::isnan(RoundTo(n.type, -kNan)));
}

TEST_P(NarrowTest, Underflow) {
  const Narrow& n = GetParam();
  const double smallest = ValueOfCode(n, 1);
  EXPECT_TRUE(Same(RoundTo(n.type, smallest / 2), 0.0));
  EXPECT_TRUE(Same(RoundTo(n.type, -smallest / 2), -0.0));
  EXPECT_EQ(RoundTo(n.type, std::nextafter(smallest / 2, 1)), smallest);
  EXPECT_TRUE(Same(RoundTo(n.type, std::numeric_limits<double>::denorm_min()), 0.0));
  EXPECT_TRUE(Same(RoundTo(n.type, -0.0), -0.0));
}

TEST_P(NarrowTest, Facts) {
  const Narrow& n = GetParam();
  EXPECT_EQ(Epsilon(n.type), std::ldexp(1, -n.mantissa_bits));
  double max = 0;
  for (uint32_t code = 0; code < NumCodes(n); ++code) {
    const double value = ValueOfCode(n, code);
    if (std::isfinite(value)) max = std::max(max, value);
  }
  EXPECT_EQ(MaxValue(n.type), max);
  EXPECT_EQ(MinValue(n.type), -max);
}

INSTANTIATE_TEST_SUITE_P(All, NarrowTest, testing::ValuesIn(kNarrow),
                         [](const auto& info) { return std::string(Name(info.param.type)); });

TEST(DTypeTest, BF16MatchesTheBitsOfFloat) {
  std::mt19937 random(1);
  for (int i = 0; i < 1000000; ++i) {
    const uint32_t bits = random();
    const float value = std::bit_cast<float>(bits);
    if (std::isnan(value)) continue;
    const uint32_t rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
    ASSERT_EQ(StoreCode(kNarrow[3], value), rounded) << bits;
  }
}

TEST(DTypeTest, FloatRoundsOnceFromDouble) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 100000; ++i) {
    const double value = std::bit_cast<double>(random());
    ASSERT_TRUE(Same(RoundTo(DType::kF32, value), static_cast<float>(value)));
    ASSERT_TRUE(Same(RoundTo(DType::kF64, value), value));
  }
  // f16 from f64 in one step: by way of f32 the tie would go up.
  EXPECT_EQ(RoundTo(DType::kF16, 1 + 0x1p-11 + 0x1p-40), 1 + 0x1p-10);
  EXPECT_EQ(RoundTo(DType::kF16, 1 + 0x1p-11 - 0x1p-40), 1);
}

TEST(DTypeTest, FloatToIntTruncatesAndSaturates) {
  struct Row {
    DType type;
    double value;
    double result;
  };
  const Row rows[] = {
      {DType::kBool, 0.5, 1},
      {DType::kBool, -0.0, 0},
      {DType::kI8, 1.9, 1},
      {DType::kI8, -1.9, -1},
      {DType::kI8, 127.5, 127},
      {DType::kI8, 300, 127},
      {DType::kI8, -300, -128},
      {DType::kU8, 255.9, 255},
      {DType::kU8, 256, 255},
      {DType::kU8, -0.9, 0},
      {DType::kU8, -1, 0},
      {DType::kI16, 1e9, 32767},
      {DType::kU16, 65535.5, 65535},
      {DType::kI32, 2147483647, 2147483647},
      {DType::kI32, 1e10, 2147483647},
      {DType::kI32, -kInf, -2147483648.0},
      {DType::kU32, kInf, 4294967295.0},
      {DType::kU32, kNan, 0},
      {DType::kI64, kNan, 0},
      {DType::kI64, 1e30, 0x1p63},
      {DType::kI64, -1e30, -0x1p63},
      {DType::kI64, 0x1p62, 0x1p62},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(RoundTo(row.type, row.value), row.result) << Name(row.type) << " " << row.value;
    unsigned char memory[8];
    StoreElement(row.type, memory, row.value);
    EXPECT_EQ(LoadElement(row.type, memory), row.result) << Name(row.type) << " " << row.value;
  }
  int64_t wide;
  StoreElement(DType::kI64, &wide, 1e30);
  EXPECT_EQ(wide, kMaxInt);
}

TEST(DTypeTest, IntToIntWraps) {
  EXPECT_EQ(WrapTo(DType::kBool, 2), 1);
  EXPECT_EQ(WrapTo(DType::kI8, 128), -128);
  EXPECT_EQ(WrapTo(DType::kI8, -129), 127);
  EXPECT_EQ(WrapTo(DType::kU8, -1), 255);
  EXPECT_EQ(WrapTo(DType::kI16, 0x18000), -32768);
  EXPECT_EQ(WrapTo(DType::kU16, -1), 65535);
  EXPECT_EQ(WrapTo(DType::kI32, int64_t{1} << 31), -(int64_t{1} << 31));
  EXPECT_EQ(WrapTo(DType::kU32, -1), 0xFFFFFFFF);
  EXPECT_EQ(WrapTo(DType::kI64, kMinInt), kMinInt);
}

TEST(DTypeTest, IntsInMemory) {
  for (int i = 0; i < kNumDTypes; ++i) {
    const DType type = static_cast<DType>(i);
    for (const int64_t value :
         {int64_t{0}, int64_t{1}, int64_t{-1}, int64_t{100}, kMinInt, kMaxInt}) {
      // The bytes behind the element stay as they were.
      unsigned char memory[16];
      for (unsigned char& byte : memory) byte = 0xA5;
      StoreInt(type, memory, value);
      for (size_t b = SizeOf(type); b < sizeof(memory); ++b) ASSERT_EQ(memory[b], 0xA5);
      if (IsFloat(type)) {
        EXPECT_EQ(LoadElement(type, memory), RoundTo(type, static_cast<double>(value)));
      } else {
        EXPECT_EQ(LoadInt(type, memory), WrapTo(type, value)) << Name(type);
      }
    }
  }
}

// 2^62 plus a little more than half of f32's step there: double alone would lose the little.
TEST(DTypeTest, WideIntsRoundOnceToFloat) {
  const int64_t value = (int64_t{1} << 62) + (int64_t{1} << 38) + 1;
  float f;
  StoreInt(DType::kF32, &f, value);
  EXPECT_EQ(f, static_cast<float>(value));
  EXPECT_EQ(f, 0x1p62f + 0x1p39f);
  StoreInt(DType::kF32, &f, -value);
  EXPECT_EQ(f, -0x1p62f - 0x1p39f);
  double d;
  StoreInt(DType::kF64, &d, kMaxInt);
  EXPECT_EQ(d, 0x1p63);
}

TEST(DTypeTest, LoadIntOfFloatsTruncates) {
  const float f = -2.75f, huge = 1e30f;
  EXPECT_EQ(LoadInt(DType::kF32, &f), -2);
  EXPECT_EQ(LoadInt(DType::kF32, &huge), kMaxInt);
}

TEST(DTypeTest, NamesAreUniqueAndParse) {
  for (int i = 0; i < kNumDTypes; ++i) {
    const DType type = static_cast<DType>(i);
    EXPECT_EQ(ParseDType(Name(type)), type);
  }
  EXPECT_EQ(ParseDType("half"), std::nullopt);
  EXPECT_EQ(ParseDType(""), std::nullopt);
  EXPECT_EQ(Name(ScalarType::kInt), "int");
  EXPECT_EQ(Name(ComputeType(DType::kE4M3)), "f32");
  EXPECT_EQ(Name(ComputeType(DType::kF64)), "f64");
  EXPECT_EQ(Name(ComputeType(DType::kU32)), "int");
  EXPECT_EQ(Name(ComputeType(DType::kBool)), "bool");
}

TEST(DTypeTest, Sizes) {
  constexpr size_t kSizes[] = {1, 1, 1, 2, 2, 4, 4, 8, 1, 1, 2, 2, 4, 8};
  for (int i = 0; i < kNumDTypes; ++i) EXPECT_EQ(SizeOf(static_cast<DType>(i)), kSizes[i]);
  EXPECT_EQ(MaxValue(DType::kU32), 4294967295.0);
  EXPECT_EQ(MinValue(DType::kI8), -128);
  EXPECT_EQ(Epsilon(DType::kI32), 0);
  EXPECT_EQ(Epsilon(DType::kF32), 0x1p-23);
}

}  // namespace
}  // namespace tl
