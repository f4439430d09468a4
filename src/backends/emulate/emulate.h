// Runs generated GPU source on the host, for tests without a GPU. Development only: needs a C++
// compiler at run time.
//
// The kernels are taken as a GPU's compiler would get them, below a prelude of the emulator's own.
// Threads are fibers in a random order; asynchronous copies arrive at random moments; shared memory
// and registers start as NaNs. Data races, accesses outside of tiles and tensors, misaligned vector
// accesses, warp instructions that not all lanes reach and barriers that not all threads reach end
// the launch with an error that names the line of the source.
#ifndef TILEJIT_BACKENDS_EMULATE_EMULATE_H_
#define TILEJIT_BACKENDS_EMULATE_EMULATE_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "backends/emulate/options.h"
#include "base/status.h"

namespace tl {

namespace emulate {
class Machine;
}

// Storage of a pointer argument; accesses outside of it are errors.
struct EmulatedOperand {
  std::string name;
  const void* data;
  int64_t bytes;  // -1: unknown
};

class EmulatedProgram {
 public:
  // `compiler`: clang or g++ that knows -std=c++2b, such as "clang++-19", looked for in PATH.
  static StatusOr<std::unique_ptr<EmulatedProgram>> Build(const Generated& generated,
                                                          const std::string& compiler);
  ~EmulatedProgram();
  EmulatedProgram(const EmulatedProgram&) = delete;
  EmulatedProgram& operator=(const EmulatedProgram&) = delete;

  // One launch. `params` as in LaunchParams; pointers are host memory, described by `operands` in
  // the same order (none: not checked). One run at a time. `stats` may be null; else it is added
  // to.
  Status Run(int entry, int64_t blocks, void** params, const EmulateOptions& options,
             const std::vector<EmulatedOperand>& operands = {}, EmulateStats* stats = nullptr);
  Status Run(int entry, int64_t blocks, void** params, uint64_t seed) {
    return Run(entry, blocks, params, EmulateOptions{.seed = seed});
  }

 private:
  EmulatedProgram(void* library, std::vector<Entry> entries);

  void* const library_;
  const std::vector<Entry> entries_;
  std::mutex mutex_;
  const std::unique_ptr<emulate::Machine> machine_;
};

// The text that is compiled for the host.
std::string EmulatedSource(const Generated& generated);

}  // namespace tl

#endif  // TILEJIT_BACKENDS_EMULATE_EMULATE_H_
