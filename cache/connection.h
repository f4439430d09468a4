// A thin owner of one SQLite connection and its prepared statements. Not thread-safe: whoever holds
// one guards it.
#ifndef TILEJIT_CACHE_CONNECTION_H_
#define TILEJIT_CACHE_CONNECTION_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "base/status.h"

struct sqlite3;
struct sqlite3_stmt;

namespace tl {

struct ConnectionOptions {
  std::string path;  // a file; never created by opening
  // Read the file as it stands, without locks, log or shared memory. For read-only media and for
  // file systems where locks do not work; what a concurrent writer does is caught by checksums.
  bool immutable = false;
  absl::Duration busy_timeout = absl::Milliseconds(250);
  std::string vfs;  // name of a registered SQLite VFS; empty: the default. For fault injection.
};

class Connection {
 public:
  static StatusOr<std::unique_ptr<Connection>> Open(const ConnectionOptions& options);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Runs statements without results.
  Status Execute(const char* sql);
  // First column of the first row of a statement that has one.
  StatusOr<int64_t> Number(const char* sql);
  void SetBusyTimeout(absl::Duration timeout);
  // Closing the last connection normally moves the log into the file and deletes the log *by name*.
  // That must not happen once another file stands under the name.
  void LeaveLogOnClose();
  // Whether SQLite refuses to write: the file is not writable, or its header says so.
  bool read_only() const;
  bool in_transaction() const;
  // Number of rows changed by the last statement.
  int64_t changes() const;
  // The last error as a Status: "what: SQLite's message", domain SQLITE, extended code.
  Status Error(int result_code, std::string_view what) const;

 private:
  friend class Query;
  explicit Connection(sqlite3* db) : db_(db) {}
  // Prepared once per SQL text; the text must be a constant, its address is the key.
  int Prepare(const char* sql, sqlite3_stmt** statement);

  sqlite3* db_;
  std::map<const char*, sqlite3_stmt*> statements_;
};

// One execution of a prepared statement. Bind in order, then Step until false or Run.
class Query {
 public:
  Query(Connection& connection, const char* sql);
  ~Query();
  Query(const Query&) = delete;
  Query& operator=(const Query&) = delete;

  // The bytes must stay until the Query ends. Empty is an empty blob, not NULL.
  Query& Blob(std::string_view bytes);
  Query& Text(std::string_view text);
  Query& Int(int64_t value);

  // True: a row is there. False: the end, or an error that status() tells.
  bool Step();
  // For statements without rows.
  Status Run();
  Status status() const;
  // SQLite's extended result code of the last step.
  int code() const { return code_; }

  // Columns of the current row, from 0. Views are valid until the next Step.
  int64_t ColumnInt(int column) const;
  std::string_view ColumnBlob(int column) const;
  std::string ColumnString(int column) const { return std::string(ColumnBlob(column)); }

 private:
  Connection& connection_;
  const char* sql_;
  sqlite3_stmt* statement_ = nullptr;
  int code_;
  int bound_ = 0;
};

// BEGIN ... COMMIT, rolled back unless committed.
class Transaction {
 public:
  // kWrite takes the write lock at once: taking it in the middle could fail without waiting.
  enum Kind { kRead, kWrite };
  explicit Transaction(Connection& connection) : connection_(connection) {}
  ~Transaction();
  Status Begin(Kind kind = kWrite);
  Status Commit();

 private:
  Connection& connection_;
};

// Whether a result code says that the file is damaged (or no database), as opposed to busy, full or
// unreadable. A violated constraint counts: the room's own statements violate none.
bool IsDamage(int result_code);
// The same for a Status that this room made.
bool IsDamage(const Status& status);

}  // namespace tl

#endif  // TILEJIT_CACHE_CONNECTION_H_
