#include "backends/cuda/find_nvrtc.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/build_id.h"

namespace tl {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kStem = "libnvrtc.so.";
constexpr std::string_view kBuiltins = "libnvrtc-builtins.so.";

void AddToolkit(const fs::path& root, std::vector<std::string>& dirs) {
  for (const char* lib : {"lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib"}) {
    dirs.push_back((root / lib).string());
  }
}

// Layouts of the vendor's wheels, newest first.
void AddWheels(const fs::path& root, std::vector<std::string>& dirs) {
  for (const char* lib : {"nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib"}) {
    dirs.push_back((root / lib).string());
  }
}

std::vector<std::string> Directories(const SearchPaths& paths) {
  std::vector<std::string> dirs;
  for (const std::string& root : paths.cuda_roots) AddToolkit(root, dirs);
  for (const std::string& root : paths.wheel_roots) AddWheels(root, dirs);
  if (!paths.library_dir.empty()) dirs.push_back(paths.library_dir);
  for (const fs::path& root : SystemToolkits(paths, "cuda")) AddToolkit(root, dirs);
  for (std::string& dir : LoaderDirectories(paths)) dirs.push_back(std::move(dir));
  return dirs;
}

// The version in the name of the file itself ("libnvrtc.so.12.4.127") or of its neighbour with the
// built-in functions, which carries major and minor where the library carries the major alone.
std::string VersionOf(const fs::path& library) {
  std::error_code error;
  const fs::path real = fs::canonical(library, error);
  const std::string file = (error ? library : real).filename().string();
  std::string_view version = file;
  if (!absl::ConsumePrefix(&version, kStem)) version = "";
  if (absl::StrContains(version, '.') && version != "11.2") return std::string(version);
  const std::string major(version.substr(0, version.find('.')));
  for (const std::string& name : EntriesOf(real.parent_path(), absl::StrCat(kBuiltins, major))) {
    return name.substr(kBuiltins.size());
  }
  return version.empty() ? "of unknown version" : std::string(version);
}

}  // namespace

const std::vector<std::string>& NvrtcSonames() {
  // Never destroyed: may be asked for while the process ends.
  static const auto& names = *new std::vector<std::string>{"libnvrtc.so.13", "libnvrtc.so.12",
                                                           "libnvrtc.so.11.2", "libnvrtc.so"};
  return names;
}

NvrtcSearch FindNvrtc(const SearchPaths& paths) {
  NvrtcSearch search;
  for (const std::string& dir : Directories(paths)) {
    if (std::find(search.places.begin(), search.places.end(), dir) != search.places.end()) continue;
    search.places.push_back(dir);
    for (const std::string& name : NvrtcSonames()) {
      const std::string path = absl::StrCat(dir, "/", name);
      // Text stubs and libraries of other machines fail here rather than in the loader.
      std::error_code error;
      if (fs::exists(path, error) && !absl::IsInvalidArgument(ReadBuildId(path).status())) {
        search.found.push_back(path);
      }
    }
  }
  return search;
}

std::string NvrtcIdentity(const std::string& library) {
  const StatusOr<std::string> id = ReadBuildId(library);
  return absl::StrCat("nvrtc ", VersionOf(library), id.ok() ? " build-id " : "",
                      id.ok() ? *id : "");
}

std::string NvrtcBuiltins(const std::string& library) {
  std::error_code error;
  const fs::path real = fs::canonical(library, error);
  if (error) return "";
  const std::string file = real.filename().string();
  std::string_view version = file;
  if (!absl::ConsumePrefix(&version, kStem)) return "";
  const std::string prefix = absl::StrCat(kBuiltins, version.substr(0, version.find('.')));
  for (const std::string& name : EntriesOf(real.parent_path(), prefix)) {
    return (real.parent_path() / name).string();
  }
  return "";
}

Status NvrtcMissing(const NvrtcSearch& search, const std::string& loader_error) {
  std::string message = absl::StrCat("no NVRTC library (", absl::StrJoin(NvrtcSonames(), ", "),
                                     ") was found in ", absl::StrJoin(search.places, ", "));
  if (!loader_error.empty()) absl::StrAppend(&message, "; the loader says: ", loader_error);
  absl::StrAppend(&message,
                  "; set TL_CUDA_PATH to a CUDA toolkit, or install the Python wheel "
                  "nvidia-cuda-nvrtc and set TL_WHEEL_PATH to the directory that holds it");
  return MakeError(absl::StatusCode::kNotFound, message,
                   {.domain = Domain::kNvrtc, .reason = Reason::kMissingLibrary});
}

}  // namespace tl
