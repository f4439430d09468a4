// Who wrote and read every byte of shared memory, and whether the next access is ordered after
// that.
//
// Threads are ordered by barriers only, so a vector clock per thread reduces to one clock per group
// of threads: it steps at every barrier that the group passes. A thread knows of all accesses of
// its own group before the group's last barrier, and of those of other groups before the block's
// last.
#ifndef TILEJIT_BACKENDS_EMULATE_SHADOW_H_
#define TILEJIT_BACKENDS_EMULATE_SHADOW_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tl::emulate {

class Shadow {
 public:
  // Forgets everything. `thread / group_size` is a thread's group.
  void Start(int bytes, int threads, int group_size);
  void PassBarrier(int group);  // -1: the block's

  // Why an access races with an earlier one.
  struct Conflict {
    enum Kind : uint8_t {
      kNone,
      kWithWrite,
      kWithRead,
      kInFlight,  // an asynchronous copy to these bytes has not been waited for
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

 private:
  static constexpr uint16_t kNobody = 0xffff, kMany = 0xfffe, kSeveralGroups = 0xfffd;
  struct Byte {
    uint32_t write_time, read_time;
    uint16_t writer, reader;
    uint16_t write_line, read_line;
    bool in_flight;
    uint8_t read_group;  // where reader is kMany
  };

  int GroupOf(int thread) const { return group_of_[static_cast<size_t>(thread)]; }
  // Does `thread` know of what `group` did at `time`?
  bool Ordered(int group, uint32_t time, int thread) const {
    return time < (group == GroupOf(thread) ? now_[group] : known_[group]);
  }
  bool WriteOrdered(const Byte& b, int thread) const;
  bool ReadsOrdered(const Byte& b, int thread) const;
  void AddReader(Byte& b, int thread, int line) const;

  std::vector<Byte> bytes_;
  std::vector<uint8_t> group_of_;
  std::vector<uint32_t> now_;    // clock of each group
  std::vector<uint32_t> known_;  // the same after the block's last barrier
  uint32_t block_now_ = 1;
};

}  // namespace tl::emulate

#endif  // TILEJIT_BACKENDS_EMULATE_SHADOW_H_
