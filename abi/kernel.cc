// Compiling, and what a kernel is.
#include <cstring>

#include "abi/compile_options.h"
#include "abi/error.h"
#include "abi/handles.h"
#include "abi/structs.h"

using tl::abi::Call;
using tl::abi::ReadStruct;
using tl::abi::Translate;
using tl::abi::WriteStruct;

namespace {

tl::Status NoKernel() { return absl::InvalidArgumentError("kernel is NULL"); }

tl::Status SealedText() {
  return tl::MakeError(absl::StatusCode::kUnavailable,
                       "assembly is compiled when it is asked for, and this context is sealed",
                       {.reason = tl::Reason::kNotReady, .span = {}, .log = {}});
}

const char* VarName(const tl_kernel* kernel, const std::vector<tl::VarId> tl::Module::* list,
                    uint32_t index) {
  if (!kernel) return nullptr;
  const tl::Module& m = kernel->impl->module();
  return index < (m.*list).size() ? m.var((m.*list)[index]).name.c_str() : nullptr;
}

tl_access Access(tl::BufferRole role) {
  return role == tl::BufferRole::kIn    ? TL_ACCESS_IN
         : role == tl::BufferRole::kOut ? TL_ACCESS_OUT
                                        : TL_ACCESS_INOUT;
}

}  // namespace

tl_status tl_compile(tl_context* context, const tl_compile_options* options, tl_kernel** out) {
  return Call([&]() -> tl::Status {
    if (!out) return absl::InvalidArgumentError("out is NULL");
    *out = nullptr;
    if (!context) return absl::InvalidArgumentError("context is NULL");
    TL_ASSIGN_OR_RETURN(tl_compile_options o, ReadStruct(options, "tl_compile_options"));
    TL_ASSIGN_OR_RETURN(tl::CompileRequest request, Translate(o));
    TL_ASSIGN_OR_RETURN(std::shared_ptr<tl::Kernel> kernel, context->impl->Compile(request));
    *out = tl::abi::MakeKernel(std::move(kernel), context->impl);
    return absl::OkStatus();
  });
}

tl_status tl_kernel_retain(tl_kernel* kernel) {
  return Call([&]() -> tl::Status {
    if (!kernel) return NoKernel();
    kernel->references.fetch_add(1, std::memory_order_relaxed);
    return absl::OkStatus();
  });
}

void tl_kernel_release(tl_kernel* kernel) { tl::abi::Release(kernel); }

tl_status tl_kernel_signature(const tl_kernel* kernel, tl_signature* signature) {
  return Call([&]() -> tl::Status {
    if (!kernel) return NoKernel();
    const tl::Module& m = kernel->impl->module();
    tl_signature out{};
    out.name = m.name.c_str();
    out.target = kernel->impl->program().target().name.c_str();
    out.num_tensors = static_cast<uint32_t>(m.operands.size());
    out.num_dims = static_cast<uint32_t>(m.dims.size());
    out.num_strides = static_cast<uint32_t>(m.strides.size());
    out.num_scalars = static_cast<uint32_t>(m.scalars.size());
    return WriteStruct(signature, out, "tl_signature");
  });
}

tl_status tl_kernel_tensor(const tl_kernel* kernel, uint32_t index, tl_tensor_info* info) {
  return Call([&]() -> tl::Status {
    if (!kernel) return NoKernel();
    const tl::Module& m = kernel->impl->module();
    if (index >= m.operands.size()) {
      return absl::OutOfRangeError(absl::StrCat("tensor ", index, " of ", m.operands.size()));
    }
    const tl::Buffer& b = m.buffer(m.operands[index]);
    tl_tensor_info out{};
    out.name = b.name.c_str();
    out.dtype = static_cast<tl_dtype>(b.dtype);
    out.access = Access(b.role);
    out.rank = b.rank();
    out.alignment = static_cast<int32_t>(tl::SizeOf(b.dtype));
    out.shape = kernel->impl->shape_text(index).c_str();
    return WriteStruct(info, out, "tl_tensor_info");
  });
}

const char* tl_kernel_dim_name(const tl_kernel* kernel, uint32_t index) {
  return VarName(kernel, &tl::Module::dims, index);
}
const char* tl_kernel_stride_name(const tl_kernel* kernel, uint32_t index) {
  return VarName(kernel, &tl::Module::strides, index);
}
const char* tl_kernel_scalar_name(const tl_kernel* kernel, uint32_t index) {
  return VarName(kernel, &tl::Module::scalars, index);
}

tl_status tl_kernel_scalar_dtype(const tl_kernel* kernel, uint32_t index, tl_dtype* out) {
  return Call([&]() -> tl::Status {
    if (!kernel) return NoKernel();
    if (!out) return absl::InvalidArgumentError("out is NULL");
    const tl::Module& m = kernel->impl->module();
    if (index >= m.scalars.size())
      return absl::OutOfRangeError(absl::StrCat("scalar ", index, " of ", m.scalars.size()));
    *out = static_cast<tl_dtype>(m.var(m.scalars[index]).dtype);
    return absl::OkStatus();
  });
}

tl_status tl_kernel_text(tl_kernel* kernel, tl_text what, const char** data, size_t* size) {
  return Call([&]() -> tl::Status {
    if (!kernel) return NoKernel();
    if (!data || !size) return absl::InvalidArgumentError("data or size is NULL");
    if (what < TL_TEXT_IR || what > TL_TEXT_THREAD) {
      return absl::InvalidArgumentError(absl::StrCat("there is no tl_text ", what));
    }
    TL_RETURN_IF_ERROR(kernel->context->CheckProcess());
    if (what == TL_TEXT_ASSEMBLY && kernel->context->sealed()) return SealedText();
    const auto text = static_cast<tl::Text>(what);
    absl::MutexLock lock(&kernel->mu);
    auto it = kernel->texts.find(text);
    if (it == kernel->texts.end()) {
      TL_ASSIGN_OR_RETURN(std::string made, tl::KernelText(*kernel->impl, text));
      it = kernel->texts.emplace(text, std::move(made)).first;
    }
    *data = it->second.c_str();
    *size = it->second.size();
    return absl::OkStatus();
  });
}
