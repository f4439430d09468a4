// The store on disk: one SQLite database, shared by threads and processes. docs/cache.md has the
// file's format and the promises.
#ifndef TILEJIT_CACHE_SQLITE_STORE_H_
#define TILEJIT_CACHE_SQLITE_STORE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "cache/connection.h"
#include "cache/database_file.h"
#include "cache/fork_guard.h"
#include "cache/row.h"
#include "cache/store.h"
#include "cache/warnings.h"

namespace tl {

struct SqliteStoreOptions {
  int64_t max_bytes = 0;  // least recently used entries go when there are more; 0: no cap
  // How long an operation waits for another process. A Find that times out is a miss.
  absl::Duration read_timeout = absl::Milliseconds(250);
  absl::Duration write_timeout = absl::Seconds(2);
  WarningCallback warn;
  // For tests: a hash that collides, and the name of an SQLite VFS that fails.
  HashFunction hash = &HashBytes;
  std::string vfs;
};

class SqliteStore : public ArtifactStore {
 public:
  // The writable cache in `directory`, which is made and checked (see directory.h).
  static StatusOr<std::unique_ptr<SqliteStore>> Open(const std::string& directory,
                                                     const SqliteStoreOptions& options);
  // A database file to be read as it stands: no locks, no log, no change. Put and leases answer
  // PERMISSION_DENIED; damage is remembered in memory.
  static StatusOr<std::unique_ptr<SqliteStore>> OpenReadOnly(const std::string& path,
                                                             const SqliteStoreOptions& options);
  // Writes pending recency, waiting for others only shortly.
  ~SqliteStore() override;

  std::optional<Hit> Find(const ArtifactKey& key, const FindOptions& options) override;
  Status Put(const ArtifactKey& key, const Artifact& artifact) override;
  void Quarantine(const KeyHash& build, std::string_view reason) override;
  StoreStats Stats() override;
  bool persistent() const override { return !read_only_; }
  StatusOr<std::vector<EntryInfo>> ListEntries() override;
  Status Visit(absl::FunctionRef<bool(const ArtifactKey&, const Artifact&)> visit) override;
  StatusOr<VerifyReport> Verify() override;
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
  using ReadFunction = absl::FunctionRef<Status(Connection&)>;

  SqliteStore(std::string directory, const SqliteStoreOptions& options, DatabaseFile file,
              bool read_only);

  // Runs `body` on the reading connection; damage makes the store start anew.
  Status Read(ReadFunction body) ABSL_LOCKS_EXCLUDED(writer_mu_, reader_mu_);
  // The same on the writing connection, in a transaction when `body` wants one. Tries once more
  // after the file had to be replaced. Counts and warns.
  Status Write(ReadFunction body) ABSL_LOCKS_EXCLUDED(writer_mu_, reader_mu_);
  Status WriteOnce(ReadFunction body) ABSL_LOCKS_EXCLUDED(writer_mu_, reader_mu_);
  StatusOr<Connection*> Writer() ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mu_)
      ABSL_LOCKS_EXCLUDED(reader_mu_);
  Status CheckWritable() const;

  // Closes everything and opens what stands under the name now, after moving a damaged file aside.
  // Does nothing if somebody did so since `generation`.
  Status Reopen(int64_t generation, bool damaged) ABSL_LOCKS_EXCLUDED(writer_mu_, reader_mu_);
  Status ReopenLocked(bool damaged, std::vector<std::string>& notes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mu_, reader_mu_);
  void CloseLocked(bool damaged) ABSL_EXCLUSIVE_LOCKS_REQUIRED(writer_mu_, reader_mu_);
  // Reopens when the file was removed or replaced under us.
  void NoticeReplacement() ABSL_LOCKS_EXCLUDED(writer_mu_, reader_mu_);

  // An intact row, or nothing; a damaged one is quarantined.
  StatusOr<std::optional<ArtifactRow>> LoadIntact(int64_t id);
  void QuarantineRow(int64_t id, std::string_view reason);
  bool IsBad(int64_t id) ABSL_LOCKS_EXCLUDED(memory_mu_);
  void Touch(int64_t id) ABSL_LOCKS_EXCLUDED(memory_mu_);
  std::vector<int64_t> TakeTouched() ABSL_LOCKS_EXCLUDED(memory_mu_);
  std::optional<Hit> Search(const ArtifactKey& key, const FindOptions& options);
  StatusOr<std::optional<Hit>> SearchSnapshot(Connection& connection, const ArtifactKey& key,
                                              const FindOptions& options,
                                              std::vector<int64_t>& damaged);
  std::vector<Record> Records(RecordIndex index, std::string_view document);
  // Counts a failure and tells it once.
  void Complain(Warnings::Kind kind, const Status& status);

  const std::string directory_;  // empty when read-only
  const SqliteStoreOptions options_;
  const bool read_only_;
  const ForkGuard fork_guard_;
  Warnings warnings_;

  // Two connections: a reader never waits for the writer of this or another process.
  absl::Mutex writer_mu_;
  std::unique_ptr<Connection> writer_ ABSL_GUARDED_BY(writer_mu_);  // opened at the first write
  absl::Mutex reader_mu_ ABSL_ACQUIRED_AFTER(writer_mu_);
  DatabaseFile file_ ABSL_GUARDED_BY(reader_mu_);  // null connection: given up
  std::atomic<int64_t> generation_{0};             // how often file_ was reopened

  absl::Mutex memory_mu_ ABSL_ACQUIRED_AFTER(reader_mu_);
  // When each id was last found since the last write, as a running number.
  absl::flat_hash_map<int64_t, int64_t> touched_ ABSL_GUARDED_BY(memory_mu_);
  int64_t touches_ ABSL_GUARDED_BY(memory_mu_) = 0;
  absl::flat_hash_set<int64_t> bad_ids_ ABSL_GUARDED_BY(memory_mu_);

  std::atomic<int64_t> hits_{0}, foreign_hits_{0}, misses_{0}, puts_{0}, evictions_{0},
      quarantined_{0}, errors_{0};
};

}  // namespace tl

#endif  // TILEJIT_CACHE_SQLITE_STORE_H_
