// How many blocks of an entry one multiprocessor runs at the same time.
#ifndef TILEJIT_BACKENDS_CUDA_OCCUPANCY_H_
#define TILEJIT_BACKENDS_CUDA_OCCUPANCY_H_

#include <cstdint>
#include <string_view>

#include "base/target.h"

namespace tl {

struct Occupancy {
  int blocks = 0;               // 0: unknown, or a block does not fit
  double warps = 0;             // the blocks' warps, of those that the multiprocessor has
  std::string_view limited_by;  // "registers", "shared memory", "threads", "blocks"; may be empty
};

// `registers` per thread, `shared_bytes` per block.
Occupancy OccupancyOf(const Target& target, int registers, int threads, int64_t shared_bytes);

}  // namespace tl

#endif  // TILEJIT_BACKENDS_CUDA_OCCUPANCY_H_
