// The runtime compiler of ROCm, opened and asked for one code object. Versions of it abort on what
// they do not know, so only a process that may die of it calls this.
#ifndef TILEJIT_BACKENDS_HIP_HIPRTC_H_
#define TILEJIT_BACKENDS_HIP_HIPRTC_H_

#include "backends/compile_job.h"

namespace tl {

// NOT_FOUND / kMissingLibrary: the library cannot be opened or has not the functions.
StatusOr<CompiledJob> CompileByHiprtc(const CompileJob& job);

}  // namespace tl

#endif  // TILEJIT_BACKENDS_HIP_HIPRTC_H_
