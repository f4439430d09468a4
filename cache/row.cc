#include "cache/row.h"

#include <string>
#include <utility>

#include "absl/time/clock.h"
#include "cache/checksum.h"

namespace tl {
namespace {

constexpr char kCandidates[] =
    "SELECT id, build_hash FROM artifact INDEXED BY artifact_by_key"
    " WHERE semantic_hash = ?1 ORDER BY id DESC";
constexpr char kReadArtifact[] =
    "SELECT checksum, created, semantic_document, compiler_identity, compiler, metadata, report,"
    " log, binary FROM artifact WHERE id = ?1";
constexpr char kIds[] = "SELECT id FROM artifact ORDER BY id";
constexpr char kDeleteBuild[] =
    "DELETE FROM artifact"
    " WHERE build_hash = ?1 AND semantic_document = ?2 AND compiler_identity = ?3";
constexpr char kInsertArtifact[] =
    "INSERT INTO artifact (semantic_hash, build_hash, checksum, created, semantic_document,"
    " compiler_identity, compiler, metadata, report, log, binary)"
    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11) RETURNING id";
constexpr char kInsertUsage[] =
    "INSERT INTO usage (id, used, bytes)"
    " VALUES (?1, (SELECT coalesce(max(used), 0) + 1 FROM usage), ?2)";
constexpr char kTouch[] = "UPDATE usage SET used = (SELECT max(used) + 1 FROM usage) WHERE id = ?1";
constexpr char kTotalBytes[] = "SELECT coalesce(sum(bytes), 0) FROM usage";
constexpr char kOldest[] = "SELECT id, bytes FROM usage ORDER BY used, id";
constexpr char kDelete[] = "DELETE FROM artifact WHERE id = ?1";
constexpr char kQuarantine[] =
    "INSERT INTO quarantine (build_hash, moved, reason, compiler, binary)"
    " SELECT build_hash, ?2, ?3, compiler, binary FROM artifact WHERE id = ?1";
constexpr char kTrimQuarantine[] =
    "DELETE FROM quarantine WHERE id <= (SELECT max(id) FROM quarantine) - 16";

constexpr char kRecordsByScope[] =
    "SELECT checksum, scope_document, key_document, value FROM record"
    " WHERE scope_hash = ?1 ORDER BY id DESC";
constexpr char kRecordsByKey[] =
    "SELECT checksum, scope_document, key_document, value FROM record"
    " WHERE key_hash = ?1 ORDER BY id DESC";
constexpr char kAllRecords[] =
    "SELECT checksum, scope_document, key_document, value FROM record ORDER BY id";
constexpr char kDeleteRecord[] = "DELETE FROM record WHERE key_hash = ?1 AND key_document = ?2";
constexpr char kInsertRecord[] =
    "INSERT INTO record (scope_hash, key_hash, checksum, scope_document, key_document, value)"
    " VALUES (?1, ?2, ?3, ?4, ?5, ?6)";

KeyHash ChecksumOf(int64_t created, const ArtifactKey& key, const Artifact& artifact) {
  return Checksum({std::to_string(created), key.semantic_document, key.compiler_identity,
                   artifact.compiler, artifact.metadata, artifact.report, artifact.log,
                   artifact.binary});
}

KeyHash ChecksumOf(const Record& record) {
  return Checksum({record.scope_document, record.key_document, record.value});
}

// The record of the current row of one of the queries above, unless it is damaged. Such a one is
// passed over; the next PutRecord with its key replaces it or stands beside it.
std::optional<Record> CurrentRecord(const Query& query) {
  const KeyHash checksum = KeyHash::FromBytes(query.ColumnBlob(0));
  Record record{query.ColumnString(1), query.ColumnString(2), query.ColumnString(3)};
  if (checksum != ChecksumOf(record)) return std::nullopt;
  return record;
}

}  // namespace

int64_t SizeOf(const ArtifactKey& key, const Artifact& artifact) {
  return static_cast<int64_t>(key.semantic_document.size() + key.compiler_identity.size() +
                              artifact.compiler.size() + artifact.metadata.size() +
                              artifact.report.size() + artifact.log.size() +
                              artifact.binary.size());
}

StatusOr<std::vector<Candidate>> ReadCandidates(Connection& connection, const KeyHash& semantic) {
  const std::string bytes = semantic.Bytes();
  std::vector<Candidate> candidates;
  Query query(connection, kCandidates);
  query.Blob(bytes);
  while (query.Step()) {
    candidates.push_back({query.ColumnInt(0), KeyHash::FromBytes(query.ColumnBlob(1))});
  }
  TL_RETURN_IF_ERROR(query.status());
  return candidates;
}

StatusOr<std::optional<ArtifactRow>> ReadArtifact(Connection& connection, int64_t id,
                                                  KeyHash* stored_checksum) {
  Query query(connection, kReadArtifact);
  if (!query.Int(id).Step()) {
    TL_RETURN_IF_ERROR(query.status());
    return std::optional<ArtifactRow>();
  }
  *stored_checksum = KeyHash::FromBytes(query.ColumnBlob(0));
  ArtifactRow row;
  row.id = id;
  row.created = query.ColumnInt(1);
  row.key.semantic_document = query.ColumnString(2);
  row.key.compiler_identity = query.ColumnString(3);
  row.artifact.compiler = query.ColumnString(4);
  row.artifact.metadata = query.ColumnString(5);
  row.artifact.report = query.ColumnString(6);
  row.artifact.log = query.ColumnString(7);
  row.artifact.binary = query.ColumnString(8);
  return std::optional<ArtifactRow>(std::move(row));
}

KeyHash ChecksumOf(const ArtifactRow& row) {
  return ChecksumOf(row.created, row.key, row.artifact);
}

StatusOr<std::vector<int64_t>> ReadIds(Connection& connection) {
  std::vector<int64_t> ids;
  Query query(connection, kIds);
  while (query.Step()) ids.push_back(query.ColumnInt(0));
  TL_RETURN_IF_ERROR(query.status());
  return ids;
}

Status WriteArtifact(Connection& connection, const ArtifactKey& key, const Artifact& artifact,
                     HashFunction hash) {
  const int64_t created = absl::ToUnixSeconds(absl::Now());
  const std::string semantic = SemanticHash(key, hash).Bytes();
  const std::string build = BuildHash(key, hash).Bytes();
  const std::string checksum = ChecksumOf(created, key, artifact).Bytes();
  TL_RETURN_IF_ERROR(Query(connection, kDeleteBuild)
                         .Blob(build)
                         .Blob(key.semantic_document)
                         .Blob(key.compiler_identity)
                         .Run());
  Query insert(connection, kInsertArtifact);
  insert.Blob(semantic).Blob(build).Blob(checksum).Int(created);
  insert.Blob(key.semantic_document).Blob(key.compiler_identity).Blob(artifact.compiler);
  insert.Blob(artifact.metadata).Blob(artifact.report).Blob(artifact.log).Blob(artifact.binary);
  int64_t id = 0;
  while (insert.Step()) id = insert.ColumnInt(0);
  TL_RETURN_IF_ERROR(insert.status());
  return Query(connection, kInsertUsage).Int(id).Int(SizeOf(key, artifact)).Run();
}

Status WriteRecency(Connection& connection, const std::vector<int64_t>& ids) {
  for (int64_t id : ids) TL_RETURN_IF_ERROR(Query(connection, kTouch).Int(id).Run());
  return absl::OkStatus();
}

StatusOr<int64_t> Evict(Connection& connection, int64_t max_bytes) {
  TL_ASSIGN_OR_RETURN(int64_t total, connection.Number(kTotalBytes));
  if (total <= max_bytes) return 0;
  std::vector<int64_t> victims;
  {
    Query oldest(connection, kOldest);
    while (total > max_bytes && oldest.Step()) {
      victims.push_back(oldest.ColumnInt(0));
      total -= oldest.ColumnInt(1);
    }
    TL_RETURN_IF_ERROR(oldest.status());
  }
  for (int64_t id : victims) TL_RETURN_IF_ERROR(Query(connection, kDelete).Int(id).Run());
  return static_cast<int64_t>(victims.size());
}

Status MoveToQuarantine(Connection& connection, int64_t id, std::string_view reason) {
  Transaction transaction(connection);
  TL_RETURN_IF_ERROR(transaction.Begin());
  TL_RETURN_IF_ERROR(Query(connection, kQuarantine)
                         .Int(id)
                         .Int(absl::ToUnixSeconds(absl::Now()))
                         .Text(reason)
                         .Run());
  TL_RETURN_IF_ERROR(Query(connection, kDelete).Int(id).Run());
  TL_RETURN_IF_ERROR(Query(connection, kTrimQuarantine).Run());
  return transaction.Commit();
}

StatusOr<std::vector<Record>> ReadRecords(Connection& connection, RecordIndex index,
                                          std::string_view document, HashFunction hash) {
  const bool by_scope = index == RecordIndex::kScope;
  const std::string bytes = hash(document).Bytes();
  std::vector<Record> records;
  Query query(connection, by_scope ? kRecordsByScope : kRecordsByKey);
  query.Blob(bytes);
  while (query.Step()) {
    std::optional<Record> record = CurrentRecord(query);
    if (!record.has_value()) continue;
    if ((by_scope ? record->scope_document : record->key_document) != document) continue;
    records.push_back(*std::move(record));
  }
  TL_RETURN_IF_ERROR(query.status());
  return records;
}

StatusOr<std::vector<Record>> ReadAllRecords(Connection& connection) {
  std::vector<Record> records;
  Query query(connection, kAllRecords);
  while (query.Step()) {
    if (auto record = CurrentRecord(query)) records.push_back(*std::move(record));
  }
  TL_RETURN_IF_ERROR(query.status());
  return records;
}

Status WriteRecord(Connection& connection, const Record& record, HashFunction hash) {
  const std::string scope = hash(record.scope_document).Bytes();
  const std::string key = hash(record.key_document).Bytes();
  const std::string checksum = ChecksumOf(record).Bytes();
  TL_RETURN_IF_ERROR(Query(connection, kDeleteRecord).Blob(key).Blob(record.key_document).Run());
  return Query(connection, kInsertRecord)
      .Blob(scope)
      .Blob(key)
      .Blob(checksum)
      .Blob(record.scope_document)
      .Blob(record.key_document)
      .Blob(record.value)
      .Run();
}

}  // namespace tl
