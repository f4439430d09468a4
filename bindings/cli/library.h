// Owning handles of tl.h and failures as exceptions, for the commands.
#ifndef TILEJIT_BINDINGS_CLI_LIBRARY_H_
#define TILEJIT_BINDINGS_CLI_LIBRARY_H_

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "tl/tl.h"

namespace cli {

// What the program returns; main.cc documents them to the user.
enum ExitCode { kOk = 0, kMismatch = 1, kUsage = 2, kFailed = 3 };

// The command line asks for something that cannot be meant: printed like other errors.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A failed call, copied out of tl_last_error() because the next failure overwrites it.
struct Failure {
  tl_status status;
  tl_reason reason;
  int line, column, end_line, end_column;
  std::string message, log;
};

// The thread's last failure.
Failure LastFailure();
// Throws LastFailure() unless `status` is TL_OK.
void Check(tl_status status);

struct ReleaseContext {
  void operator()(tl_context* c) const { tl_context_release(c); }
};
struct ReleaseKernel {
  void operator()(tl_kernel* k) const { tl_kernel_release(k); }
};
using Context = std::unique_ptr<tl_context, ReleaseContext>;
using Kernel = std::unique_ptr<tl_kernel, ReleaseKernel>;

// Warnings go to stderr. `packs` are read below the cache.
Context MakeContext(const std::vector<std::string>& packs = {});

tl_device_info DeviceInfo(tl_context* context, int32_t device);
int32_t DeviceCount(tl_context* context);

// The text `what` of a kernel, which may be binary.
std::string KernelText(tl_kernel* kernel, tl_text what);

// To a file, or to standard output where `path` is empty or "-".
void WriteText(const std::string& text, const std::string& path);

// A struct of tl.h with its size filled in.
template <typename T>
T Sized() {
  T value{};
  value.struct_size = sizeof(T);
  return value;
}

}  // namespace cli

#endif  // TILEJIT_BINDINGS_CLI_LIBRARY_H_
