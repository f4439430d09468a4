// The right to compile, and tuned configurations.
#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "cache/sqlite_store.h"

namespace tl {
namespace {

// Takes a lease that is free, one's own, over, or from a clock that was far ahead of ours.
constexpr char kTakeLease[] =
    "INSERT INTO lease (key_hash, owner, expires) VALUES (?1, ?2, ?3)"
    " ON CONFLICT (key_hash) DO UPDATE SET owner = excluded.owner, expires = excluded.expires"
    " WHERE owner = excluded.owner OR expires <= ?4 OR expires > ?5";
constexpr char kReadLease[] = "SELECT owner, expires FROM lease WHERE key_hash = ?1";
constexpr char kDropLease[] = "DELETE FROM lease WHERE key_hash = ?1 AND owner = ?2";

}  // namespace

StatusOr<LeaseAnswer> SqliteStore::TryAcquireLease(const KeyHash& key, std::string_view owner,
                                                   absl::Duration ttl) {
  const std::string bytes = key.Bytes();
  LeaseAnswer answer;
  TL_RETURN_IF_ERROR(Write([&](Connection& connection) -> Status {
    const absl::Time now = absl::Now();
    Transaction transaction(connection);
    TL_RETURN_IF_ERROR(transaction.Begin());
    TL_RETURN_IF_ERROR(Query(connection, kTakeLease)
                           .Blob(bytes)
                           .Blob(owner)
                           .Int(absl::ToUnixMicros(now + std::min(ttl, kMaxLease)))
                           .Int(absl::ToUnixMicros(now))
                           .Int(absl::ToUnixMicros(now + kMaxLease))
                           .Run());
    answer.acquired = connection.changes() > 0;
    {
      Query query(connection, kReadLease);
      if (query.Blob(bytes).Step()) {
        if (!answer.acquired) answer.holder = query.ColumnString(0);
        answer.remaining = absl::FromUnixMicros(query.ColumnInt(1)) - now;
      }
      TL_RETURN_IF_ERROR(query.status());
    }
    return transaction.Commit();
  }));
  return answer;
}

Status SqliteStore::ReleaseLease(const KeyHash& key, std::string_view owner) {
  const std::string bytes = key.Bytes();
  return Write([&](Connection& connection) {
    return Query(connection, kDropLease).Blob(bytes).Blob(owner).Run();
  });
}

std::vector<Record> SqliteStore::Records(RecordIndex index, std::string_view document) {
  std::vector<Record> records;
  Read([&](Connection& connection) -> Status {
    TL_ASSIGN_OR_RETURN(records, ReadRecords(connection, index, document, options_.hash));
    return absl::OkStatus();
  }).IgnoreError();
  return records;
}

std::optional<Record> SqliteStore::FindRecord(std::string_view key_document) {
  std::vector<Record> records = Records(RecordIndex::kKey, key_document);
  if (records.empty()) return std::nullopt;
  return std::move(records.front());
}

std::vector<Record> SqliteStore::FindRecords(std::string_view scope_document) {
  return Records(RecordIndex::kScope, scope_document);
}

StatusOr<std::vector<Record>> SqliteStore::ListRecords() {
  std::vector<Record> records;
  TL_RETURN_IF_ERROR(Read([&](Connection& connection) -> Status {
    TL_ASSIGN_OR_RETURN(records, ReadAllRecords(connection));
    return absl::OkStatus();
  }));
  return records;
}

Status SqliteStore::PutRecord(const Record& record) {
  return Write([&](Connection& connection) -> Status {
    Transaction transaction(connection);
    TL_RETURN_IF_ERROR(transaction.Begin());
    TL_RETURN_IF_ERROR(WriteRecord(connection, record, options_.hash));
    return transaction.Commit();
  });
}

}  // namespace tl
