#include "backends/hip/parts.h"

#include <filesystem>
#include <set>
#include <string_view>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/build_id.h"
#include "base/elf.h"
#include "base/search_paths.h"

namespace tl {
namespace {

namespace fs = std::filesystem;

bool IsPart(std::string_view library) {
  return absl::StartsWith(library, "libLLVM") || absl::StartsWith(library, "libclang") ||
         absl::StartsWith(library, "liblld") || absl::StartsWith(library, "libamd_comgr");
}

// Where the loader finds a library that is named by a file in `dir`, as distributions and vendors
// lay them out; the bare name where that cannot be told.
fs::path PlaceOf(const std::string& library, const fs::path& dir) {
  std::vector<fs::path> places = {dir, dir.parent_path() / "lib"};
  for (const std::string& place : LoaderDirectories(SearchPaths{})) places.emplace_back(place);
  for (const fs::path& place : places) {
    std::error_code error;
    if (fs::exists(place / library, error)) return place / library;
  }
  return library;
}

class Parts {
 public:
  void Add(const fs::path& path) {
    std::error_code error;
    const fs::path real = fs::canonical(path, error);
    if (error || !seen_.insert(real).second) return;
    const StatusOr<std::string> id = ReadBuildId(real.string());
    ids_.push_back(absl::StrCat(path.filename().string(), " build-id ", id.ok() ? *id : "unknown"));
    const StatusOr<ElfFile> file = ElfFile::Open(real.string());
    if (!file.ok()) return;
    for (const std::string& name : file->Needed()) {
      if (IsPart(name)) Add(PlaceOf(name, real.parent_path()));
    }
  }
  std::string Text() const { return absl::StrJoin(ids_, ", "); }

 private:
  std::set<fs::path> seen_;
  std::vector<std::string> ids_;
};

}  // namespace

std::string PartsOf(const std::vector<std::string>& files) {
  Parts parts;
  for (const std::string& file : files) parts.Add(file);
  return parts.Text();
}

}  // namespace tl
