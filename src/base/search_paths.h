// Where vendor libraries and programs are looked for. The service fills it from the environment
// once; nothing below the service reads an environment variable.
#ifndef TILEJIT_BASE_SEARCH_PATHS_H_
#define TILEJIT_BASE_SEARCH_PATHS_H_

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace tl {

struct SearchPaths {
  // CUDA toolkits, in order of preference (TL_CUDA_PATH, CUDA_PATH, CUDA_HOME): directories that
  // hold lib64 and bin.
  std::vector<std::string> cuda_roots;
  // The same of ROCm (TL_ROCM_PATH, ROCM_PATH, HIP_PATH).
  std::vector<std::string> rocm_roots;
  // Directories into which Python wheels are unpacked, such as site-packages (TL_WHEEL_PATH).
  std::vector<std::string> wheel_roots;
  // Directory of this library: libraries and helpers that lie beside it.
  std::string library_dir;
  // Directories of programs (PATH).
  std::vector<std::string> program_dirs;
  // Where the loader is told to look first (LD_LIBRARY_PATH).
  std::vector<std::string> loader_dirs;
  // Where toolkits are installed by default: `cuda`, `cuda-*`, `rocm` and `rocm-*` there are
  // searched.
  std::vector<std::string> system_roots = {"/usr/local", "/opt"};
  // Also look where the dynamic loader looks.
  bool loader_path = true;
  // The CUDA driver's library, instead of the system's.
  std::string cuda_driver = "libcuda.so.1";
  // Which compiler of HIP source is wanted (TL_HIP_COMPILER): hiprtc, clang, or empty for the rule.
  std::string hip_compiler;
};

// Names of the entries of `dir` that start with `prefix`, newest version first.
std::vector<std::string> EntriesOf(const std::filesystem::path& dir, std::string_view prefix);

// `NAME` and `NAME-*` below the system's roots, newest version first.
std::vector<std::filesystem::path> SystemToolkits(const SearchPaths& paths, std::string_view name);

// Where the dynamic loader looks, as far as that is known; nowhere unless `paths` allow it.
std::vector<std::string> LoaderDirectories(const SearchPaths& paths);

// A program by name, "" where there is none.
std::string FindProgram(const SearchPaths& paths, std::string_view name);

}  // namespace tl

#endif  // TILEJIT_BASE_SEARCH_PATHS_H_
