// Versions, contexts, devices, families.
#include <string>

#include "abi/error.h"
#include "abi/handles.h"
#include "abi/structs.h"
#include "base/dtype.h"
#include "service/families.h"

using tl::abi::Call;
using tl::abi::CheckGiven;
using tl::abi::CheckTexts;
using tl::abi::ReadStruct;
using tl::abi::WriteStruct;

namespace {

tl::ContextOptions Translate(const tl_context_options& o) {
  tl::ContextOptions out;
  if (o.cache_dir) out.cache_dir = o.cache_dir;
  out.cache_mode = static_cast<tl::CacheMode>(o.cache_mode);
  out.cpu_threads = o.cpu_threads;
  out.cache_max_bytes = static_cast<int64_t>(o.cache_max_bytes);
  out.own_builds_only = o.own_builds_only != 0;
  out.packs.assign(o.packs, o.packs + o.num_packs);
  if (o.log) {
    out.log = [callback = o.log, user = o.log_user](tl::LogLevel level, std::string_view message) {
      callback(user, static_cast<tl_log_level>(level), std::string(message).c_str());
    };
  }
  return out;
}

tl::Status CheckOptions(const tl_context_options& o) {
  if (o.cache_mode < TL_CACHE_DEFAULT || o.cache_mode > TL_CACHE_READ_ONLY) {
    return absl::InvalidArgumentError(
        absl::StrCat("cache_mode is ", o.cache_mode, "; see tl_cache_mode"));
  }
  if (o.cpu_threads < 0 || o.cpu_threads > 4096) {
    return absl::InvalidArgumentError(
        absl::StrCat("cpu_threads is ", o.cpu_threads, "; it is 0 to 4096"));
  }
  if (o.cache_max_bytes > static_cast<uint64_t>(INT64_MAX)) {
    return absl::InvalidArgumentError("cache_max_bytes is above 2^63 - 1");
  }
  TL_RETURN_IF_ERROR(CheckTexts("packs", o.packs, o.num_packs));
  return absl::OkStatus();
}

}  // namespace

uint32_t tl_version(void) {
  return TL_VERSION_MAJOR * 10000 + TL_VERSION_MINOR * 100 + TL_VERSION_PATCH;
}
uint32_t tl_abi_version(void) { return TL_ABI_VERSION; }

const char* tl_dtype_name(tl_dtype dtype) {
  // The names are literals, and so end in NUL.
  return dtype >= 0 && dtype < tl::kNumDTypes ? tl::Name(static_cast<tl::DType>(dtype)).data()
                                              : nullptr;
}

size_t tl_dtype_size(tl_dtype dtype) {
  return dtype >= 0 && dtype < tl::kNumDTypes ? tl::SizeOf(static_cast<tl::DType>(dtype)) : 0;
}

tl_status tl_context_create(const tl_context_options* options, tl_context** out) {
  return Call([&]() -> tl::Status {
    if (!out) return absl::InvalidArgumentError("out is NULL");
    *out = nullptr;
    TL_ASSIGN_OR_RETURN(tl_context_options o,
                        ReadStruct(options, "tl_context_options", /*optional=*/true));
    TL_RETURN_IF_ERROR(CheckOptions(o));
    auto handle = std::make_unique<tl_context>();
    TL_ASSIGN_OR_RETURN(handle->impl, tl::Context::Create(Translate(o)));
    *out = handle.release();
    return absl::OkStatus();
  });
}

tl_status tl_context_retain(tl_context* context) {
  return Call([&]() -> tl::Status {
    TL_RETURN_IF_ERROR(CheckGiven(context, "context"));
    context->references.fetch_add(1, std::memory_order_relaxed);
    return absl::OkStatus();
  });
}

tl_status tl_seal(tl_context* context) {
  return Call([&]() -> tl::Status {
    TL_RETURN_IF_ERROR(CheckGiven(context, "context"));
    TL_RETURN_IF_ERROR(context->impl->CheckProcess());
    context->impl->Seal();
    return absl::OkStatus();
  });
}

void tl_context_release(tl_context* context) { tl::abi::Release(context); }

tl_status tl_device_count(tl_context* context, int32_t* count) {
  return Call([&]() -> tl::Status {
    TL_RETURN_IF_ERROR(CheckGiven(context, "context"));
    TL_RETURN_IF_ERROR(context->impl->CheckProcess());
    if (!count) return absl::InvalidArgumentError("count is NULL");
    *count = static_cast<int32_t>(context->impl->devices().size());
    return absl::OkStatus();
  });
}

tl_status tl_device_get(tl_context* context, int32_t device, tl_device_info* info) {
  return Call([&]() -> tl::Status {
    TL_RETURN_IF_ERROR(CheckGiven(context, "context"));
    TL_RETURN_IF_ERROR(context->impl->CheckProcess());
    TL_ASSIGN_OR_RETURN(const tl::Device* d, context->impl->FindDevice(device));
    tl_device_info out{};
    out.name = d->info.name.c_str();
    out.backend = d->info.target.backend.c_str();
    out.target = d->info.target.name.c_str();
    out.ordinal = d->info.ordinal;
    out.units = d->info.units;
    out.memory_bytes = static_cast<uint64_t>(d->info.memory_bytes);
    out.l2_bytes = static_cast<uint64_t>(d->info.l2_bytes);
    out.max_shared_bytes = d->info.target.max_shared_bytes;
    out.clock_khz = d->info.clock_khz;
    out.memory_clock_khz = d->info.memory_clock_khz;
    out.driver_version = d->info.driver_version;
    return WriteStruct(info, out, "tl_device_info");
  });
}

uint32_t tl_family_count(void) { return static_cast<uint32_t>(tl::BuiltinFamilies().size()); }

const char* tl_family_name(uint32_t index) {
  return index < tl::BuiltinFamilies().size() ? tl::BuiltinFamilies()[index].name.data() : nullptr;
}

const char* tl_family_source(const char* name) {
  const tl::FamilySource* family = name ? tl::FindFamily(name) : nullptr;
  return family ? family->text.data() : nullptr;
}
