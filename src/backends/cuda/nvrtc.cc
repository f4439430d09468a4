#include "backends/cuda/nvrtc.h"

#include <dlfcn.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "backends/cuda/find_nvrtc.h"
#include "base/dynamic_library.h"

namespace tl {
namespace {

constexpr int kOpen = RTLD_NOW | RTLD_LOCAL;

bool ResolveAll(void* library, NvrtcApi& api) {
  return Resolve(library, "nvrtcVersion", api.Version) &&
         Resolve(library, "nvrtcCreateProgram", api.CreateProgram) &&
         Resolve(library, "nvrtcDestroyProgram", api.DestroyProgram) &&
         Resolve(library, "nvrtcCompileProgram", api.CompileProgram) &&
         Resolve(library, "nvrtcGetCUBINSize", api.GetCUBINSize) &&
         Resolve(library, "nvrtcGetCUBIN", api.GetCUBIN) &&
         Resolve(library, "nvrtcGetPTXSize", api.GetPTXSize) &&
         Resolve(library, "nvrtcGetPTX", api.GetPTX) &&
         Resolve(library, "nvrtcGetProgramLogSize", api.GetProgramLogSize) &&
         Resolve(library, "nvrtcGetProgramLog", api.GetProgramLog) &&
         Resolve(library, "nvrtcGetErrorString", api.GetErrorString);
}

std::vector<int> SupportedArchs(const NvrtcApi& api) {
  int count = 0;
  if (api.GetSupportedArchs == nullptr || api.GetNumSupportedArchs == nullptr ||
      api.GetNumSupportedArchs(&count) != 0 || count <= 0) {
    return {};
  }
  std::vector<int> archs(count);
  if (api.GetSupportedArchs(archs.data()) != 0) archs.clear();
  return archs;
}

// nvrtcResult values that callers tell apart.
absl::StatusCode CodeOf(int result) {
  switch (result) {
    case 1:  // out of memory
      return absl::StatusCode::kResourceExhausted;
    case 5:  // invalid option
      return absl::StatusCode::kUnimplemented;
    default:
      return absl::StatusCode::kInternal;
  }
}

// The path of the library behind one of its functions, "" if unknown.
std::string PathOf(void* function) {
  Dl_info info;
  return dladdr(function, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : "";
}

}  // namespace

Status Nvrtc::Open(const std::string& path) {
  const std::string builtins = NvrtcBuiltins(path);
  if (!builtins.empty()) dlopen(builtins.c_str(), kOpen);  // if it fails, compiling says so
  void* library = dlopen(path.c_str(), kOpen);
  if (library == nullptr) return absl::NotFoundError(LoaderError());
  if (!ResolveAll(library, api_)) return absl::NotFoundError(LoaderError());
  Resolve(library, "nvrtcGetNumSupportedArchs", api_.GetNumSupportedArchs);
  Resolve(library, "nvrtcGetSupportedArchs", api_.GetSupportedArchs);
  if (const int result = api_.Version(&major_, &minor_)) return Error(result, "nvrtcVersion");
  archs_ = SupportedArchs(api_);
  path_ = PathOf(reinterpret_cast<void*>(api_.Version));
  if (path_.empty()) path_ = path;
  identity_ = NvrtcIdentity(path_);
  return absl::OkStatus();
}

StatusOr<std::unique_ptr<const Nvrtc>> Nvrtc::Load(const SearchPaths& paths) {
  const NvrtcSearch search = FindNvrtc(paths);
  std::vector<std::string> candidates = search.found;
  if (paths.loader_path) {
    candidates.insert(candidates.end(), NvrtcSonames().begin(), NvrtcSonames().end());
  }
  std::string first_error;
  for (const std::string& path : candidates) {
    std::unique_ptr<Nvrtc> nvrtc(new Nvrtc());
    const Status status = nvrtc->Open(path);
    if (status.ok()) return std::unique_ptr<const Nvrtc>(std::move(nvrtc));
    if (first_error.empty()) first_error = std::string(status.message());
  }
  return NvrtcMissing(search, first_error);
}

Status Nvrtc::Error(int result, std::string_view what, std::string log) const {
  return MakeError(
      CodeOf(result),
      absl::StrCat(what, ": ", api_.GetErrorString(result), " (NVRTC ", major_, ".", minor_, ")"),
      {.domain = Domain::kNvrtc, .native_code = result, .log = std::move(log)});
}

}  // namespace tl
