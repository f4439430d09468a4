// Launching from DLPack tensors: reads dims and strides off them, checks everything else.
#include <dlpack/dlpack.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "abi/error.h"
#include "abi/launch_args.h"
#include "abi/structs.h"

using tl::abi::Call;
using tl::abi::DeviceFor;
using tl::abi::ReadStruct;

namespace {

// Newer than some installed headers.
constexpr int kDlBool = 6, kDlE4M3 = 10, kDlE5M2 = 12;

std::optional<tl::DType> DTypeOf(const DLDataType& t) {
  if (t.lanes != 1) return std::nullopt;
  struct Row {
    int code, bits;
    tl::DType dtype;
  };
  static constexpr Row kRows[] = {
      {kDLInt, 8, tl::DType::kI8},       {kDLInt, 16, tl::DType::kI16},
      {kDLInt, 32, tl::DType::kI32},     {kDLInt, 64, tl::DType::kI64},
      {kDLUInt, 8, tl::DType::kU8},      {kDLUInt, 16, tl::DType::kU16},
      {kDLUInt, 32, tl::DType::kU32},    {kDLFloat, 16, tl::DType::kF16},
      {kDLFloat, 32, tl::DType::kF32},   {kDLFloat, 64, tl::DType::kF64},
      {kDLBfloat, 16, tl::DType::kBF16}, {kDlBool, 8, tl::DType::kBool},
      {kDlE4M3, 8, tl::DType::kE4M3},    {kDlE5M2, 8, tl::DType::kE5M2}};
  for (const Row& row : kRows) {
    if (row.code == t.code && row.bits == t.bits) return row.dtype;
  }
  return std::nullopt;
}

// The caller may have written any number where the struct has an enumeration.
int32_t DeviceType(const DLDevice& where) {
  int32_t type;
  static_assert(sizeof(type) == sizeof(where.device_type));
  std::memcpy(&type, &where.device_type, sizeof(type));
  return type;
}

bool OnDevice(const DLDevice& where, const tl::Device& device) {
  const int32_t type = DeviceType(where);
  if (device.info.target.backend == "cuda") {
    // Managed memory (13) is reachable from every GPU.
    return type == 13 || (type == kDLCUDA && where.device_id == device.info.ordinal);
  }
  if (device.info.target.backend == "hip")
    return type == kDLROCM && where.device_id == device.info.ordinal;
  return type == kDLCPU || type == 3 || type == 11;  // and host memory pinned by CUDA or HIP
}

class Reader {
 public:
  Reader(const tl_kernel& kernel, const tl::Device& device)
      : kernel_(*kernel.impl), m_(kernel_.module()), device_(device) {}

  tl::Status Read(const void* const* tensors, absl::Span<const tl::ScalarValue> scalars) {
    dims_.resize(m_.dims.size());
    strides_.resize(m_.strides.size());
    for (size_t i = 0; i < m_.operands.size(); ++i) {
      const auto* t = static_cast<const DLTensor*>(tensors[i]);
      if (!t) return absl::InvalidArgumentError(absl::StrCat("tensor '", Name(i), "' is NULL"));
      TL_RETURN_IF_ERROR(CheckKind(i, *t));
      TL_RETURN_IF_ERROR(CheckExtents(i, *t));
      TL_RETURN_IF_ERROR(ReadVars(i, *t));
      // Where there is no memory there is none at the offset either.
      char* const data = static_cast<char*>(t->data);
      tensors_.push_back(data ? data + t->byte_offset : nullptr);
    }
    TL_RETURN_IF_ERROR(Settle());
    for (size_t i = 0; i < m_.operands.size(); ++i) {
      const tl::HostArgs args{fixed_dims_, fixed_strides_, scalars};
      TL_RETURN_IF_ERROR(CheckShape(i, *static_cast<const DLTensor*>(tensors[i]), args));
    }
    return absl::OkStatus();
  }

  std::vector<void*>& tensors() { return tensors_; }
  const std::vector<int64_t>& dims() const { return fixed_dims_; }
  const std::vector<int64_t>& strides() const { return fixed_strides_; }

 private:
  const std::string& Name(size_t i) const { return m_.buffer(m_.operands[i]).name; }

  tl::Status CheckKind(size_t i, const DLTensor& t) const {
    const tl::Buffer& b = m_.buffer(m_.operands[i]);
    if (t.ndim != b.rank()) {
      return absl::InvalidArgumentError(absl::StrCat("tensor '", b.name, "' has rank ", t.ndim,
                                                     ", the kernel declares ",
                                                     kernel_.shape_text(i)));
    }
    const std::optional<tl::DType> dtype = DTypeOf(t.dtype);
    if (dtype != b.dtype) {
      return absl::InvalidArgumentError(
          absl::StrCat("tensor '", b.name, "' has dtype ",
                       dtype ? std::string(tl::Name(*dtype)) : "unknown to the library",
                       ", the kernel declares ", tl::Name(b.dtype)));
    }
    if (!OnDevice(t.device, device_)) {
      return absl::InvalidArgumentError(
          absl::StrCat("tensor '", b.name, "' lies on DLPack device (", DeviceType(t.device), ", ",
                       t.device.device_id, "), the launch is on ", device_.info.name));
    }
    return absl::OkStatus();
  }

  // Before anything multiplies them.
  tl::Status CheckExtents(size_t i, const DLTensor& t) const {
    if (!t.shape)
      return absl::InvalidArgumentError(absl::StrCat("tensor '", Name(i), "' has no shape"));
    int64_t elements = 1;
    for (int d = 0; d < t.ndim; ++d) {
      if (t.shape[d] < 0 ||
          __builtin_mul_overflow(elements, std::max<int64_t>(t.shape[d], 1), &elements)) {
        return absl::InvalidArgumentError(
            absl::StrCat("tensor '", Name(i), "' has extent ", t.shape[d], " in dim ", d,
                         t.shape[d] < 0 ? ", which is negative" : " and too many elements"));
      }
    }
    return absl::OkStatus();
  }

  // The strides of a tensor without elements mean nothing.
  static bool IsEmpty(const DLTensor& t) {
    return std::any_of(t.shape, t.shape + t.ndim, [](int64_t n) { return n == 0; });
  }

  static int64_t StrideOf(const DLTensor& t, int d) {
    if (t.strides) return t.strides[d];
    int64_t stride = 1;
    for (int i = d + 1; i < t.ndim; ++i) stride *= t.shape[i];
    return stride;
  }

  // An extent or stride that is a variable of the signature and nothing more gives it its value.
  tl::Status ReadVars(size_t i, const DLTensor& t) {
    const tl::Buffer& b = m_.buffer(m_.operands[i]);
    for (int d = 0; d < t.ndim; ++d) {
      TL_RETURN_IF_ERROR(Assign(b.shape[d], t.shape[d], m_.dims, dims_, i));
      if (b.packed.empty())
        TL_RETURN_IF_ERROR(Assign(b.strides[d], StrideOf(t, d), m_.strides, strides_, i));
    }
    return absl::OkStatus();
  }

  tl::Status Assign(const tl::ExprRef& e, int64_t value, const std::vector<tl::VarId>& vars,
                    std::vector<std::optional<int64_t>>& values, size_t tensor) {
    const tl::VarRef* ref = tl::As<tl::VarRef>(e);
    for (size_t v = 0; ref && v < vars.size(); ++v) {
      if (vars[v] != ref->var) continue;
      if (values[v] && *values[v] != value) {
        return absl::InvalidArgumentError(absl::StrCat("tensor '", Name(tensor), "' makes ",
                                                       m_.var(ref->var).name, " = ", value,
                                                       ", an earlier tensor ", *values[v]));
      }
      values[v] = value;
    }
    return absl::OkStatus();
  }

  tl::Status Settle() {
    for (size_t v = 0; v < dims_.size(); ++v) {
      if (!dims_[v]) {
        return absl::InvalidArgumentError(
            absl::StrCat("dim '", m_.var(m_.dims[v]).name,
                         "' is no tensor's extent by itself; launch with tl_launch"));
      }
      fixed_dims_.push_back(*dims_[v]);
    }
    for (const std::optional<int64_t>& stride : strides_)
      fixed_strides_.push_back(stride.value_or(0));
    return absl::OkStatus();
  }

  tl::Status CheckShape(size_t i, const DLTensor& t, const tl::HostArgs& args) const {
    TL_ASSIGN_OR_RETURN(std::vector<int64_t> shape, kernel_.Shape(i, args));
    TL_ASSIGN_OR_RETURN(std::vector<int64_t> strides, kernel_.Strides(i, args));
    const bool any_strides = !m_.buffer(m_.operands[i]).packed.empty() || IsEmpty(t);
    for (int d = 0; d < t.ndim; ++d) {
      if (t.shape[d] != shape[d]) {
        return absl::InvalidArgumentError(
            absl::StrCat("tensor '", Name(i), "' has extent ", t.shape[d], " in dim ", d, "; ",
                         kernel_.shape_text(i), " asks for ", shape[d]));
      }
    }
    for (int d = 0; d < t.ndim; ++d) {
      if (!any_strides && t.shape[d] > 1 && StrideOf(t, d) != strides[d]) {
        return absl::InvalidArgumentError(
            absl::StrCat("tensor '", Name(i), "' has stride ", StrideOf(t, d), " in dim ", d,
                         "; the kernel is compiled for ", strides[d]));
      }
    }
    return absl::OkStatus();
  }

  const tl::Kernel& kernel_;
  const tl::Module& m_;
  const tl::Device& device_;
  std::vector<std::optional<int64_t>> dims_, strides_;
  std::vector<int64_t> fixed_dims_, fixed_strides_;
  std::vector<void*> tensors_;
};

}  // namespace

tl_status tl_launch_dlpack(tl_kernel* kernel, const void* const* tensors, uint32_t num_tensors,
                           const tl_launch_args* args) {
  tl_launch_args a;
  std::optional<Reader> reader;
  const tl_status read = Call([&]() -> tl::Status {
    if (!kernel) return absl::InvalidArgumentError("kernel is NULL");
    TL_ASSIGN_OR_RETURN(a, ReadStruct(args, "tl_launch_args"));
    TL_RETURN_IF_ERROR(kernel->context->CheckProcess());
    TL_ASSIGN_OR_RETURN(const tl::Device* device, DeviceFor(*kernel, a.device));
    const tl::Module& m = kernel->impl->module();
    TL_RETURN_IF_ERROR(tl::abi::CheckCount("tensors", tensors, num_tensors, m.operands.size(), m));
    TL_RETURN_IF_ERROR(
        tl::abi::CheckCount("scalars", a.scalars, a.num_scalars, m.scalars.size(), m));
    reader.emplace(*kernel, *device);
    TL_RETURN_IF_ERROR(reader->Read(
        tensors, {reinterpret_cast<const tl::ScalarValue*>(a.scalars), a.num_scalars}));
    a.tensors = reader->tensors().data();
    a.num_tensors = num_tensors;
    a.dims = reader->dims().data();
    a.num_dims = static_cast<uint32_t>(reader->dims().size());
    a.strides = reader->strides().data();
    a.num_strides = static_cast<uint32_t>(reader->strides().size());
    return absl::OkStatus();
  });
  return read == TL_OK ? tl_launch(kernel, &a) : read;
}
