// Who wrote and read every byte of shared memory, and whether the next access is ordered after
// that.
//
// Within a group of threads (a part of one that meets others is a group here, too) only barriers
// order accesses, so that one clock a group will do in place of one a thread: it steps at every
// barrier that the group passes. A thread knows of all
// accesses of its own group before the group's last barrier, and of those of other groups before
// the block's last, or as far as an mbarrier has told it. Who arrives there vouches for what its
// group did before the group's last barrier, and for what it knows of others; not for what it has
// done since.
//
// Matrix products and bulk copies work through the async proxy and in their own time. What they
// read stays taken until those who write there know that the readers have been waited for
// (progress.h). What threads wrote is to be seen by them only after the writing thread's proxy
// fence, and after whatever tells of that moment.
#ifndef TILEJIT_BACKENDS_EMULATE_SHADOW_H_
#define TILEJIT_BACKENDS_EMULATE_SHADOW_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "backends/emulate/progress.h"

namespace tl::emulate {

class Shadow {
 public:
  // Forgets everything. `thread / group_size` is a thread's group.
  void Start(int bytes, int threads, int group_size);
  // Whole groups meet.
  void PassBarrier(std::span<const ThreadRange> threads);

  // Mbarriers, by their offsets.
  void Arrive(int mbarrier, int thread);
  void EndPhase(int mbarrier);
  void Learn(int mbarrier, int thread);  // has waited for the last phase that ended

  // Why an access races with an earlier one.
  struct Conflict {
    enum Kind : uint8_t {
      kNone,
      kWithWrite,
      kWithRead,
      kInFlight,   // an asynchronous copy to these bytes has not been waited for
      kBulkWrite,  // what a bulk copy wrote is not known to be there
      kAsyncRead,  // a product or copy that reads them has not been waited for
      kNoFence,    // written, but not for the async proxy
    };
    Kind kind = kNone;
    int thread = 0;  // of the other access; -1: several
    int line = 0;
    int byte = 0;  // offset in shared memory

    explicit operator bool() const { return kind != kNone; }
  };
  Conflict Read(int offset, int bytes, int thread, int line);
  // `same`: the bytes keep their values; then the same statement in several threads is no conflict,
  // because replicated elements are stored by all who hold them.
  Conflict Write(int offset, int bytes, int thread, int line, bool same);

  // An asynchronous copy to these bytes, which `thread` has just written: until it is waited for,
  // nobody may touch them; from then on it counts as a write at that time.
  void Launch(int offset, int bytes);
  void Complete(int offset, int bytes, int thread);

  Progress& progress() { return progress_; }
  // What makes a thread's writes, or its mbarriers, visible to the async proxy.
  enum FenceKind : uint8_t { kProxyFence, kInitFence };
  void Fence(FenceKind kind, int thread);
  uint16_t Fences(FenceKind kind, int thread) const {  // so far
    return static_cast<uint16_t>(fences_[kind][static_cast<size_t>(thread)].size());
  }
  // Somebody who reads through the async proxy, one operation after the other. Operation number
  // `n` has ended for whoever knows of at least `n` on all the counters.
  int NewAsyncReader(std::vector<int> counters);
  // What is known to all of some threads that begin an operation together.
  struct Knowledge {
    int thread;                      // if it is one only, else -1
    std::vector<uint32_t> groups;    // as Known
    std::vector<uint32_t> counters;  // of progress()
  };
  Knowledge KnownToAll(int first, int count) const;
  // Is it known that `thread` has fenced after the first `before` fences?
  bool Fenced(FenceKind kind, int thread, uint16_t before, const Knowledge& known) const;
  Conflict ReadAsync(int offset, int bytes, const Knowledge& known, int reader, uint32_t operation,
                     int line);
  // A bulk copy by one thread to these bytes: as with Launch, until CompleteBulk says that they are
  // there for whoever knows of `count` on `counter`.
  Conflict LaunchBulk(int offset, int bytes, const Knowledge& known, int line);
  void CompleteBulk(int offset, int bytes, int counter, uint32_t count);

 private:
  static constexpr uint16_t kNobody = 0xffff, kMany = 0xfffe, kBulk = 0xfffd;
  struct Byte {
    uint32_t write_time;  // kBulk: the count that tells of it
    uint16_t writer, reader;
    uint16_t write_line, read_line;
    uint16_t fences;  // of the writer before it wrote; kBulk: the counter
    bool in_flight;
  };
  struct AsyncReader {
    std::vector<int> counters;
    std::vector<uint32_t> last;   // operation that read each byte; 0: none
    std::vector<uint16_t> lines;  // of the operations, by number
  };
  // By group: of what it did before that time an mbarrier tells.
  using Clocks = std::vector<uint32_t>;
  struct Mbarrier {
    Clocks gathered, told;  // in this phase, in the last
  };

  int GroupOf(int thread) const { return group_of_[static_cast<size_t>(thread)]; }
  size_t groups() const { return now_.size(); }
  // Before which time `thread` knows of what `group` did.
  uint32_t Known(size_t group, int thread) const {
    const auto own = static_cast<size_t>(GroupOf(thread));
    return group == own ? now_[group] : known_[static_cast<size_t>(thread) * groups() + group];
  }
  uint32_t& KnownBy(int thread, size_t group) {
    return known_[static_cast<size_t>(thread) * groups() + group];
  }
  bool WriteOrdered(int byte, int thread) const;
  bool WriteOrdered(const Byte& byte, const Knowledge& known) const;
  bool VisibleToAsync(const Byte& byte, const Knowledge& known) const;
  Conflict WithWriter(int byte) const;
  bool ReadsOrdered(int byte, int thread) const;
  // The reader that may not have ended, or null.
  const AsyncReader* ReadingAsync(int byte, int thread) const;
  void AddReader(int byte, int thread, int line);
  uint32_t* ReadTimes(int byte) { return &read_times_[static_cast<size_t>(byte) * groups()]; }

  std::vector<Byte> bytes_;
  std::vector<uint32_t> read_times_;  // of each byte by each group, the last; 0: none
  std::vector<uint8_t> group_of_;
  Clocks now_;
  std::vector<uint32_t> known_;  // by thread and group
  std::unordered_map<int, Mbarrier> mbarriers_;
  std::array<std::vector<Clocks>, 2> fences_;  // by kind and thread: when
  std::vector<AsyncReader> async_readers_;
  Progress progress_;
};

}  // namespace tl::emulate

#endif  // TILEJIT_BACKENDS_EMULATE_SHADOW_H_
