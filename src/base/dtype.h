// Element types of tensors and tiles, and the scalar types in which arithmetic happens.
#ifndef TILEJIT_BASE_DTYPE_H_
#define TILEJIT_BASE_DTYPE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace tl {

// The values are those of tl_dtype in tl.h and are part of the ABI and of cache keys.
enum class DType : int32_t {
  kBool = 0,  // one byte, 0 or 1
  kI8,
  kU8,
  kI16,
  kU16,
  kI32,
  kU32,
  kI64,
  kE4M3,  // fp8, no infinities, max 448
  kE5M2,  // fp8, infinities, max 57344
  kF16,
  kBF16,
  kF32,
  kF64,
};
inline constexpr int kNumDTypes = 14;

// Arithmetic never happens in a narrow type: elements widen when read and are rounded when stored.
// bool stays bool, every integer computes in 64 bits, f64 in f64, every other float in f32.
enum class ScalarType : uint8_t { kBool, kInt, kF32, kF64 };

constexpr bool IsFloat(DType t) { return t >= DType::kE4M3; }
constexpr bool IsFloat(ScalarType t) { return t >= ScalarType::kF32; }

constexpr ScalarType ComputeType(DType t) {
  if (t == DType::kBool) return ScalarType::kBool;
  if (t == DType::kF64) return ScalarType::kF64;
  return IsFloat(t) ? ScalarType::kF32 : ScalarType::kInt;
}

// Bytes of one element.
size_t SizeOf(DType t);

// Distance from 1.0 to the next larger value (2^-7 for bf16 ...); 0 for integers and bool.
double Epsilon(DType t);

// Largest finite value of a float type, largest value of an integer type.
double MaxValue(DType t);
// Smallest: -MaxValue for floats (also fp8), lowest for integers.
double MinValue(DType t);

// "bf16", "e4m3", "i32" ...: the names of the language.
std::string_view Name(DType t);
std::string_view Name(ScalarType t);
std::optional<DType> ParseDType(std::string_view name);

// Value -> nearest representable value of `t`, as the hardware stores it: round to nearest even;
// fp8 saturates to the largest finite value (NaN stays NaN); float to integer truncates toward
// zero, saturates, and maps NaN to 0; integer to narrower integer wraps.
double RoundTo(DType t, double value);
int64_t WrapTo(DType t, int64_t value);

// One element in memory. Integers up to 2^53 and all floats are exact in double; LoadInt and
// StoreInt serve the wide ones.
double LoadElement(DType t, const void* p);
void StoreElement(DType t, void* p, double value);
int64_t LoadInt(DType t, const void* p);
void StoreInt(DType t, void* p, int64_t value);

}  // namespace tl

#endif  // TILEJIT_BASE_DTYPE_H_
