// libtilejit_cpu.so: found, identified without loading, loaded on first compile.
#ifndef TILEJIT_BACKENDS_CPU_COMPILER_MODULE_H_
#define TILEJIT_BACKENDS_CPU_COMPILER_MODULE_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"
#include "backends/cpu/module/interface.h"
#include "base/search_paths.h"
#include "base/status.h"

namespace tl::cpu {

struct Compiled {
  std::string object;
  std::string assembly;
  std::string log;
};

enum class CompileOutput { kObject, kAssembly, kOptimizedIr };

class CompilerModule {
 public:
  explicit CompilerModule(const SearchPaths& paths);

  // "LLVM 19.1.7 <build-id>"; NOT_FOUND with the places tried.
  StatusOr<std::string> Identity();
  StatusOr<Compiled> Compile(std::string_view ir, const std::string& cpu,
                             const std::string& features, CompileOutput output);

  // An object loaded by LLVM's own linker: for what LoadObject does not know. Unloaded with the
  // value.
  class Image {
   public:
    Image(CompilerModule* module, tl_cpu_image* image) : module_(module), image_(image) {}
    ~Image();
    Image(const Image&) = delete;
    Image& operator=(const Image&) = delete;
    void* Symbol(const char* name) const;

   private:
    CompilerModule* module_;
    tl_cpu_image* image_;
  };
  StatusOr<std::unique_ptr<Image>> Load(std::string_view object);

 private:
  struct Functions {
    decltype(&tl_cpu_version) version;
    decltype(&tl_cpu_compiler) compiler;
    decltype(&tl_cpu_compile) compile;
    decltype(&tl_cpu_load) load;
    decltype(&tl_cpu_symbol) symbol;
    decltype(&tl_cpu_unload) unload;
    decltype(&tl_cpu_free) free;
  };

  StatusOr<std::string> Find() const;
  Status Open();
  Status OpenLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string Take(tl_cpu_bytes* bytes) const;

  const std::vector<std::string> candidates_;
  absl::Mutex mutex_;
  bool tried_ ABSL_GUARDED_BY(mutex_) = false;
  Status opened_ ABSL_GUARDED_BY(mutex_);
  Functions functions_ = {};  // constant once Open() has returned OK
};

}  // namespace tl::cpu

#endif  // TILEJIT_BACKENDS_CPU_COMPILER_MODULE_H_
