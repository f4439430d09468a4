// What a database file of this version contains.
#ifndef TILEJIT_CACHE_SCHEMA_H_
#define TILEJIT_CACHE_SCHEMA_H_

#include <cstdint>

namespace tl {

// The version is part of the file's name, so that libraries of different age each keep their own.
inline constexpr int kSchemaVersion = 1;
inline constexpr char kDatabaseName[] = "tilejit-v1.db";
// Taken instead when a file of the above name turns out to be of another version.
inline constexpr char kAlternateName[] = "tilejit-v1-alt.db";
// "TlJt", in the header of the file: tells our databases from other people's.
inline constexpr int64_t kApplicationId = 0x546C4A74;

// Blobs stand last in a row: what precedes them is read without touching their pages. Recency lives
// in a table of its own, because an update rewrites a whole row. Ids are never used twice, so a
// remembered id cannot come to mean another entry.
inline constexpr char kSchema[] = R"sql(
CREATE TABLE artifact (
  id                INTEGER PRIMARY KEY AUTOINCREMENT,
  semantic_hash     BLOB NOT NULL,     -- XXH3-128 of semantic_document
  build_hash        BLOB NOT NULL,     -- XXH3-128 of both documents, framed
  checksum          BLOB NOT NULL,     -- XXH3-128 of all that follows, framed
  created           INTEGER NOT NULL,  -- seconds since 1970; for people only
  semantic_document BLOB NOT NULL,
  compiler_identity BLOB NOT NULL,
  compiler          BLOB NOT NULL,
  metadata          BLOB NOT NULL,
  report            BLOB NOT NULL,
  log               BLOB NOT NULL,
  binary            BLOB NOT NULL
) STRICT;
CREATE INDEX artifact_by_key ON artifact (semantic_hash, build_hash);
CREATE INDEX artifact_by_build ON artifact (build_hash);

-- One row per artifact. "used" is a counter, not a time: clocks jump.
CREATE TABLE usage (
  id    INTEGER PRIMARY KEY,
  used  INTEGER NOT NULL,
  bytes INTEGER NOT NULL
) STRICT;
CREATE INDEX usage_by_age ON usage (used, bytes);
CREATE TRIGGER artifact_gone AFTER DELETE ON artifact BEGIN
  DELETE FROM usage WHERE id = old.id;
END;

-- Entries taken out of service, kept for a post-mortem (the newest few) and never read back.
CREATE TABLE quarantine (
  id         INTEGER PRIMARY KEY,
  build_hash BLOB NOT NULL,
  moved      INTEGER NOT NULL,
  reason     TEXT NOT NULL,
  compiler   BLOB,
  binary     BLOB
) STRICT;

CREATE TABLE lease (
  key_hash BLOB PRIMARY KEY,
  owner    BLOB NOT NULL,
  expires  INTEGER NOT NULL  -- microseconds since 1970
) STRICT, WITHOUT ROWID;

CREATE TABLE record (
  id             INTEGER PRIMARY KEY AUTOINCREMENT,
  scope_hash     BLOB NOT NULL,
  key_hash       BLOB NOT NULL,
  checksum       BLOB NOT NULL,  -- XXH3-128 of all that follows, framed
  scope_document BLOB NOT NULL,
  key_document   BLOB NOT NULL,
  value          BLOB NOT NULL
) STRICT;
CREATE INDEX record_by_scope ON record (scope_hash);
CREATE INDEX record_by_key ON record (key_hash);
)sql";

}  // namespace tl

#endif  // TILEJIT_CACHE_SCHEMA_H_
