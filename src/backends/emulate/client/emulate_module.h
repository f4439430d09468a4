// libtilejit_emulate.so: found beside the library, loaded on first use.
#ifndef TILEJIT_BACKENDS_EMULATE_CLIENT_EMULATE_MODULE_H_
#define TILEJIT_BACKENDS_EMULATE_CLIENT_EMULATE_MODULE_H_

#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "backends/emulate/interface.h"
#include "base/search_paths.h"
#include "base/status.h"

namespace tl::emulate {

class EmulateModule {
 public:
  struct Functions {
    decltype(&tl_emulate_build) build;
    decltype(&tl_emulate_run) run;
    decltype(&tl_emulate_free) free;
    decltype(&tl_emulate_free_text) free_text;

    // The text, which is freed, as a status.
    Status Take(char* error) const;
  };

  explicit EmulateModule(const SearchPaths& paths);

  // Is the module there?
  bool Present() const;
  // Its build-id, without loading it.
  StatusOr<std::string> Identity() const;
  StatusOr<const Functions*> Open();

 private:
  const std::string path_;
  absl::Mutex mutex_;
  bool open_ ABSL_GUARDED_BY(mutex_) = false;
  Functions functions_ = {};  // constant once open
};

}  // namespace tl::emulate

#endif  // TILEJIT_BACKENDS_EMULATE_CLIENT_EMULATE_MODULE_H_
