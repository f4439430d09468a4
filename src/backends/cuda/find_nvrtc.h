// Where the runtime compiler's library lies, found by looking at files only.
#ifndef TILEJIT_BACKENDS_CUDA_FIND_NVRTC_H_
#define TILEJIT_BACKENDS_CUDA_FIND_NVRTC_H_

#include <string>
#include <vector>

#include "base/search_paths.h"
#include "base/status.h"

namespace tl {

struct NvrtcSearch {
  std::vector<std::string> found;   // ELF files, in order of preference
  std::vector<std::string> places;  // every directory that was looked into, for the error message
};

NvrtcSearch FindNvrtc(const SearchPaths& paths);

// Sonames of the supported major versions, newest first.
const std::vector<std::string>& NvrtcSonames();

// "nvrtc 13.0 build-id 65be0db3…": from the names of the file and of its neighbours and from the
// file's notes.
std::string NvrtcIdentity(const std::string& library);

// libnvrtc-builtins beside `library`, "" if there is none. The compiler looks for it by its soname
// alone, which succeeds only if somebody has loaded it.
std::string NvrtcBuiltins(const std::string& library);

// NOT_FOUND / kMissingLibrary with all places and what would help. `loader_error` may be empty.
Status NvrtcMissing(const NvrtcSearch& search, const std::string& loader_error);

}  // namespace tl

#endif  // TILEJIT_BACKENDS_CUDA_FIND_NVRTC_H_
