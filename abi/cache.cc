// The kernel cache: counters, listing, checking, packs.
#include <string>
#include <vector>

#include "abi/error.h"
#include "abi/handles.h"
#include "abi/structs.h"
#include "absl/strings/str_join.h"

using tl::abi::Call;
using tl::abi::CheckGiven;
using tl::abi::CheckTexts;
using tl::abi::WriteStruct;

namespace {

// NULL means the context's cache; an empty name would be mistaken for it.
tl::StatusOr<std::string> PackName(const char* pack) {
  if (!pack) return std::string();
  if (!*pack) return absl::InvalidArgumentError("pack is an empty path");
  return std::string(pack);
}

tl::Status CheckPath(const char* path) {
  TL_RETURN_IF_ERROR(CheckGiven(path, "path"));
  if (!*path) return absl::InvalidArgumentError("path is empty");
  return absl::OkStatus();
}

tl_cache_entry Translate(const tl::CacheEntry& entry) {
  tl_cache_entry out{};
  out.struct_size = sizeof(out);
  out.current = entry.current;
  out.kernel = entry.kernel.c_str();
  out.target = entry.target.c_str();
  out.parameters = entry.parameters.c_str();
  out.compiler = entry.compiler.c_str();
  out.key = entry.key.c_str();
  out.bytes = static_cast<uint64_t>(entry.bytes);
  out.created = entry.created;
  return out;
}

tl::Status WriteTransfer(tl_cache_transfer* to, int64_t entries, int64_t present, int64_t records,
                         int64_t bytes) {
  if (!to) return absl::OkStatus();
  tl_cache_transfer out{};
  out.entries = static_cast<uint64_t>(entries);
  out.present = static_cast<uint64_t>(present);
  out.records = static_cast<uint64_t>(records);
  out.bytes = static_cast<uint64_t>(bytes);
  return WriteStruct(to, out, "tl_cache_transfer");
}

}  // namespace

tl_status tl_cache_get_stats(tl_context* context, tl_cache_stats* stats) {
  return Call([&]() -> tl::Status {
    TL_RETURN_IF_ERROR(CheckGiven(context, "context"));
    TL_RETURN_IF_ERROR(context->impl->CheckProcess());
    const tl::CacheStats s = context->impl->Stats();
    tl_cache_stats out{};
    out.memory_hits = s.memory_hits;
    out.hits = s.hits;
    out.misses = s.misses;
    out.compiles = s.compiles;
    out.compile_ns = s.compile_ns;
    out.evictions = static_cast<uint64_t>(s.store.evictions);
    out.quarantined = static_cast<uint64_t>(s.store.quarantined);
    out.waits = s.waits;
    out.entries = static_cast<uint64_t>(s.store.entries);
    out.bytes = static_cast<uint64_t>(s.store.bytes);
    out.location = context->impl->cache_location().c_str();
    return WriteStruct(stats, out, "tl_cache_stats");
  });
}

tl_status tl_cache_list(tl_context* context, const char* pack, tl_cache_entry_callback callback,
                        void* user) {
  return Call([&]() -> tl::Status {
    TL_RETURN_IF_ERROR(CheckGiven(context, "context"));
    if (!callback) return absl::InvalidArgumentError("callback is NULL");
    TL_ASSIGN_OR_RETURN(const std::string name, PackName(pack));
    return context->impl->ListCache(name, [&](const tl::CacheEntry& entry) {
      const tl_cache_entry out = Translate(entry);
      return callback(user, &out) == 0;
    });
  });
}

tl_status tl_cache_verify(tl_context* context, const char* pack, tl_cache_report* report) {
  thread_local std::string notes;
  return Call([&]() -> tl::Status {
    TL_RETURN_IF_ERROR(CheckGiven(context, "context"));
    TL_RETURN_IF_ERROR(CheckGiven(report, "report"));
    TL_ASSIGN_OR_RETURN(const std::string name, PackName(pack));
    TL_ASSIGN_OR_RETURN(const tl::VerifyReport found, context->impl->VerifyCache(name));
    notes = absl::StrJoin(found.notes, "\n");
    tl_cache_report out{};
    out.checked = static_cast<uint64_t>(found.checked);
    out.damaged = static_cast<uint64_t>(found.damaged);
    out.notes = notes.c_str();
    TL_RETURN_IF_ERROR(WriteStruct(report, out, "tl_cache_report"));
    if (found.sound()) return absl::OkStatus();
    return absl::DataLossError(
        absl::StrCat(name.empty() ? "the cache" : name, " is damaged: ", found.notes.front()));
  });
}

tl_status tl_cache_export(tl_context* context, const char* path, const char* const* targets,
                          size_t num_targets, tl_cache_transfer* result) {
  return Call([&]() -> tl::Status {
    TL_RETURN_IF_ERROR(CheckGiven(context, "context"));
    TL_RETURN_IF_ERROR(CheckPath(path));
    TL_RETURN_IF_ERROR(CheckTexts("targets", targets, num_targets));
    TL_ASSIGN_OR_RETURN(const tl::PackContents pack,
                        context->impl->ExportPack(path, {targets, targets + num_targets}));
    return WriteTransfer(result, pack.entries, 0, pack.records, pack.bytes);
  });
}

tl_status tl_cache_import(tl_context* context, const char* path, tl_cache_transfer* result) {
  return Call([&]() -> tl::Status {
    TL_RETURN_IF_ERROR(CheckGiven(context, "context"));
    TL_RETURN_IF_ERROR(CheckPath(path));
    TL_ASSIGN_OR_RETURN(const tl::ImportCounts counts, context->impl->ImportPack(path));
    return WriteTransfer(result, counts.added, counts.present, counts.records, 0);
  });
}
