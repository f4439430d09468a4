#include "backends/cpu/helpers.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace tl::cpu {
namespace {

// Shape of a float type of at most 16 bits.
struct Narrow {
  int bits;
  int mantissa;
  int bias;
  bool infinity;      // has infinities and NaNs in the top exponent, like IEEE
  uint32_t max_bits;  // encoding of the largest finite value
  uint32_t nan_bits;
  bool saturates;  // overflow gives the largest finite value instead of infinity
};

Narrow ShapeOf(DType type) {
  switch (type) {
    case DType::kE4M3:
      return {8, 3, 7, false, 0x7E, 0x7F, true};
    case DType::kE5M2:
      return {8, 2, 15, true, 0x7B, 0x7F, true};
    default:
      return {16, 10, 15, true, 0x7BFF, 0x7FFF, false};
  }
}

double PowerOfTwo(int exponent) { return __builtin_ldexp(1.0, exponent); }

constexpr char kAttributes[] = " alwaysinline nounwind willreturn memory(none) {\n";

constexpr char kWidenBf16[] = R"(
  %w = zext i16 %x to i32
  %s = shl i32 %w, 16
  %f = bitcast i32 %s to float
  ret float %f
}
)";

// Adds half a unit, and one less where the kept part is even; a carry into the exponent is right.
constexpr char kNarrowBf16[] = R"(
  %b = bitcast float %x to i32
  %h = lshr i32 %b, 16
  %odd = and i32 %h, 1
  %half = add i32 %odd, 32767
  %sum = add i32 %b, %half
  %up = lshr i32 %sum, 16
  %nan = fcmp uno float %x, 0.0
  %r = select i1 %nan, i32 32767, i32 %up
  %t = trunc i32 %r to i16
  ret i16 %t
}
)";

// Exponent and mantissa are moved to float's place and scaled by the difference of the biases,
// which is exact and serves subnormals as well.
constexpr char kWiden[] = R"(
  %w = zext iBITS %x to i32
  %mag = and i32 %w, MAGMASK
  %sign = and i32 %w, SIGNMASK
  %sign32 = shl i32 %sign, SIGNSHIFT
  %m32 = shl i32 %mag, MANTSHIFT
  %f = bitcast i32 %m32 to float
  %scaled = fmul float %f, SCALE
  %sb = bitcast float %scaled to i32
  %special = icmp uge i32 %mag, SPECIAL
  %spec32 = or i32 %m32, 2139095040
  %v = select i1 %special, i32 %spec32, i32 %sb
  %r = or i32 %v, %sign32
  %rf = bitcast i32 %r to float
  ret float %rf
}
)";

// Normal results round in integer arithmetic. Subnormal ones by adding a number whose last bit is
// the type's smallest step: the addition rounds to nearest even by itself.
constexpr char kNarrow[] = R"(
  %b = bitcast float %x to i32
  %u = and i32 %b, 2147483647
  %s = lshr i32 %b, 31
  %sign = shl i32 %s, SIGNBIT
  %h = lshr i32 %u, MANTSHIFT
  %odd = and i32 %h, 1
  %half = add i32 %odd, HALFMINUS1
  %sum = add i32 %u, %half
  %shifted = lshr i32 %sum, MANTSHIFT
  %norm = sub i32 %shifted, REBIAS
  %a = bitcast i32 %u to float
  %step = fadd float %a, MAGIC
  %stepbits = bitcast float %step to i32
  %sub = sub i32 %stepbits, MAGICBITS
  %small = icmp ult i32 %u, MINNORMAL
  %fin = select i1 %small, i32 %sub, i32 %norm
  %big = icmp ugt i32 %u, LARGEST
  %sat = select i1 %big, i32 OVERFLOW, i32 %fin
  %signed = or i32 %sat, %sign
  %nan = icmp ugt i32 %u, 2139095040
  %r = select i1 %nan, i32 NANBITS, i32 %signed
  %t = trunc i32 %r to iBITS
  ret iBITS %t
}
)";

constexpr char kOdd[] = R"(
  %r = fptrunc double %x to float
  %e = fpext float %r to double
  %inexact = fcmp one double %e, %x
  %b = bitcast float %r to i32
  %low = and i32 %b, 1
  %even = icmp eq i32 %low, 0
  %ae = call double @llvm.fabs.f64(double %e)
  %ax = call double @llvm.fabs.f64(double %x)
  %away = fcmp ogt double %ae, %ax
  %step = select i1 %away, i32 -1, i32 1
  %moved = add i32 %b, %step
  %move = and i1 %inexact, %even
  %o = select i1 %move, i32 %moved, i32 %b
  %f = bitcast i32 %o to float
  ret float %f
}
)";

// Divisors 0 and -1 would trap, so the hardware divides by 1 in their place.
constexpr char kFloorParts[] = R"(
  %plus = add i64 %y, 1
  %special = icmp ult i64 %plus, 2
  %d = select i1 %special, i64 1, i64 %y
  %q = sdiv i64 %x, %d
  %m = mul i64 %q, %d
  %r = sub i64 %x, %m
  %nz = icmp ne i64 %r, 0
  %xor = xor i64 %r, %d
  %differ = icmp slt i64 %xor, 0
  %fix = and i1 %nz, %differ
  %neg = sub i64 0, %x
  %zero = icmp eq i64 %y, 0
  %edge = select i1 %zero, i64 0, i64 %neg
)";

constexpr char kFloorDiv[] = R"(
  %less = sext i1 %fix to i64
  %fq = add i64 %q, %less
  %res = select i1 %special, i64 %edge, i64 %fq
  ret i64 %res
}
)";

constexpr char kFloorMod[] = R"(
  %more = select i1 %fix, i64 %d, i64 0
  %fr = add i64 %r, %more
  %res = select i1 %special, i64 0, i64 %fr
  ret i64 %res
}
)";

constexpr char kCeilDiv[] = R"(
  %keep = xor i1 %differ, true
  %up = and i1 %nz, %keep
  %inc = zext i1 %up to i64
  %cq = add i64 %q, %inc
  %res = select i1 %special, i64 %edge, i64 %cq
  ret i64 %res
}
)";

std::string Head(std::string_view result, std::string_view name, std::string_view args) {
  return absl::StrCat("define internal ", result, " @", name, "(", args, ")", kAttributes);
}

std::string WidenBody(const Narrow& s) {
  const int special = s.infinity ? (2 * s.bias + 1) << s.mantissa : s.nan_bits;
  return absl::StrReplaceAll(kWiden, {{"BITS", absl::StrCat(s.bits)},
                                      {"MAGMASK", absl::StrCat((1 << (s.bits - 1)) - 1)},
                                      {"SIGNMASK", absl::StrCat(1 << (s.bits - 1))},
                                      {"SIGNSHIFT", absl::StrCat(32 - s.bits)},
                                      {"MANTSHIFT", absl::StrCat(23 - s.mantissa)},
                                      {"SCALE", FloatText(PowerOfTwo(127 - s.bias))},
                                      {"SPECIAL", absl::StrCat(special)}});
}

// Bits of float that `encoding` (finite, normal) stands for.
uint32_t FloatBits(const Narrow& s, uint32_t encoding) {
  return (encoding + (static_cast<uint32_t>(127 - s.bias) << s.mantissa)) << (23 - s.mantissa);
}

std::string NarrowBody(const Narrow& s) {
  const int drop = 23 - s.mantissa;
  // Smallest step is 2^(1 - bias - mantissa); the last bit of 2^e in float is 2^(e - 23).
  const int magic_exponent = 24 - s.bias - s.mantissa;
  const uint32_t magic_bits = static_cast<uint32_t>(127 + magic_exponent) << 23;
  // Saturating types clamp whatever is above the largest value. The others overflow from half a
  // step above it, the tie included because the largest value is odd.
  const uint32_t largest =
      FloatBits(s, s.max_bits) + (s.saturates ? 0 : (uint32_t{1} << (drop - 1)) - 1);
  const uint32_t overflow = s.saturates ? s.max_bits : s.max_bits + 1;
  return absl::StrReplaceAll(kNarrow, {{"BITS", absl::StrCat(s.bits)},
                                       {"SIGNBIT", absl::StrCat(s.bits - 1)},
                                       {"MANTSHIFT", absl::StrCat(drop)},
                                       {"HALFMINUS1", absl::StrCat((1 << (drop - 1)) - 1)},
                                       {"REBIAS", absl::StrCat((127 - s.bias) << s.mantissa)},
                                       {"MAGICBITS", absl::StrCat(magic_bits)},
                                       {"MAGIC", FloatText(PowerOfTwo(magic_exponent))},
                                       {"MINNORMAL", absl::StrCat(FloatBits(s, 1 << s.mantissa))},
                                       {"LARGEST", absl::StrCat(largest)},
                                       {"OVERFLOW", absl::StrCat(overflow)},
                                       {"NANBITS", absl::StrCat(s.nan_bits)}});
}

std::string IntType(DType type) { return absl::StrCat("i", 8 * SizeOf(type)); }

}  // namespace

std::string WidenHelper(ModuleText& module, DType type) {
  const std::string name = absl::StrCat("tl_widen_", Name(type));
  if (!module.Claim(name)) return name;
  const std::string arg = absl::StrCat(IntType(type), " %x");
  module.Define(absl::StrCat(Head("float", name, arg),
                             type == DType::kBF16 ? kWidenBf16 : WidenBody(ShapeOf(type)), "\n"));
  return name;
}

std::string NarrowHelper(ModuleText& module, DType type) {
  const std::string name = absl::StrCat("tl_narrow_", Name(type));
  if (!module.Claim(name)) return name;
  module.Define(absl::StrCat(Head(IntType(type), name, "float %x"),
                             type == DType::kBF16 ? kNarrowBf16 : NarrowBody(ShapeOf(type)), "\n"));
  return name;
}

std::string OddHelper(ModuleText& module) {
  const std::string name = "tl_round_odd";
  if (!module.Claim(name)) return name;
  module.Declare("declare double @llvm.fabs.f64(double)");
  module.Define(absl::StrCat(Head("float", name, "double %x"), kOdd, "\n"));
  return name;
}

std::string DivisionHelper(ModuleText& module, std::string_view which) {
  const std::string name = absl::StrCat("tl_", which);
  if (!module.Claim(name)) return name;
  const char* tail = which == "floordiv" ? kFloorDiv : which == "floormod" ? kFloorMod : kCeilDiv;
  module.Define(absl::StrCat(Head("i64", name, "i64 %x, i64 %y"), kFloorParts, tail, "\n"));
  return name;
}

}  // namespace tl::cpu
