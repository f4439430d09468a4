// The runtime compiler, opened when it is first needed.
#ifndef TILEJIT_BACKENDS_CUDA_NVRTC_H_
#define TILEJIT_BACKENDS_CUDA_NVRTC_H_

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/search_paths.h"
#include "base/status.h"

namespace tl {

// The functions used, as the vendor's library declares them (an opaque program, 0 for success).
struct NvrtcApi {
  using Program = void*;
  int (*Version)(int* major, int* minor) = nullptr;
  int (*GetNumSupportedArchs)(int* count) = nullptr;
  int (*GetSupportedArchs)(int* archs) = nullptr;
  int (*CreateProgram)(Program* program, const char* source, const char* name, int num_headers,
                       const char* const* headers, const char* const* names) = nullptr;
  int (*DestroyProgram)(Program* program) = nullptr;
  int (*CompileProgram)(Program program, int num_options, const char* const* options) = nullptr;
  int (*GetCUBINSize)(Program program, size_t* bytes) = nullptr;
  int (*GetCUBIN)(Program program, char* to) = nullptr;
  int (*GetPTXSize)(Program program, size_t* bytes) = nullptr;
  int (*GetPTX)(Program program, char* to) = nullptr;
  int (*GetProgramLogSize)(Program program, size_t* bytes) = nullptr;
  int (*GetProgramLog)(Program program, char* to) = nullptr;
  const char* (*GetErrorString)(int result) = nullptr;
};

// A loaded compiler. Immutable and usable from many threads at once; never unloaded, since threads
// of the compiler may outlive any call.
class Nvrtc {
 public:
  static StatusOr<std::unique_ptr<const Nvrtc>> Load(const SearchPaths& paths);

  const NvrtcApi& api() const { return api_; }
  int major() const { return major_; }
  int minor() const { return minor_; }
  const std::string& path() const { return path_; }
  const std::string& identity() const { return identity_; }
  const std::vector<int>& archs() const { return archs_; }  // numbers: 75, 80 …; empty: unknown

  // Status of a failed call, with the code, the vendor's text and `log`.
  Status Error(int result, std::string_view what, std::string log = "") const;

 private:
  Nvrtc() = default;
  // OK, or why the library at `path` cannot serve.
  Status Open(const std::string& path);

  NvrtcApi api_;
  int major_ = 0;
  int minor_ = 0;
  std::string path_;
  std::string identity_;
  std::vector<int> archs_;
};

}  // namespace tl

#endif  // TILEJIT_BACKENDS_CUDA_NVRTC_H_
