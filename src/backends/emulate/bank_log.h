// Bank conflicts of a warp's accesses. Threads run one after the other, so each lane's accesses are
// noted and put together once the whole warp waits: the n-th of a line in one lane belongs to the
// n-th of that line in the others.
#ifndef TILEJIT_BACKENDS_EMULATE_BANK_LOG_H_
#define TILEJIT_BACKENDS_EMULATE_BANK_LOG_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "backends/emulate/options.h"

namespace tl::emulate {

class BankLog {
 public:
  void Start(int threads, int lanes, EmulateStats* stats);
  void Note(int thread, int line, int offset, int bytes, bool write, bool async);
  // Eight rows of 16 bytes.
  void NoteMatrix(const std::vector<int64_t>& rows, bool write);
  void Flush(int warp);

 private:
  struct Entry {
    int line;
    int ordinal;  // among the lane's of this line; then `lane`
    int lane;
    int offset, bytes;
    bool write, async;
  };
  void Count(const std::vector<Entry>& entries, size_t begin, size_t end);

  std::vector<std::vector<Entry>> warps_;
  int lanes_ = 1;  // of a warp
  EmulateStats* stats_ = nullptr;
};

}  // namespace tl::emulate

#endif  // TILEJIT_BACKENDS_EMULATE_BANK_LOG_H_
