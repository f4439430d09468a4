// How a launch is emulated, and what is counted.
#ifndef TILEJIT_BACKENDS_EMULATE_OPTIONS_H_
#define TILEJIT_BACKENDS_EMULATE_OPTIONS_H_

#include <cstdint>

namespace tl {

// When the bytes of an asynchronous copy arrive.
enum class Arrival : uint8_t {
  kRandom,  // at any moment from its start to the wait that requires it
  kEager,   // at once
  kLazy,    // at the wait that requires it
};

struct EmulateOptions {
  uint64_t seed = 1;  // the same seed gives the same order of threads and blocks
  Arrival arrival = Arrival::kRandom;
  // Mean number of accesses to shared memory between two changes of threads; 0: they change only
  // where they wait.
  int switch_every = 200;
  int warp_size = 32;  // lanes: 32 or 64
  int residents = 3;   // blocks, or clusters of them, of a persistent launch
};

// Accesses of whole warps to shared memory, and the extra passes that bank conflicts cost them.
struct BankCount {
  int64_t accesses = 0, extra = 0;
};
struct EmulateStats {
  BankCount matrix_loads, matrix_stores, vector_reads, vector_writes, async_writes;
};

}  // namespace tl

#endif  // TILEJIT_BACKENDS_EMULATE_OPTIONS_H_
