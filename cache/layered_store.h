// Several stores as one, the upper ones first: read-only packs under a writable cache, a memory
// store beside a disk that may fail.
#ifndef TILEJIT_CACHE_LAYERED_STORE_H_
#define TILEJIT_CACHE_LAYERED_STORE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "cache/store.h"

namespace tl {

// Find asks from the top down. The own compiler's build in a lower layer is preferred to another's
// in an upper one, as within one store. Writes, leases and records go to the first layer that takes
// them, so a layer that is read-only or full is passed over.
class LayeredStore : public ArtifactStore {
 public:
  // At least one layer.
  explicit LayeredStore(std::vector<std::unique_ptr<ArtifactStore>> layers);

  std::optional<Hit> Find(const ArtifactKey& key, const FindOptions& options) override;
  Status Put(const ArtifactKey& key, const Artifact& artifact) override;
  void Quarantine(const KeyHash& build, std::string_view reason) override;
  // Hits and misses of the whole; everything else is the sum over the layers.
  StoreStats Stats() override;
  bool persistent() const override { return layers_.front()->persistent(); }
  StatusOr<std::vector<EntryInfo>> ListEntries() override;
  Status Visit(absl::FunctionRef<bool(const ArtifactKey&, const Artifact&)> visit) override;
  StatusOr<VerifyReport> Verify() override;
  // Each writable layer by itself.
  Status Trim(int64_t max_bytes) override;
  Status Flush() override;
  StatusOr<LeaseAnswer> TryAcquireLease(const KeyHash& key, std::string_view owner,
                                        absl::Duration ttl) override;
  Status ReleaseLease(const KeyHash& key, std::string_view owner) override;
  std::optional<Record> FindRecord(std::string_view key_document) override;
  std::vector<Record> FindRecords(std::string_view scope_document) override;
  Status PutRecord(const Record& record) override;
  StatusOr<std::vector<Record>> ListRecords() override;

 private:
  const std::vector<std::unique_ptr<ArtifactStore>> layers_;
  std::atomic<int64_t> hits_{0}, foreign_hits_{0}, misses_{0};
};

}  // namespace tl

#endif  // TILEJIT_CACHE_LAYERED_STORE_H_
