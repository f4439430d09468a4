// A program with its arguments, ready to be interpreted: what all blocks share.
#ifndef TILEJIT_BACKENDS_REFERENCE_MACHINE_H_
#define TILEJIT_BACKENDS_REFERENCE_MACHINE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "backends/reference/arith.h"
#include "backends/reference/lag.h"
#include "backends/reference/split.h"
#include "backends/reference/tensor.h"
#include "backends/reference/value.h"
#include "base/status.h"
#include "ir/host_eval.h"
#include "ir/module.h"

namespace tl::reference {

// Host memory and numbers for one call of a program.
struct Arguments {
  std::vector<void*> operands;    // one per Module::operands, each as large as its storage
  std::vector<void*> workspaces;  // one per Module::workspaces; empty: allocated for the call
  std::vector<int64_t> dims;
  std::vector<int64_t> strides;
  std::vector<ScalarValue> scalars;

  HostArgs host() const { return {dims, strides, scalars}; }
};

// The grid of one launch.
struct Grid {
  std::vector<int64_t> extents;  // of the plain axes, then of the split axis
  int64_t blocks = 0;
};

class Machine {
 public:
  // Checks the arguments against the signature; errors name the argument.
  static StatusOr<std::unique_ptr<Machine>> Make(const Module& module, Mode mode,
                                                 const Arguments& arguments);

  const Module& module() const { return *module_; }
  const Arith& arith() const { return arith_; }
  bool exact() const { return arith_.exact(); }
  Tensor& tensor(BufferId id) { return tensors_[id]; }
  // Every variable's value; dims, strides and scalars are set.
  const std::vector<Value>& registers() const { return registers_; }
  const LagLoop* FindLags(const For* loop) const;

  // Grid of launch `l`; plans its split axis, if it has one.
  StatusOr<Grid> PrepareLaunch(int l);
  // Plan of the split axis of launch `l`, null if it has none or has not run.
  const SplitPlan* plan(int l) const { return plans_[l] ? &*plans_[l] : nullptr; }
  // For launches that run one by one: makes the plan that an earlier launch would have left.
  Status EnsurePlan(int l);

 private:
  Machine(const Module& module, Mode mode) : module_(&module), arith_(mode) {}

  Status CheckCounts(const Arguments& arguments) const;
  void SetRegisters(const Arguments& arguments);
  Status MakeTensors(const Arguments& arguments);
  Status PlaceWorkspaces(const Arguments& arguments);

  const Module* module_;
  Arith arith_;
  HostArgs args_;
  std::vector<Tensor> tensors_;  // by BufferId; tiles have none
  std::vector<Value> registers_;
  std::vector<std::optional<SplitPlan>> plans_;  // one per launch
  std::unordered_map<const For*, LagLoop> lags_;
  std::vector<std::vector<uint64_t>> own_workspaces_;
};

}  // namespace tl::reference

#endif  // TILEJIT_BACKENDS_REFERENCE_MACHINE_H_
