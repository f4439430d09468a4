// Of several processes that want the same entry of a store at once, one makes it and the others
// wait until it is there. The means are leases: an owner that is killed stops renewing its lease,
// and another takes over when it runs out.
#ifndef TILEJIT_CACHE_PROCESS_FLIGHT_H_
#define TILEJIT_CACHE_PROCESS_FLIGHT_H_

#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "cache/store.h"

namespace tl {

struct ProcessFlightOptions {
  // How long a killed owner keeps others waiting. An owner renews far more often.
  absl::Duration ttl = absl::Seconds(5);
  // After this time of waiting for others the caller goes ahead by itself.
  absl::Duration max_wait = absl::Minutes(5);
};

// Saves work, no more: where the store cannot keep leases, everybody goes ahead. Threads of one
// process share an owner, so they need a SingleFlight above this.
class ProcessFlight {
 public:
  // `store` must live longer.
  explicit ProcessFlight(ArtifactStore& store, ProcessFlightOptions options = {});
  // Gives back what is still held.
  ~ProcessFlight();
  ProcessFlight(const ProcessFlight&) = delete;
  ProcessFlight& operator=(const ProcessFlight&) = delete;

  // The right to make a key, until it goes out of scope.
  class Turn {
   public:
    Turn(Turn&& other) noexcept;
    Turn& operator=(Turn&&) = delete;
    ~Turn();
    bool found() const { return found_; }    // it is there: nothing to make
    bool waited() const { return waited_; }  // for another process

   private:
    friend class ProcessFlight;
    Turn(ProcessFlight* flight, const KeyHash& key) : flight_(flight), key_(key) {}
    ProcessFlight* flight_;  // null: holds nothing
    KeyHash key_;
    bool found_ = false;
    bool waited_ = false;
  };

  // Returns when `look` finds the entry, which somebody else may be making, or when it is this
  // process' turn to make it. `look` is asked at least once, without a lock held: the process
  // before this one may just have finished.
  Turn Enter(const KeyHash& key, absl::FunctionRef<bool()> look);

 private:
  // True: this process may make the key, with a lease or for want of one.
  bool TryTake(const KeyHash& key);
  void GiveBack(const KeyHash& key);
  // Renews what is held, on a thread of its own that starts with the first lease.
  void Renew();
  void RenewOne(const KeyHash& key);

  ArtifactStore& store_;
  const ProcessFlightOptions options_;
  const std::string owner_;

  absl::Mutex mu_;
  absl::flat_hash_set<KeyHash> held_ ABSL_GUARDED_BY(mu_);
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  bool started_ ABSL_GUARDED_BY(mu_) = false;
  std::thread renewer_;
};

}  // namespace tl

#endif  // TILEJIT_CACHE_PROCESS_FLIGHT_H_
