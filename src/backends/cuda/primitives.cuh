// ---- What CUDA C++ calls the things that the rest is made of. No header is included. ----
// The maths functions are those that the compiler knows by itself. Largest errors as the vendor
// documents them, in units in the last place, float / double: exp 2/1, exp2 2/1, log 1/1, log2 1/1,
// sqrt 0/0 and division 0/0 (correctly rounded), rsqrt 2/1, tanh 2/2, erf 2/2, sin 2/2, cos 2/2,
// pow 4/2. Products and sums contract to fused multiply-adds, which round once instead of twice.

#define TL_FN __device__ __forceinline__
#define TL_GLOBAL(type) type*
#define TL_SHARED(type, name, offset, elements) type* const name = (type*)(arena + offset)
#define TL_LOCAL(type, name, elements) alignas(16) type name[elements]

//@ tl_bits tl_float
TL_FN unsigned tl_bits(float x) { return __float_as_uint(x); }
TL_FN float tl_float(unsigned b) { return __uint_as_float(b); }
//@ tl_bits64 tl_double
TL_FN unsigned long long tl_bits64(double x) { return (unsigned long long)__double_as_longlong(x); }
TL_FN double tl_double(unsigned long long b) { return __longlong_as_double((long long)b); }

//@ tl_f16_bits tl_f16_value
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

//@ tl_bf16_bits
#if __CUDA_ARCH__ >= 800
#define TL_NATIVE_BF16
TL_FN unsigned short tl_bf16_bits(float x) {
  unsigned short h;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h) : "f"(x));
  return h;
}
#endif

//@ tl_bf16_value
#define TL_NATIVE_BF16_VALUE
// One instruction also for the upper half of a word, where a shift takes two.
TL_FN float tl_bf16_value(unsigned short h) {
  unsigned bits;
  asm("mov.b32 %0, {%1, %2};" : "=r"(bits) : "h"((unsigned short)0), "h"(h));
  return tl_float(bits);
}

//@ tl_exp2
#define TL_NATIVE_EXP2
// One instruction, within 2 ulp. exp2f takes three more for results below 2^-126, which are 0 here.
TL_FN float tl_exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

//@ tl_sigmoid
#define TL_NATIVE_SIGMOID
// 1 / (1 + exp(-x)) by the approximate exponential and reciprocal, within 4 ulp and the error of the
// exponential's argument. A quarter of the denominator stays where the reciprocal does not flush to 0.
TL_FN float tl_sigmoid(float x) {
  float e, r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(e) : "f"(x * -1.44269504f));
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(fmaf(e, 0.25f, 0.25f)));
  return r * 0.25f;
}

//@ tl_e4m3_bits tl_e5m2_bits tl_e4m3_value
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

//@ tl_group_barrier
// Hardware barrier 0 is the whole block's.
TL_FN void tl_group_barrier(int group, int threads) {
  asm volatile("bar.sync %0, %1;" : : "r"(group + 1), "r"(threads) : "memory");
}

//@ tl_block_barrier
// Where a block has threads besides.
TL_FN void tl_block_barrier(int threads) {
  asm volatile("bar.sync 0, %0;" : : "r"(threads) : "memory");
}
// Registers of each thread of four warps from here on.
//@ tl_fewer_registers
template <int kCount> TL_FN void tl_fewer_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" : : "n"(kCount));
}
//@ tl_more_registers
template <int kCount> TL_FN void tl_more_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" : : "n"(kCount));
}

//@ tl_is_aligned
template <int kBytes> TL_FN bool tl_is_aligned(const void* p) {
  return ((unsigned long long)p & (kBytes - 1)) == 0;
}

//@ tl_move
template <int kBytes> TL_FN void tl_move(void* dst, const void* src) {
  if constexpr (kBytes == 1) *(unsigned char*)dst = *(const unsigned char*)src;
  if constexpr (kBytes == 2) *(unsigned short*)dst = *(const unsigned short*)src;
  if constexpr (kBytes == 4) *(unsigned*)dst = *(const unsigned*)src;
  if constexpr (kBytes == 8) *(uint2*)dst = *(const uint2*)src;
  if constexpr (kBytes == 16) *(uint4*)dst = *(const uint4*)src;
}

// What the L2 cache gives up first, or last, of what is accessed with it. ptxas knows the values: no
// instruction is left.
//@ tl_policy
struct tl_policy { unsigned long long word; };
//@ tl_evict_first
TL_FN tl_policy tl_evict_first() {
  tl_policy p;
  asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(p.word));
  return p;
}
//@ tl_evict_last
TL_FN tl_policy tl_evict_last() {
  tl_policy p;
  asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(p.word));
  return p;
}
// Moves from global memory, and to it.
//@ tl_load
template <int kBytes> TL_FN void tl_load(void* dst, const void* src, tl_policy policy) {
#define TL_LOAD(type, registers, address, hint, ...)                                              \
  asm volatile("ld.global.L2::cache_hint." type " " registers ", [" address "], " hint ";"        \
               : __VA_ARGS__ : "l"(__cvta_generic_to_global(src)), "l"(policy.word) : "memory");
  if constexpr (kBytes == 1) {
    unsigned short x;
    TL_LOAD("u8", "%0", "%1", "%2", "=h"(x))
    *(unsigned char*)dst = (unsigned char)x;
  } else if constexpr (kBytes == 2) {
    TL_LOAD("b16", "%0", "%1", "%2", "=h"(*(unsigned short*)dst))
  } else if constexpr (kBytes == 4) {
    TL_LOAD("b32", "%0", "%1", "%2", "=r"(*(unsigned*)dst))
  } else if constexpr (kBytes == 8) {
    uint2 x;
    TL_LOAD("v2.b32", "{%0, %1}", "%2", "%3", "=r"(x.x), "=r"(x.y))
    *(uint2*)dst = x;
  } else {
    uint4 x;
    TL_LOAD("v4.b32", "{%0, %1, %2, %3}", "%4", "%5", "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w))
    *(uint4*)dst = x;
  }
#undef TL_LOAD
}
//@ tl_store
template <int kBytes> TL_FN void tl_store(void* dst, const void* src, tl_policy policy) {
#define TL_STORE(type, registers, ...)                                                            \
  asm volatile("st.global.L2::cache_hint." type " [%0], " registers ", %1;"                       \
               : : "l"(__cvta_generic_to_global(dst)), "l"(policy.word), __VA_ARGS__ : "memory");
  if constexpr (kBytes == 1) {
    TL_STORE("b8", "%2", "h"((unsigned short)*(const unsigned char*)src))
  } else if constexpr (kBytes == 2) {
    TL_STORE("b16", "%2", "h"(*(const unsigned short*)src))
  } else if constexpr (kBytes == 4) {
    TL_STORE("b32", "%2", "r"(*(const unsigned*)src))
  } else if constexpr (kBytes == 8) {
    const uint2 x = *(const uint2*)src;
    TL_STORE("v2.b32", "{%2, %3}", "r"(x.x), "r"(x.y))
  } else {
    const uint4 x = *(const uint4*)src;
    TL_STORE("v4.b32", "{%2, %3, %4, %5}", "r"(x.x), "r"(x.y), "r"(x.z), "r"(x.w))
  }
#undef TL_STORE
}

// A value that the compiler takes for new: it stays in its register instead of being computed again.
//@ tl_keep
template <class T> TL_FN T tl_keep(T x) {
  return __shfl_sync(0xffffffffu, x, (int)(threadIdx.x & 31));
}
//@ tl_lane_xor
template <class T> TL_FN T tl_lane_xor(T x, int mask) {
  return __shfl_xor_sync(0xffffffffu, x, mask);
}
TL_FN bool tl_lane_xor(bool x, int mask) { return tl_lane_xor((int)x, mask) != 0; }

// Programmatic dependent launch: until the kernel before this one on the stream has ended and its writes
// are seen; from here on the one behind it may take free places, to wait there.
//@ tl_await_kernel_before
TL_FN void tl_await_kernel_before() { asm volatile("griddepcontrol.wait;" : : : "memory"); }
//@ tl_admit_kernel_behind
TL_FN void tl_admit_kernel_behind() {
  asm volatile("griddepcontrol.launch_dependents;" : : : "memory");
}

//@ tl_shared_address
TL_FN unsigned tl_shared_address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

//@ tl_mbarrier_init
TL_FN void tl_mbarrier_init(const long long* barrier, int arrivals) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;"
               : : "r"(tl_shared_address(barrier)), "r"(arrivals) : "memory");
}
//@ tl_mbarrier_arrive
TL_FN void tl_mbarrier_arrive(const long long* barrier) {
  asm volatile("{ .reg .b64 state; mbarrier.arrive.shared.b64 state, [%0]; }"
               : : "r"(tl_shared_address(barrier)) : "memory");
}
//@ tl_mbarrier_expect
TL_FN void tl_mbarrier_expect(const long long* barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
               : : "r"(tl_shared_address(barrier)), "r"(bytes) : "memory");
}
//@ tl_cluster_rank
TL_FN int tl_cluster_rank() {
  int rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
//@ tl_cluster_barrier
TL_FN void tl_cluster_barrier() {
  asm volatile("barrier.cluster.arrive.release.aligned;\n"
               "barrier.cluster.wait.acquire.aligned;" : : : "memory");
}
//@ tl_mbarrier_init_fence
TL_FN void tl_mbarrier_init_fence() {
  asm volatile("fence.mbarrier_init.release.cluster;" : : : "memory");
}
// At the mbarrier of the same place in another block. The form with .release.cluster would order all that
// the thread has done for the whole GPU, at every step; what it hands back it has read only.
//@ tl_mbarrier_arrive_at
TL_FN void tl_mbarrier_arrive_at(const long long* barrier, int rank) {
  asm volatile("{ .reg .b32 there; mapa.shared::cluster.u32 there, %0, %1;\n"
               "mbarrier.arrive.shared::cluster.b64 _, [there]; }"
               : : "r"(tl_shared_address(barrier)), "r"(rank) : "memory");
}
// A window of a tensor, as the driver describes it: cuTensorMapEncodeTiled.
//@ tl_tensor_map
struct alignas(64) tl_tensor_map { unsigned long long words[16]; };
// TL_BOX for kRank dims, whose places are the operands p0, p1, ... of the instruction.
//@ TL_BY_RANK
#define TL_BY_RANK(p0, p1, p2, p3, p4)                                                            \
  if constexpr (kRank == 1) {                                                                     \
    TL_BOX("1", p0, "r"(at[0]))                                                                   \
  } else if constexpr (kRank == 2) {                                                              \
    TL_BOX("2", p0 ", " p1, "r"(at[0]), "r"(at[1]))                                               \
  } else if constexpr (kRank == 3) {                                                              \
    TL_BOX("3", p0 ", " p1 ", " p2, "r"(at[0]), "r"(at[1]), "r"(at[2]))                           \
  } else if constexpr (kRank == 4) {                                                              \
    TL_BOX("4", p0 ", " p1 ", " p2 ", " p3, "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]))       \
  } else {                                                                                        \
    TL_BOX("5", p0 ", " p1 ", " p2 ", " p3 ", " p4, "r"(at[0]), "r"(at[1]), "r"(at[2]),           \
           "r"(at[3]), "r"(at[4]))                                                                \
  }
// at[0]: of the innermost dim.
//@ tl_bulk_load
template <int kRank>
TL_FN void tl_bulk_load(void* dst, const tl_tensor_map& map, const int (&at)[kRank],
                        const long long* barrier) {
#define TL_BOX(rank, places, ...)                                                                 \
  asm volatile("cp.async.bulk.tensor." rank "d.shared::cluster.global.tile."                      \
               "mbarrier::complete_tx::bytes [%0], [%1, {" places "}], [%2];"                     \
               : : "r"(tl_shared_address(dst)), "l"(&map), "r"(tl_shared_address(barrier)),       \
                 __VA_ARGS__ : "memory");
  TL_BY_RANK("%3", "%4", "%5", "%6", "%7")
#undef TL_BOX
}
//@ tl_bulk_load with tl_policy
template <int kRank>
TL_FN void tl_bulk_load(void* dst, const tl_tensor_map& map, const int (&at)[kRank],
                        const long long* barrier, tl_policy policy) {
#define TL_BOX(rank, places, ...)                                                                 \
  asm volatile("cp.async.bulk.tensor." rank "d.shared::cluster.global.tile."                      \
               "mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1, {" places "}], [%2], %3;"  \
               : : "r"(tl_shared_address(dst)), "l"(&map), "r"(tl_shared_address(barrier)),       \
                 "l"(policy.word), __VA_ARGS__ : "memory");
  TL_BY_RANK("%4", "%5", "%6", "%7", "%8")
#undef TL_BOX
}
// Bit i of `blocks`: to block i of the cluster.
//@ tl_bulk_load_to
template <int kRank>
TL_FN void tl_bulk_load_to(void* dst, const tl_tensor_map& map, const int (&at)[kRank],
                           const long long* barrier, int blocks) {
#define TL_BOX(rank, places, ...)                                                                 \
  asm volatile("cp.async.bulk.tensor." rank "d.shared::cluster.global.tile."                      \
               "mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {" places "}], [%2], " \
               "%3;"                                                                              \
               : : "r"(tl_shared_address(dst)), "l"(&map), "r"(tl_shared_address(barrier)),       \
                 "h"((short)blocks), __VA_ARGS__ : "memory");
  TL_BY_RANK("%4", "%5", "%6", "%7", "%8")
#undef TL_BOX
}
//@ tl_bulk_load_to with tl_policy
template <int kRank>
TL_FN void tl_bulk_load_to(void* dst, const tl_tensor_map& map, const int (&at)[kRank],
                           const long long* barrier, int blocks,
                           tl_policy policy) {
#define TL_BOX(rank, places, ...)                                                                 \
  asm volatile("cp.async.bulk.tensor." rank "d.shared::cluster.global.tile."                      \
               "mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint [%0], "            \
               "[%1, {" places "}], [%2], %3, %4;"                                                \
               : : "r"(tl_shared_address(dst)), "l"(&map), "r"(tl_shared_address(barrier)),       \
                 "h"((short)blocks), "l"(policy.word), __VA_ARGS__ : "memory");
  TL_BY_RANK("%5", "%6", "%7", "%8", "%9")
#undef TL_BOX
}
// What lies outside of the tensor is dropped.
//@ tl_bulk_store
template <int kRank>
TL_FN void tl_bulk_store(const tl_tensor_map& map, const int (&at)[kRank], const void* src) {
#define TL_BOX(rank, places, ...)                                                                 \
  asm volatile("cp.async.bulk.tensor." rank "d.global.shared::cta.tile.bulk_group"                \
               " [%0, {" places "}], [%1];"                                                       \
               : : "l"(&map), "r"(tl_shared_address(src)), __VA_ARGS__ : "memory");
  TL_BY_RANK("%2", "%3", "%4", "%5", "%6")
#undef TL_BOX
}
//@ tl_bulk_store with tl_policy
template <int kRank>
TL_FN void tl_bulk_store(const tl_tensor_map& map, const int (&at)[kRank], const void* src,
                         tl_policy policy) {
#define TL_BOX(rank, places, ...)                                                                 \
  asm volatile("cp.async.bulk.tensor." rank "d.global.shared::cta.tile.bulk_group"                \
               ".L2::cache_hint [%0, {" places "}], [%1], %2;"                                    \
               : : "l"(&map), "r"(tl_shared_address(src)), "l"(policy.word), __VA_ARGS__          \
               : "memory");
  TL_BY_RANK("%3", "%4", "%5", "%6", "%7")
#undef TL_BOX
}
//@ tl_bulk_commit
TL_FN void tl_bulk_commit() { asm volatile("cp.async.bulk.commit_group;" : : : "memory"); }
//@ tl_bulk_wait_read
template <int kPending> TL_FN void tl_bulk_wait_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" : : "n"(kPending) : "memory");
}
//@ tl_bulk_wait
template <int kPending> TL_FN void tl_bulk_wait() {
  asm volatile("cp.async.bulk.wait_group %0;" : : "n"(kPending) : "memory");
}
//@ tl_mbarrier_wait
#if __CUDA_ARCH__ >= 900
#define TL_MBARRIER_TRY "try_wait"
#else
#define TL_MBARRIER_TRY "test_wait"
#endif
// Groups that wait for each other for good would hang the device: after ten seconds it is an error.
// One piece of assembly: to a loop of its own, products under way would have to end first.
TL_FN void tl_mbarrier_wait(const long long* barrier, int parity) {
  asm volatile("{ .reg .pred p, q; .reg .b64 now, end;\n"
               "mbarrier." TL_MBARRIER_TRY ".parity.shared.b64 p, [%0], %1;\n"
               "@p bra DONE;\n"
               "mov.u64 end, %%globaltimer;\n"
               "add.u64 end, end, 10000000000;\n"
               "AGAIN: mbarrier." TL_MBARRIER_TRY ".parity.shared.b64 p, [%0], %1;\n"
               "@p bra DONE;\n"
               "mov.u64 now, %%globaltimer;\n"
               "setp.lt.u64 q, now, end;\n"
               "@q bra AGAIN;\n"
               "trap;\n"
               "DONE: }"
               : : "r"(tl_shared_address(barrier)), "r"(parity) : "memory");
}

//@ tl_async_move
// Only 16-byte copies can pass the first-level cache by.
template <int kBytes> TL_FN void tl_async_move(void* dst, const void* src, bool inside) {
  const unsigned to = tl_shared_address(dst);
  const int read = inside ? kBytes : 0;  // the rest is zeros
  if constexpr (kBytes == 16) {
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;"
                 : : "r"(to), "l"(__cvta_generic_to_global(src)), "r"(read) : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;"
                 : : "r"(to), "l"(__cvta_generic_to_global(src)), "n"(kBytes), "r"(read)
                 : "memory");
  }
}
//@ tl_async_commit
TL_FN void tl_async_commit() { asm volatile("cp.async.commit_group;" : : : "memory"); }
//@ tl_async_wait
template <int kPending> TL_FN void tl_async_wait() {
  asm volatile("cp.async.wait_group %0;" : : "n"(kPending) : "memory");
}

//@ tl_load_matrix
template <int kMatrices, bool kTranspose> TL_FN void tl_load_matrix(void* dst, const void* src) {
  const unsigned from = tl_shared_address(src);
  unsigned* d = (unsigned*)dst;
#define TL_LDMATRIX(trans)                                                                        \
  if constexpr (kMatrices == 1) {                                                                 \
    asm volatile("ldmatrix.sync.aligned.m8n8.x1" trans ".shared.b16 {%0}, [%1];"                  \
                 : "=r"(d[0]) : "r"(from) : "memory");                                            \
  } else if constexpr (kMatrices == 2) {                                                          \
    asm volatile("ldmatrix.sync.aligned.m8n8.x2" trans ".shared.b16 {%0, %1}, [%2];"              \
                 : "=r"(d[0]), "=r"(d[1]) : "r"(from) : "memory");                                \
  } else {                                                                                        \
    asm volatile("ldmatrix.sync.aligned.m8n8.x4" trans ".shared.b16 {%0, %1, %2, %3}, [%4];"      \
                 : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3]) : "r"(from) : "memory");        \
  }
  if constexpr (kTranspose) {
    TL_LDMATRIX(".trans")
  } else {
    TL_LDMATRIX("")
  }
#undef TL_LDMATRIX
}
//@ tl_store_matrix
template <int kMatrices, bool kTranspose> TL_FN void tl_store_matrix(void* dst, const void* src) {
  const unsigned to = tl_shared_address(dst);
  const unsigned* s = (const unsigned*)src;
#define TL_STMATRIX(trans)                                                                        \
  if constexpr (kMatrices == 1) {                                                                 \
    asm volatile("stmatrix.sync.aligned.m8n8.x1" trans ".shared.b16 [%0], {%1};"                  \
                 : : "r"(to), "r"(s[0]) : "memory");                                              \
  } else if constexpr (kMatrices == 2) {                                                          \
    asm volatile("stmatrix.sync.aligned.m8n8.x2" trans ".shared.b16 [%0], {%1, %2};"              \
                 : : "r"(to), "r"(s[0]), "r"(s[1]) : "memory");                                   \
  } else {                                                                                        \
    asm volatile("stmatrix.sync.aligned.m8n8.x4" trans ".shared.b16 [%0], {%1, %2, %3, %4};"      \
                 : : "r"(to), "r"(s[0]), "r"(s[1]), "r"(s[2]), "r"(s[3]) : "memory");             \
  }
  if constexpr (kTranspose) {
    TL_STMATRIX(".trans")
  } else {
    TL_STMATRIX("")
  }
#undef TL_STMATRIX
}

// ---- Matrix instructions of four warps, which read shared memory where it lies ----
// leading, stride: bytes from one panel to the next and from 8 rows to the next; swizzle: bytes of a
// row of a panel. PTX ISA, "Matrix Descriptor Format".
//@ tl_descriptor
TL_FN unsigned long long tl_descriptor(const void* p, int leading, int stride, int swizzle) {
  const unsigned long long mode = swizzle == 128 ? 1 : swizzle == 64 ? 2 : swizzle == 32 ? 3 : 0;
  return (unsigned long long)((tl_shared_address(p) & 0x3ffff) >> 4) |
         (unsigned long long)(leading >> 4) << 16 | (unsigned long long)(stride >> 4) << 32 |
         mode << 62;
}
//@ tl_sums TL_SUMS tl_sums_in tl_sums_out
// Registers of PTX, which no variable of C++ stands for: the compiler can neither look at them nor move
// their uses, and compiles a third faster than with a hundred operands of every instruction. Declared
// where a kernel begins; tl_sums_in and tl_sums_out are written for those that it declares.
template <int kNumber> struct tl_sums {};
#define TL_SUMS(type, number, elements)                                                           \
  asm volatile(".reg .b32 sum" #number "_<" #elements ">;" : : : "memory");                       \
  const tl_sums<number> c##number
//@ tl_wgmma
// c += a * b, kSteps instructions along the depth; add = false: c = a * b. Specialised in the text of
// the kernels that use them.
template <class A, class B, class C, int kN, int kSteps, bool kTransA, bool kTransB>
TL_FN void tl_wgmma(C* c, unsigned long long a, int a_step, unsigned long long b, int b_step,
                    bool add);
template <class A, class B, class C, int kN, int kSteps, bool kTransB>
TL_FN void tl_wgmma(C* c, const A* a, unsigned long long b, int b_step, bool add);
// The same of sums apart, from element kFirst on.
//@ tl_wgmma with tl_sums
template <class A, class B, class C, int kN, int kSteps, bool kTransA, bool kTransB, int kFirst,
          int kNumber>
TL_FN void tl_wgmma(tl_sums<kNumber> c, unsigned long long a, int a_step, unsigned long long b,
                    int b_step, bool add);
template <class A, class B, class C, int kN, int kSteps, bool kTransB, int kFirst, int kNumber>
TL_FN void tl_wgmma(tl_sums<kNumber> c, const A* a, unsigned long long b, int b_step, bool add);
//@ tl_wgmma_fence
TL_FN void tl_wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" : : : "memory"); }
//@ tl_wgmma_commit
TL_FN void tl_wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" : : : "memory"); }
//@ tl_wgmma_wait
template <int kPending> TL_FN void tl_wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" : : "n"(kPending) : "memory");
}
// The compiler moves no use of these registers across this place: they change behind its back.
//@ tl_settle
TL_FN void tl_settle_one(float& x) { asm volatile("" : "+f"(x) : : "memory"); }
TL_FN void tl_settle_one(unsigned& x) { asm volatile("" : "+r"(x) : : "memory"); }
template <int kCount, class T> TL_FN void tl_settle(T* c) {
  unsigned* r = (unsigned*)c;
#pragma unroll
  for (int i = 0; i < kCount * (int)sizeof(T) / 4; ++i) tl_settle_one(r[i]);
}
template <int kCount> TL_FN void tl_settle(float* c) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) tl_settle_one(c[i]);
}
//@ tl_proxy_fence
TL_FN void tl_proxy_fence() { asm volatile("fence.proxy.async.shared::cta;" : : : "memory"); }

// ---- Matrix instructions: c += a * b, one instruction each. They touch registers only, so that
// the compiler may move them and drop them. ----
//@ TL_MMA_F32 TL_MMA_I32
#define TL_MMA_WIDE(T, bind, op)                                                                  \
  T* x = (T*)c;                                                                                   \
  const unsigned* y = (const unsigned*)a;                                                         \
  const unsigned* z = (const unsigned*)b;                                                         \
  asm("mma.sync.aligned." op                                                                      \
      " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                          \
      : bind(x[0]), bind(x[1]), bind(x[2]), bind(x[3])                                            \
      : "r"(y[0]), "r"(y[1]), "r"(y[2]), "r"(y[3]), "r"(z[0]), "r"(z[1]));
#define TL_MMA_F32(op) TL_MMA_WIDE(float, "+f", op)
#define TL_MMA_I32(op) TL_MMA_WIDE(int, "+r", op)

//@ tl_mma_m16n8k16_f16_f16_f32
TL_FN void tl_mma_m16n8k16_f16_f16_f32(void* c, const void* a, const void* b) {
  TL_MMA_F32("m16n8k16.row.col.f32.f16.f16.f32")
}
//@ tl_mma_m16n8k16_bf16_bf16_f32
TL_FN void tl_mma_m16n8k16_bf16_bf16_f32(void* c, const void* a, const void* b) {
  TL_MMA_F32("m16n8k16.row.col.f32.bf16.bf16.f32")
}
//@ tl_mma_m16n8k16_f16_f16_f16
TL_FN void tl_mma_m16n8k16_f16_f16_f16(void* c, const void* a, const void* b) {
  unsigned* x = (unsigned*)c;
  const unsigned* y = (const unsigned*)a;
  const unsigned* z = (const unsigned*)b;
  asm("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %3, %4, %5}, {%6, %7}, "
      "{%0, %1};"
      : "+r"(x[0]), "+r"(x[1])
      : "r"(y[0]), "r"(y[1]), "r"(y[2]), "r"(y[3]), "r"(z[0]), "r"(z[1]));
}
//@ tl_tf32
TL_FN unsigned tl_tf32(float x) {
  unsigned r;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(x));
  return r;
}
//@ tl_mma_m16n8k8_tf32_tf32_f32
TL_FN void tl_mma_m16n8k8_tf32_tf32_f32(void* c, const void* a, const void* b) {
  float* x = (float*)c;
  const float* y = (const float*)a;
  const float* z = (const float*)b;
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(x[0]), "+f"(x[1]), "+f"(x[2]), "+f"(x[3])
      : "r"(tl_tf32(y[0])), "r"(tl_tf32(y[1])), "r"(tl_tf32(y[2])), "r"(tl_tf32(y[3])),
        "r"(tl_tf32(z[0])), "r"(tl_tf32(z[1])));
}
//@ tl_mma_m16n8k32_i8_i8_i32
TL_FN void tl_mma_m16n8k32_i8_i8_i32(void* c, const void* a, const void* b) {
  TL_MMA_I32("m16n8k32.row.col.s32.s8.s8.s32")
}
//@ tl_mma_m16n8k32_i8_u8_i32
TL_FN void tl_mma_m16n8k32_i8_u8_i32(void* c, const void* a, const void* b) {
  TL_MMA_I32("m16n8k32.row.col.s32.s8.u8.s32")
}
//@ tl_mma_m16n8k32_u8_i8_i32
TL_FN void tl_mma_m16n8k32_u8_i8_i32(void* c, const void* a, const void* b) {
  TL_MMA_I32("m16n8k32.row.col.s32.u8.s8.s32")
}
//@ tl_mma_m16n8k32_u8_u8_i32
TL_FN void tl_mma_m16n8k32_u8_u8_i32(void* c, const void* a, const void* b) {
  TL_MMA_I32("m16n8k32.row.col.s32.u8.u8.s32")
}
//@ tl_mma_m16n8k32_e4m3_e4m3_f32
TL_FN void tl_mma_m16n8k32_e4m3_e4m3_f32(void* c, const void* a, const void* b) {
  TL_MMA_F32("m16n8k32.row.col.f32.e4m3.e4m3.f32")
}
//@ tl_mma_m16n8k32_e4m3_e5m2_f32
TL_FN void tl_mma_m16n8k32_e4m3_e5m2_f32(void* c, const void* a, const void* b) {
  TL_MMA_F32("m16n8k32.row.col.f32.e4m3.e5m2.f32")
}
//@ tl_mma_m16n8k32_e5m2_e4m3_f32
TL_FN void tl_mma_m16n8k32_e5m2_e4m3_f32(void* c, const void* a, const void* b) {
  TL_MMA_F32("m16n8k32.row.col.f32.e5m2.e4m3.f32")
}
//@ tl_mma_m16n8k32_e5m2_e5m2_f32
TL_FN void tl_mma_m16n8k32_e5m2_e5m2_f32(void* c, const void* a, const void* b) {
  TL_MMA_F32("m16n8k32.row.col.f32.e5m2.e5m2.f32")
}
//@ tl_mma_m16n8k8_f16_f16_f32
TL_FN void tl_mma_m16n8k8_f16_f16_f32(void* c, const void* a, const void* b) {
  float* x = (float*)c;
  const unsigned* y = (const unsigned*)a;
  const unsigned* z = (const unsigned*)b;
  asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
      "{%0, %1, %2, %3};"
      : "+f"(x[0]), "+f"(x[1]), "+f"(x[2]), "+f"(x[3]) : "r"(y[0]), "r"(y[1]), "r"(z[0]));
}
//@ tl_mma_m16n8k8_f16_f16_f16
TL_FN void tl_mma_m16n8k8_f16_f16_f16(void* c, const void* a, const void* b) {
  unsigned* x = (unsigned*)c;
  const unsigned* y = (const unsigned*)a;
  const unsigned* z = (const unsigned*)b;
  asm("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %3}, {%4}, {%0, %1};"
      : "+r"(x[0]), "+r"(x[1]) : "r"(y[0]), "r"(y[1]), "r"(z[0]));
}
//@ tl_mma_m8n8k4_f64_f64_f64
TL_FN void tl_mma_m8n8k4_f64_f64_f64(void* c, const void* a, const void* b) {
  double* x = (double*)c;
  asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
      : "+d"(x[0]), "+d"(x[1]) : "d"(*(const double*)a), "d"(*(const double*)b));
}

