// Keeps LLVM's fatal errors inside the module.
#ifndef TILEJIT_BACKENDS_CPU_MODULE_GUARD_H_
#define TILEJIT_BACKENDS_CPU_MODULE_GUARD_H_

#include <functional>
#include <string>

namespace tl_cpu {

// Runs `work`, which returns an error message or "". A fatal error of LLVM (an instruction that
// cannot be selected, exhausted memory) would end the process; here it unwinds to this function and
// becomes the message. What LLVM had allocated then leaks: rare, and better than the host's death.
std::string Guarded(const std::function<std::string()>& work);

}  // namespace tl_cpu

#endif  // TILEJIT_BACKENDS_CPU_MODULE_GUARD_H_
