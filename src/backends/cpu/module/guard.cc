#include "backends/cpu/module/guard.h"

#include <exception>
#include <mutex>
#include <stdexcept>

#include "llvm/Support/ErrorHandling.h"

namespace tl_cpu {
namespace {

// LLVM is built without exceptions but with unwind tables, so the exception passes through its
// frames without running destructors.
[[noreturn]] void OnFatalError(void*, const char* reason, bool) {
  throw std::runtime_error(reason ? reason : "unknown fatal error");
}

}  // namespace

std::string Guarded(const std::function<std::string()>& work) {
  static std::once_flag installed;
  std::call_once(installed, [] {
    llvm::install_fatal_error_handler(OnFatalError);
    llvm::install_bad_alloc_error_handler(OnFatalError);
  });
  try {
    return work();
  } catch (const std::exception& e) {
    const std::string reason = e.what();
    return "LLVM: " + (reason.empty() ? "unknown failure" : reason);
  }
}

}  // namespace tl_cpu
