// Warns once per kind of trouble: a full disk must not fill the log as well.
#ifndef TILEJIT_CACHE_WARNINGS_H_
#define TILEJIT_CACHE_WARNINGS_H_

#include <atomic>
#include <cstdint>
#include <string_view>
#include <utility>

#include "cache/store.h"

namespace tl {

class Warnings {
 public:
  enum Kind : uint32_t { kOpen = 1, kMovedAside = 2, kRead = 4, kWrite = 8, kDamagedEntry = 16 };

  explicit Warnings(WarningCallback callback) : callback_(std::move(callback)) {}

  // Call without holding a lock: the callback is the caller's code.
  void Once(Kind kind, std::string_view message) {
    const bool first = (told_.fetch_or(kind, std::memory_order_relaxed) & kind) == 0;
    if (first && callback_) callback_(message);
  }

 private:
  const WarningCallback callback_;
  std::atomic<uint32_t> told_{0};
};

}  // namespace tl

#endif  // TILEJIT_CACHE_WARNINGS_H_
