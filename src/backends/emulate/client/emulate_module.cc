#include "backends/emulate/client/emulate_module.h"

#include <dlfcn.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "base/build_id.h"
#include "base/dynamic_library.h"

namespace tl::emulate {
namespace {

Status Missing(std::string_view message) {
  return MakeError(absl::StatusCode::kNotFound, message,
                   {.domain = Domain::kOs, .reason = Reason::kMissingLibrary});
}

}  // namespace

Status EmulateModule::Functions::Take(char* error) const {
  const Status status = absl::InternalError(error != nullptr ? error : "no reason given");
  free_text(error);
  return status;
}

EmulateModule::EmulateModule(const SearchPaths& paths)
    : path_(absl::StrCat(paths.library_dir, "/libtilejit_emulate.so")) {}

bool EmulateModule::Present() const { return access(path_.c_str(), R_OK) == 0; }

StatusOr<std::string> EmulateModule::Identity() const {
  if (!Present()) return Missing(absl::StrCat("there is no emulator at ", path_));
  TL_ASSIGN_OR_RETURN(const std::string id, ReadBuildId(path_));
  return absl::StrCat("emulator ", id);
}

StatusOr<const EmulateModule::Functions*> EmulateModule::Open() {
  const absl::MutexLock lock(&mutex_);
  if (open_) return &functions_;
  void* library = dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) return Missing(absl::StrCat("cannot load the emulator: ", dlerror()));
  Functions& f = functions_;
  open_ = Resolve(library, "tl_emulate_build", f.build) &&
          Resolve(library, "tl_emulate_run", f.run) &&
          Resolve(library, "tl_emulate_free", f.free) &&
          Resolve(library, "tl_emulate_free_text", f.free_text);
  if (!open_) return Missing(absl::StrCat(path_, " is no emulator of this library"));
  return &functions_;
}

}  // namespace tl::emulate
