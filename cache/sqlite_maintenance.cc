// What operators do with a store: look, check, take out of service, shrink.
#include <utility>

#include "cache/sqlite_store.h"

namespace tl {
namespace {

constexpr char kStats[] = "SELECT count(*), coalesce(sum(bytes), 0) FROM usage";
constexpr char kList[] =
    "SELECT a.semantic_hash, a.build_hash, a.compiler, u.bytes, a.created, a.semantic_document,"
    " a.metadata"
    " FROM artifact a JOIN usage u USING (id) ORDER BY id";
constexpr char kIdsOfBuild[] =
    "SELECT id FROM artifact INDEXED BY artifact_by_build WHERE build_hash = ?1";
constexpr char kCountRecords[] = "SELECT count(*) FROM record";
constexpr char kIntegrity[] = "PRAGMA integrity_check(20)";

// Taking a damaged entry out happens while somebody waits for a kernel.
constexpr absl::Duration kQuarantineTimeout = absl::Milliseconds(100);

}  // namespace

StoreStats SqliteStore::Stats() {
  StoreStats stats;
  Read([&](Connection& connection) -> Status {
    Query query(connection, kStats);
    if (query.Step()) {
      stats.entries = query.ColumnInt(0);
      stats.bytes = query.ColumnInt(1);
    }
    return query.status();
  }).IgnoreError();
  stats.hits = hits_;
  stats.foreign_hits = foreign_hits_;
  stats.misses = misses_;
  stats.puts = puts_;
  stats.evictions = evictions_;
  stats.quarantined = quarantined_;
  stats.errors = errors_;
  return stats;
}

StatusOr<std::vector<EntryInfo>> SqliteStore::ListEntries() {
  std::vector<EntryInfo> entries;
  TL_RETURN_IF_ERROR(Read([&](Connection& connection) -> Status {
    Query query(connection, kList);
    while (query.Step()) {
      entries.push_back({KeyHash::FromBytes(query.ColumnBlob(0)),
                         KeyHash::FromBytes(query.ColumnBlob(1)), query.ColumnString(2),
                         query.ColumnInt(3), query.ColumnInt(4), query.ColumnString(5),
                         query.ColumnString(6)});
    }
    return query.status();
  }));
  return entries;
}

Status SqliteStore::Visit(absl::FunctionRef<bool(const ArtifactKey&, const Artifact&)> visit) {
  std::vector<int64_t> ids;
  TL_RETURN_IF_ERROR(Read([&](Connection& connection) -> Status {
    TL_ASSIGN_OR_RETURN(ids, ReadIds(connection));
    return absl::OkStatus();
  }));
  // One row at a time, without a lock or a read transaction while the caller works.
  for (int64_t id : ids) {
    TL_ASSIGN_OR_RETURN(const std::optional<ArtifactRow> row, LoadIntact(id));
    if (row.has_value() && !visit(row->key, row->artifact)) break;
  }
  return absl::OkStatus();
}

StatusOr<VerifyReport> SqliteStore::Verify() {
  VerifyReport report;
  TL_RETURN_IF_ERROR(Read([&](Connection& connection) -> Status {
    Query query(connection, kIntegrity);
    while (query.Step()) {
      std::string line = query.ColumnString(0);
      if (line != "ok") report.notes.push_back(std::move(line));
    }
    return query.status();
  }));
  std::vector<int64_t> ids;
  TL_RETURN_IF_ERROR(Read([&](Connection& connection) -> Status {
    TL_ASSIGN_OR_RETURN(ids, ReadIds(connection));
    return absl::OkStatus();
  }));
  for (int64_t id : ids) {
    const bool known = IsBad(id);
    TL_RETURN_IF_ERROR(LoadIntact(id).status());
    ++report.checked;
    if (!known && !IsBad(id)) continue;
    ++report.damaged;
    report.notes.push_back("entry " + std::to_string(id) + " is damaged");
  }
  TL_RETURN_IF_ERROR(Read([&](Connection& connection) -> Status {
    TL_ASSIGN_OR_RETURN(const int64_t all, connection.Number(kCountRecords));
    TL_ASSIGN_OR_RETURN(const std::vector<Record> intact, ReadAllRecords(connection));
    const int64_t damaged = all - static_cast<int64_t>(intact.size());
    report.checked += all;
    report.damaged += damaged;
    if (damaged > 0) {
      report.notes.push_back(std::to_string(damaged) + " tuned configurations are damaged");
    }
    return absl::OkStatus();
  }));
  return report;
}

void SqliteStore::Quarantine(const KeyHash& build, std::string_view reason) {
  const std::string bytes = build.Bytes();
  std::vector<int64_t> ids;
  Read([&](Connection& connection) -> Status {
    Query query(connection, kIdsOfBuild);
    query.Blob(bytes);
    while (query.Step()) ids.push_back(query.ColumnInt(0));
    return query.status();
  }).IgnoreError();
  for (int64_t id : ids) QuarantineRow(id, reason);
}

void SqliteStore::QuarantineRow(int64_t id, std::string_view reason) {
  {
    // Remembered first: whatever becomes of the write, this object does not serve it again.
    absl::MutexLock lock(&memory_mu_);
    if (!bad_ids_.insert(id).second) return;
  }
  ++quarantined_;
  warnings_.Once(Warnings::kDamagedEntry, "cache: entry " + std::to_string(id) +
                                              " was taken out of service: " + std::string(reason));
  if (read_only_) return;
  Write([&](Connection& connection) -> Status {
    connection.SetBusyTimeout(kQuarantineTimeout);
    const Status status = MoveToQuarantine(connection, id, reason);
    connection.SetBusyTimeout(options_.write_timeout);
    return status;
  }).IgnoreError();
}

Status SqliteStore::Trim(int64_t max_bytes) {
  const std::vector<int64_t> touched = TakeTouched();
  int64_t evicted = 0;
  TL_RETURN_IF_ERROR(Write([&](Connection& connection) -> Status {
    {
      Transaction transaction(connection);
      TL_RETURN_IF_ERROR(transaction.Begin());
      TL_RETURN_IF_ERROR(WriteRecency(connection, touched));
      TL_ASSIGN_OR_RETURN(evicted, Evict(connection, max_bytes));
      TL_RETURN_IF_ERROR(connection.Execute("DELETE FROM quarantine"));
      TL_RETURN_IF_ERROR(transaction.Commit());
    }
    TL_RETURN_IF_ERROR(connection.Execute("PRAGMA incremental_vacuum"));
    return connection.Execute("PRAGMA wal_checkpoint(TRUNCATE)");
  }));
  evictions_ += evicted;
  return absl::OkStatus();
}

}  // namespace tl
