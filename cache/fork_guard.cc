#include "cache/fork_guard.h"

#include <unistd.h>

#include <atomic>

namespace tl {
namespace {

// Guards alive in the process that counted them. Plain atomics: nothing to construct or destroy.
std::atomic<int> alive{0};
std::atomic<pid_t> counted_in{0};

}  // namespace

ForkGuard::ForkGuard() : owner_(getpid()) {
  alive.fetch_add(1);
  // Once a process has inherited some, the count stays its parent's: they never die here.
  pid_t none = 0;
  counted_in.compare_exchange_strong(none, owner_);
}

ForkGuard::~ForkGuard() {
  if (in_child() || InheritedSome()) return;
  if (alive.fetch_sub(1) == 1) counted_in.store(0);
}

bool ForkGuard::in_child() const { return owner_ != getpid(); }

bool ForkGuard::InheritedSome() {
  const pid_t counted = counted_in.load();
  return counted != 0 && counted != getpid();
}

}  // namespace tl
