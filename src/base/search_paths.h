// Where vendor libraries and programs are looked for. The service fills it from the environment
// once; nothing below the service reads an environment variable.
#ifndef TILEJIT_BASE_SEARCH_PATHS_H_
#define TILEJIT_BASE_SEARCH_PATHS_H_

#include <string>
#include <vector>

namespace tl {

struct SearchPaths {
  // CUDA toolkits, in order of preference (TL_CUDA_PATH, CUDA_PATH, CUDA_HOME): directories that
  // hold lib64 and bin.
  std::vector<std::string> cuda_roots;
  // Directories into which Python wheels are unpacked, such as site-packages (TL_WHEEL_PATH).
  std::vector<std::string> wheel_roots;
  // Directory of this library: libraries and helpers that lie beside it.
  std::string library_dir;
  // Directories of programs (PATH).
  std::vector<std::string> program_dirs;
  // Where the loader is told to look first (LD_LIBRARY_PATH).
  std::vector<std::string> loader_dirs;
  // Where toolkits are installed by default: `cuda` and `cuda-*` there are searched.
  std::vector<std::string> system_roots = {"/usr/local"};
  // Also look where the dynamic loader looks.
  bool loader_path = true;
  // The CUDA driver's library, instead of the system's.
  std::string cuda_driver = "libcuda.so.1";
};

}  // namespace tl

#endif  // TILEJIT_BASE_SEARCH_PATHS_H_
