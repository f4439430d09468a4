// Kernels run with the processor's default floating-point environment on every thread. A host that
// flushes subnormals or rounds differently would otherwise get other bits from the blocks that its
// own thread runs than from the pool's.
#ifndef TILEJIT_BACKENDS_CPU_FLOAT_MODE_H_
#define TILEJIT_BACKENDS_CPU_FLOAT_MODE_H_

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace tl::cpu {

#if defined(__x86_64__)

class DefaultFloatMode {
 public:
  DefaultFloatMode() : saved_(_mm_getcsr()) {
    if (saved_ != kDefault) _mm_setcsr(kDefault);
  }
  // Exception flags that the kernel raised are dropped with the rest.
  ~DefaultFloatMode() { _mm_setcsr(saved_); }
  DefaultFloatMode(const DefaultFloatMode&) = delete;
  DefaultFloatMode& operator=(const DefaultFloatMode&) = delete;

 private:
  // Exceptions masked, to nearest, subnormals kept.
  static constexpr unsigned kDefault = 0x1F80;
  const unsigned saved_;
};

#else

class DefaultFloatMode {};

#endif

}  // namespace tl::cpu

#endif  // TILEJIT_BACKENDS_CPU_FLOAT_MODE_H_
