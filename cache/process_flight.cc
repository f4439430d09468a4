#include "cache/process_flight.h"

#include <unistd.h>

#include <algorithm>
#include <random>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/time/clock.h"

namespace tl {
namespace {

// Missing this many renewals in a row costs an owner its lease.
constexpr int kRenewalsPerTtl = 8;

// Compiling takes tens of milliseconds at least.
constexpr absl::Duration kFirstPause = absl::Milliseconds(2);
constexpr absl::Duration kLongestPause = absl::Milliseconds(20);

// Unlike any other owner's on all machines; the process is for people who look at the table.
std::string MakeOwner() {
  std::random_device random;
  std::string owner = std::to_string(getpid());
  for (int i = 0; i < 4; ++i) owner += "-" + std::to_string(random());
  return owner;
}

}  // namespace

ProcessFlight::ProcessFlight(ArtifactStore& store, ProcessFlightOptions options)
    : store_(store), options_(options), owner_(MakeOwner()) {}

ProcessFlight::~ProcessFlight() {
  std::vector<KeyHash> held;
  {
    absl::MutexLock lock(&mu_);
    stop_ = true;
    held.assign(held_.begin(), held_.end());
  }
  if (renewer_.joinable()) renewer_.join();
  for (const KeyHash& key : held) store_.ReleaseLease(key, owner_).IgnoreError();
}

ProcessFlight::Turn::Turn(Turn&& other) noexcept
    : flight_(std::exchange(other.flight_, nullptr)),
      key_(other.key_),
      found_(other.found_),
      waited_(other.waited_) {}

ProcessFlight::Turn::~Turn() {
  if (flight_ != nullptr) flight_->GiveBack(key_);
}

ProcessFlight::Turn ProcessFlight::Enter(const KeyHash& key, absl::FunctionRef<bool()> look) {
  const absl::Time deadline = absl::Now() + options_.max_wait;
  bool waited = false;
  for (absl::Duration pause = kFirstPause;; pause = std::min(2 * pause, kLongestPause)) {
    const bool ours = TryTake(key) || absl::Now() > deadline;
    Turn turn(ours ? this : nullptr, key);
    turn.waited_ = waited;
    turn.found_ = look();
    if (ours || turn.found_) return turn;
    waited = true;
    absl::SleepFor(pause);
  }
}

bool ProcessFlight::TryTake(const KeyHash& key) {
  const StatusOr<LeaseAnswer> answer = store_.TryAcquireLease(key, owner_, options_.ttl);
  if (!answer.ok()) return true;
  if (!answer->acquired) return false;
  absl::MutexLock lock(&mu_);
  held_.insert(key);
  if (started_) return true;
  started_ = true;
  try {
    renewer_ = std::thread([this] { Renew(); });
  } catch (const std::system_error&) {
    // No thread to be had: a lease that is not renewed runs out, and work may be done twice.
  }
  return true;
}

void ProcessFlight::GiveBack(const KeyHash& key) {
  {
    // First, so that it is not renewed after its end.
    absl::MutexLock lock(&mu_);
    if (held_.erase(key) == 0) return;
  }
  store_.ReleaseLease(key, owner_).IgnoreError();
}

// Without the lock while the disk is waited for. What was given back meanwhile is given back again.
void ProcessFlight::RenewOne(const KeyHash& key) {
  store_.TryAcquireLease(key, owner_, options_.ttl).IgnoreError();
  bool held = false;
  {
    absl::MutexLock lock(&mu_);
    held = held_.contains(key);
  }
  if (!held) store_.ReleaseLease(key, owner_).IgnoreError();
}

void ProcessFlight::Renew() {
  const auto wanted = [this]()
                          ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return stop_ || !held_.empty(); };
  mu_.Lock();
  while (true) {
    mu_.Await(absl::Condition(&wanted));
    mu_.AwaitWithTimeout(absl::Condition(&stop_), options_.ttl / kRenewalsPerTtl);
    if (stop_) break;
    const std::vector<KeyHash> held(held_.begin(), held_.end());
    mu_.Unlock();
    for (const KeyHash& key : held) RenewOne(key);
    mu_.Lock();
  }
  mu_.Unlock();
}

}  // namespace tl
