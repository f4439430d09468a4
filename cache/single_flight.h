// Of several threads that want the same thing at once, one makes it and the others wait for it.
#ifndef TILEJIT_CACHE_SINGLE_FLIGHT_H_
#define TILEJIT_CACHE_SINGLE_FLIGHT_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/cleanup/cleanup.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "base/status.h"

namespace tl {

// V is copied to everybody: make it a shared pointer or something as cheap.
//
// This is not a cache. A result is handed to those who were waiting, success or failure, and
// forgotten; whoever comes later computes again. So `compute` publishes its result where later
// callers look (memory, store), and begins by looking there itself: the flight that it would have
// joined may just have landed.
template <typename V>
class SingleFlight {
 public:
  struct Result {
    StatusOr<V> value;
    bool waited = false;  // somebody else computed it
  };

  // Runs `compute` without holding a lock, or waits for the thread that does so under the same key,
  // at most max_wait (then DEADLINE_EXCEEDED). `compute` must not ask for its own key.
  Result Do(const std::string& key, absl::FunctionRef<StatusOr<V>()> compute,
            absl::Duration max_wait = absl::InfiniteDuration()) ABSL_LOCKS_EXCLUDED(mu_) {
    const auto [flight, leader] = Join(key);
    if (!leader) return {Await(*flight, max_wait), true};
    // Runs on every way out: nobody must be left waiting.
    absl::Cleanup land = [this, &key, &flight = flight] {
      Leave(key);
      flight->done.Notify();
    };
    flight->value = compute();
    return {flight->value, false};
  }

  // Keys being computed now.
  size_t InFlight() const ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    return flights_.size();
  }

 private:
  struct Flight {
    StatusOr<V> value = absl::CancelledError("the computation was abandoned");
    absl::Notification done;  // orders the write of value before its reads
  };

  std::pair<std::shared_ptr<Flight>, bool> Join(const std::string& key) {
    absl::MutexLock lock(&mu_);
    std::shared_ptr<Flight>& flight = flights_[key];
    const bool leader = flight == nullptr;
    if (leader) flight = std::make_shared<Flight>();
    return {flight, leader};
  }

  void Leave(const std::string& key) {
    absl::MutexLock lock(&mu_);
    flights_.erase(key);
  }

  static StatusOr<V> Await(Flight& flight, absl::Duration max_wait) {
    if (flight.done.WaitForNotificationWithTimeout(max_wait)) return flight.value;
    return absl::DeadlineExceededError("somebody else's compilation takes longer than allowed");
  }

  mutable absl::Mutex mu_;
  absl::flat_hash_map<std::string, std::shared_ptr<Flight>> flights_ ABSL_GUARDED_BY(mu_);
};

}  // namespace tl

#endif  // TILEJIT_CACHE_SINGLE_FLIGHT_H_
