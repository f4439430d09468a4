// SQLite connections and the locks behind them do not survive fork().
#ifndef TILEJIT_CACHE_FORK_GUARD_H_
#define TILEJIT_CACHE_FORK_GUARD_H_

#include <sys/types.h>

namespace tl {

// A member of whatever must not be used in a child.
class ForkGuard {
 public:
  ForkGuard();
  ~ForkGuard();
  ForkGuard(const ForkGuard&) = delete;
  ForkGuard& operator=(const ForkGuard&) = delete;

  bool in_child() const;

  // Whether this process inherited guarded objects that were alive at the fork. SQLite would then
  // take the parent's locks for its own, so databases may only be opened without locks.
  static bool InheritedSome();

 private:
  const pid_t owner_;
};

}  // namespace tl

#endif  // TILEJIT_CACHE_FORK_GUARD_H_
