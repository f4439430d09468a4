// The memory of mbarriers.
#ifndef TILEJIT_PASSES_MBARRIERS_H_
#define TILEJIT_PASSES_MBARRIERS_H_

#include <cstdint>
#include <string>

#include "ir/module.h"

namespace tl {

// `count` of them, for the whole launch, to be allocated by the caller. `arrivals`: of a phase; 0:
// the caller makes them itself (Buffer::arrivals).
BufferId AddMbarriers(Module& module, std::string name, int64_t count, int arrivals);

}  // namespace tl

#endif  // TILEJIT_PASSES_MBARRIERS_H_
