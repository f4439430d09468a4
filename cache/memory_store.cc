#include "cache/memory_store.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/time/clock.h"
#include "cache/row.h"

namespace tl {

std::optional<Hit> MemoryStore::Find(const ArtifactKey& key, const FindOptions& options) {
  absl::MutexLock lock(&mu_);
  const auto found = by_semantic_.find(key.semantic_document);
  Position best = entries_.end();
  if (found != by_semantic_.end()) {
    for (Position position : found->second) {
      const bool own = position->key.compiler_identity == key.compiler_identity;
      if (options.match == MatchMode::kBuild && !own) continue;
      if (std::find(options.exclude.begin(), options.exclude.end(), position->build) !=
          options.exclude.end()) {
        continue;
      }
      // Later ones are newer; only the own build, of which there is one, beats them.
      best = position;
      if (own) break;
    }
  }
  if (best == entries_.end()) {
    ++stats_.misses;
    return std::nullopt;
  }
  entries_.splice(entries_.end(), entries_, best);
  const bool own = best->key.compiler_identity == key.compiler_identity;
  ++stats_.hits;
  if (!own) ++stats_.foreign_hits;
  return Hit{best->artifact, best->build, own};
}

Status MemoryStore::Put(const ArtifactKey& key, const Artifact& artifact) {
  Entry entry{key, artifact, BuildHash(key), SizeOf(key, artifact),
              absl::ToUnixSeconds(absl::Now())};
  if (max_bytes_ > 0 && entry.bytes > max_bytes_) {
    return MakeError(absl::StatusCode::kResourceExhausted,
                     "an entry of " + std::to_string(entry.bytes) +
                         " bytes does not fit a cache of " + std::to_string(max_bytes_));
  }
  absl::MutexLock lock(&mu_);
  EraseBuild(key);
  stats_.bytes += entry.bytes;
  ++stats_.entries;
  ++stats_.puts;
  entry.order = next_order_++;
  entries_.push_back(std::move(entry));
  by_semantic_[key.semantic_document].push_back(std::prev(entries_.end()));
  if (max_bytes_ > 0) EvictTo(max_bytes_);
  return absl::OkStatus();
}

void MemoryStore::Erase(Position position) {
  const auto found = by_semantic_.find(position->key.semantic_document);
  std::erase(found->second, position);
  if (found->second.empty()) by_semantic_.erase(found);
  stats_.bytes -= position->bytes;
  --stats_.entries;
  entries_.erase(position);
}

void MemoryStore::EraseBuild(const ArtifactKey& key) {
  const auto found = by_semantic_.find(key.semantic_document);
  if (found == by_semantic_.end()) return;
  for (Position position : found->second) {
    if (position->key.compiler_identity != key.compiler_identity) continue;
    Erase(position);
    return;
  }
}

void MemoryStore::EvictTo(int64_t max_bytes) {
  while (stats_.bytes > max_bytes && !entries_.empty()) {
    Erase(entries_.begin());
    ++stats_.evictions;
  }
}

void MemoryStore::Quarantine(const KeyHash& build, std::string_view /*reason*/) {
  absl::MutexLock lock(&mu_);
  for (Position position = entries_.begin(); position != entries_.end();) {
    const Position next = std::next(position);
    if (position->build == build) {
      Erase(position);
      ++stats_.quarantined;
    }
    position = next;
  }
}

StoreStats MemoryStore::Stats() {
  absl::MutexLock lock(&mu_);
  return stats_;
}

std::vector<const MemoryStore::Entry*> MemoryStore::InOrder() const {
  std::vector<const Entry*> order;
  for (const Entry& entry : entries_) order.push_back(&entry);
  std::sort(order.begin(), order.end(),
            [](const Entry* a, const Entry* b) { return a->order < b->order; });
  return order;
}

StatusOr<std::vector<EntryInfo>> MemoryStore::ListEntries() {
  absl::MutexLock lock(&mu_);
  std::vector<EntryInfo> infos;
  for (const Entry* entry : InOrder()) {
    infos.push_back({SemanticHash(entry->key), entry->build, entry->artifact.compiler, entry->bytes,
                     entry->created, entry->key.semantic_document, entry->artifact.metadata});
  }
  return infos;
}

Status MemoryStore::Visit(absl::FunctionRef<bool(const ArtifactKey&, const Artifact&)> visit) {
  // A copy, so that the caller may use the store from within.
  std::vector<std::pair<ArtifactKey, Artifact>> copies;
  {
    absl::MutexLock lock(&mu_);
    for (const Entry* entry : InOrder()) copies.emplace_back(entry->key, entry->artifact);
  }
  for (const auto& [key, artifact] : copies) {
    if (!visit(key, artifact)) break;
  }
  return absl::OkStatus();
}

StatusOr<VerifyReport> MemoryStore::Verify() {
  absl::MutexLock lock(&mu_);
  VerifyReport report;
  report.checked = stats_.entries;
  return report;
}

Status MemoryStore::Trim(int64_t max_bytes) {
  absl::MutexLock lock(&mu_);
  EvictTo(max_bytes);
  return absl::OkStatus();
}

StatusOr<LeaseAnswer> MemoryStore::TryAcquireLease(const KeyHash& key, std::string_view owner,
                                                   absl::Duration ttl) {
  const absl::Time now = absl::Now();
  absl::MutexLock lock(&mu_);
  Lease& lease = leases_[key];
  LeaseAnswer answer;
  answer.acquired = lease.owner.empty() || lease.owner == owner || lease.expires <= now ||
                    lease.expires > now + kMaxLease;
  if (answer.acquired) {
    lease = {std::string(owner), now + std::min(ttl, kMaxLease)};
  } else {
    answer.holder = lease.owner;
  }
  answer.remaining = lease.expires - now;
  return answer;
}

Status MemoryStore::ReleaseLease(const KeyHash& key, std::string_view owner) {
  absl::MutexLock lock(&mu_);
  const auto found = leases_.find(key);
  if (found != leases_.end() && found->second.owner == owner) leases_.erase(found);
  return absl::OkStatus();
}

std::optional<Record> MemoryStore::FindRecord(std::string_view key_document) {
  absl::MutexLock lock(&mu_);
  for (const Record& record : records_) {
    if (record.key_document == key_document) return record;
  }
  return std::nullopt;
}

std::vector<Record> MemoryStore::FindRecords(std::string_view scope_document) {
  absl::MutexLock lock(&mu_);
  std::vector<Record> found;
  for (auto record = records_.rbegin(); record != records_.rend(); ++record) {
    if (record->scope_document == scope_document) found.push_back(*record);
  }
  return found;
}

Status MemoryStore::PutRecord(const Record& record) {
  absl::MutexLock lock(&mu_);
  std::erase_if(records_,
                [&](const Record& old) { return old.key_document == record.key_document; });
  records_.push_back(record);
  return absl::OkStatus();
}

StatusOr<std::vector<Record>> MemoryStore::ListRecords() {
  absl::MutexLock lock(&mu_);
  return records_;
}

}  // namespace tl
