// Status -> tl_status, with the details kept for tl_last_error.
#ifndef TILEJIT_ABI_ERROR_H_
#define TILEJIT_ABI_ERROR_H_

#include <exception>
#include <new>

#include "base/status.h"
#include "tl/tl.h"

namespace tl::abi {

// Remembers the failure for this thread and returns its code; TL_OK for OK.
tl_status Report(const Status& status);

// Runs the body of an exported function; no exception leaves it.
template <typename Body>
tl_status Call(Body body) {
  try {
    const Status status = body();
    return status.ok() ? TL_OK : Report(status);
  } catch (const std::bad_alloc&) {
    return Report(absl::ResourceExhaustedError("out of host memory"));
  } catch (const std::exception& e) {
    return Report(absl::InternalError(e.what()));
  } catch (...) {
    return Report(absl::InternalError("unknown exception"));
  }
}

}  // namespace tl::abi

#endif  // TILEJIT_ABI_ERROR_H_
