#include "service/kernel.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "absl/algorithm/container.h"
#include "absl/container/fixed_array.h"
#include "absl/strings/str_cat.h"
#include "ir/address.h"
#include "ir/unparse.h"

namespace tl {
namespace {

constexpr size_t kWorkspaceAlignment = 256;
// Enough for the limits on operands, workspaces, dims, strides and scalars of most programs without
// the heap; larger signatures pay for one allocation.
constexpr size_t kInlineParams = 96;
constexpr int64_t kMaxBytes = int64_t{1} << 48;

size_t AlignUp(size_t n) {
  return (n + kWorkspaceAlignment - 1) / kWorkspaceAlignment * kWorkspaceAlignment;
}

StatusOr<std::vector<int64_t>> EvalAll(const std::vector<HostExpr>& list, const HostArgs& args) {
  std::vector<int64_t> out;
  for (const HostExpr& e : list) {
    TL_ASSIGN_OR_RETURN(int64_t v, e.Eval(args));
    out.push_back(v);
  }
  return out;
}

}  // namespace

StatusOr<std::shared_ptr<Kernel>> Kernel::Create(std::shared_ptr<const Module> module,
                                                 std::shared_ptr<Program> program, Choice choice) {
  std::shared_ptr<Kernel> kernel(
      new Kernel(std::move(module), std::move(program), std::move(choice)));
  TL_RETURN_IF_ERROR(kernel->Prepare());
  return kernel;
}

StatusOr<Kernel::Tensor> Kernel::PrepareTensor(BufferId id) const {
  const Buffer& b = module_->buffer(id);
  Tensor tensor;
  tensor.dtype = b.dtype;
  tensor.element_size = SizeOf(b.dtype);
  for (const ExprRef& e : b.shape) {
    TL_ASSIGN_OR_RETURN(HostExpr extent, HostExpr::Compile(*module_, e));
    absl::StrAppend(&tensor.shape_text, tensor.shape.empty() ? "[" : ", ", ToText(*module_, e));
    tensor.shape.push_back(std::move(extent));
  }
  tensor.shape_text += "]";
  for (const ExprRef& e : b.strides) {
    TL_ASSIGN_OR_RETURN(HostExpr stride, HostExpr::Compile(*module_, e));
    tensor.strides.push_back(std::move(stride));
  }
  TL_ASSIGN_OR_RETURN(tensor.storage, HostExpr::Compile(*module_, StorageSize(*module_, id)));
  return tensor;
}

Status Kernel::Prepare() {
  for (BufferId id : module_->operands) {
    TL_ASSIGN_OR_RETURN(Tensor tensor, PrepareTensor(id));
    operands_.push_back(std::move(tensor));
    max_rank_ = std::max(max_rank_, module_->buffer(id).rank());
  }
  for (BufferId id : module_->workspaces) {
    TL_ASSIGN_OR_RETURN(Tensor tensor, PrepareTensor(id));
    if (const BufferId operand = module_->buffer(id).stands_for; operand != kNoId) {
      const auto at = absl::c_find(module_->operands, operand) - module_->operands.begin();
      operands_[static_cast<size_t>(at)].stand_in = static_cast<int>(workspaces_.size());
    }
    workspaces_.push_back(std::move(tensor));
  }
  for (const tl::Launch& launch : module_->launches) {
    Geometry geometry;
    for (const GridAxis& axis : launch.axes) {
      TL_ASSIGN_OR_RETURN(HostExpr extent, HostExpr::Compile(*module_, axis.extent));
      geometry.axes.push_back(std::move(extent));
    }
    if (launch.split) {
      TL_ASSIGN_OR_RETURN(HostExpr parts, HostExpr::Compile(*module_, launch.split->parts));
      geometry.axes.push_back(std::move(parts));
    }
    launches_.push_back(std::move(geometry));
  }
  for (const Entry& entry : program_->entries()) {
    most_boxes_ = std::max(most_boxes_, entry.boxes.size());
    for (const BoxOfTensor& box : entry.boxes) {
      const auto tensor = static_cast<size_t>(box.tensor);
      if (tensor >= operands_.size() + workspaces_.size() ||
          box.extents.size() != TensorAt(tensor).shape.size()) {
        return absl::DataLossError("a program's boxes do not fit its tensors");
      }
    }
  }
  return absl::OkStatus();
}

StatusOr<size_t> Kernel::WorkspaceSize(const HostArgs& args) const {
  size_t total = 0;
  for (size_t i = 0; i < workspaces_.size(); ++i) {
    TL_ASSIGN_OR_RETURN(int64_t elements, workspaces_[i].storage.Eval(args));
    size_t bytes = 0;
    if (elements < 0 ||
        __builtin_mul_overflow(static_cast<size_t>(elements), workspaces_[i].element_size,
                               &bytes) ||
        bytes > static_cast<size_t>(std::numeric_limits<int64_t>::max()) / 2 - total) {
      return absl::OutOfRangeError(
          absl::StrCat("workspace '", module_->buffer(module_->workspaces[i]).name,
                       "' has an impossible size of ", elements, " elements"));
    }
    total += AlignUp(bytes);
  }
  return total;
}

StatusOr<std::vector<int64_t>> Kernel::Shape(size_t index, const HostArgs& args) const {
  return EvalAll(operands_[index].shape, args);
}

StatusOr<std::vector<int64_t>> Kernel::Strides(size_t index, const HostArgs& args) const {
  return EvalAll(operands_[index].strides, args);
}

StatusOr<int64_t> Kernel::StorageElements(size_t index, const HostArgs& args) const {
  return operands_[index].storage.Eval(args);
}

Status Kernel::CheckArguments(const HostArgs& args) const {
  for (size_t i = 0; i < args.dims.size(); ++i) {
    if (args.dims[i] >= 0) continue;
    return absl::InvalidArgumentError(absl::StrCat("dim '", module_->var(module_->dims[i]).name,
                                                   "' is ", args.dims[i], "; dims are 0 or more"));
  }
  for (size_t i = 0; i < args.strides.size(); ++i) {
    if (args.strides[i] >= 0) continue;
    return absl::InvalidArgumentError(absl::StrCat("stride '",
                                                   module_->var(module_->strides[i]).name, "' is ",
                                                   args.strides[i], "; strides are 0 or more"));
  }
  return CheckSizes(args);
}

// No memory holds a tensor of 2^48 bytes: its address arithmetic would wrap.
Status Kernel::CheckSizes(const HostArgs& args) const {
  uint64_t bits = 0;
  for (int64_t v : args.dims) bits |= static_cast<uint64_t>(v);
  for (int64_t v : args.strides) bits |= static_cast<uint64_t>(v);
  // Most launches are far from it.
  if (std::bit_width(bits) * max_rank_ < 40) return absl::OkStatus();
  for (size_t i = 0; i < operands_.size(); ++i) {
    const StatusOr<int64_t> elements = operands_[i].storage.Eval(args);
    // Scalars may be missing here; the launch itself has them.
    if (elements.ok() && *elements <= kMaxBytes / static_cast<int64_t>(operands_[i].element_size))
      continue;
    if (absl::IsInvalidArgument(elements.status())) continue;
    return absl::OutOfRangeError(absl::StrCat(
        "tensor '", module_->buffer(module_->operands[i]).name, "' ", operands_[i].shape_text,
        " would have more than 2^48 bytes with ", DimsText(args)));
  }
  return absl::OkStatus();
}

std::string Kernel::DimsText(const HostArgs& args) const {
  std::string text;
  for (size_t i = 0; i < args.dims.size(); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ", ", module_->var(module_->dims[i]).name, " = ",
                    args.dims[i]);
  }
  return text.empty() ? "these arguments" : text;
}

// Null is fine for a tensor without elements; everything else must be aligned to its element.
Status Kernel::CheckPointers(const LaunchRequest& request) const {
  for (size_t i = 0; i < operands_.size(); ++i) {
    const auto address = reinterpret_cast<uintptr_t>(request.tensors[i]);
    if (address != 0 && address % operands_[i].element_size == 0) continue;
    const Buffer& b = module_->buffer(module_->operands[i]);
    if (address != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("tensor '", b.name, "' at ", absl::Hex(address, absl::kZeroPad16),
                       " is not aligned to its element of ", operands_[i].element_size, " bytes"));
    }
    TL_ASSIGN_OR_RETURN(int64_t elements, operands_[i].storage.Eval(request.args));
    if (elements > 0)
      return absl::InvalidArgumentError(
          absl::StrCat("tensor '", b.name, "' is null but has ", elements, " elements"));
  }
  return absl::OkStatus();
}

// Product of the axes; OUT_OF_RANGE when the target has no such grid.
StatusOr<int64_t> Kernel::Blocks(size_t launch, const HostArgs& args) const {
  int64_t blocks = 1;
  bool too_many = false;
  for (const HostExpr& axis : launches_[launch].axes) {
    TL_ASSIGN_OR_RETURN(int64_t extent, axis.Eval(args));
    if (extent <= 0) return 0;
    too_many |= __builtin_mul_overflow(blocks, extent, &blocks);
  }
  const int64_t limit = program_->target().max_blocks;
  if (too_many || (limit > 0 && blocks > limit)) {
    return absl::OutOfRangeError(absl::StrCat(
        "launch ", launch + 1, " of '", module_->name, "' has ",
        too_many ? "more than 2^63" : absl::StrCat(blocks), " blocks; ", program_->target().name,
        " runs at most ", limit > 0 ? absl::StrCat(limit) : "2^63 - 1"));
  }
  return blocks;
}

// The arguments of all entries, on the stack: params[i] points at the i-th value.
class Kernel::ParamPack {
 public:
  ParamPack(const Kernel& kernel, const LaunchRequest& request)
      : params_(kernel.operands_.size() + kernel.workspaces_.size() + request.args.dims.size() +
                request.args.strides.size() + request.args.scalars.size() + 2 * kernel.most_boxes_),
        workspaces_(kernel.workspaces_.size()),
        scalars_(request.args.scalars.size()),
        maps_(kernel.most_boxes_),
        usable_(kernel.most_boxes_) {}

  Status Fill(const Kernel& kernel, const LaunchRequest& request) {
    for (size_t i = 0; i < kernel.operands_.size(); ++i) Add(&request.tensors[i]);
    TL_RETURN_IF_ERROR(AddWorkspaces(kernel, request));
    for (const int64_t& dim : request.args.dims) Add(&dim);
    for (const int64_t& stride : request.args.strides) Add(&stride);
    for (size_t i = 0; i < scalars_.size(); ++i) {
      AddScalar(kernel.module_->var(kernel.module_->scalars[i]), request.args.scalars[i],
                scalars_[i]);
    }
    common_ = count_;
    return absl::OkStatus();
  }

  // The entry's own come behind those that all entries have.
  Status AddBoxes(const Kernel& kernel, const LoadedKernel& loaded, const Entry& entry,
                  const LaunchRequest& request) {
    count_ = common_;
    for (size_t i = 0; i < entry.boxes.size(); ++i) {
      TL_ASSIGN_OR_RETURN(const size_t tensor, kernel.SourceOf(entry.boxes[i], request.args));
      const size_t operands = kernel.operands_.size();
      const void* data =
          tensor < operands ? request.tensors[tensor] : workspaces_[tensor - operands];
      TL_ASSIGN_OR_RETURN(usable_[i],
                          kernel.Describe(loaded, entry.boxes[i], kernel.TensorAt(tensor), data,
                                          request.args, maps_[i]));
      Add(&maps_[i]);
      Add(&usable_[i]);
    }
    return absl::OkStatus();
  }

  LaunchParams params(void* stream) { return {params_.data(), static_cast<int>(count_), stream}; }

 private:
  union Slot {
    int64_t i;
    double f64;
    float f32;
  };

  void Add(const void* value) { params_[count_++] = const_cast<void*>(value); }

  Status AddWorkspaces(const Kernel& kernel, const LaunchRequest& request) {
    size_t offset = 0;
    for (size_t i = 0; i < workspaces_.size(); ++i) {
      TL_ASSIGN_OR_RETURN(int64_t elements, kernel.workspaces_[i].storage.Eval(request.args));
      workspaces_[i] = static_cast<char*>(request.workspace) + offset;
      offset += AlignUp(static_cast<size_t>(elements) * kernel.workspaces_[i].element_size);
      Add(&workspaces_[i]);
    }
    return absl::OkStatus();
  }

  // Rounded to the declared type, passed in the compute type.
  void AddScalar(const Var& var, ScalarValue given, Slot& slot) {
    if (var.type == ScalarType::kF32) {
      slot.f32 = static_cast<float>(RoundTo(var.dtype, given.f));
    } else if (var.type == ScalarType::kF64) {
      slot.f64 = given.f;
    } else {
      slot.i = var.dtype == DType::kBool ? given.i != 0 : WrapTo(var.dtype, given.i);
    }
    Add(&slot);
  }

  absl::FixedArray<void*, kInlineParams> params_;
  absl::FixedArray<void*, 16> workspaces_;
  absl::FixedArray<Slot, 32> scalars_;
  absl::FixedArray<TensorMap, 8> maps_;
  absl::FixedArray<int64_t, 8> usable_;
  size_t count_ = 0, common_ = 0;
};

StatusOr<size_t> Kernel::SourceOf(const BoxOfTensor& box, const HostArgs& args) const {
  const auto tensor = static_cast<size_t>(box.tensor);
  const int stand_in = TensorAt(tensor).stand_in;
  if (stand_in < 0) return tensor;
  const auto workspace = static_cast<size_t>(stand_in);
  TL_ASSIGN_OR_RETURN(const int64_t elements, workspaces_[workspace].storage.Eval(args));
  return elements > 0 ? operands_.size() + workspace : tensor;
}

// 1: `map` describes the window in the tensor of this launch. 0: no map can, and the kernel copies
// otherwise.
StatusOr<int64_t> Kernel::Describe(const LoadedKernel& loaded, const BoxOfTensor& box,
                                   const Tensor& tensor, const void* data, const HostArgs& args,
                                   TensorMap& map) const {
  constexpr int64_t kAlignment = 16;
  constexpr int64_t kMostElements = int64_t{1} << 30;  // see tl_box_place
  const auto size = static_cast<int64_t>(tensor.element_size);
  TensorMapRecipe recipe;
  recipe.data = data;
  recipe.dtype = tensor.dtype;
  recipe.swizzle = box.row_bytes;
  bool usable = reinterpret_cast<uintptr_t>(recipe.data) % kAlignment == 0;
  for (size_t d = tensor.shape.size(); d-- > 0;) {
    TL_ASSIGN_OR_RETURN(int64_t extent, tensor.shape[d].Eval(args));
    TL_ASSIGN_OR_RETURN(int64_t stride, tensor.strides[d].Eval(args));
    recipe.dims.push_back(extent);
    recipe.box.push_back(box.extents[d]);
    usable = usable && extent > 0 && extent <= kMostElements;
    if (d + 1 == tensor.shape.size()) continue;
    usable = usable && stride * size % kAlignment == 0;
    recipe.strides.push_back(stride * size);
  }
  if (!usable) return 0;
  const Status described = loaded.Describe(recipe, map);
  // What the driver says no to is copied otherwise; that it fails is another matter.
  if (absl::IsInvalidArgument(described) || absl::IsUnimplemented(described)) return 0;
  TL_RETURN_IF_ERROR(described);
  return 1;
}

Status Kernel::CheckWorkspace(const LaunchRequest& request) const {
  if (workspaces_.empty()) return absl::OkStatus();
  TL_ASSIGN_OR_RETURN(size_t needed, WorkspaceSize(request.args));
  const size_t given = request.workspace ? request.workspace_size : 0;
  if (given < needed) {
    return absl::InvalidArgumentError(absl::StrCat("the launch needs ", needed,
                                                   " bytes of workspace and got ", given,
                                                   "; ask tl_workspace_size"));
  }
  if (reinterpret_cast<uintptr_t>(request.workspace) % kWorkspaceAlignment != 0) {
    return absl::InvalidArgumentError("the workspace is not aligned to 256 bytes");
  }
  return absl::OkStatus();
}

Status Kernel::Launch(const LaunchRequest& request) const {
  TL_RETURN_IF_ERROR(CheckArguments(request.args));
  TL_RETURN_IF_ERROR(CheckPointers(request));
  TL_RETURN_IF_ERROR(CheckWorkspace(request));
  LoadedKernel* loaded = program_->loaded(request.ordinal);
  if (!loaded) {
    TL_RETURN_IF_ERROR(program_->backend()->CheckNotCapturing(request.ordinal, request.stream));
    TL_ASSIGN_OR_RETURN(loaded, program_->Load(request.ordinal));
  }
  ParamPack pack(*this, request);
  TL_RETURN_IF_ERROR(pack.Fill(*this, request));
  for (size_t i = 0; i < launches_.size(); ++i) {
    TL_ASSIGN_OR_RETURN(int64_t blocks, Blocks(i, request.args));
    if (blocks == 0) continue;
    TL_RETURN_IF_ERROR(pack.AddBoxes(*this, *loaded, program_->entries()[i], request));
    TL_RETURN_IF_ERROR(loaded->Launch(static_cast<int>(i), blocks, pack.params(request.stream)));
  }
  return absl::OkStatus();
}

}  // namespace tl
