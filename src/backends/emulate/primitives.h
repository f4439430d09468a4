// ---- What generated GPU source needs of its language, on the host. ----
// Every access to shared and global memory goes through a view that asks the emulator (TlApi
// above).
extern "C" {
#define TL_MATHS(name)           \
  float name##f(float) noexcept; \
  double name(double) noexcept
TL_MATHS(exp);
TL_MATHS(exp2);
TL_MATHS(log);
TL_MATHS(log2);
TL_MATHS(sqrt);
TL_MATHS(tanh);
TL_MATHS(erf);
TL_MATHS(sin);
TL_MATHS(cos);
TL_MATHS(floor);
TL_MATHS(ceil);
TL_MATHS(rint);
TL_MATHS(fabs);
#undef TL_MATHS
#define TL_MATHS(name)                  \
  float name##f(float, float) noexcept; \
  double name(double, double) noexcept
TL_MATHS(pow);
TL_MATHS(fmin);
TL_MATHS(fmax);
#undef TL_MATHS
int snprintf(char*, unsigned long, const char*, ...);
extern unsigned char arena[];  // for the declarations in kernels; nobody uses it
}

#define TL_FN static inline
#define __global__
#define __shared__
#define __align__(n)
#define __launch_bounds__(...)
#define TL_GLOBAL(type) TlGlobal<type>
#define TL_SHARED(type, name, offset, elements) \
  const TlShared<type> name { offset, elements, #name }
#define TL_LOCAL(type, name, elements) TlLocal<type, elements> name

static TlApi* tl_api;

struct TlIndex {
  unsigned x;
};
#define threadIdx (TlIndex{(unsigned)tl_api->thread})
#define blockIdx (TlIndex{(unsigned)tl_api->block})
#define gridDim (TlIndex{(unsigned)tl_api->blocks})

template <class T>
struct TlPlain {
  using Type = T;
};
template <class T>
struct TlPlain<const T> {
  using Type = T;
};

template <class... A>
[[gnu::noinline]] static void tl_fail(int line, const char* format, A... args) {
  char text[256];
  snprintf(text, sizeof(text), format, args...);
  tl_api->fail(tl_api->self, line, text);
}

// The address of an element of a view.
template <class View>
struct TlPtr {
  const View* view;
  long long index;
  int line;

  operator typename View::Element *() const {  // of atomic updates
    return view->At(index, sizeof(typename View::Element), kTlAtomic, line);
  }
};

// An element of a view, used as if it were one.
template <class View>
struct TlRef {
  using Element = typename View::Element;
  using Value = typename TlPlain<Element>::Type;

  const View* view;
  long long index;
  int line;

  operator Value() const { return *view->At(index, sizeof(Value), kTlRead, line); }
  TlPtr<View> operator&() const { return {view, index, line}; }
  void operator=(Value x) const { *view->At(index, sizeof(Value), kTlWrite, line, &x) = x; }
  void operator=(const TlRef& x) const { *this = (Value)x; }
  void operator+=(Value x) const { *this = (Value) * this + x; }
  void operator-=(Value x) const { *this = (Value) * this - x; }
  void operator*=(Value x) const { *this = (Value) * this * x; }
  void operator/=(Value x) const { *this = (Value) * this / x; }
};

template <class T>
struct TlShared {
  using Element = T;
  unsigned offset;
  long long elements;
  const char* name;

  TlRef<TlShared> operator[](long long i, int line = __builtin_LINE()) const {
    return {this, i, line};
  }
  unsigned Begin() const { return tl_api->base + offset; }
  TlPlace Place(long long i, int line) const {
    return {name, i, Begin() + (unsigned)i * (unsigned)sizeof(T), line};
  }
  bool Inside(long long i, int bytes) const {
    return i >= 0 && i * (long long)sizeof(T) + bytes <= elements * (long long)sizeof(T);
  }
  void Check(long long i, int bytes, int line) const {
    if (!Inside(i, bytes)) {
      tl_fail(line, "%d bytes from %s[%lld] on are outside of its %lld elements", bytes, name, i,
              elements);
    }
  }
  T* At(long long i, int bytes, TlAccess access, int line, const void* data = nullptr) const {
    Check(i, bytes, line);
    const TlPlace place = Place(i, line);
    tl_api->shared(tl_api->self, &place, bytes, access, data);
    return (T*)(tl_api->arena + place.offset);
  }
  void* VectorAt(long long i, int bytes, TlAccess access, int line, const void* data) const {
    Check(i, bytes, line);
    const TlPlace place = Place(i, line);
    tl_api->shared_vector(tl_api->self, &place, bytes, access, data);
    return tl_api->arena + place.offset;
  }
};

template <class T>
struct TlGlobal {
  using Element = T;
  T* data;
  const TlExtent* extent;

  TlRef<TlGlobal> operator[](long long i, int line = __builtin_LINE()) const {
    return {this, i, line};
  }
  T* At(long long i, int bytes, TlAccess, int line, const void* = nullptr) const {
    // Computed as a number: it may be anything.
    const unsigned long long at = (unsigned long long)data + (unsigned long long)i * sizeof(T);
    if (at < extent->begin || at + (unsigned)bytes > extent->end) {
      tl_fail(line, "%d bytes from element %lld of %s on are outside of the tensor", bytes, i,
              extent->name);
    }
    return (T*)at;
  }
  void* VectorAt(long long i, int bytes, TlAccess access, int line, const void*) const {
    T* p = At(i, bytes, access, line);
    if ((unsigned long long)p % (unsigned)bytes != 0) {
      tl_fail(line, "%d bytes from element %lld of %s on are misaligned", bytes, i, extent->name);
    }
    return (void*)p;
  }
};

// Registers start as NaNs too.
template <class T, int kElements>
struct TlLocal {
  alignas(16) T data[kElements];

  TlLocal() { __builtin_memset((void*)data, 0xff, sizeof(data)); }
  T& operator[](long long i, int line = __builtin_LINE()) {
    if (i < 0 || i >= kElements) {
      tl_fail(line, "element %lld of an array of %d registers", i, kElements);
    }
    return data[i];
  }
};

template <class T>
TL_FN void* tl_vector(T* p, int bytes, TlAccess, int line, const void*) {
  if ((unsigned long long)p % (unsigned)bytes != 0) tl_fail(line, "misaligned registers");
  return (void*)p;
}
template <class View>
TL_FN void* tl_vector(TlPtr<View> p, int bytes, TlAccess access, int line, const void* data) {
  return p.view->VectorAt(p.index, bytes, access, line, data);
}
template <int kBytes, class D, class S>
TL_FN void tl_move(D dst, S src, int line = __builtin_LINE()) {
  unsigned char data[kBytes];
  __builtin_memcpy(data, tl_vector(src, kBytes, kTlRead, line, nullptr), kBytes);
  __builtin_memcpy(tl_vector(dst, kBytes, kTlWrite, line, data), data, kBytes);
}

template <int kBytes, class T, class S>
TL_FN void tl_async_move(TlPtr<TlShared<T>> dst, TlPtr<TlGlobal<S>> src, bool inside) {
  dst.view->Check(dst.index, kBytes, dst.line);
  const TlPlace place = dst.view->Place(dst.index, dst.line);
  const void* from = nullptr;
  if (inside) from = src.view->VectorAt(src.index, kBytes, kTlRead, src.line, nullptr);
  tl_api->async_move(tl_api->self, &place, from, kBytes, inside);
}
TL_FN void tl_async_commit() { tl_api->async_commit(tl_api->self); }
template <int kPending>
TL_FN void tl_async_wait() {
  tl_api->async_wait(tl_api->self, kPending);
}

// Hints for the L2 cache change nothing here.
struct tl_policy {};
TL_FN tl_policy tl_evict_first() { return {}; }
TL_FN tl_policy tl_evict_last() { return {}; }
template <int kBytes, class D, class S>
TL_FN void tl_load(D dst, TlPtr<TlGlobal<S>> src, tl_policy, int line = __builtin_LINE()) {
  tl_move<kBytes>(dst, src, line);
}
template <int kBytes, class D, class S>
TL_FN void tl_store(TlPtr<TlGlobal<D>> dst, S src, tl_policy, int line = __builtin_LINE()) {
  tl_move<kBytes>(dst, src, line);
}

template <int kMatrices, bool kTranspose, class D, class T>
TL_FN void tl_load_matrix(D* dst, TlPtr<TlShared<T>> src) {
  const TlPlace place = src.view->Place(src.index, src.line);
  tl_api->load_matrix(tl_api->self, (void*)dst, &place, src.view->Inside(src.index, 16), kMatrices,
                      kTranspose);
}
template <int kMatrices, bool kTranspose, class T, class S>
TL_FN void tl_store_matrix(TlPtr<TlShared<T>> dst, const S* src) {
  const TlPlace place = dst.view->Place(dst.index, dst.line);
  tl_api->store_matrix(tl_api->self, &place, dst.view->Inside(dst.index, 16), (const void*)src,
                       kMatrices, kTranspose);
}

template <class T>
TL_FN T tl_keep(T x) {
  return x;
}
template <class T>
TL_FN T tl_lane_xor(T x, int mask, int line = __builtin_LINE()) {
  unsigned long long bits = 0;
  __builtin_memcpy(&bits, &x, sizeof(T));
  bits = tl_api->lane_xor(tl_api->self, bits, mask, line);
  __builtin_memcpy(&x, &bits, sizeof(T));
  return x;
}
TL_FN void __syncwarp(int line = __builtin_LINE()) { tl_lane_xor(0, 1, line); }
template <class V>
TL_FN typename TlRef<V>::Value tl_lane_xor(TlRef<V> x, int mask, int line = __builtin_LINE()) {
  return tl_lane_xor((typename TlRef<V>::Value)x, mask, line);
}

enum TlAtom {
#define TL_ATOM(name) kAtom_##name,
  TL_ATOMS(TL_ATOM) TL_WAVE_ATOMS(TL_ATOM)
#undef TL_ATOM
};
#define TL_ATOM(name)                                                                   \
  TL_FN void name(void* c, const void* a, const void* b, int line = __builtin_LINE()) { \
    tl_api->mma(tl_api->self, kAtom_##name, c, a, b, line);                             \
  }
TL_ATOMS(TL_ATOM)
TL_WAVE_ATOMS(TL_ATOM)
#undef TL_ATOM

TL_FN void __syncthreads(int line = __builtin_LINE()) {
  tl_api->barrier(tl_api->self, kTlEveryone, line);
}
TL_FN void tl_block_barrier(int, int line = __builtin_LINE()) {
  tl_api->barrier(tl_api->self, kTlBlock, line);
}
TL_FN void tl_group_barrier(int group, int, int line = __builtin_LINE()) {
  tl_api->barrier(tl_api->self, group, line);
}

template <class T>
TL_FN void tl_mbarrier(TlPtr<TlShared<T>> barrier, TlMbarrierOp op, int value) {
  barrier.view->Check(barrier.index, sizeof(T), barrier.line);
  const TlPlace place = barrier.view->Place(barrier.index, barrier.line);
  tl_api->mbarrier(tl_api->self, &place, op, value);
}
template <class T>
TL_FN void tl_mbarrier_init(TlPtr<T> barrier, int arrivals) {
  tl_mbarrier(barrier, kTlInit, arrivals);
}
template <class T>
TL_FN void tl_mbarrier_arrive(TlPtr<T> barrier) {
  tl_mbarrier(barrier, kTlArrive, 0);
}
template <class T>
TL_FN void tl_mbarrier_wait(TlPtr<T> barrier, int parity) {
  tl_mbarrier(barrier, kTlWait, parity);
}

template <int kBytes, class T>
TL_FN bool tl_is_aligned(const TlGlobal<T>& p) {
  return (unsigned long long)p.data % kBytes == 0;
}

// The language's own names for things.
TL_FN unsigned tl_bits(float x) { return __builtin_bit_cast(unsigned, x); }
TL_FN float tl_float(unsigned b) { return __builtin_bit_cast(float, b); }
TL_FN unsigned long long tl_bits64(double x) { return __builtin_bit_cast(unsigned long long, x); }
TL_FN double tl_double(unsigned long long b) { return __builtin_bit_cast(double, b); }
TL_FN float rsqrtf(float x) { return 1.0f / sqrtf(x); }
TL_FN double rsqrt(double x) { return 1.0 / sqrt(x); }

// Fibers do not change in between, so plain accesses are atomic.
template <class T>
TL_FN T atomicCAS(T* p, T expected, T value) {
  const T old = *p;
  if (old == expected) *p = value;
  return old;
}
template <class T>
TL_FN T atomicAdd(T* p, T value) {
  const T old = *p;
  *p = (T)(old + value);
  return old;
}
template <class T>
TL_FN T atomicMax(T* p, T value) {
  const T old = *p;
  if (value > old) *p = value;
  return old;
}
template <class T>
TL_FN T atomicMin(T* p, T value) {
  const T old = *p;
  if (value < old) *p = value;
  return old;
}
