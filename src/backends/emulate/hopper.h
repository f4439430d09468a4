
// Kernels are run one after the other.
//@ tl_await_kernel_before tl_admit_kernel_behind
TL_FN void tl_await_kernel_before() {}
TL_FN void tl_admit_kernel_behind() {}

// ---- Instructions of a warpgroup, and the async proxy. ----
//@ tl_descriptor
template <class T>
TL_FN unsigned long long tl_descriptor(TlPtr<TlShared<T>> p, int leading, int stride, int swizzle) {
  const TlPlace place = p.view->Place(p.index, p.line);
  const unsigned begin = p.view->Begin();
  const unsigned end = begin + (unsigned)(p.view->elements * (long long)sizeof(T));
  return tl_api->descriptor(tl_api->self, &place, begin, end, leading, stride, swizzle);
}

//@ tl_wgmma_fence tl_wgmma_commit tl_wgmma_wait
TL_FN void tl_wgmma_fence(int line = __builtin_LINE()) {
  tl_api->wgmma_order(tl_api->self, kTlWgmmaFence, 0, line);
}
TL_FN void tl_wgmma_commit(int line = __builtin_LINE()) {
  tl_api->wgmma_order(tl_api->self, kTlWgmmaCommit, 0, line);
}
template <int kPending>
TL_FN void tl_wgmma_wait(int line = __builtin_LINE()) {
  tl_api->wgmma_order(tl_api->self, kTlWgmmaWait, kPending, line);
}

//@ tl_fewer_registers tl_more_registers
template <int kCount>
TL_FN void tl_fewer_registers(int line = __builtin_LINE()) {
  tl_api->registers(tl_api->self, -kCount, line);
}
template <int kCount>
TL_FN void tl_more_registers(int line = __builtin_LINE()) {
  tl_api->registers(tl_api->self, kCount, line);
}

// For the compiler of the GPU only.
//@ tl_settle
template <int kCount, class T>
TL_FN void tl_settle(T*) {}

// Registers apart from the thread's array, as they are on the GPU.
//@ TL_SUMS
#define TL_SUMS(type, number, elements) TlLocal<type, elements> c##number
//@ tl_sums_in tl_sums_out
template <class T, int kElements>
TL_FN void tl_sums_in(TlLocal<T, kElements>& sums, const T* c) {
  __builtin_memcpy((void*)sums.data, (const void*)c, sizeof(sums.data));
}
template <class T, int kElements>
TL_FN void tl_sums_out(TlLocal<T, kElements>& sums, T* c) {
  __builtin_memcpy((void*)c, (const void*)sums.data, sizeof(sums.data));
}

//@ tl_proxy_fence
TL_FN void tl_proxy_fence() { tl_api->proxy_fence(tl_api->self); }

//@ tl_wgmma
struct tl_f16;
struct tl_bf16;
struct tl_e4m3;
struct tl_e5m2;
template <class T>
struct TlElementOf;
#define TL_ELEMENT(T, kFactor, kSum)                   \
  template <>                                          \
  struct TlElementOf<T> {                              \
    static constexpr int factor = kFactor, sum = kSum; \
  };
TL_ELEMENT(tl_f16, kTlF16, kTlF16)
TL_ELEMENT(tl_bf16, kTlBF16, -1)
TL_ELEMENT(tl_e4m3, kTlE4M3, -1)
TL_ELEMENT(tl_e5m2, kTlE5M2, -1)
TL_ELEMENT(float, kTlTF32, kTlF32)
TL_ELEMENT(signed char, kTlI8, -1)
TL_ELEMENT(unsigned char, kTlU8, -1)
TL_ELEMENT(int, -1, kTlI32)
#undef TL_ELEMENT

// What the instruction set has.
template <class A, class B, class C, int kN, int kSteps, bool kTransA, bool kTransB>
constexpr TlWgmma tl_wgmma_of() {
  constexpr int a = TlElementOf<A>::factor, b = TlElementOf<B>::factor, c = TlElementOf<C>::sum;
  constexpr bool integers = a == kTlI8 || a == kTlU8, narrow = sizeof(A) == 1 && !integers;
  static_assert(a >= 0 && b >= 0 && c >= 0 && sizeof(A) == sizeof(B));
  static_assert(sizeof(A) == 1 ? integers == (b == kTlI8 || b == kTlU8) : a == b);
  static_assert(integers ? c == kTlI32 : c == kTlF32 || (c == kTlF16 && (narrow || a == kTlF16)));
  static_assert(kN % 8 == 0 && kN >= 8 && kN <= 256 && (!integers || kN <= 32 || kN % 16 == 0));
  static_assert(sizeof(A) == 2 || (!kTransA && !kTransB));
  static_assert(kSteps >= 1);
  return TlWgmma{.a = a,
                 .b = b,
                 .c = c,
                 .n = kN,
                 .steps = kSteps,
                 .mn_major_a = kTransA,
                 .mn_major_b = kTransB};
}

template <class A, class B, class C, int kN, int kSteps, bool kTransA, bool kTransB>
TL_FN void tl_wgmma(C* c, unsigned long long a, int a_step, unsigned long long b, int b_step,
                    bool add, int line = __builtin_LINE()) {
  TlWgmma call = tl_wgmma_of<A, B, C, kN, kSteps, kTransA, kTransB>();
  call.a_matrix = a;
  call.a_step = a_step;
  call.b_matrix = b;
  call.b_step = b_step;
  call.add = add;
  call.line = line;
  call.c_registers = (void*)c;
  tl_api->wgmma(tl_api->self, &call);
}
template <class A, class B, class C, int kN, int kSteps, bool kTransB>
TL_FN void tl_wgmma(C* c, const A* a, unsigned long long b, int b_step, bool add,
                    int line = __builtin_LINE()) {
  TlWgmma call = tl_wgmma_of<A, B, C, kN, kSteps, false, kTransB>();
  call.b_matrix = b;
  call.b_step = b_step;
  call.add = add;
  call.line = line;
  call.c_registers = (void*)c;
  call.a_registers = (const void*)a;
  tl_api->wgmma(tl_api->self, &call);
}
template <class A, class B, class C, int kN, int kSteps, bool kTransA, bool kTransB, int kFirst,
          int kElements>
TL_FN void tl_wgmma(TlLocal<C, kElements>& c, unsigned long long a, int a_step,
                    unsigned long long b, int b_step, bool add, int line = __builtin_LINE()) {
  tl_wgmma<A, B, C, kN, kSteps, kTransA, kTransB>(&c[kFirst], a, a_step, b, b_step, add, line);
}
template <class A, class B, class C, int kN, int kSteps, bool kTransB, int kFirst, int kElements>
TL_FN void tl_wgmma(TlLocal<C, kElements>& c, const A* a, unsigned long long b, int b_step,
                    bool add, int line = __builtin_LINE()) {
  tl_wgmma<A, B, C, kN, kSteps, kTransB>(&c[kFirst], a, b, b_step, add, line);
}

//@ tl_mbarrier_expect
template <class T>
TL_FN void tl_mbarrier_expect(TlPtr<T> barrier, int bytes) {
  tl_mbarrier(barrier, kTlExpect, bytes);
}
//@ tl_mbarrier_init_fence
TL_FN void tl_mbarrier_init_fence() { tl_api->mbarrier_init_fence(tl_api->self); }

// ---- Blocks of a cluster. ----
//@ tl_cluster_rank tl_cluster_barrier
TL_FN int tl_cluster_rank() { return tl_api->rank; }
TL_FN void tl_cluster_barrier(int line = __builtin_LINE()) {
  tl_api->barrier(tl_api->self, kTlCluster, line);
}
//@ tl_mbarrier_arrive_at
template <class T>
TL_FN void tl_mbarrier_arrive_at(TlPtr<TlShared<T>> barrier, int rank) {
  barrier.view->Check(barrier.index, sizeof(T), barrier.line);
  const TlPlace place = barrier.view->Place(barrier.index, barrier.line);
  tl_api->mbarrier_arrive_at(tl_api->self, &place, rank);
}

//@ tl_tensor_map
#define __grid_constant__
struct tl_tensor_map {
  unsigned long long bits[kTlMapBytes / 8];
};

//@ tl_bulk_load tl_bulk_load_to tl_bulk_store
template <int kRank, class T>
TL_FN TlBulkCopy tl_bulk_copy(TlPtr<TlShared<T>> p, const tl_tensor_map& map,
                              const int (&at)[kRank]) {
  static_assert(kRank >= 1 && kRank <= 5);
  TlBulkCopy copy = {p.view->Place(p.index, p.line)};
  copy.begin = p.view->Begin();
  copy.end = copy.begin + (unsigned)(p.view->elements * (long long)sizeof(T));
  copy.map = &map;
  copy.rank = kRank;
  copy.blocks = 0;
  for (int i = 0; i < kRank; ++i) copy.at[i] = at[i];
  return copy;
}
template <class M>
TL_FN void tl_start_load(const TlBulkCopy& copy, TlPtr<TlShared<M>> mbarrier) {
  mbarrier.view->Check(mbarrier.index, sizeof(M), mbarrier.line);
  const TlPlace place = mbarrier.view->Place(mbarrier.index, mbarrier.line);
  tl_api->bulk_load(tl_api->self, &copy, &place);
}
template <int kRank, class T, class M>
TL_FN void tl_bulk_load(TlPtr<TlShared<T>> dst, const tl_tensor_map& map, const int (&at)[kRank],
                        TlPtr<TlShared<M>> mbarrier) {
  TlBulkCopy copy = tl_bulk_copy(dst, map, at);
  tl_start_load(copy, mbarrier);
}
template <int kRank, class T, class M>
TL_FN void tl_bulk_load_to(TlPtr<TlShared<T>> dst, const tl_tensor_map& map, const int (&at)[kRank],
                           TlPtr<TlShared<M>> mbarrier, int blocks) {
  TlBulkCopy copy = tl_bulk_copy(dst, map, at);
  copy.blocks = (unsigned)blocks;
  if (blocks == 0) tl_fail(dst.line, "a bulk copy to no block");
  tl_start_load(copy, mbarrier);
}
template <int kRank, class T>
TL_FN void tl_bulk_store(const tl_tensor_map& map, const int (&at)[kRank], TlPtr<TlShared<T>> src) {
  const TlBulkCopy copy = tl_bulk_copy(src, map, at);
  tl_api->bulk_store(tl_api->self, &copy);
}
template <int kRank, class T, class M>
TL_FN void tl_bulk_load(TlPtr<TlShared<T>> dst, const tl_tensor_map& map, const int (&at)[kRank],
                        TlPtr<TlShared<M>> mbarrier, tl_policy) {
  tl_bulk_load(dst, map, at, mbarrier);
}
template <int kRank, class T, class M>
TL_FN void tl_bulk_load_to(TlPtr<TlShared<T>> dst, const tl_tensor_map& map, const int (&at)[kRank],
                           TlPtr<TlShared<M>> mbarrier, int blocks, tl_policy) {
  tl_bulk_load_to(dst, map, at, mbarrier, blocks);
}
template <int kRank, class T>
TL_FN void tl_bulk_store(const tl_tensor_map& map, const int (&at)[kRank], TlPtr<TlShared<T>> src,
                         tl_policy) {
  tl_bulk_store(map, at, src);
}
//@ tl_bulk_commit tl_bulk_wait_read tl_bulk_wait
TL_FN void tl_bulk_commit() { tl_api->bulk_order(tl_api->self, kTlBulkCommit, 0); }
template <int kPending>
TL_FN void tl_bulk_wait_read() {
  tl_api->bulk_order(tl_api->self, kTlBulkWaitRead, kPending);
}
template <int kPending>
TL_FN void tl_bulk_wait() {
  tl_api->bulk_order(tl_api->self, kTlBulkWait, kPending);
}
