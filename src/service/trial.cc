#include "service/trial.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace tl {

using reference::GuardedMemory;

namespace {

bool SameExprs(const std::vector<ExprRef>& a, const std::vector<ExprRef>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), Equal);
}

bool SameOperand(const Buffer& a, const Buffer& b) {
  return a.role == b.role && a.dtype == b.dtype && a.packed == b.packed &&
         SameExprs(a.shape, b.shape) && SameExprs(a.strides, b.strides);
}

bool SameInit(const InitClause& a, const InitClause& b) {
  return a.buffer == b.buffer && a.scalar == b.scalar && a.kind == b.kind &&
         SameExprs(a.args, b.args);
}

}  // namespace

bool SameOperands(const Module& a, const Module& b) {
  // Expressions of one are compared with those of the other, so numbers must mean the same.
  if (a.dims != b.dims || a.strides != b.strides || a.scalars != b.scalars ||
      a.operands != b.operands || a.inits.size() != b.inits.size())
    return false;
  for (BufferId id : a.operands) {
    if (!SameOperand(a.buffer(id), b.buffer(id))) return false;
  }
  return std::equal(a.inits.begin(), a.inits.end(), b.inits.begin(), SameInit);
}

StatusOr<std::vector<int64_t>> ContiguousStrides(const Kernel& kernel, const HostArgs& args) {
  const Module& m = kernel.module();
  std::vector<int64_t> out;
  for (size_t i = 0; i < m.operands.size(); ++i) {
    const Buffer& b = m.buffer(m.operands[i]);
    TL_ASSIGN_OR_RETURN(std::vector<int64_t> shape, kernel.Shape(i, args));
    for (int d = 0; d < b.rank(); ++d) {
      const VarRef* ref = As<VarRef>(b.strides[d]);
      if (!ref || m.var(ref->var).role != VarRole::kStride) continue;
      int64_t stride = 1;
      for (int inner = d + 1; inner < b.rank(); ++inner)
        stride *= std::max<int64_t>(shape[inner], 1);
      out.push_back(stride);
    }
  }
  return out;
}

StatusOr<std::unique_ptr<Trial>> Trial::Make(const Kernel& kernel, DeviceSession& session,
                                             int ordinal, const TrialArguments& arguments) {
  std::unique_ptr<Trial> trial(new Trial(kernel, session, ordinal));
  const Module& m = kernel.module();
  std::vector<int64_t> strides;
  if (arguments.strides) {
    strides = *arguments.strides;
  } else {
    TL_RETURN_IF_ERROR(kernel.CheckArguments({arguments.dims, {}, {}}));
    TL_ASSIGN_OR_RETURN(strides, ContiguousStrides(kernel, {arguments.dims, {}, {}}));
  }
  TL_RETURN_IF_ERROR(kernel.CheckArguments({arguments.dims, strides, {}}));
  TL_ASSIGN_OR_RETURN(trial->inputs_, reference::MakeInputs(m, arguments.dims, strides,
                                                            arguments.scalars, arguments.seed));
  TL_RETURN_IF_ERROR(trial->Upload());
  return trial;
}

Trial::~Trial() {
  session_.Synchronize().IgnoreError();
  for (void* block : blocks_) session_.Free(block);
}

// Copies the memory with its guards and returns the device address of the data.
StatusOr<char*> Trial::Place(const GuardedMemory& memory) {
  const size_t bytes = static_cast<size_t>(memory.whole_bytes());
  TL_ASSIGN_OR_RETURN(void* block, session_.Allocate(bytes));
  blocks_.push_back(block);
  TL_RETURN_IF_ERROR(session_.CopyIn(block, memory.whole(), bytes));
  return static_cast<char*>(block) + GuardedMemory::kGuard;
}

Status Trial::Upload() {
  const Module& m = kernel_->module();
  for (size_t i = 0; i < inputs_.operands.size(); ++i) {
    TL_ASSIGN_OR_RETURN(char* data, Place(inputs_.operands[i]));
    tensors_.push_back(data);
    const bool twice = m.buffer(m.operands[i]).role == BufferRole::kInOut;
    traffic_ += static_cast<double>(inputs_.operands[i].bytes()) * (twice ? 2 : 1);
  }
  return PlaceWorkspace();
}

// The last of the blocks.
Status Trial::PlaceWorkspace() {
  TL_ASSIGN_OR_RETURN(size_t bytes, kernel_->WorkspaceSize(inputs_.arguments.host()));
  if (bytes == (workspace_ ? static_cast<size_t>(workspace_->bytes()) : 0)) return absl::OkStatus();
  if (workspace_) {
    TL_RETURN_IF_ERROR(session_.Synchronize());
    session_.Free(blocks_.back());
    blocks_.pop_back();
    workspace_.reset();
    workspace_device_ = nullptr;
  }
  if (bytes == 0) return absl::OkStatus();
  TL_ASSIGN_OR_RETURN(workspace_, GuardedMemory::Make(static_cast<int64_t>(bytes)));
  TL_ASSIGN_OR_RETURN(workspace_device_, Place(*workspace_));
  return absl::OkStatus();
}

Status Trial::Use(const Kernel& kernel) {
  kernel_ = &kernel;
  return PlaceWorkspace();
}

Status Trial::Launch() {
  LaunchRequest request;
  request.ordinal = ordinal_;
  request.stream = session_.stream();
  request.tensors = tensors_.data();
  request.args = inputs_.arguments.host();
  request.workspace = workspace_device_;
  request.workspace_size = workspace_ ? static_cast<size_t>(workspace_->bytes()) : 0;
  return kernel_->Launch(request);
}

Status Trial::Fetch(size_t index) {
  const GuardedMemory& memory = inputs_.operands[index];
  return session_.CopyOut(memory.data(), tensors_[index], static_cast<size_t>(memory.bytes()));
}

Status Trial::CheckGuards() {
  const Module& m = kernel_->module();
  for (size_t i = 0; i < blocks_.size(); ++i) {
    const bool is_operand = i < inputs_.operands.size();
    const GuardedMemory& memory = is_operand ? inputs_.operands[i] : *workspace_;
    std::vector<uint8_t> copy(static_cast<size_t>(memory.whole_bytes()));
    TL_RETURN_IF_ERROR(session_.CopyOut(copy.data(), blocks_[i], copy.size()));
    int64_t offset = 0;
    if (GuardedMemory::IntactCopy(copy.data(), memory.bytes(), &offset)) continue;
    const std::string name = is_operand ? m.buffer(m.operands[i]).name : "workspace";
    return MakeError(absl::StatusCode::kDataLoss,
                     absl::StrCat("the kernel wrote outside '", name, "', at byte ", offset, " of ",
                                  memory.bytes()),
                     {.reason = Reason::kMismatch, .span = {}, .log = {}});
  }
  return absl::OkStatus();
}

}  // namespace tl
