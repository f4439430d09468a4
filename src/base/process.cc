#include "base/process.h"

#include <pthread.h>

#include <atomic>

namespace tl {
namespace {

std::atomic<uint32_t> generation{0};

void CountFork() { generation.fetch_add(1, std::memory_order_relaxed); }

}  // namespace

uint32_t ForkGeneration() {
  static const int registered = pthread_atfork(nullptr, nullptr, &CountFork);
  (void)registered;
  return generation.load(std::memory_order_relaxed);
}

}  // namespace tl
