// Telling a forked child from the process that made an object.
#ifndef TILEJIT_BASE_PROCESS_H_
#define TILEJIT_BASE_PROCESS_H_

#include <cstdint>

namespace tl {

// Number of forks that lie between the first call in an ancestor and this process: an object that
// remembers the value at its birth knows that it was inherited. One relaxed load, no system call.
uint32_t ForkGeneration();

}  // namespace tl

#endif  // TILEJIT_BASE_PROCESS_H_
