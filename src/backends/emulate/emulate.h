// Runs generated GPU source on the host, for tests without a GPU. Development only: needs a C++
// compiler at run time.
//
// The text that a GPU's compiler would get is taken as it is, except for its first part, the
// language's primitives, in whose place the emulator puts its own. Simple form: barriers, shared
// memory and atomics; no asynchronous copies, no warp instructions.
#ifndef TILEJIT_BACKENDS_EMULATE_EMULATE_H_
#define TILEJIT_BACKENDS_EMULATE_EMULATE_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/backend.h"
#include "base/status.h"

namespace tl {

class EmulatedProgram {
 public:
  // `compiler`: a C++17 compiler, such as "clang++-19", looked for in PATH.
  static StatusOr<std::unique_ptr<EmulatedProgram>> Build(const Generated& generated,
                                                          const std::string& compiler);
  ~EmulatedProgram();
  EmulatedProgram(const EmulatedProgram&) = delete;
  EmulatedProgram& operator=(const EmulatedProgram&) = delete;

  // One launch. `params` as in LaunchParams; pointers are host memory. The same seed gives the same
  // order of threads and blocks. One run at a time.
  Status Run(int entry, int64_t blocks, void** params, uint64_t seed);

 private:
  using Launch = const char* (*)(int, unsigned, int, int, int, void**, uint64_t);

  EmulatedProgram(void* library, Launch launch, std::vector<Entry> entries)
      : library_(library), launch_(launch), entries_(std::move(entries)) {}

  void* const library_;
  const Launch launch_;
  const std::vector<Entry> entries_;
  std::mutex mutex_;
};

// Contents of primitives.h and entry.h.
std::string_view EmulatedPrimitives();
std::string_view EmulatorEntry();

}  // namespace tl

#endif  // TILEJIT_BACKENDS_EMULATE_EMULATE_H_
