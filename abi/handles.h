// What stands behind the opaque handles of tl.h.
#ifndef TILEJIT_ABI_HANDLES_H_
#define TILEJIT_ABI_HANDLES_H_

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "service/context.h"
#include "service/kernel.h"
#include "service/report.h"
#include "tl/tl.h"

struct tl_context {
  std::atomic<int> references{1};
  std::shared_ptr<tl::Context> impl;
};

struct tl_kernel {
  std::atomic<int> references{1};
  std::shared_ptr<tl::Kernel> impl;
  std::shared_ptr<tl::Context> context;  // owns the backends that the kernel runs on

  absl::Mutex mu;
  std::map<tl::Text, std::string> texts ABSL_GUARDED_BY(mu);  // nodes stay where they are
};

namespace tl::abi {

inline tl_kernel* MakeKernel(std::shared_ptr<tl::Kernel> impl,
                             std::shared_ptr<tl::Context> context) {
  auto handle = std::make_unique<tl_kernel>();
  handle->impl = std::move(impl);
  handle->context = std::move(context);
  return handle.release();
}

template <typename Handle>
void Release(Handle* handle) {
  if (handle && handle->references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete handle;
}

}  // namespace tl::abi

#endif  // TILEJIT_ABI_HANDLES_H_
