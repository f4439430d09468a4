// What both compilers of HIP source are told.
#ifndef TILEJIT_BACKENDS_HIP_OPTIONS_H_
#define TILEJIT_BACKENDS_HIP_OPTIONS_H_

#include <string>
#include <vector>

#include "base/target.h"

namespace tl {

inline std::vector<std::string> HipOptions(const Target& target) {
  return {"-std=c++17", "-O3", "-ffp-contract=fast", "-fno-strict-aliasing",
          "--offload-arch=" + target.name};
}

}  // namespace tl

#endif  // TILEJIT_BACKENDS_HIP_OPTIONS_H_
