// The DeviceSession of backends that run in host memory.
#ifndef TILEJIT_BACKENDS_HOST_SESSION_H_
#define TILEJIT_BACKENDS_HOST_SESSION_H_

#include <memory>

#include "backends/backend.h"

namespace tl {

// Launches on it are synchronous; time is the steady clock's.
std::unique_ptr<DeviceSession> MakeHostSession();

}  // namespace tl

#endif  // TILEJIT_BACKENDS_HOST_SESSION_H_
