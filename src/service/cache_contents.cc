#include "service/cache_contents.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "service/context.h"
#include "service/key.h"

namespace tl {
namespace {

// What the compiling process wrote down for people; empty for what cannot be read.
void DescribeProgram(std::string_view metadata, CacheEntry& entry) {
  entry.parameters = "{}";
  const nlohmann::json json = nlohmann::json::parse(metadata, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return;
  if (const auto it = json.find("kernel"); it != json.end() && it->is_string())
    entry.kernel = it->get<std::string>();
  if (const auto it = json.find("parameters"); it != json.end() && it->is_object())
    entry.parameters = it->dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

CacheEntry Describe(const EntryInfo& info) {
  CacheEntry entry;
  DescribeProgram(info.metadata, entry);
  if (const auto head = ReadDocumentHead(info.semantic_document)) entry.target = head->target;
  entry.compiler = info.compiler;
  entry.key = info.semantic.Hex();
  entry.bytes = info.bytes;
  entry.created = info.created;
  return entry;
}

bool Context::IsCurrent(std::string_view document) const {
  const std::optional<DocumentHead> head = ReadDocumentHead(document);
  if (!head || !IsOfThisVersion(*head)) return false;
  return std::any_of(backends_.begin(), backends_.end(),
                     [&](const auto& b) { return b->CodegenIdentity() == head->codegen; });
}

StatusOr<std::unique_ptr<ArtifactStore>> Context::OpenPackFile(const std::string& path) const {
  return OpenPack(path, [this](std::string_view message) { Log(LogLevel::kWarning, message); });
}

Status Context::ListCache(const std::string& pack,
                          absl::FunctionRef<bool(const CacheEntry&)> visit) {
  TL_RETURN_IF_ERROR(CheckProcess());
  std::unique_ptr<ArtifactStore> opened;
  if (!pack.empty()) {
    TL_ASSIGN_OR_RETURN(opened, OpenPackFile(pack));
  }
  ArtifactStore& store = opened ? *opened : *store_;
  TL_ASSIGN_OR_RETURN(const std::vector<EntryInfo> entries, store.ListEntries());
  for (const EntryInfo& info : entries) {
    CacheEntry entry = Describe(info);
    entry.current = IsCurrent(info.semantic_document);
    if (!visit(entry)) break;
  }
  return absl::OkStatus();
}

StatusOr<VerifyReport> Context::VerifyCache(const std::string& pack) {
  TL_RETURN_IF_ERROR(CheckProcess());
  if (pack.empty()) return store_->Verify();
  TL_ASSIGN_OR_RETURN(const std::unique_ptr<ArtifactStore> opened, OpenPackFile(pack));
  return opened->Verify();
}

StatusOr<PackContents> Context::ExportPack(const std::string& path,
                                           const std::vector<std::string>& targets) {
  TL_RETURN_IF_ERROR(CheckProcess());
  std::vector<std::string> identities;
  for (const std::string& name : targets) {
    TL_ASSIGN_OR_RETURN(const Destination destination, ResolveTarget(name));
    identities.push_back(destination.target.identity);
  }
  const auto wanted = [&](std::string_view document) {
    if (!IsCurrent(document)) return false;
    const std::string_view target = ReadDocumentHead(document)->target;
    return identities.empty() ||
           std::find(identities.begin(), identities.end(), target) != identities.end();
  };
  TL_ASSIGN_OR_RETURN(const std::vector<EntryInfo> entries, store_->ListEntries());
  const bool any = std::any_of(entries.begin(), entries.end(),
                               [&](const EntryInfo& e) { return wanted(e.semantic_document); });
  if (!any) {
    return absl::NotFoundError(
        absl::StrCat("the cache at ", location_, " holds no kernel of this version of the library",
                     targets.empty() ? "" : absl::StrCat(" for ", absl::StrJoin(targets, ", ")),
                     "; warm it first (tl warm)"));
  }
  return WritePack(*store_, path,
                   [&](const ArtifactKey& key) { return wanted(key.semantic_document); });
}

Status Context::CheckPersistent() const {
  if (options_.cache_mode == CacheMode::kReadOnly) {
    return absl::FailedPreconditionError("this context reads its cache only (TL_CACHE_READ_ONLY)");
  }
  if (options_.cache_mode == CacheMode::kMemory || store_->persistent()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "the cache at ", location_, " cannot be written; a warning of this context says why"));
}

Status Context::CheckWritten(int64_t errors_before) const {
  const int64_t failed = store_->Stats().errors - errors_before;
  if (failed == 0) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat(failed, " operations on the cache at ", location_,
                   " failed, so that not everything was kept; a warning says why"));
}

StatusOr<ImportCounts> Context::ImportPack(const std::string& path) {
  TL_RETURN_IF_ERROR(CheckProcess());
  TL_RETURN_IF_ERROR(CheckPersistent());
  const int64_t errors = store_->Stats().errors;
  TL_ASSIGN_OR_RETURN(const ImportCounts counts, tl::ImportPack(path, *store_));
  TL_RETURN_IF_ERROR(CheckWritten(errors));
  return counts;
}

}  // namespace tl
