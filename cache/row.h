// Artifacts and records as rows: how they are written, read back and verified.
#ifndef TILEJIT_CACHE_ROW_H_
#define TILEJIT_CACHE_ROW_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "base/status.h"
#include "cache/connection.h"
#include "cache/store.h"

namespace tl {

struct ArtifactRow {
  int64_t id = 0;
  int64_t created = 0;
  ArtifactKey key;
  Artifact artifact;
};

// An entry that may answer a request, as the index tells it.
struct Candidate {
  int64_t id = 0;
  KeyHash build;
};

// What an entry counts for in StoreStats::bytes and against the cap.
int64_t SizeOf(const ArtifactKey& key, const Artifact& artifact);

// Newest first. Reads only the index.
StatusOr<std::vector<Candidate>> ReadCandidates(Connection& connection, const KeyHash& semantic);

// Nothing when the row is gone. The checksum is not compared here, so that the caller can do it
// without holding a lock.
StatusOr<std::optional<ArtifactRow>> ReadArtifact(Connection& connection, int64_t id,
                                                  KeyHash* stored_checksum);
KeyHash ChecksumOf(const ArtifactRow& row);

// Ids of all artifacts, oldest first.
StatusOr<std::vector<int64_t>> ReadIds(Connection& connection);

// Replaces what has the same build key; the new row is the most recently used one. Inside a
// transaction. `hash` indexes.
Status WriteArtifact(Connection& connection, const ArtifactKey& key, const Artifact& artifact,
                     HashFunction hash);

// Marks ids as used, first to last. Ids that are gone are passed over.
Status WriteRecency(Connection& connection, const std::vector<int64_t>& ids);

// Deletes the least recently used rows until at most max_bytes remain. Returns how many.
StatusOr<int64_t> Evict(Connection& connection, int64_t max_bytes);

// Moves a row to the quarantine table, which keeps the newest few. In a transaction of its own.
Status MoveToQuarantine(Connection& connection, int64_t id, std::string_view reason);

// Verified records whose scope or key is the given document, newest first.
enum class RecordIndex { kScope, kKey };
StatusOr<std::vector<Record>> ReadRecords(Connection& connection, RecordIndex index,
                                          std::string_view document, HashFunction hash);
// All verified records, oldest first.
StatusOr<std::vector<Record>> ReadAllRecords(Connection& connection);
Status WriteRecord(Connection& connection, const Record& record, HashFunction hash);

}  // namespace tl

#endif  // TILEJIT_CACHE_ROW_H_
