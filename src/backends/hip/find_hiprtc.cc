#include "backends/hip/find_hiprtc.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/elf.h"

namespace tl {
namespace {

namespace fs = std::filesystem;

struct Stem {
  std::string_view name;
  int last_major;  // later ones have no HIPRTC in them
};
constexpr Stem kStems[] = {{"libhiprtc.so.", 1000}, {"libamdhip64.so.", 6}};

std::vector<std::string> Directories(const SearchPaths& paths) {
  std::vector<fs::path> roots(paths.rocm_roots.begin(), paths.rocm_roots.end());
  for (fs::path& root : SystemToolkits(paths, "rocm")) roots.push_back(std::move(root));
  std::vector<std::string> dirs;
  for (const fs::path& root : roots) {
    for (const char* lib : {"lib", "lib64"}) dirs.push_back((root / lib).string());
  }
  for (std::string& dir : LoaderDirectories(paths)) dirs.push_back(std::move(dir));
  return dirs;
}

// The major and minor number in front of a version; what is not there is 0.
RocmVersion RocmOf(std::string_view version) {
  RocmVersion rocm;
  const std::vector<std::string_view> parts = absl::StrSplit(version, '.');
  if (!absl::SimpleAtoi(parts[0], &rocm.major)) return {};
  if (parts.size() < 2 || !absl::SimpleAtoi(parts[1], &rocm.minor)) rocm.minor = 0;
  return rocm;
}

// The library behind `path`, which names it by some part of its version.
bool Examine(const fs::path& path, const Stem& stem, HiprtcLibrary& library) {
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  if (error || !ElfFile::Open(real.string()).ok()) return false;
  library.path = real.string();
  const std::string file = real.filename().string();
  std::string_view version = file;
  if (!absl::ConsumePrefix(&version, stem.name)) return false;
  library.version = version;
  library.rocm = RocmOf(version);
  return library.rocm.major > 0 && library.rocm.major <= stem.last_major;
}

bool Contains(const HiprtcSearch& search, const HiprtcLibrary& library) {
  return std::any_of(search.found.begin(), search.found.end(),
                     [&](const HiprtcLibrary& other) { return other.path == library.path; });
}

}  // namespace

HiprtcSearch FindHiprtc(const SearchPaths& paths) {
  HiprtcSearch search;
  for (const std::string& dir : Directories(paths)) {
    if (std::find(search.places.begin(), search.places.end(), dir) != search.places.end()) continue;
    search.places.push_back(dir);
    for (const Stem& stem : kStems) {
      for (const std::string& name : EntriesOf(dir, stem.name)) {
        HiprtcLibrary library;
        if (!Examine(fs::path(dir) / name, stem, library) || Contains(search, library)) continue;
        search.found.push_back(std::move(library));
      }
    }
  }
  return search;
}

std::string Describe(const HiprtcLibrary& library) {
  return absl::StrCat("HIPRTC ", library.version, " (", library.path, ")");
}

}  // namespace tl
