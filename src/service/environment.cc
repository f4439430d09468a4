#include "service/environment.h"

#include <dlfcn.h>

#include <cstdlib>
#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "cache/directory.h"

namespace tl {
namespace {

std::string Get(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::vector<std::string> GetList(const char* name) {
  return absl::StrSplit(Get(name), ':', absl::SkipEmpty());
}

// Directory of the shared library (or program) that this code is linked into.
std::string OwnDirectory() {
  Dl_info info;
  if (!dladdr(reinterpret_cast<const void*>(&OwnDirectory), &info) || !info.dli_fname) return "";
  const std::string path = info.dli_fname;
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

}  // namespace

Environment ReadEnvironment() {
  Environment env;
  const bool hide = !Get("TL_HIDE_CUDA").empty();
  const auto roots = [&](std::initializer_list<const char*> names) {
    std::vector<std::string> found;
    for (std::string_view name : names) {
      const bool own = name.starts_with("TL_");
      if (std::string root = Get(name.data()); !root.empty() && (own || !hide))
        found.push_back(std::move(root));
    }
    return found;
  };
  env.paths.cuda_roots = roots({"TL_CUDA_PATH", "CUDA_PATH", "CUDA_HOME"});
  env.paths.rocm_roots = roots({"TL_ROCM_PATH", "ROCM_PATH", "HIP_PATH"});
  env.paths.hip_compiler = Get("TL_HIP_COMPILER");
  env.paths.wheel_roots = GetList("TL_WHEEL_PATH");
  if (hide) {
    env.paths.system_roots.clear();
    env.paths.loader_path = false;
  } else {
    env.paths.program_dirs = GetList("PATH");
    env.paths.loader_dirs = GetList("LD_LIBRARY_PATH");
  }
  env.paths.library_dir = OwnDirectory();
  if (std::string dir = Get("TL_CACHE_DIR"); !dir.empty()) {
    env.cache_dir = dir;
  } else {
    env.cache_dir = DefaultCacheDirectory(std::getenv("XDG_CACHE_HOME"), std::getenv("HOME"));
  }
  env.emulate = Get("TL_EMULATE");
  return env;
}

}  // namespace tl
