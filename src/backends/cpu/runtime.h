// What generated code calls back into, and how it is called.
//
// Every launch i of a program becomes one exported function
//
//   int32_t tl_kernel_<i>_range(void** params, int64_t begin, int64_t end, void* arena,
//                               int64_t group, const Runtime* runtime)
//
// which runs the blocks begin..end-1 one after the other. `params` is LaunchParams::params. `arena`
// is scratch memory of Entry::shared_bytes, aligned to 64 bytes, used by nobody else until the
// function returns. With groups > 1, `groups` threads call it at the same time with one arena, one
// block and their own `group`. The result is 0, or 1 when a callback said that no thread can go on.
#ifndef TILEJIT_BACKENDS_CPU_RUNTIME_H_
#define TILEJIT_BACKENDS_CPU_RUNTIME_H_

#include <cstdint>

namespace tl::cpu {

// Layout known to the emitter. Callbacks get the structure itself and find their state around it.
// Only kernels with groups > 1 call them.
struct Runtime {
  // All threads of the block meet. Nonzero: give up.
  int32_t (*barrier)(const Runtime* self, int64_t group);
  // Waits for a free slot (send) or a message and returns its slot number; negative: give up.
  // Channels are numbered as the kChannel buffers of the module are.
  int64_t (*acquire)(const Runtime* self, int64_t channel, int32_t send);
  // Hands the slot over.
  void (*release)(const Runtime* self, int64_t channel, int32_t send);
};

using KernelFunction = int32_t (*)(void** params, int64_t begin, int64_t end, void* arena,
                                   int64_t group, const Runtime* runtime);

inline constexpr int64_t kArenaAlignment = 64;

}  // namespace tl::cpu

#endif  // TILEJIT_BACKENDS_CPU_RUNTIME_H_
