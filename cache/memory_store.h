// The store that is always there: takes over when the disk is of no use, and is the writable layer
// above read-only ones. Gone with the process.
#ifndef TILEJIT_CACHE_MEMORY_STORE_H_
#define TILEJIT_CACHE_MEMORY_STORE_H_

#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "cache/store.h"

namespace tl {

class MemoryStore : public ArtifactStore {
 public:
  // max_bytes 0: no cap.
  explicit MemoryStore(int64_t max_bytes) : max_bytes_(max_bytes) {}

  std::optional<Hit> Find(const ArtifactKey& key, const FindOptions& options) override;
  Status Put(const ArtifactKey& key, const Artifact& artifact) override;
  void Quarantine(const KeyHash& build, std::string_view reason) override;
  StoreStats Stats() override;
  bool persistent() const override { return false; }
  StatusOr<std::vector<EntryInfo>> ListEntries() override;
  Status Visit(absl::FunctionRef<bool(const ArtifactKey&, const Artifact&)> visit) override;
  StatusOr<VerifyReport> Verify() override;
  Status Trim(int64_t max_bytes) override;
  Status Flush() override { return absl::OkStatus(); }
  StatusOr<LeaseAnswer> TryAcquireLease(const KeyHash& key, std::string_view owner,
                                        absl::Duration ttl) override;
  Status ReleaseLease(const KeyHash& key, std::string_view owner) override;
  std::optional<Record> FindRecord(std::string_view key_document) override;
  std::vector<Record> FindRecords(std::string_view scope_document) override;
  Status PutRecord(const Record& record) override;
  StatusOr<std::vector<Record>> ListRecords() override;

 private:
  struct Entry {
    ArtifactKey key;
    Artifact artifact;
    KeyHash build;
    int64_t bytes = 0;
    int64_t created = 0;  // seconds since 1970
    int64_t order = 0;    // of insertion
  };
  struct Lease {
    std::string owner;
    absl::Time expires;
  };
  using Position = std::list<Entry>::iterator;

  void Erase(Position position) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void EraseBuild(const ArtifactKey& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void EvictTo(int64_t max_bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::vector<const Entry*> InOrder() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const int64_t max_bytes_;
  absl::Mutex mu_;
  std::list<Entry> entries_ ABSL_GUARDED_BY(mu_);  // least recently used first
  // Under the document itself, so there are no collisions. Newest last.
  absl::flat_hash_map<std::string, std::vector<Position>> by_semantic_ ABSL_GUARDED_BY(mu_);
  absl::flat_hash_map<KeyHash, Lease> leases_ ABSL_GUARDED_BY(mu_);
  std::vector<Record> records_ ABSL_GUARDED_BY(mu_);  // newest last
  StoreStats stats_ ABSL_GUARDED_BY(mu_);
  int64_t next_order_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace tl

#endif  // TILEJIT_CACHE_MEMORY_STORE_H_
