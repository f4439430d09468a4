// Valid random inputs for a program, made by its init clauses: for checks, benchmarks and tuning.
#ifndef TILEJIT_BACKENDS_REFERENCE_INPUTS_H_
#define TILEJIT_BACKENDS_REFERENCE_INPUTS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "backends/reference/machine.h"
#include "base/status.h"
#include "ir/module.h"

namespace tl::reference {

// Memory of one operand or workspace between two guards that nobody may write. data() is aligned to
// 256 bytes.
class GuardedMemory {
 public:
  static constexpr int64_t kGuard = 256;

  // The memory is poisoned: all ones, which is NaN in every float type.
  static StatusOr<GuardedMemory> Make(int64_t bytes);

  void* data() const { return data_; }
  int64_t bytes() const { return bytes_; }
  // Whether both guards still hold what they held; *offset: first changed byte, relative to data().
  bool Intact(int64_t* offset) const;

  // The block with its guards, for a copy on a device.
  const uint8_t* whole() const { return data_ - kGuard; }
  int64_t whole_bytes() const { return bytes_ + 2 * kGuard; }
  // The same check on a copy of whole().
  static bool IntactCopy(const uint8_t* whole, int64_t bytes, int64_t* offset);

 private:
  struct Free {
    void operator()(uint8_t* p) const;
  };
  std::unique_ptr<uint8_t[], Free> block_;
  uint8_t* data_ = nullptr;
  int64_t bytes_ = 0;
};

struct GeneratedInputs {
  std::vector<GuardedMemory> operands;
  std::vector<GuardedMemory> workspaces;
  Arguments arguments;  // points into the above

  // Fails naming the first buffer whose guard was overwritten.
  Status CheckGuards(const Module& module) const;
};

// Inputs by their init clauses (docs/tile-ir.md, Init), outputs and workspaces poisoned. All dims
// and strides must be given; scalars that are left out (an empty vector) follow their init clauses.
// The same seed gives the same data, on any machine.
StatusOr<GeneratedInputs> MakeInputs(const Module& module, std::vector<int64_t> dims,
                                     std::vector<int64_t> strides,
                                     std::optional<std::vector<ScalarValue>> scalars,
                                     uint64_t seed);

}  // namespace tl::reference

#endif  // TILEJIT_BACKENDS_REFERENCE_INPUTS_H_
