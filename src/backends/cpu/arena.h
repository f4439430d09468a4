// Scratch memory of one block.
#ifndef TILEJIT_BACKENDS_CPU_ARENA_H_
#define TILEJIT_BACKENDS_CPU_ARENA_H_

#include <cstddef>
#include <cstdint>

namespace tl::cpu {

// Memory aligned to kArenaAlignment, grown on demand.
class Arena {
 public:
  Arena() = default;
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // At least `bytes` bytes, content undefined; null when there is no memory.
  void* Get(int64_t bytes);

 private:
  void* data_ = nullptr;
  int64_t size_ = 0;
};

// The calling thread's own: kept between launches, so that a launch allocates nothing.
Arena& ThreadArena();

}  // namespace tl::cpu

#endif  // TILEJIT_BACKENDS_CPU_ARENA_H_
