// ---- What AMD's compilers call the things that the rest is made of. No header is included: HIPRTC
// brings some of its own, whose names are not used here, and clang is told to bring none. ----
// Products and sums contract to fused multiply-adds, which round once instead of twice.

#define TL_FN static inline __attribute__((device, always_inline))
#define TL_KERNEL(threads) \
  extern "C" __attribute__((global, amdgpu_flat_work_group_size(threads, threads)))
#define TL_ARENA extern __attribute__((shared, aligned(1024))) unsigned char arena[]
#define TL_GLOBAL(type) type*
#define TL_SHARED(type, name, offset, elements) type* const name = (type*)(arena + offset)
#define TL_LOCAL(type, name, elements) alignas(16) type name[elements]

//@ tl_block tl_thread tl_grid
TL_FN int tl_block() { return (int)__builtin_amdgcn_workgroup_id_x(); }
TL_FN int tl_grid() {
  return (int)(__builtin_amdgcn_grid_size_x() / __builtin_amdgcn_workgroup_size_x());
}
TL_FN int tl_thread() { return (int)__builtin_amdgcn_workitem_id_x(); }

//@ tl_barrier
TL_FN void tl_barrier() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

//@ tl_bits tl_float
TL_FN unsigned tl_bits(float x) { return __builtin_bit_cast(unsigned, x); }
TL_FN float tl_float(unsigned b) { return __builtin_bit_cast(float, b); }
//@ tl_bits64 tl_double
TL_FN unsigned long long tl_bits64(double x) { return __builtin_bit_cast(unsigned long long, x); }
TL_FN double tl_double(unsigned long long b) { return __builtin_bit_cast(double, b); }

//@ tl_f16_bits tl_f16_value
#define TL_NATIVE_F16
TL_FN unsigned short tl_f16_bits(float x) {
  return __builtin_bit_cast(unsigned short, (_Float16)x);
}
TL_FN float tl_f16_value(unsigned short h) { return (float)__builtin_bit_cast(_Float16, h); }

//@ tl_is_aligned
template <int kBytes> TL_FN bool tl_is_aligned(const void* p) {
  return ((unsigned long long)p & (kBytes - 1)) == 0;
}

// Vectors may lie over elements of any type.
//@ tl_words
template <class T, int kCount> struct tl_words_of {
  typedef T plain __attribute__((ext_vector_type(kCount)));
  typedef plain type __attribute__((may_alias, aligned(sizeof(T) * kCount < 16 ? sizeof(T) * kCount : 16)));
};
template <class T, int kCount> using tl_words = typename tl_words_of<T, kCount>::type;

// Vectors have the elements of the array: LLVM 15 leaves arrays in scratch memory that are moved in
// vectors of others.
//@ tl_move
template <int kBytes> struct tl_element_of { typedef unsigned long long type; };
template <> struct tl_element_of<1> { typedef unsigned char type; };
template <> struct tl_element_of<2> { typedef unsigned short type; };
template <> struct tl_element_of<4> { typedef unsigned type; };
template <int kBytes, class To, class From> TL_FN void tl_move(To* dst, const From* src) {
  typedef typename tl_element_of<(sizeof(To) < sizeof(From) ? sizeof(To) : sizeof(From))>::type Plain;
  typedef Plain Element __attribute__((may_alias));
  if constexpr (kBytes == sizeof(Element)) {
    *(Element*)dst = *(const Element*)src;
  } else {
    typedef tl_words<Plain, kBytes / sizeof(Element)> Words;
    *(Words*)dst = *(const Words*)src;
  }
}

// A value that the compiler takes for new: it stays in its register instead of being computed again.
//@ tl_keep
template <class T> TL_FN T tl_keep(T x) {
  asm("" : "+v"(x));
  return x;
}
//@ tl_lane_xor
TL_FN int tl_lane() {
  return (int)__builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0u));
}
TL_FN int tl_word_of_lane(int lane, int x) { return __builtin_amdgcn_ds_bpermute(lane * 4, x); }
template <class T> TL_FN T tl_lane_xor(T x, int mask) {
  const int lane = tl_lane() ^ mask;
  if constexpr (sizeof(T) == 8) {
    const unsigned long long bits = __builtin_bit_cast(unsigned long long, x);
    const unsigned low = (unsigned)tl_word_of_lane(lane, (int)bits);
    const unsigned high = (unsigned)tl_word_of_lane(lane, (int)(bits >> 32));
    return __builtin_bit_cast(T, (unsigned long long)high << 32 | low);
  } else if constexpr (sizeof(T) == 4) {
    return __builtin_bit_cast(T, tl_word_of_lane(lane, __builtin_bit_cast(int, x)));
  } else {
    static_assert(sizeof(T) <= 2);
    int word = 0;
    __builtin_memcpy(&word, &x, sizeof(T));
    word = tl_word_of_lane(lane, word);
    __builtin_memcpy(&x, &word, sizeof(T));
    return x;
  }
}
TL_FN bool tl_lane_xor(bool x, int mask) { return tl_lane_xor((int)x, mask) != 0; }

//@ atomicAdd
template <class T> TL_FN T tl_fetch_add(T* p, T v) {
  return __hip_atomic_fetch_add(p, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
#define atomicAdd tl_fetch_add
//@ atomicMax
template <class T> TL_FN T tl_fetch_max(T* p, T v) {
  return __hip_atomic_fetch_max(p, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
#define atomicMax tl_fetch_max
//@ atomicMin
template <class T> TL_FN T tl_fetch_min(T* p, T v) {
  return __hip_atomic_fetch_min(p, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
#define atomicMin tl_fetch_min
//@ atomicCAS
template <class T> TL_FN T tl_compare_and_swap(T* p, T expected, T value) {
  __hip_atomic_compare_exchange_strong(p, &expected, value, __ATOMIC_RELAXED, __ATOMIC_RELAXED,
                                       __HIP_MEMORY_SCOPE_AGENT);
  return expected;
}
#define atomicCAS tl_compare_and_swap

// ---- Functions that are one instruction, or a few ----
//@ floorf floor
#define floorf(x) __builtin_floorf(x)
#define floor(x) __builtin_floor(x)
//@ ceilf ceil
#define ceilf(x) __builtin_ceilf(x)
#define ceil(x) __builtin_ceil(x)
//@ rintf rint
#define rintf(x) __builtin_rintf(x)
#define rint(x) __builtin_rint(x)
//@ fabsf fabs
#define fabsf(x) __builtin_fabsf(x)
#define fabs(x) __builtin_fabs(x)
//@ fminf fmin
#define fminf(x, y) __builtin_fminf(x, y)
#define fmin(x, y) __builtin_fmin(x, y)
//@ fmaxf fmax
#define fmaxf(x, y) __builtin_fmaxf(x, y)
#define fmax(x, y) __builtin_fmax(x, y)
// Of f64 there is none: named only by functions that no kernel calls (dialect.cc).
//@ exp
TL_FN double tl_no_exp(double x);
#define exp(x) tl_no_exp(x)
//@ exp2
TL_FN double tl_no_exp2(double x);
#define exp2(x) tl_no_exp2(x)
//@ tl_fma
TL_FN float tl_fma(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
TL_FN double tl_fma(double x, double y, double z) { return __builtin_fma(x, y, z); }
//@ tl_ldexp
TL_FN float tl_ldexp(float x, int n) { return __builtin_amdgcn_ldexpf(x, n); }
TL_FN double tl_ldexp(double x, int n) { return __builtin_amdgcn_ldexp(x, n); }
//@ tl_rough_sqrt
TL_FN float tl_rough_sqrt(float x) { return __builtin_amdgcn_sqrtf(x); }
TL_FN double tl_rough_sqrt(double x) { return __builtin_amdgcn_sqrt(x); }

// ---- Matrix instructions: c += a * b on the registers of a wave. The operands are swapped, which
// transposes the result: a lane then holds neighbours along a row of c. ----
//@ TL_MFMA TL_MFMA_SCALAR
#define TL_MFMA(name, builtin, In, kIn, Out, kOut)                                \
  TL_FN void name(void* c, const void* a, const void* b) {                       \
    tl_words<Out, kOut>* sum = (tl_words<Out, kOut>*)c;                          \
    *sum = builtin(*(const tl_words<In, kIn>*)b, *(const tl_words<In, kIn>*)a, \
                   *sum, 0, 0, 0);                                                \
  }
#define TL_MFMA_SCALAR(name, builtin, Scalar, Out, kOut)                          \
  TL_FN void name(void* c, const void* a, const void* b) {                       \
    typedef Scalar Factor __attribute__((may_alias));                             \
    tl_words<Out, kOut>* sum = (tl_words<Out, kOut>*)c;                          \
    *sum = builtin(*(const Factor*)b, *(const Factor*)a, *sum, 0, 0, 0);          \
  }
//@ tl_mfma_m32n32k8_f16_f16_f32
TL_MFMA(tl_mfma_m32n32k8_f16_f16_f32, __builtin_amdgcn_mfma_f32_32x32x8f16, _Float16, 4, float, 16)
//@ tl_mfma_m16n16k16_f16_f16_f32
TL_MFMA(tl_mfma_m16n16k16_f16_f16_f32, __builtin_amdgcn_mfma_f32_16x16x16f16, _Float16, 4, float, 4)
//@ tl_mfma_m32n32k8_bf16_bf16_f32
TL_MFMA(tl_mfma_m32n32k8_bf16_bf16_f32, __builtin_amdgcn_mfma_f32_32x32x8bf16_1k, short, 4, float, 16)
//@ tl_mfma_m16n16k16_bf16_bf16_f32
TL_MFMA(tl_mfma_m16n16k16_bf16_bf16_f32, __builtin_amdgcn_mfma_f32_16x16x16bf16_1k, short, 4, float, 4)
//@ tl_mfma_m32n32k2_f32_f32_f32
TL_MFMA_SCALAR(tl_mfma_m32n32k2_f32_f32_f32, __builtin_amdgcn_mfma_f32_32x32x2f32, float, float, 16)
//@ tl_mfma_m16n16k4_f32_f32_f32
TL_MFMA_SCALAR(tl_mfma_m16n16k4_f32_f32_f32, __builtin_amdgcn_mfma_f32_16x16x4f32, float, float, 4)
//@ tl_mfma_m32n32k8_i8_i8_i32
TL_MFMA_SCALAR(tl_mfma_m32n32k8_i8_i8_i32, __builtin_amdgcn_mfma_i32_32x32x8i8, int, int, 16)
//@ tl_mfma_m16n16k16_i8_i8_i32
TL_MFMA_SCALAR(tl_mfma_m16n16k16_i8_i8_i32, __builtin_amdgcn_mfma_i32_16x16x16i8, int, int, 4)
//@ tl_mfma_m32n32k16_i8_i8_i32
TL_MFMA_SCALAR(tl_mfma_m32n32k16_i8_i8_i32, __builtin_amdgcn_mfma_i32_32x32x16_i8, long, int, 16)
//@ tl_mfma_m16n16k32_i8_i8_i32
TL_MFMA_SCALAR(tl_mfma_m16n16k32_i8_i8_i32, __builtin_amdgcn_mfma_i32_16x16x32_i8, long, int, 4)

