// The one place that reads the process' environment.
#ifndef TILEJIT_SERVICE_ENVIRONMENT_H_
#define TILEJIT_SERVICE_ENVIRONMENT_H_

#include <string>

#include "base/search_paths.h"
#include "base/status.h"

namespace tl {

struct Environment {
  SearchPaths paths;
  // TL_CACHE_DIR, else what the user's home gives; an error when there is no home.
  StatusOr<std::string> cache_dir;
  std::string emulate;  // TL_EMULATE: which devices to emulate, docs/emulator.md
};

// Reads TL_CACHE_DIR, XDG_CACHE_HOME, HOME, TL_CUDA_PATH, CUDA_PATH, CUDA_HOME, TL_ROCM_PATH,
// ROCM_PATH, HIP_PATH, TL_HIP_COMPILER, TL_WHEEL_PATH, PATH, LD_LIBRARY_PATH, TL_HIDE_CUDA,
// TL_EMULATE. Called once per context, before anything else.
Environment ReadEnvironment();

}  // namespace tl

#endif  // TILEJIT_SERVICE_ENVIRONMENT_H_
