// ---- What generated GPU source needs of its language, on the host. ----
// Every thread of a block is a fiber. Between barriers they run one after the other in a random
// order; blocks come in a random order too. Shared memory starts each block as NaNs, and a guard
// behind it shows writes past its end.
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#define TL_FN static inline
#define TL_GLOBAL(type) type*
#define TL_SHARED(type, name, offset, elements) type* const name = (type*)(arena + offset)
#define TL_LOCAL(type, name, elements) alignas(16) type name[elements]
#define __global__
#define __shared__
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(...)

enum {
  kTlArenaBytes = 256 * 1024,
  kTlGuardBytes = 64 * 1024,
  kTlMaxThreads = 1024,
  kTlStackBytes = 128 * 1024,
  kTlBlockBarrier = 0,  // group g uses g + 1
};

alignas(1024) unsigned char arena[kTlArenaBytes + kTlGuardBytes];

struct TlIndex {
  unsigned x;
};
static TlIndex threadIdx, blockIdx;

enum TlState { kTlRunnable, kTlWaiting, kTlDone };

struct TlFiber {
  ucontext_t context;
  TlState state;
  int barrier;
};

struct TlMachine {
  ucontext_t scheduler;
  TlFiber fibers[kTlMaxThreads];
  unsigned char* stacks;
  int threads, group_size, current;
  uint64_t random;
  void (*body)(void** params);
  void** params;
};
static TlMachine tl_machine;

static inline uint64_t tl_random() {  // xorshift64*
  uint64_t& x = tl_machine.random;
  x ^= x >> 12;
  x ^= x << 25;
  x ^= x >> 27;
  return x * 0x2545f4914f6cdd1dull;
}

static void tl_yield() {
  TlFiber& f = tl_machine.fibers[tl_machine.current];
  swapcontext(&f.context, &tl_machine.scheduler);
}

static void tl_wait(int barrier) {
  TlFiber& f = tl_machine.fibers[tl_machine.current];
  f.state = kTlWaiting;
  f.barrier = barrier;
  tl_yield();
}

static void tl_fiber_main() {
  tl_machine.body(tl_machine.params);
  tl_machine.fibers[tl_machine.current].state = kTlDone;
  tl_yield();
}

static inline void __syncthreads() { tl_wait(kTlBlockBarrier); }
static inline void tl_group_barrier(int group, int) { tl_wait(group + 1); }

// Opens the barriers at which everybody has arrived. False if some can never open.
static bool tl_open_barriers() {
  const int groups = tl_machine.threads / tl_machine.group_size;
  bool opened = false;
  for (int b = 0; b <= groups; ++b) {
    const int first = b == kTlBlockBarrier ? 0 : (b - 1) * tl_machine.group_size;
    const int count = b == kTlBlockBarrier ? tl_machine.threads : tl_machine.group_size;
    bool all = true;
    for (int t = first; t < first + count; ++t) {
      const TlFiber& f = tl_machine.fibers[t];
      all = all && f.state == kTlWaiting && f.barrier == b;
    }
    if (!all) continue;
    opened = true;
    for (int t = first; t < first + count; ++t) tl_machine.fibers[t].state = kTlRunnable;
  }
  return opened;
}

// Runs all fibers to their end; why not, or null.
static const char* tl_run_fibers() {
  int order[kTlMaxThreads];
  for (;;) {
    int runnable = 0;
    bool waiting = false;
    for (int t = 0; t < tl_machine.threads; ++t) {
      if (tl_machine.fibers[t].state == kTlRunnable) order[runnable++] = t;
      waiting = waiting || tl_machine.fibers[t].state == kTlWaiting;
    }
    if (runnable == 0) {
      if (!waiting) return nullptr;
      if (!tl_open_barriers()) return "a barrier is not reached by all of its threads";
      continue;
    }
    for (int i = runnable - 1; i > 0; --i) {
      const int j = (int)(tl_random() % (uint64_t)(i + 1));
      const int t = order[i];
      order[i] = order[j];
      order[j] = t;
    }
    for (int i = 0; i < runnable; ++i) {
      tl_machine.current = order[i];
      threadIdx.x = (unsigned)order[i];
      swapcontext(&tl_machine.scheduler, &tl_machine.fibers[order[i]].context);
    }
  }
}

static const char* tl_run_block(unsigned block, int shared_bytes) {
  memset(arena, 0xff, sizeof(arena));
  blockIdx.x = block;
  for (int t = 0; t < tl_machine.threads; ++t) {
    TlFiber& f = tl_machine.fibers[t];
    getcontext(&f.context);
    f.context.uc_stack.ss_sp = tl_machine.stacks + (size_t)t * kTlStackBytes;
    f.context.uc_stack.ss_size = kTlStackBytes;
    f.context.uc_link = nullptr;
    f.state = kTlRunnable;
    makecontext(&f.context, tl_fiber_main, 0);
  }
  if (const char* error = tl_run_fibers()) return error;
  for (int i = shared_bytes; i < (int)sizeof(arena); ++i) {
    if (arena[i] != 0xff) return "a thread wrote past the end of shared memory";
  }
  return nullptr;
}

// The language's own names for things.
TL_FN unsigned tl_bits(float x) {
  unsigned b;
  memcpy(&b, &x, 4);
  return b;
}
TL_FN float tl_float(unsigned b) {
  float x;
  memcpy(&x, &b, 4);
  return x;
}
TL_FN unsigned long long tl_bits64(double x) {
  unsigned long long b;
  memcpy(&b, &x, 8);
  return b;
}
TL_FN double tl_double(unsigned long long b) {
  double x;
  memcpy(&x, &b, 8);
  return x;
}
TL_FN float rsqrtf(float x) { return 1.0f / sqrtf(x); }
TL_FN double rsqrt(double x) { return 1.0 / sqrt(x); }

// Fibers change only at barriers, so plain accesses are atomic.
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
