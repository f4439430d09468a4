#include "base/dtype.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>

namespace tl {
namespace {

struct Info {
  std::string_view name;
  size_t size;
  double epsilon;
  double max;
  double min;
};

template <typename T>
constexpr Info IntInfo(std::string_view name) {
  return {name, sizeof(T), 0, static_cast<double>(std::numeric_limits<T>::max()),
          static_cast<double>(std::numeric_limits<T>::lowest())};
}

template <typename T>
constexpr Info FloatInfo(std::string_view name) {
  using Limits = std::numeric_limits<T>;
  return {name, sizeof(T), Limits::epsilon(), Limits::max(), Limits::lowest()};
}

constexpr Info kInfo[] = {
    {"bool", 1, 0, 1, 0},
    IntInfo<int8_t>("i8"),
    IntInfo<uint8_t>("u8"),
    IntInfo<int16_t>("i16"),
    IntInfo<uint16_t>("u16"),
    IntInfo<int32_t>("i32"),
    IntInfo<uint32_t>("u32"),
    IntInfo<int64_t>("i64"),
    {"e4m3", 1, 0x1p-3, 448, -448},
    {"e5m2", 1, 0x1p-2, 57344, -57344},
    {"f16", 2, 0x1p-10, 65504, -65504},
    {"bf16", 2, 0x1p-7, 0x1.FEp127, -0x1.FEp127},
    FloatInfo<float>("f32"),
    FloatInfo<double>("f64"),
};
static_assert(std::size(kInfo) == kNumDTypes);

const Info& InfoOf(DType t) { return kInfo[static_cast<int>(t)]; }

// -- Floats that the host has no type for
// ----------------------------------------------------------

constexpr int kDoubleBits = 52;
constexpr int kDoubleBias = 1023;

// Sign bit, exponent field, mantissa field, most significant first. Codes are without the sign.
struct Format {
  int exponent_bits;
  int mantissa_bits;
  uint32_t max_finite;  // code of the largest finite value
  uint32_t overflow;    // what larger values become
  uint32_t nan;         // what is stored for NaN

  constexpr int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  constexpr uint32_t sign() const { return 1u << (exponent_bits + mantissa_bits); }
};

constexpr Format kE4M3Format = {4, 3, 0x7E, 0x7E, 0x7F};
constexpr Format kE5M2Format = {5, 2, 0x7B, 0x7B, 0x7F};
constexpr Format kF16Format = {5, 10, 0x7BFF, 0x7C00, 0x7FFF};
constexpr Format kBF16Format = {8, 7, 0x7F7F, 0x7F80, 0x7FFF};

// value >> shift, to nearest, ties to even. 0 < shift < 64.
constexpr uint64_t ShiftToNearest(uint64_t value, int shift) {
  const uint64_t half = uint64_t{1} << (shift - 1);
  const uint64_t rest = value & (2 * half - 1);
  const uint64_t kept = value >> shift;
  return kept + (rest > half || (rest == half && (kept & 1) != 0));
}

constexpr uint32_t Encode(const Format& f, double value) {
  const uint64_t bits = std::bit_cast<uint64_t>(value);
  const uint32_t sign = bits >> 63 != 0 ? f.sign() : 0;
  const uint64_t magnitude = bits & ~(uint64_t{1} << 63);
  if (magnitude > uint64_t{0x7FF} << kDoubleBits) return f.nan;
  const int exponent = static_cast<int>(magnitude >> kDoubleBits) - kDoubleBias;
  const int smallest_normal = 1 - f.bias();
  int shift = kDoubleBits - f.mantissa_bits;
  if (exponent < smallest_normal) shift += smallest_normal - exponent;
  // Less than half of the smallest subnormal; doubles' own subnormals end here too.
  if (shift > kDoubleBits + 1) return sign;
  const uint64_t one = uint64_t{1} << kDoubleBits;
  const uint64_t mantissa = ShiftToNearest((magnitude & (one - 1)) | one, shift);
  // The implicit bit counts as one step of the exponent field, and a carry out of the mantissa as
  // another: both are plain additions.
  const int field = exponent < smallest_normal ? 0 : exponent - smallest_normal;
  const uint64_t code = (static_cast<uint64_t>(field) << f.mantissa_bits) + mantissa;
  return sign | static_cast<uint32_t>(code > f.max_finite ? f.overflow : code);
}

constexpr double Decode(const Format& f, uint32_t bits) {
  const uint32_t code = bits & (f.sign() - 1);
  const uint64_t sign = (bits & f.sign()) != 0 ? uint64_t{1} << 63 : 0;
  if (code > f.max_finite) {
    // Infinity follows the largest finite value, save in e4m3, where that code is NaN.
    const bool infinite = code == f.max_finite + 1 && code != f.nan;
    const uint64_t mantissa = infinite ? 0 : uint64_t{1} << (kDoubleBits - 1);
    return std::bit_cast<double>(sign | uint64_t{0x7FF} << kDoubleBits | mantissa);
  }
  const uint32_t field = code >> f.mantissa_bits;
  const uint64_t mantissa = code & ((1u << f.mantissa_bits) - 1);
  if (field == 0) {
    const uint64_t unit_exponent = kDoubleBias + 1 - f.bias() - f.mantissa_bits;
    const double value = static_cast<double>(mantissa) * std::bit_cast<double>(unit_exponent << 52);
    return sign != 0 ? -value : value;
  }
  const uint64_t exponent = field - f.bias() + kDoubleBias;
  return std::bit_cast<double>(sign | exponent << kDoubleBits |
                               mantissa << (kDoubleBits - f.mantissa_bits));
}

// -- Integers
// --------------------------------------------------------------------------------------

// Truncates toward zero and saturates; NaN becomes 0.
template <typename T>
T ToInt(double value) {
  using Limits = std::numeric_limits<T>;
  if (std::isnan(value)) return 0;
  // For 64 bits the bound rounds up to 2^63, which does not fit either.
  if (value >= static_cast<double>(Limits::max())) return Limits::max();
  if (value <= static_cast<double>(Limits::lowest())) return Limits::lowest();
  return static_cast<T>(value);
}

// The double next to `value` whose last bit says that something was lost, so that rounding it once
// more to 24 bits or fewer gives what rounding `value` directly would.
double ToOddDouble(int64_t value) {
  const uint64_t bits = static_cast<uint64_t>(value);
  uint64_t magnitude = value < 0 ? ~bits + 1 : bits;
  const int excess = static_cast<int>(std::bit_width(magnitude)) - (kDoubleBits + 1);
  if (excess > 0) {
    const bool lost = (magnitude & ((uint64_t{1} << excess) - 1)) != 0;
    magnitude = (magnitude >> excess | static_cast<uint64_t>(lost)) << excess;
  }
  const double result = static_cast<double>(magnitude);
  return value < 0 ? -result : result;
}

template <typename T>
T Read(const void* p) {
  T value;
  std::memcpy(&value, p, sizeof(value));
  return value;
}

template <typename T, typename V>
void Write(void* p, V value) {
  const T narrow = static_cast<T>(value);
  std::memcpy(p, &narrow, sizeof(narrow));
}

}  // namespace

size_t SizeOf(DType t) { return InfoOf(t).size; }
double Epsilon(DType t) { return InfoOf(t).epsilon; }
double MaxValue(DType t) { return InfoOf(t).max; }
double MinValue(DType t) { return InfoOf(t).min; }
std::string_view Name(DType t) { return InfoOf(t).name; }

std::string_view Name(ScalarType t) {
  constexpr std::string_view kNames[] = {"bool", "int", "f32", "f64"};
  return kNames[static_cast<int>(t)];
}

std::optional<DType> ParseDType(std::string_view name) {
  for (int i = 0; i < kNumDTypes; ++i) {
    if (kInfo[i].name == name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

double RoundTo(DType t, double value) {
  switch (t) {
    case DType::kBool:
      return value != 0 ? 1 : 0;
    case DType::kI8:
      return ToInt<int8_t>(value);
    case DType::kU8:
      return ToInt<uint8_t>(value);
    case DType::kI16:
      return ToInt<int16_t>(value);
    case DType::kU16:
      return ToInt<uint16_t>(value);
    case DType::kI32:
      return ToInt<int32_t>(value);
    case DType::kU32:
      return ToInt<uint32_t>(value);
    case DType::kI64:
      return static_cast<double>(ToInt<int64_t>(value));
    case DType::kE4M3:
      return Decode(kE4M3Format, Encode(kE4M3Format, value));
    case DType::kE5M2:
      return Decode(kE5M2Format, Encode(kE5M2Format, value));
    case DType::kF16:
      return Decode(kF16Format, Encode(kF16Format, value));
    case DType::kBF16:
      return Decode(kBF16Format, Encode(kBF16Format, value));
    case DType::kF32:
      return static_cast<float>(value);
    case DType::kF64:
      return value;
  }
  return value;
}

int64_t WrapTo(DType t, int64_t value) {
  switch (t) {
    case DType::kBool:
      return value != 0 ? 1 : 0;
    case DType::kI8:
      return static_cast<int8_t>(value);
    case DType::kU8:
      return static_cast<uint8_t>(value);
    case DType::kI16:
      return static_cast<int16_t>(value);
    case DType::kU16:
      return static_cast<uint16_t>(value);
    case DType::kI32:
      return static_cast<int32_t>(value);
    case DType::kU32:
      return static_cast<uint32_t>(value);
    default:
      return value;
  }
}

double LoadElement(DType t, const void* p) {
  switch (t) {
    case DType::kE4M3:
      return Decode(kE4M3Format, Read<uint8_t>(p));
    case DType::kE5M2:
      return Decode(kE5M2Format, Read<uint8_t>(p));
    case DType::kF16:
      return Decode(kF16Format, Read<uint16_t>(p));
    case DType::kBF16:
      return std::bit_cast<float>(static_cast<uint32_t>(Read<uint16_t>(p)) << 16);
    case DType::kF32:
      return Read<float>(p);
    case DType::kF64:
      return Read<double>(p);
    default:
      return static_cast<double>(LoadInt(t, p));
  }
}

void StoreElement(DType t, void* p, double value) {
  switch (t) {
    case DType::kE4M3:
      return Write<uint8_t>(p, Encode(kE4M3Format, value));
    case DType::kE5M2:
      return Write<uint8_t>(p, Encode(kE5M2Format, value));
    case DType::kF16:
      return Write<uint16_t>(p, Encode(kF16Format, value));
    case DType::kBF16:
      return Write<uint16_t>(p, Encode(kBF16Format, value));
    case DType::kF32:
      return Write<float>(p, value);
    case DType::kF64:
      return Write<double>(p, value);
    case DType::kI64:
      return Write<int64_t>(p, ToInt<int64_t>(value));
    default:
      return StoreInt(t, p, static_cast<int64_t>(RoundTo(t, value)));
  }
}

int64_t LoadInt(DType t, const void* p) {
  switch (t) {
    case DType::kBool:
      return Read<uint8_t>(p) != 0 ? 1 : 0;
    case DType::kI8:
      return Read<int8_t>(p);
    case DType::kU8:
      return Read<uint8_t>(p);
    case DType::kI16:
      return Read<int16_t>(p);
    case DType::kU16:
      return Read<uint16_t>(p);
    case DType::kI32:
      return Read<int32_t>(p);
    case DType::kU32:
      return Read<uint32_t>(p);
    case DType::kI64:
      return Read<int64_t>(p);
    default:
      return ToInt<int64_t>(LoadElement(t, p));
  }
}

void StoreInt(DType t, void* p, int64_t value) {
  if (IsFloat(t)) {
    return StoreElement(t, p, t == DType::kF64 ? static_cast<double>(value) : ToOddDouble(value));
  }
  const int64_t wrapped = WrapTo(t, value);
  switch (SizeOf(t)) {
    case 1:
      return Write<uint8_t>(p, wrapped);
    case 2:
      return Write<uint16_t>(p, wrapped);
    case 4:
      return Write<uint32_t>(p, wrapped);
    default:
      return Write<int64_t>(p, wrapped);
  }
}

}  // namespace tl
