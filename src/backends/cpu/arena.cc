#include "backends/cpu/arena.h"

#include <cstdlib>

#include "backends/cpu/runtime.h"

namespace tl::cpu {

Arena::~Arena() { std::free(data_); }

void* Arena::Get(int64_t bytes) {
  // Never null for success, also where a kernel has no tiles.
  if (bytes <= size_ && data_ != nullptr) return data_;
  std::free(data_);
  const int64_t size = (bytes + kArenaAlignment) / kArenaAlignment * kArenaAlignment;
  data_ = std::aligned_alloc(kArenaAlignment, static_cast<size_t>(size));
  size_ = data_ == nullptr ? 0 : size;
  return data_;
}

Arena& ThreadArena() {
  thread_local Arena arena;
  return arena;
}

}  // namespace tl::cpu
