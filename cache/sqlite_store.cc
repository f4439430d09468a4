// Opening, reading, writing and starting anew. The maintenance methods are in
// sqlite_maintenance.cc, leases and records in sqlite_leases.cc.
#include "cache/sqlite_store.h"

#include <algorithm>
#include <utility>

#include "cache/directory.h"

namespace tl {
namespace {

// A file that keeps breaking has a cause that starting anew does not cure.
constexpr int64_t kMaxReopens = 16;

// Waiting at the end of a process for the sake of recency would be rude.
constexpr absl::Duration kCourtesyTimeout = absl::Milliseconds(100);

constexpr char kBadChecksum[] = "its checksum does not match";

// SQLite's limit on one value, less room for the row's other columns.
constexpr int64_t kMaxArtifactBytes = 900'000'000;

// The candidates that may answer, the own compiler's build first, then the newest.
std::vector<Candidate> Arrange(const std::vector<Candidate>& candidates, const KeyHash& own,
                               const FindOptions& options) {
  std::vector<Candidate> arranged;
  for (const bool want_own : {true, false}) {
    if (!want_own && options.match == MatchMode::kBuild) break;
    for (const Candidate& candidate : candidates) {
      if ((candidate.build == own) != want_own) continue;
      const auto& exclude = options.exclude;
      if (std::find(exclude.begin(), exclude.end(), candidate.build) != exclude.end()) continue;
      arranged.push_back(candidate);
    }
  }
  return arranged;
}

}  // namespace

StatusOr<std::unique_ptr<SqliteStore>> SqliteStore::Open(const std::string& directory,
                                                         const SqliteStoreOptions& options) {
  if (ForkGuard::InheritedSome()) {
    return MakeError(absl::StatusCode::kFailedPrecondition,
                     "this process was forked from one that had a cache open");
  }
  TL_ASSIGN_OR_RETURN(std::string path, PrepareDirectory(directory));
  TL_ASSIGN_OR_RETURN(DatabaseFile file, OpenDatabaseFile({.directory = path,
                                                           .vfs = options.vfs,
                                                           .busy_timeout = options.read_timeout}));
  const std::vector<std::string> notes = std::exchange(file.notes, {});
  std::unique_ptr<SqliteStore> store(
      new SqliteStore(std::move(path), options, std::move(file), /*read_only=*/false));
  store->quarantined_ += static_cast<int64_t>(notes.size());
  for (const std::string& note : notes) store->warnings_.Once(Warnings::kMovedAside, note);
  return store;
}

StatusOr<std::unique_ptr<SqliteStore>> SqliteStore::OpenReadOnly(
    const std::string& path, const SqliteStoreOptions& options) {
  TL_ASSIGN_OR_RETURN(DatabaseFile file, OpenDatabaseFileReadOnly(path, options.vfs));
  return std::unique_ptr<SqliteStore>(
      new SqliteStore(std::string(), options, std::move(file), /*read_only=*/true));
}

SqliteStore::SqliteStore(std::string directory, const SqliteStoreOptions& options,
                         DatabaseFile file, bool read_only)
    : directory_(std::move(directory)),
      options_(options),
      read_only_(read_only),
      warnings_(options.warn),
      file_(std::move(file)) {}

SqliteStore::~SqliteStore() {
  if (fork_guard_.in_child()) {
    // Closing would act on locks and a log that belong to the parent.
    absl::MutexLock writer_lock(&writer_mu_);
    absl::MutexLock reader_lock(&reader_mu_);
    static_cast<void>(writer_.release());
    static_cast<void>(file_.connection.release());
    return;
  }
  const std::vector<int64_t> touched = TakeTouched();
  if (!touched.empty()) {
    WriteOnce([&](Connection& connection) -> Status {
      connection.SetBusyTimeout(kCourtesyTimeout);
      Transaction transaction(connection);
      TL_RETURN_IF_ERROR(transaction.Begin());
      TL_RETURN_IF_ERROR(WriteRecency(connection, touched));
      return transaction.Commit();
    }).IgnoreError();
  }
  absl::MutexLock writer_lock(&writer_mu_);
  absl::MutexLock reader_lock(&reader_mu_);
  CloseLocked(/*damaged=*/false);
}

std::optional<Hit> SqliteStore::Find(const ArtifactKey& key, const FindOptions& options) {
  std::optional<Hit> hit = Search(key, options);
  if (!hit.has_value()) {
    ++misses_;
    return hit;
  }
  ++hits_;
  if (!hit->own_build) ++foreign_hits_;
  return hit;
}

std::optional<Hit> SqliteStore::Search(const ArtifactKey& key, const FindOptions& options) {
  std::optional<Hit> hit;
  std::vector<int64_t> damaged;
  Read([&](Connection& connection) -> Status {
    // One snapshot, so that a build being replaced is seen as the old or the new one, not as gone.
    Transaction snapshot(connection);
    TL_RETURN_IF_ERROR(snapshot.Begin(Transaction::kRead));
    TL_ASSIGN_OR_RETURN(hit, SearchSnapshot(connection, key, options, damaged));
    return snapshot.Commit();
  }).IgnoreError();
  for (int64_t id : damaged) QuarantineRow(id, kBadChecksum);
  return hit;
}

StatusOr<std::optional<Hit>> SqliteStore::SearchSnapshot(Connection& connection,
                                                         const ArtifactKey& key,
                                                         const FindOptions& options,
                                                         std::vector<int64_t>& damaged) {
  const KeyHash semantic = SemanticHash(key, options_.hash);
  TL_ASSIGN_OR_RETURN(const std::vector<Candidate> candidates,
                      ReadCandidates(connection, semantic));
  for (const Candidate& candidate : Arrange(candidates, BuildHash(key, options_.hash), options)) {
    if (IsBad(candidate.id)) continue;
    KeyHash checksum;
    TL_ASSIGN_OR_RETURN(std::optional<ArtifactRow> row,
                        ReadArtifact(connection, candidate.id, &checksum));
    if (!row.has_value()) continue;
    if (ChecksumOf(*row) != checksum) {
      damaged.push_back(candidate.id);
      continue;
    }
    // Equal hashes of different documents: a collision, not an answer.
    if (row->key.semantic_document != key.semantic_document) continue;
    const bool own = row->key.compiler_identity == key.compiler_identity;
    if (options.match == MatchMode::kBuild && !own) continue;
    Touch(row->id);
    return std::optional<Hit>(
        Hit{std::move(row->artifact), BuildHash(row->key, options_.hash), own});
  }
  return std::optional<Hit>();
}

StatusOr<std::optional<ArtifactRow>> SqliteStore::LoadIntact(int64_t id) {
  if (IsBad(id)) return std::optional<ArtifactRow>();
  std::optional<ArtifactRow> row;
  KeyHash checksum;
  TL_RETURN_IF_ERROR(Read([&](Connection& connection) -> Status {
    TL_ASSIGN_OR_RETURN(row, ReadArtifact(connection, id, &checksum));
    return absl::OkStatus();
  }));
  if (row.has_value() && ChecksumOf(*row) != checksum) {
    QuarantineRow(id, kBadChecksum);
    row.reset();
  }
  return row;
}

Status SqliteStore::Put(const ArtifactKey& key, const Artifact& artifact) {
  const int64_t size = SizeOf(key, artifact);
  const int64_t limit =
      options_.max_bytes > 0 ? std::min(options_.max_bytes, kMaxArtifactBytes) : kMaxArtifactBytes;
  if (size > limit) {
    return MakeError(absl::StatusCode::kResourceExhausted, "an entry of " + std::to_string(size) +
                                                               " bytes does not fit a cache of " +
                                                               std::to_string(limit));
  }
  const std::vector<int64_t> touched = TakeTouched();
  int64_t evicted = 0;
  TL_RETURN_IF_ERROR(Write([&](Connection& connection) -> Status {
    Transaction transaction(connection);
    TL_RETURN_IF_ERROR(transaction.Begin());
    TL_RETURN_IF_ERROR(WriteRecency(connection, touched));
    TL_RETURN_IF_ERROR(WriteArtifact(connection, key, artifact, options_.hash));
    if (options_.max_bytes > 0) {
      TL_ASSIGN_OR_RETURN(evicted, Evict(connection, options_.max_bytes));
    }
    return transaction.Commit();
  }));
  ++puts_;
  evictions_ += evicted;
  return absl::OkStatus();
}

Status SqliteStore::Flush() {
  if (read_only_) return absl::OkStatus();
  const std::vector<int64_t> touched = TakeTouched();
  if (touched.empty()) return absl::OkStatus();
  return Write([&](Connection& connection) -> Status {
    Transaction transaction(connection);
    TL_RETURN_IF_ERROR(transaction.Begin());
    TL_RETURN_IF_ERROR(WriteRecency(connection, touched));
    return transaction.Commit();
  });
}

Status SqliteStore::CheckWritable() const {
  if (read_only_) {
    return MakeError(absl::StatusCode::kPermissionDenied, "this cache is read-only");
  }
  return absl::OkStatus();
}

Status SqliteStore::Read(ReadFunction body) {
  if (fork_guard_.in_child()) {
    return MakeError(absl::StatusCode::kFailedPrecondition, "the cache was opened before fork()");
  }
  Status status;
  int64_t generation = 0;
  {
    absl::MutexLock lock(&reader_mu_);
    generation = generation_.load();
    status = file_.connection != nullptr
                 ? body(*file_.connection)
                 : MakeError(absl::StatusCode::kUnavailable, "the cache was given up");
  }
  if (status.ok()) return status;
  if (IsDamage(status) && !read_only_) Reopen(generation, /*damaged=*/true).IgnoreError();
  Complain(Warnings::kRead, status);
  return status;
}

Status SqliteStore::Write(ReadFunction body) {
  Status status = WriteOnce(body);
  if (IsDamage(status)) status = WriteOnce(body);
  if (!status.ok() && !read_only_) Complain(Warnings::kWrite, status);
  return status;
}

Status SqliteStore::WriteOnce(ReadFunction body) {
  TL_RETURN_IF_ERROR(CheckWritable());
  if (fork_guard_.in_child()) {
    return MakeError(absl::StatusCode::kFailedPrecondition, "the cache was opened before fork()");
  }
  NoticeReplacement();
  Status status;
  int64_t generation = 0;
  {
    absl::MutexLock lock(&writer_mu_);
    generation = generation_.load();
    StatusOr<Connection*> writer = Writer();
    status = writer.ok() ? body(**writer) : writer.status();
  }
  if (IsDamage(status)) Reopen(generation, /*damaged=*/true).IgnoreError();
  return status;
}

StatusOr<Connection*> SqliteStore::Writer() {
  if (writer_ != nullptr) return writer_.get();
  std::string path;
  {
    absl::MutexLock lock(&reader_mu_);
    if (file_.connection == nullptr) {
      return MakeError(absl::StatusCode::kUnavailable, "the cache was given up");
    }
    path = file_.path;
  }
  TL_ASSIGN_OR_RETURN(writer_, OpenAnotherConnection(path, options_.vfs, options_.write_timeout));
  return writer_.get();
}

void SqliteStore::NoticeReplacement() {
  int64_t generation = 0;
  {
    absl::MutexLock lock(&reader_mu_);
    if (file_.connection == nullptr || IdentityOf(file_.path) == file_.identity) return;
    generation = generation_.load();
  }
  Reopen(generation, /*damaged=*/false).IgnoreError();
}

Status SqliteStore::Reopen(int64_t generation, bool damaged) {
  std::vector<std::string> notes;
  Status status;
  {
    absl::MutexLock writer_lock(&writer_mu_);
    absl::MutexLock reader_lock(&reader_mu_);
    if (generation_.load() != generation) return absl::OkStatus();
    status = ReopenLocked(damaged, notes);
    ++generation_;
  }
  quarantined_ += static_cast<int64_t>(notes.size());
  for (const std::string& note : notes) warnings_.Once(Warnings::kMovedAside, note);
  if (!status.ok()) Complain(Warnings::kOpen, status);
  return status;
}

Status SqliteStore::ReopenLocked(bool damaged, std::vector<std::string>& notes) {
  {
    // Other file, other ids.
    absl::MutexLock lock(&memory_mu_);
    touched_.clear();
    bad_ids_.clear();
  }
  CloseLocked(damaged);
  if (generation_.load() >= kMaxReopens) {
    return MakeError(absl::StatusCode::kUnavailable,
                     "the cache keeps getting damaged and is given up");
  }
  const DatabaseFileOptions options{
      .directory = directory_, .vfs = options_.vfs, .busy_timeout = options_.read_timeout};
  // The directory may have gone with the file.
  TL_RETURN_IF_ERROR(PrepareDirectory(directory_).status());
  if (damaged) {
    TL_ASSIGN_OR_RETURN(const std::string target,
                        MoveDatabaseAside(options, file_.path, file_.identity));
    if (!target.empty()) notes.push_back(file_.path + " was damaged and moved to " + target);
  }
  TL_ASSIGN_OR_RETURN(file_, OpenDatabaseFile(options));
  notes.insert(notes.end(), file_.notes.begin(), file_.notes.end());
  return absl::OkStatus();
}

void SqliteStore::CloseLocked(bool damaged) {
  if (damaged || (!read_only_ && IdentityOf(file_.path) != file_.identity)) {
    if (writer_ != nullptr) writer_->LeaveLogOnClose();
    if (file_.connection != nullptr) file_.connection->LeaveLogOnClose();
  }
  writer_.reset();
  file_.connection.reset();
}

bool SqliteStore::IsBad(int64_t id) {
  absl::MutexLock lock(&memory_mu_);
  return bad_ids_.contains(id);
}

void SqliteStore::Touch(int64_t id) {
  if (read_only_) return;
  absl::MutexLock lock(&memory_mu_);
  touched_[id] = ++touches_;
}

std::vector<int64_t> SqliteStore::TakeTouched() {
  std::vector<std::pair<int64_t, int64_t>> order;
  {
    absl::MutexLock lock(&memory_mu_);
    for (const auto& [id, when] : touched_) order.emplace_back(when, id);
    touched_.clear();
  }
  std::sort(order.begin(), order.end());
  std::vector<int64_t> ids;
  ids.reserve(order.size());
  for (const auto& [when, id] : order) ids.push_back(id);
  return ids;
}

void SqliteStore::Complain(Warnings::Kind kind, const Status& status) {
  ++errors_;
  warnings_.Once(kind, "cache: " + std::string(status.message()));
}

}  // namespace tl
