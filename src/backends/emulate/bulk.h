// Copies of boxes between tensors and shared memory, under way.
#ifndef TILEJIT_BACKENDS_EMULATE_BULK_H_
#define TILEJIT_BACKENDS_EMULATE_BULK_H_

#include <array>
#include <cstdint>
#include <vector>

#include "backends/emulate/api.h"
#include "backends/emulate/tensor_box.h"

namespace tl::emulate {

struct BulkLoad {
  TensorBox box;
  unsigned offset;    // in shared memory
  unsigned mbarrier;  // its offset
  int thread, line;
};

// An arrival at another block's mbarrier, for which that block must be there.
struct RemoteArrival {
  TlPlace place;
  uint32_t number;  // among its thread's
};

struct BulkStore {
  TensorBox box;
  unsigned offset;
  int line;
  int64_t group;          // its number among the thread's
  uint32_t number;        // the store's
  bool read, waited;      // shared memory; the second: and the thread knows
  bool written, settled;  // the tensor; the same
  std::vector<unsigned char> elements;
};

struct MbarrierState {
  TlPlace place;
  int maker;                     // thread
  std::array<uint16_t, 2> made;  // fences of the maker until then
  int arrivals;                  // of a phase
  int missing;                   // in the present one
  int phase = 0;                 // its number
  // Bulk copies that arrive in the present phase.
  int64_t transactions = 0;  // bytes that are expected and have not arrived
  int flying = 0;
  std::vector<BulkLoad> landed;
  // Of all phases.
  int counter = -1;  // of Progress: phases that have ended
  int loaded = 0;    // phases up to the last that a copy arrived in
  int load_thread = 0, load_line = 0;
};

}  // namespace tl::emulate

#endif  // TILEJIT_BACKENDS_EMULATE_BULK_H_
