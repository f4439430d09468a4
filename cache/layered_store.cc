#include "cache/layered_store.h"

#include <utility>

namespace tl {
namespace {

// The first OK of `attempt(layer)`, else the first failure: that of the layer meant to take it.
template <typename Attempt>
auto FirstAccepted(const std::vector<std::unique_ptr<ArtifactStore>>& layers, Attempt attempt) {
  auto result = attempt(*layers.front());
  for (size_t i = 1; i < layers.size() && !result.ok(); ++i) {
    auto next = attempt(*layers[i]);
    if (next.ok()) result = std::move(next);
  }
  return result;
}

}  // namespace

LayeredStore::LayeredStore(std::vector<std::unique_ptr<ArtifactStore>> layers)
    : layers_(std::move(layers)) {}

std::optional<Hit> LayeredStore::Find(const ArtifactKey& key, const FindOptions& options) {
  std::optional<Hit> best;
  for (const auto& layer : layers_) {
    std::optional<Hit> hit = layer->Find(key, options);
    if (!hit.has_value()) continue;
    if (!best.has_value() || hit->own_build) best = std::move(hit);
    if (best->own_build) break;
  }
  if (!best.has_value()) {
    ++misses_;
  } else {
    ++hits_;
    if (!best->own_build) ++foreign_hits_;
  }
  return best;
}

Status LayeredStore::Put(const ArtifactKey& key, const Artifact& artifact) {
  return FirstAccepted(layers_, [&](ArtifactStore& layer) { return layer.Put(key, artifact); });
}

void LayeredStore::Quarantine(const KeyHash& build, std::string_view reason) {
  for (const auto& layer : layers_) layer->Quarantine(build, reason);
}

StoreStats LayeredStore::Stats() {
  StoreStats sum;
  for (const auto& layer : layers_) {
    const StoreStats stats = layer->Stats();
    sum.puts += stats.puts;
    sum.evictions += stats.evictions;
    sum.quarantined += stats.quarantined;
    sum.errors += stats.errors;
    sum.entries += stats.entries;
    sum.bytes += stats.bytes;
  }
  sum.hits = hits_;
  sum.foreign_hits = foreign_hits_;
  sum.misses = misses_;
  return sum;
}

StatusOr<std::vector<EntryInfo>> LayeredStore::ListEntries() {
  std::vector<EntryInfo> all;
  for (const auto& layer : layers_) {
    TL_ASSIGN_OR_RETURN(std::vector<EntryInfo> entries, layer->ListEntries());
    for (EntryInfo& entry : entries) all.push_back(std::move(entry));
  }
  return all;
}

Status LayeredStore::Visit(absl::FunctionRef<bool(const ArtifactKey&, const Artifact&)> visit) {
  bool more = true;
  for (const auto& layer : layers_) {
    if (!more) break;
    TL_RETURN_IF_ERROR(layer->Visit([&](const ArtifactKey& key, const Artifact& artifact) {
      more = visit(key, artifact);
      return more;
    }));
  }
  return absl::OkStatus();
}

StatusOr<VerifyReport> LayeredStore::Verify() {
  VerifyReport sum;
  for (const auto& layer : layers_) {
    TL_ASSIGN_OR_RETURN(const VerifyReport report, layer->Verify());
    sum.checked += report.checked;
    sum.damaged += report.damaged;
    sum.notes.insert(sum.notes.end(), report.notes.begin(), report.notes.end());
  }
  return sum;
}

Status LayeredStore::Trim(int64_t max_bytes) {
  Status result;
  for (const auto& layer : layers_) {
    const Status status = layer->Trim(max_bytes);
    // Read-only layers have nothing to give.
    if (!absl::IsPermissionDenied(status)) result.Update(status);
  }
  return result;
}

Status LayeredStore::Flush() {
  Status result;
  for (const auto& layer : layers_) result.Update(layer->Flush());
  return result;
}

StatusOr<LeaseAnswer> LayeredStore::TryAcquireLease(const KeyHash& key, std::string_view owner,
                                                    absl::Duration ttl) {
  return FirstAccepted(
      layers_, [&](ArtifactStore& layer) { return layer.TryAcquireLease(key, owner, ttl); });
}

Status LayeredStore::ReleaseLease(const KeyHash& key, std::string_view owner) {
  // From all that can: the layer that took it may not be the one that takes it now.
  Status result;
  for (const auto& layer : layers_) {
    const Status status = layer->ReleaseLease(key, owner);
    if (!absl::IsPermissionDenied(status)) result.Update(status);
  }
  return result;
}

std::optional<Record> LayeredStore::FindRecord(std::string_view key_document) {
  for (const auto& layer : layers_) {
    if (auto record = layer->FindRecord(key_document)) return record;
  }
  return std::nullopt;
}

std::vector<Record> LayeredStore::FindRecords(std::string_view scope_document) {
  std::vector<Record> all;
  for (const auto& layer : layers_) {
    for (Record& record : layer->FindRecords(scope_document)) all.push_back(std::move(record));
  }
  return all;
}

Status LayeredStore::PutRecord(const Record& record) {
  return FirstAccepted(layers_, [&](ArtifactStore& layer) { return layer.PutRecord(record); });
}

StatusOr<std::vector<Record>> LayeredStore::ListRecords() {
  std::vector<Record> all;
  // The lower layers' first: what a reader takes in later is the newer.
  for (auto layer = layers_.rbegin(); layer != layers_.rend(); ++layer) {
    TL_ASSIGN_OR_RETURN(std::vector<Record> records, (*layer)->ListRecords());
    for (Record& record : records) all.push_back(std::move(record));
  }
  return all;
}

}  // namespace tl
