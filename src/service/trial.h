// A kernel on one device with generated data: what tl_check and tl_bench share.
#ifndef TILEJIT_SERVICE_TRIAL_H_
#define TILEJIT_SERVICE_TRIAL_H_

#include <memory>
#include <optional>
#include <vector>

#include "backends/backend.h"
#include "backends/reference/inputs.h"
#include "service/kernel.h"

namespace tl {

struct TrialArguments {
  std::vector<int64_t> dims;
  std::optional<std::vector<int64_t>> strides;      // absent: those of contiguous tensors
  std::optional<std::vector<ScalarValue>> scalars;  // absent: drawn by the init clauses
  uint64_t seed = 0;
};

// Device memory with guards around every tensor; freed with the object.
class Trial {
 public:
  static StatusOr<std::unique_ptr<Trial>> Make(const Kernel& kernel, DeviceSession& session,
                                               int ordinal, const TrialArguments& arguments);
  ~Trial();
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  // From now on launches this kernel, which must outlive the trial, on the same inputs. Its
  // operands must be those of the first (SameOperands); workspace is placed anew where it needs
  // another size.
  Status Use(const Kernel& kernel);

  // Enqueues the kernel on the session's stream.
  Status Launch();
  // Brings operand `index` back to the host side of inputs().
  Status Fetch(size_t index);
  // Whether the guards around operands and workspace held on the device; DATA_LOSS naming the
  // tensor otherwise.
  Status CheckGuards();

  const reference::GeneratedInputs& inputs() const { return inputs_; }
  // Bytes of all operands, each counted once, inout twice.
  double traffic() const { return traffic_; }

 private:
  Trial(const Kernel& kernel, DeviceSession& session, int ordinal)
      : kernel_(&kernel), session_(session), ordinal_(ordinal) {}
  Status Upload();
  Status PlaceWorkspace();
  StatusOr<char*> Place(const reference::GuardedMemory& memory);

  const Kernel* kernel_;
  DeviceSession& session_;
  const int ordinal_;
  reference::GeneratedInputs inputs_;
  std::vector<void*> blocks_;   // as allocated, operands then workspace
  std::vector<void*> tensors_;  // as passed
  std::optional<reference::GuardedMemory> workspace_;
  void* workspace_device_ = nullptr;
  double traffic_ = 0;
};

// Whether inputs made for one of these programs are inputs of the other: equal operands, scalars
// and init clauses.
bool SameOperands(const Module& a, const Module& b);

// Dynamic strides of contiguous tensors with these dims, in signature order.
StatusOr<std::vector<int64_t>> ContiguousStrides(const Kernel& kernel, const HostArgs& args);

}  // namespace tl

#endif  // TILEJIT_SERVICE_TRIAL_H_
