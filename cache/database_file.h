// The database file: opened when it is ours and sound, created when it is missing, moved aside when
// it is not what it should be. Nothing here ever deletes one.
#ifndef TILEJIT_CACHE_DATABASE_FILE_H_
#define TILEJIT_CACHE_DATABASE_FILE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/status.h"
#include "cache/connection.h"

namespace tl {

// Tells whether a path still names the same file.
struct FileIdentity {
  uint64_t device = 0;
  uint64_t inode = 0;
  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};

// All zeros when there is no such file. Never opens it: closing a descriptor of a file drops all
// POSIX locks that the process holds on it, SQLite's included.
FileIdentity IdentityOf(const std::string& path);

struct DatabaseFile {
  std::unique_ptr<Connection> connection;
  std::string path;
  FileIdentity identity;
  // What was moved aside on the way, one line each.
  std::vector<std::string> notes;
};

struct DatabaseFileOptions {
  std::string directory;  // from PrepareDirectory
  std::string vfs;
  absl::Duration busy_timeout = absl::Milliseconds(250);
  // How long to wait for other processes that are creating or recovering the file.
  absl::Duration open_timeout = absl::Seconds(2);
};

// Opens the cache's database in WAL mode, creating it where there is none. A file that is damaged,
// no database, another program's, not a regular file, or somebody else's is renamed to
// <name>.quarantined-<n> first. One of another schema version is left alone and the alternate name
// is used.
StatusOr<DatabaseFile> OpenDatabaseFile(const DatabaseFileOptions& options);

// One more connection to a file that OpenDatabaseFile opened.
StatusOr<std::unique_ptr<Connection>> OpenAnotherConnection(const std::string& path,
                                                            const std::string& vfs,
                                                            absl::Duration busy_timeout);

// Opens a database to read as it stands: a pack, a cache on read-only media or on a network file
// system. It must be a regular file of this user or of root; nothing is moved.
StatusOr<DatabaseFile> OpenDatabaseFileReadOnly(const std::string& path, const std::string& vfs);

// An empty database of this schema under a name that must not exist yet, with no log beside it:
// what becomes a pack. Not durable until it was synchronised by hand.
StatusOr<std::unique_ptr<Connection>> CreatePlainDatabase(const std::string& path);
// Is the regular file one of those, as far as its first bytes tell?
bool IsPlainDatabase(const std::string& path);

// Renames the file with its log and shared memory, if it still is the one that was found damaged
// (another process may have been quicker). Returns the new name, empty if there was nothing to do.
StatusOr<std::string> MoveDatabaseAside(const DatabaseFileOptions& options, const std::string& path,
                                        const FileIdentity& damaged);

}  // namespace tl

#endif  // TILEJIT_CACHE_DATABASE_FILE_H_
