// LLVM's archives may have been built against a newer C library than the oldest one this module
// supports (2.34). What they need beyond it is defined here and hidden.

#include <stdint.h>
#include <sys/random.h>

// glibc has it from 2.36 on; LLVM draws names of temporary files from it, which never happens here.
extern "C" uint32_t arc4random(void) {
  uint32_t value = 0;
  if (getrandom(&value, sizeof(value), 0) != sizeof(value)) value = 0x9e3779b9;
  return value;
}
