// Compiling in a worker process, which the compiler may take down.
#ifndef TILEJIT_SERVICE_COMPILE_WORKER_H_
#define TILEJIT_SERVICE_COMPILE_WORKER_H_

#include <string>

#include "absl/time/time.h"
#include "backends/compile_job.h"

namespace tl {

struct CompileWorkerOptions {
  std::string program;  // the worker's; empty: beside the library
  std::string library_dir;
  absl::Duration limit = absl::Minutes(2);  // the largest kernels take seconds
};

// A CompileElsewhere. Every job has a process of its own: starting one is little beside a compile,
// and a compiler that has lost its way takes nothing along.
StatusOr<CompiledJob> CompileInWorker(const CompileJob& job, const CompileWorkerOptions& options);

}  // namespace tl

#endif  // TILEJIT_SERVICE_COMPILE_WORKER_H_
