// A kernel as the caller sees it: the caller's own names over a shared Program.
#ifndef TILEJIT_SERVICE_KERNEL_H_
#define TILEJIT_SERVICE_KERNEL_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "base/status.h"
#include "ir/host_eval.h"
#include "ir/module.h"
#include "service/choice.h"
#include "service/program.h"

namespace tl {

// What a launch takes, already counted against the signature.
struct LaunchRequest {
  int ordinal = 0;
  void* stream = nullptr;
  void* const* tensors = nullptr;
  HostArgs args;
  void* workspace = nullptr;
  size_t workspace_size = 0;
};

class Kernel {
 public:
  // Compiles the host expressions of grid, shapes and workspace.
  static StatusOr<std::shared_ptr<Kernel>> Create(std::shared_ptr<const Module> module,
                                                  std::shared_ptr<Program> program,
                                                  Choice choice = {});

  const Module& module() const { return *module_; }
  const std::shared_ptr<const Module>& shared_module() const { return module_; }
  Program& program() const { return *program_; }
  // Where the values of its tune parameters come from.
  const Choice& choice() const { return choice_; }

  // No lock, no allocation once the program is loaded on the device.
  Status Launch(const LaunchRequest& request) const;

  // Bytes of all workspace tensors, each aligned to 256.
  StatusOr<size_t> WorkspaceSize(const HostArgs& args) const;

  // "[M, K]" of operand `index`.
  const std::string& shape_text(size_t index) const { return operands_[index].shape_text; }
  // Sizes of operand `index` under these arguments.
  StatusOr<std::vector<int64_t>> Shape(size_t index, const HostArgs& args) const;
  StatusOr<std::vector<int64_t>> Strides(size_t index, const HostArgs& args) const;
  // Elements that its storage spans (strides and packing included).
  StatusOr<int64_t> StorageElements(size_t index, const HostArgs& args) const;

  // INVALID_ARGUMENT naming the dim, stride or tensor that is negative or too large.
  Status CheckArguments(const HostArgs& args) const;

 private:
  struct Tensor {
    std::vector<HostExpr> shape;
    std::vector<HostExpr> strides;
    HostExpr storage;
    int stand_in = -1;  // operands: the workspace that stands for it where it is not empty
    DType dtype = DType::kF32;
    size_t element_size = 0;
    std::string shape_text;
  };
  struct Geometry {
    std::vector<HostExpr> axes;  // the block count is their product
  };

  Kernel(std::shared_ptr<const Module> module, std::shared_ptr<Program> program, Choice choice)
      : module_(std::move(module)), program_(std::move(program)), choice_(std::move(choice)) {}

  class ParamPack;

  Status Prepare();
  StatusOr<Tensor> PrepareTensor(BufferId id) const;
  Status CheckSizes(const HostArgs& args) const;
  std::string DimsText(const HostArgs& args) const;
  Status CheckPointers(const LaunchRequest& request) const;
  Status CheckWorkspace(const LaunchRequest& request) const;
  // As BoxOfTensor counts them.
  const Tensor& TensorAt(size_t index) const {
    return index < operands_.size() ? operands_[index] : workspaces_[index - operands_.size()];
  }
  // The tensor that its boxes come from at this launch, as BoxOfTensor counts.
  StatusOr<size_t> SourceOf(const BoxOfTensor& box, const HostArgs& args) const;
  StatusOr<int64_t> Describe(const LoadedKernel& loaded, const BoxOfTensor& box,
                             const Tensor& tensor, const void* data, const HostArgs& args,
                             TensorMap& map) const;
  StatusOr<int64_t> Blocks(size_t launch, const HostArgs& args) const;

  const std::shared_ptr<const Module> module_;
  const std::shared_ptr<Program> program_;
  const Choice choice_;
  std::vector<Tensor> operands_;
  std::vector<Tensor> workspaces_;
  std::vector<Geometry> launches_;
  int max_rank_ = 1;
  size_t most_boxes_ = 0;  // of an entry
};

}  // namespace tl

#endif  // TILEJIT_SERVICE_KERNEL_H_
