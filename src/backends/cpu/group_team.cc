#include "backends/cpu/group_team.h"

#include <algorithm>
#include <deque>
#include <system_error>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "backends/cpu/arena.h"
#include "backends/cpu/float_mode.h"

namespace tl::cpu {
namespace {

// The threads of one block and what they share. One lock and one condition: the waits are rare
// compared with the work between them.
class Team : public Runtime {
 public:
  Team(const GroupLaunch& launch, std::atomic<int64_t>* next_block)
      : Runtime{OnBarrier, OnAcquire, OnRelease},
        launch_(launch),
        next_block_(next_block),
        channels_(launch.depths.size()) {}

  bool Allocate() { return arena_.Get(launch_.arena_bytes) != nullptr; }

  // What the thread of group `group` does: block after block until none is left.
  void Run(int64_t group) {
    const DefaultFloatMode mode;
    for (;;) {
      const int64_t block = EnterBlock();
      if (block < 0) return;
      launch_.function(launch_.params, block, block + 1, arena_.Get(launch_.arena_bytes), group,
                       this);
      LeaveBlock();
    }
  }

  // Ends the team before or between blocks.
  void Stop() {
    absl::MutexLock lock(&mutex_);
    stopped_ = true;
    changed_.SignalAll();
  }

  bool deadlocked() {
    absl::MutexLock lock(&mutex_);
    return deadlocked_;
  }

 private:
  struct Channel {
    int64_t sent = 0;
    int64_t received = 0;
  };

  static Team* Of(const Runtime* self) { return const_cast<Team*>(static_cast<const Team*>(self)); }
  static int32_t OnBarrier(const Runtime* self, int64_t) { return Of(self)->Barrier() ? 0 : 1; }
  static int64_t OnAcquire(const Runtime* self, int64_t channel, int32_t send) {
    return Of(self)->Acquire(channel, send != 0);
  }
  static void OnRelease(const Runtime* self, int64_t channel, int32_t send) {
    Of(self)->Release(channel, send != 0);
  }

  // All threads meet here between blocks; the last one takes the next block and clears the state.
  int64_t EnterBlock() {
    absl::MutexLock lock(&mutex_);
    if (++at_gate_ == launch_.groups) {
      at_gate_ = 0;
      arrived_ = 0;
      left_ = 0;
      std::fill(channels_.begin(), channels_.end(), Channel{});
      const int64_t block = next_block_->fetch_add(1, std::memory_order_relaxed);
      block_ = block < launch_.blocks ? block : -1;
      ++gate_;
      changed_.SignalAll();
    } else {
      const int64_t gate = gate_;
      while (gate_ == gate && !stopped_) changed_.Wait(&mutex_);
    }
    return stopped_ ? -1 : block_;
  }

  void LeaveBlock() {
    absl::MutexLock lock(&mutex_);
    ++left_;
    CheckProgress();
  }

  bool Barrier() {
    absl::MutexLock lock(&mutex_);
    if (++arrived_ == launch_.groups) {
      arrived_ = 0;
      ++phase_;
      Change();
      return true;
    }
    const int64_t phase = phase_;
    return WaitUntil([this, phase] { return phase_ != phase; });
  }

  int64_t Acquire(int64_t number, bool send) {
    absl::MutexLock lock(&mutex_);
    Channel& c = channels_[number];
    const int64_t depth = launch_.depths[number];
    const bool ready = send ? WaitUntil([&] { return c.sent - c.received < depth; })
                            : WaitUntil([&] { return c.sent > c.received; });
    if (!ready) return -1;
    return (send ? c.sent : c.received) % depth;
  }

  void Release(int64_t number, bool send) {
    absl::MutexLock lock(&mutex_);
    ++(send ? channels_[number].sent : channels_[number].received);
    Change();
  }

  // Whoever waits has to look again.
  void Change() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    waiting_ = 0;
    ++generation_;
    changed_.SignalAll();
  }

  // Every thread that has not left the block waits, and nothing changed since each of them looked.
  void CheckProgress() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (waiting_ == 0 || waiting_ + left_ < launch_.groups) return;
    deadlocked_ = true;
    stopped_ = true;
    changed_.SignalAll();
  }

  template <typename Condition>
  bool WaitUntil(const Condition& condition) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    while (!condition()) {
      if (stopped_) return false;
      ++waiting_;
      CheckProgress();
      const int64_t generation = generation_;
      while (generation_ == generation && !stopped_) changed_.Wait(&mutex_);
    }
    return true;
  }

  const GroupLaunch& launch_;
  std::atomic<int64_t>* const next_block_;
  Arena arena_;
  absl::Mutex mutex_;
  absl::CondVar changed_;
  std::vector<Channel> channels_;
  int64_t block_ = -1;
  int at_gate_ = 0;         // threads between blocks
  int64_t gate_ = 0;        // blocks entered
  int arrived_ = 0;         // threads at the barrier
  int64_t phase_ = 0;       // barriers passed
  int left_ = 0;            // threads done with the block
  int waiting_ = 0;         // threads that found nothing to do since the last change
  int64_t generation_ = 0;  // changes
  bool stopped_ = false;
  bool deadlocked_ = false;
};

// Starts the other threads of all teams; this one is group 0 of the first.
Status RunTeams(std::deque<Team>& teams, int groups) {
  std::vector<std::thread> threads;
  Status status;
  try {
    for (size_t t = 0; t < teams.size(); ++t) {
      for (int g = t == 0 ? 1 : 0; g < groups; ++g) {
        threads.emplace_back([&teams, t, g] { teams[t].Run(g); });
      }
    }
  } catch (const std::system_error& e) {
    status = absl::ResourceExhaustedError(
        absl::StrCat("no thread for a group of the kernel: ", e.what()));
    // The first team cannot start without this thread; of the others, whole ones may have.
    for (Team& team : teams) team.Stop();
  }
  if (status.ok()) teams[0].Run(0);
  for (std::thread& thread : threads) thread.join();
  return status;
}

}  // namespace

Status RunGroups(const GroupLaunch& launch) {
  const int64_t useful = std::max(1, launch.max_threads / launch.groups);
  const int64_t count = std::min(launch.blocks, useful);
  std::atomic<int64_t> next_block{0};
  std::deque<Team> teams;
  for (int64_t i = 0; i < count; ++i) {
    teams.emplace_back(launch, &next_block);
    if (!teams.back().Allocate()) {
      return absl::ResourceExhaustedError(
          absl::StrCat("no memory for the tiles of a block: ", launch.arena_bytes, " bytes"));
    }
  }
  TL_RETURN_IF_ERROR(RunTeams(teams, launch.groups));
  for (Team& team : teams) {
    if (team.deadlocked()) {
      return absl::FailedPreconditionError(
          "deadlock: every group of a block waits for a message, a free slot or the others");
    }
  }
  return absl::OkStatus();
}

}  // namespace tl::cpu
