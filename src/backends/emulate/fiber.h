// Stacks of their own for the threads of a block, and switching between them without a system call.
#ifndef TILEJIT_BACKENDS_EMULATE_FIBER_H_
#define TILEJIT_BACKENDS_EMULATE_FIBER_H_

#include <cstddef>
#include <cstdint>

namespace tl::emulate {

// Where a fiber goes on.
struct Context {
  void* stack_pointer = nullptr;
};

// Leaves the running fiber, to be resumed through `from`, and goes on where `to` says.
void Switch(Context& from, Context& to);
// A context that starts main(argument) on the stack [stack, stack + bytes). `main` never returns.
Context NewContext(void* stack, size_t bytes, void (*main)(void*), void* argument);

// Pages for `count` stacks; those never touched cost nothing.
class Stacks {
 public:
  static constexpr size_t kBytes = 256 * 1024;

  Stacks() = default;
  ~Stacks();
  Stacks(const Stacks&) = delete;
  Stacks& operator=(const Stacks&) = delete;

  bool Reserve(int count);  // at least; false: no memory
  void* stack(int i) const {
    return static_cast<uint8_t*>(memory_) + static_cast<size_t>(i) * kBytes;
  }

 private:
  void* memory_ = nullptr;
  int count_ = 0;
};

}  // namespace tl::emulate

#endif  // TILEJIT_BACKENDS_EMULATE_FIBER_H_
