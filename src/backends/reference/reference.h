// The reference interpreter: the meaning of every operation of a tile program, run plainly on host
// memory. Every other backend is compared with it.
#ifndef TILEJIT_BACKENDS_REFERENCE_REFERENCE_H_
#define TILEJIT_BACKENDS_REFERENCE_REFERENCE_H_

#include <cstdint>
#include <vector>

#include "backends/reference/machine.h"
#include "backends/reference/tensor.h"
#include "base/status.h"
#include "ir/module.h"

namespace tl::reference {

struct RunOptions {
  int threads = 1;
  // kExact, programs of one launch without atomics: interpret blocks in a random order (the first
  // and the last come first) until this many multiply-adds and elements are done. 0: all blocks.
  int64_t work_budget = 0;
  uint64_t seed = 0;
};

// What the program wrote to one output, per element of the tensor's storage.
class Output {
 public:
  explicit Output(BufferId id, DType dtype, std::unique_ptr<Shadow> shadow)
      : id_(id), dtype_(dtype), shadow_(std::move(shadow)) {}

  BufferId id() const { return id_; }
  DType dtype() const { return dtype_; }
  int64_t size() const { return shadow_->state.size(); }
  bool written(int64_t i) const { return shadow_->state[i] == Shadow::kWritten; }
  double value(int64_t i) const {
    const Cell c = shadow_->cell[i];
    return IsFloat(dtype_) ? c.f : static_cast<double>(c.i);
  }
  int64_t int_value(int64_t i) const { return shadow_->cell[i].i; }
  // How far an implementation that computes in the declared types may be from the value. Infinite
  // where nothing can be said (an overflow that rounding decides).
  double bound(int64_t i) const { return shadow_->err[i]; }

 private:
  BufferId id_;
  DType dtype_;
  std::unique_ptr<Shadow> shadow_;
};

struct Outputs {
  std::vector<Output> tensors;  // the operands of role out and inout, in order
  int64_t blocks = 0;           // interpreted, of
  int64_t total_blocks = 0;
  int64_t work = 0;
};

// Everything in float64 with error bounds. Reads operands of role in and inout; writes nothing but
// the result. Errors of the program (an access out of bounds, an undefined element in an output, a
// deadlock ...) come with the span of the statement.
StatusOr<Outputs> RunExact(const Module& module, const Arguments& arguments,
                           const RunOptions& options = {});

// In the declared types; writes the operands' memory. The same bits for any number of threads:
// programs with atomics run on one.
Status RunRounded(const Module& module, const Arguments& arguments, int threads = 1);

// One launch of several, for callers that enqueue them one by one with workspaces of their own.
Status RunRoundedLaunch(const Module& module, int launch, const Arguments& arguments,
                        int threads = 1);

}  // namespace tl::reference

#endif  // TILEJIT_BACKENDS_REFERENCE_REFERENCE_H_
