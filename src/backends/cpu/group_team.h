// Blocks whose groups run side by side: one thread per group, with barriers and channels between
// them.
#ifndef TILEJIT_BACKENDS_CPU_GROUP_TEAM_H_
#define TILEJIT_BACKENDS_CPU_GROUP_TEAM_H_

#include <atomic>
#include <cstdint>
#include <vector>

#include "backends/cpu/runtime.h"
#include "base/status.h"

namespace tl::cpu {

struct GroupLaunch {
  KernelFunction function = nullptr;
  void** params = nullptr;
  int64_t blocks = 0;
  int groups = 0;
  int64_t arena_bytes = 0;
  std::vector<int64_t> depths;  // of the module's channels
  int max_threads = 1;          // how many threads are useful
};

// Runs all blocks and returns. FAILED_PRECONDITION when all groups of a block wait for each other.
Status RunGroups(const GroupLaunch& launch);

}  // namespace tl::cpu

#endif  // TILEJIT_BACKENDS_CPU_GROUP_TEAM_H_
