// A compiled program in memory, ready to be launched on this machine's processors.
#ifndef TILEJIT_BACKENDS_CPU_KERNEL_H_
#define TILEJIT_BACKENDS_CPU_KERNEL_H_

#include <memory>
#include <string_view>
#include <vector>

#include "backends/backend.h"
#include "backends/cpu/compiler_module.h"
#include "base/thread_pool.h"

namespace tl::cpu {

// The pool and the module are shared with the backend, which the kernel may outlive.
StatusOr<std::unique_ptr<LoadedKernel>> LoadKernel(std::string_view binary,
                                                   const std::vector<Entry>& entries,
                                                   const Module& module,
                                                   std::shared_ptr<ThreadPool> pool,
                                                   std::shared_ptr<CompilerModule> compiler);

}  // namespace tl::cpu

#endif  // TILEJIT_BACKENDS_CPU_KERNEL_H_
