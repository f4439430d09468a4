// Where HIPRTC lies, and which version it is: found by looking at files only.
#ifndef TILEJIT_BACKENDS_HIP_FIND_HIPRTC_H_
#define TILEJIT_BACKENDS_HIP_FIND_HIPRTC_H_

#include <string>
#include <vector>

#include "backends/hip/targets.h"
#include "base/search_paths.h"

namespace tl {

struct HiprtcLibrary {
  std::string path;     // no symbolic link
  std::string version;  // in the file's name: "5.2.21153"
  RocmVersion rocm;     // 5.2
};

struct HiprtcSearch {
  std::vector<HiprtcLibrary> found;  // ELF files, in order of preference
  std::vector<std::string> places;   // every directory that was looked into
};

// libhiprtc.so.*, or libamdhip64.so.* of the versions of ROCm whose HIPRTC is a part of that.
HiprtcSearch FindHiprtc(const SearchPaths& paths);

// "HIPRTC 5.2.21153 (/usr/lib/…)": for people.
std::string Describe(const HiprtcLibrary& library);

}  // namespace tl

#endif  // TILEJIT_BACKENDS_HIP_FIND_HIPRTC_H_
