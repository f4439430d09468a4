// ---- Number formats, integer arithmetic and atomics: the same in every C-like language. ----
// Needs from the language's own part: TL_FN (function qualifiers), tl_bits, tl_float, tl_bits64,
// tl_double (bit casts), atomicAdd, atomicMax, atomicMin, atomicCAS, and the C library's float
// functions. Where TL_NATIVE_F16, _BF16, _BF16_VALUE or _FP8 is defined, also the raw conversions named
// below; where TL_NATIVE_SIGMOID or TL_NATIVE_EXP2 is, tl_sigmoid or tl_exp2 of a float.
// prelude.h says what the lines are that begin with //@.

//@ tl_inf32 tl_nan32
TL_FN float tl_inf32() { return tl_float(0x7f800000u); }
TL_FN float tl_nan32() { return tl_float(0x7fc00000u); }

//@ tl_inf64 tl_nan64
TL_FN double tl_inf64() { return tl_double(0x7ff0000000000000ull); }
TL_FN double tl_nan64() { return tl_double(0x7ff8000000000000ull); }

//@ tl_shrink tl_sign
// float -> small float of `man` mantissa bits and exponent bias `bias`, to nearest even; the code
// without its sign. Codes above `top` (overflow, infinity) become `top`, NaN becomes `nan`.
TL_FN unsigned tl_shrink(float x, int man, int bias, unsigned top, unsigned nan) {
  unsigned a = tl_bits(x) & 0x7fffffffu;
  if (a > 0x7f800000u) return nan;
  const int drop = 23 - man;
  if (a < (unsigned)(128 - bias) << 23) {
    // Subnormal there: an addend whose last bit is their unit makes the adder round.
    const unsigned magic = (unsigned)(128 - bias + drop) << 23;
    return tl_bits(tl_float(a) + tl_float(magic)) - magic;
  }
  a += (1u << (drop - 1)) - 1 + (a >> drop & 1);
  const unsigned code = (a >> drop) - ((unsigned)(127 - bias) << man);
  return code < top ? code : top;
}
TL_FN unsigned tl_sign(float x, int width) { return tl_bits(x) >> 31 << (width - 1); }

//@ tl_f16_bits tl_f16_value
#ifndef TL_NATIVE_F16
TL_FN unsigned short tl_f16_bits(float x) {
  return (unsigned short)(tl_sign(x, 16) | tl_shrink(x, 10, 15, 0x7c00u, 0x7e00u));
}
TL_FN float tl_f16_value(unsigned short h) {
  const unsigned sign = (unsigned)(h >> 15) << 31, a = h & 0x7fffu;
  if (a >= 0x7c00u) return tl_float(sign | 0x7f800000u | (a & 0x3ffu) << 13);
  if (a < 0x400u) return tl_float(sign | tl_bits((float)(int)a * 0x1p-24f));
  return tl_float(sign | ((a << 13) + (112u << 23)));
}
#endif

//@ tl_bf16_bits
#ifndef TL_NATIVE_BF16
TL_FN unsigned short tl_bf16_bits(float x) {
  const unsigned b = tl_bits(x);
  if ((b & 0x7fffffffu) > 0x7f800000u) return 0x7fffu;
  return (unsigned short)((b + 0x7fffu + (b >> 16 & 1)) >> 16);
}
#endif

//@ tl_e4m3_bits tl_e5m2_bits tl_e4m3_value
#ifndef TL_NATIVE_FP8
TL_FN unsigned char tl_e4m3_bits(float x) {
  return (unsigned char)(tl_sign(x, 8) | tl_shrink(x, 3, 7, 0x7eu, 0x7fu));
}
TL_FN unsigned char tl_e5m2_bits(float x) {
  return (unsigned char)(tl_sign(x, 8) | tl_shrink(x, 2, 15, 0x7bu, 0x7fu));
}
TL_FN float tl_e4m3_value(unsigned char c) {
  const unsigned sign = (unsigned)(c >> 7) << 31, a = c & 0x7fu;
  if (a == 0x7fu) return tl_nan32();
  if (a < 8u) return tl_float(sign | tl_bits((float)(int)a * 0x1p-9f));
  return tl_float(sign | ((a << 20) + (120u << 23)));
}
#endif

//@ tl_round_to_odd
// double -> float such that rounding once more, to a type of at most 22 mantissa bits, gives what
// rounding the double at once would: inexact results get an odd last bit.
TL_FN float tl_round_to_odd(double x) {
  const float f = (float)x;
  if ((double)f == x || x != x) return f;
  const bool up = fabs((double)f) > fabs(x);
  return tl_float((tl_bits(f) - (up ? 1u : 0u)) | 1u);
}

//@ tl_f16 tl_to_f16
struct tl_f16 { unsigned short bits; };
TL_FN float tl_f32(tl_f16 x) { return tl_f16_value(x.bits); }
TL_FN tl_f16 tl_to_f16(float x) { return tl_f16{tl_f16_bits(x)}; }
TL_FN tl_f16 tl_to_f16(double x) { return tl_f16{tl_f16_bits(tl_round_to_odd(x))}; }

//@ tl_bf16_value
#ifndef TL_NATIVE_BF16_VALUE
TL_FN float tl_bf16_value(unsigned short h) { return tl_float((unsigned)h << 16); }
#endif

//@ tl_bf16 tl_to_bf16
struct tl_bf16 { unsigned short bits; };
TL_FN float tl_f32(tl_bf16 x) { return tl_bf16_value(x.bits); }
TL_FN tl_bf16 tl_to_bf16(float x) { return tl_bf16{tl_bf16_bits(x)}; }
TL_FN tl_bf16 tl_to_bf16(double x) { return tl_bf16{tl_bf16_bits(tl_round_to_odd(x))}; }

//@ tl_e4m3 tl_to_e4m3
struct tl_e4m3 { unsigned char bits; };  // no infinities, largest 448
TL_FN float tl_f32(tl_e4m3 x) { return tl_e4m3_value(x.bits); }
TL_FN tl_e4m3 tl_to_e4m3(float x) { return tl_e4m3{tl_e4m3_bits(x)}; }
TL_FN tl_e4m3 tl_to_e4m3(double x) { return tl_e4m3{tl_e4m3_bits(tl_round_to_odd(x))}; }

//@ tl_e5m2 tl_to_e5m2
struct tl_e5m2 { unsigned char bits; };  // infinities, largest 57344
TL_FN float tl_f32(tl_e5m2 x) { return tl_f16_value((unsigned short)(x.bits << 8)); }
TL_FN tl_e5m2 tl_to_e5m2(float x) { return tl_e5m2{tl_e5m2_bits(x)}; }
TL_FN tl_e5m2 tl_to_e5m2(double x) { return tl_e5m2{tl_e5m2_bits(tl_round_to_odd(x))}; }

//@ TL_FLOAT_TO_INT
// Float to integer: toward zero, saturating, NaN gives 0. `end` is one above the largest value.
#define TL_FLOAT_TO_INT(F, I, name, low, high, end)                                       \
  TL_FN I name(F x) {                                                                     \
    return x != x ? 0 : x >= (F)end ? (I)(high) : x <= (F)(low) ? (I)(low) : (I)x;        \
  }
//@ tl_to_i8
TL_FLOAT_TO_INT(float, int, tl_to_i8, -128, 127, 128)
TL_FLOAT_TO_INT(double, int, tl_to_i8, -128, 127, 128)
//@ tl_to_u8
TL_FLOAT_TO_INT(float, int, tl_to_u8, 0, 255, 256)
TL_FLOAT_TO_INT(double, int, tl_to_u8, 0, 255, 256)
//@ tl_to_i16
TL_FLOAT_TO_INT(float, int, tl_to_i16, -32768, 32767, 32768)
TL_FLOAT_TO_INT(double, int, tl_to_i16, -32768, 32767, 32768)
//@ tl_to_u16
TL_FLOAT_TO_INT(float, int, tl_to_u16, 0, 65535, 65536)
TL_FLOAT_TO_INT(double, int, tl_to_u16, 0, 65535, 65536)
//@ tl_to_i32
TL_FLOAT_TO_INT(float, int, tl_to_i32, -2147483647 - 1, 2147483647, 2147483648.0)
TL_FLOAT_TO_INT(double, int, tl_to_i32, -2147483647 - 1, 2147483647, 2147483648.0)
//@ tl_to_u32
TL_FLOAT_TO_INT(float, long long, tl_to_u32, 0, 4294967295ll, 4294967296.0)
TL_FLOAT_TO_INT(double, long long, tl_to_u32, 0, 4294967295ll, 4294967296.0)
//@ tl_to_i64
TL_FLOAT_TO_INT(float, long long, tl_to_i64, -9223372036854775807ll - 1, 9223372036854775807ll, 9223372036854775808.0)
TL_FLOAT_TO_INT(double, long long, tl_to_i64, -9223372036854775807ll - 1, 9223372036854775807ll, 9223372036854775808.0)

//@ tl_add
// Integers of the language: 64 bits, wrapping; division rounds down, by zero gives 0.
TL_FN long long tl_add(long long a, long long b) {
  return (long long)((unsigned long long)a + (unsigned long long)b);
}
//@ tl_sub
TL_FN long long tl_sub(long long a, long long b) {
  return (long long)((unsigned long long)a - (unsigned long long)b);
}
//@ tl_mul
TL_FN long long tl_mul(long long a, long long b) {
  return (long long)((unsigned long long)a * (unsigned long long)b);
}
//@ tl_shl
TL_FN long long tl_shl(long long a, long long b) {
  return (long long)((unsigned long long)a << (b & 63));
}
//@ tl_shr
TL_FN long long tl_shr(long long a, long long b) { return a >> (b & 63); }
//@ tl_abs
TL_FN long long tl_abs(long long a) { return a < 0 ? tl_sub(0, a) : a; }
//@ tl_floor_div
TL_FN long long tl_floor_div(long long a, long long b) {
  if (b == 0) return 0;
  if (b == -1) return tl_sub(0, a);
  const long long q = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}
//@ tl_floor_mod
TL_FN long long tl_floor_mod(long long a, long long b) {
  if (b == 0 || b == -1) return 0;
  const long long r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
//@ tl_ceil_div
TL_FN long long tl_ceil_div(long long a, long long b) {
  return b == 0 ? 0 : tl_floor_div(a, b) + (tl_floor_mod(a, b) != 0 ? 1 : 0);
}
//@ tl_min tl_max
TL_FN int tl_min(int a, int b) { return a < b ? a : b; }
TL_FN int tl_max(int a, int b) { return a > b ? a : b; }
TL_FN long long tl_min(long long a, long long b) { return a < b ? a : b; }
TL_FN long long tl_max(long long a, long long b) { return a > b ? a : b; }

// Where a box begins along one dim. Those that are copied have at most 2^30 elements there: what is
// further away is as far outside.
//@ tl_box_place
TL_FN int tl_box_place(long long at) {
  return (int)tl_max(tl_min(at, 1ll << 30), -(1ll << 30));
}
//@ tl_fin
// x, or 0 where x is infinite or NaN.
TL_FN float tl_fin(float x) { return x - x == 0.0f ? x : 0.0f; }
TL_FN double tl_fin(double x) { return x - x == 0.0 ? x : 0.0; }
//@ tl_exp2
#ifndef TL_NATIVE_EXP2
TL_FN float tl_exp2(float x) { return exp2f(x); }
#endif
TL_FN double tl_exp2(double x) { return exp2(x); }
//@ tl_sigmoid
#ifndef TL_NATIVE_SIGMOID
TL_FN float tl_sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }
#endif
TL_FN double tl_sigmoid(double x) { return 1.0 / (1.0 + exp(-x)); }

//@ tl_atomic_add tl_atomic_max tl_atomic_min
// ---- Atomic updates. ----
// What the hardware has no instruction for loops over compare-and-swap of the element's bits.
template <class W, class T, class F>
TL_FN void tl_swap_loop(W* p, T*, F f) {
  union Cell { W word; T value; } old, next;
  W seen = *(volatile W*)p;
  do {
    old.word = seen;
    next.value = f(old.value);
    seen = atomicCAS(p, old.word, next.word);
  } while (seen != old.word);
}
template <class T, class F>
TL_FN void tl_update(T* p, F f) {
  if constexpr (sizeof(T) == 2) tl_swap_loop((unsigned short*)p, p, f);
  if constexpr (sizeof(T) == 4) tl_swap_loop((unsigned*)p, p, f);
  if constexpr (sizeof(T) == 8) tl_swap_loop((unsigned long long*)p, p, f);
}

// Integers: the element widens to 64 bits, and the result wraps.
template <class T> TL_FN void tl_atomic_max(T* p, long long v) {
  tl_update(p, [=](T x) { return (T)tl_max((long long)x, v); });
}
template <class T> TL_FN void tl_atomic_min(T* p, long long v) {
  tl_update(p, [=](T x) { return (T)tl_min((long long)x, v); });
}
TL_FN void tl_atomic_add(int* p, long long v) { atomicAdd(p, (int)v); }
TL_FN void tl_atomic_add(unsigned* p, long long v) { atomicAdd(p, (unsigned)v); }
TL_FN void tl_atomic_add(long long* p, long long v) {
  atomicAdd((unsigned long long*)p, (unsigned long long)v);
}
TL_FN void tl_atomic_max(long long* p, long long v) { atomicMax(p, v); }
TL_FN void tl_atomic_min(long long* p, long long v) { atomicMin(p, v); }
TL_FN void tl_atomic_max(int* p, long long v) {
  if (v == (int)v) atomicMax(p, (int)v);
  else tl_atomic_max<int>(p, v);
}
TL_FN void tl_atomic_min(int* p, long long v) {
  if (v == (int)v) atomicMin(p, (int)v);
  else tl_atomic_min<int>(p, v);
}

// Floats: maximum and minimum prefer numbers to NaN.
TL_FN void tl_atomic_add(float* p, float v) { atomicAdd(p, v); }
TL_FN void tl_atomic_add(double* p, double v) { atomicAdd(p, v); }
TL_FN void tl_atomic_max(float* p, float v) { tl_update(p, [=](float x) { return fmaxf(x, v); }); }
TL_FN void tl_atomic_min(float* p, float v) { tl_update(p, [=](float x) { return fminf(x, v); }); }
TL_FN void tl_atomic_max(double* p, double v) { tl_update(p, [=](double x) { return fmax(x, v); }); }
TL_FN void tl_atomic_min(double* p, double v) { tl_update(p, [=](double x) { return fmin(x, v); }); }

//@ TL_NARROW_ATOMICS
#define TL_NARROW_ATOMICS(T, make)                                                                  \
  TL_FN void tl_atomic_add(T* p, float v) { tl_update(p, [=](T x) { return make(tl_f32(x) + v); }); } \
  TL_FN void tl_atomic_max(T* p, float v) {                                                         \
    tl_update(p, [=](T x) { return make(fmaxf(tl_f32(x), v)); });                                   \
  }                                                                                                 \
  TL_FN void tl_atomic_min(T* p, float v) {                                                         \
    tl_update(p, [=](T x) { return make(fminf(tl_f32(x), v)); });                                   \
  }
//@ tl_atomic_add tl_atomic_max tl_atomic_min with tl_f16
TL_NARROW_ATOMICS(tl_f16, tl_to_f16)
//@ tl_atomic_add tl_atomic_max tl_atomic_min with tl_bf16
TL_NARROW_ATOMICS(tl_bf16, tl_to_bf16)

