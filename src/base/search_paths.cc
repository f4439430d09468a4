#include "base/search_paths.h"

#include <unistd.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace tl {

namespace fs = std::filesystem;

std::vector<std::string> EntriesOf(const fs::path& dir, std::string_view prefix) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(dir, error), end; !error && it != end; it.increment(error)) {
    std::string name = it->path().filename().string();
    if (absl::StartsWith(name, prefix)) names.push_back(std::move(name));
  }
  std::sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
    return a.size() != b.size() ? a.size() > b.size() : a > b;  // 13.10 before 13.9
  });
  return names;
}

std::vector<fs::path> SystemToolkits(const SearchPaths& paths, std::string_view name) {
  std::vector<fs::path> roots;
  for (const fs::path root : paths.system_roots) {
    roots.push_back(root / name);
    for (const std::string& entry : EntriesOf(root, absl::StrCat(name, "-"))) {
      roots.push_back(root / entry);
    }
  }
  return roots;
}

std::vector<std::string> LoaderDirectories(const SearchPaths& paths) {
  if (!paths.loader_path) return {};
  std::vector<std::string> dirs = paths.loader_dirs;
  for (const char* dir : {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64",
                          "/usr/lib", "/usr/local/lib"}) {
    dirs.push_back(dir);
  }
  return dirs;
}

std::string FindProgram(const SearchPaths& paths, std::string_view name) {
  for (const std::string& dir : paths.program_dirs) {
    std::string path = absl::StrCat(dir, "/", name);
    if (access(path.c_str(), X_OK) == 0) return path;
  }
  return "";
}

}  // namespace tl
