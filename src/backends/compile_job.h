// Compiling in another process, for compilers that may take theirs down.
#ifndef TILEJIT_BACKENDS_COMPILE_JOB_H_
#define TILEJIT_BACKENDS_COMPILE_JOB_H_

#include <functional>
#include <string>
#include <vector>

#include "base/status.h"

namespace tl {

// All that the other process needs to know.
struct CompileJob {
  std::string library;  // the compiler: a file to be opened there
  std::string source;
  std::vector<std::string> options;
};
struct CompiledJob {
  std::string binary;
  std::string log;
};

// Hands a job to a process of its own. ABORTED says how that process ended, with the signal or the
// exit code and what it had printed; DEADLINE_EXCEEDED: it did not end, and was killed. What else
// is not OK is the compiler's answer, or there is no such process.
using CompileElsewhere = std::function<StatusOr<CompiledJob>(const CompileJob& job)>;

}  // namespace tl

#endif  // TILEJIT_BACKENDS_COMPILE_JOB_H_
