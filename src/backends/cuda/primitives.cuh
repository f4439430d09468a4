// ---- What CUDA C++ calls the things that the rest is made of. No header is included. ----
// The maths functions are those that the compiler knows by itself. Largest errors as the vendor
// documents them, in units in the last place, float / double: exp 2/1, exp2 2/1, log 1/1, log2 1/1,
// sqrt 0/0 and division 0/0 (correctly rounded), rsqrt 2/1, tanh 2/2, erf 2/2, sin 2/2, cos 2/2,
// pow 4/2. Products and sums contract to fused multiply-adds, which round once instead of twice.

#define TL_FN __device__ __forceinline__

TL_FN unsigned tl_bits(float x) { return __float_as_uint(x); }
TL_FN float tl_float(unsigned b) { return __uint_as_float(b); }
TL_FN unsigned long long tl_bits64(double x) { return (unsigned long long)__double_as_longlong(x); }
TL_FN double tl_double(unsigned long long b) { return __longlong_as_double((long long)b); }

#define TL_NATIVE_F16
TL_FN unsigned short tl_f16_bits(float x) {
  unsigned short h;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x));
  return h;
}
TL_FN float tl_f16_value(unsigned short h) {
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(h));
  return x;
}

#if __CUDA_ARCH__ >= 800
#define TL_NATIVE_BF16
TL_FN unsigned short tl_bf16_bits(float x) {
  unsigned short h;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h) : "f"(x));
  return h;
}
#endif

#if __CUDA_ARCH__ >= 890
#define TL_NATIVE_FP8
// The instructions convert pairs; the upper half stays unused.
TL_FN unsigned char tl_e4m3_bits(float x) {
  unsigned short pair;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(x));
  return (unsigned char)pair;
}
TL_FN unsigned char tl_e5m2_bits(float x) {
  unsigned short pair;
  asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(x));
  return (unsigned char)pair;
}
TL_FN float tl_e4m3_value(unsigned char c) {
  unsigned pair;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(pair) : "h"((unsigned short)c));
  return tl_f16_value((unsigned short)pair);
}
#endif

// Hardware barrier 0 is the whole block's.
TL_FN void tl_group_barrier(int group, int threads) {
  asm volatile("bar.sync %0, %1;" : : "r"(group + 1), "r"(threads) : "memory");
}

