#include "cache/connection.h"

#include <sqlite3.h>

namespace tl {
namespace {

constexpr char kBegin[] = "BEGIN";
constexpr char kBeginImmediate[] = "BEGIN IMMEDIATE";
constexpr char kCommit[] = "COMMIT";

absl::StatusCode CodeOfResult(int result_code) {
  switch (result_code & 0xFF) {
    case SQLITE_FULL:
    case SQLITE_NOMEM:
    case SQLITE_TOOBIG:
      return absl::StatusCode::kResourceExhausted;
    case SQLITE_PERM:
    case SQLITE_READONLY:
    case SQLITE_AUTH:
      return absl::StatusCode::kPermissionDenied;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_FORMAT:
    case SQLITE_CONSTRAINT:
    case SQLITE_MISMATCH:
      return absl::StatusCode::kDataLoss;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL:
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
    case SQLITE_SCHEMA:
      return absl::StatusCode::kUnavailable;
    default:
      return absl::StatusCode::kInternal;
  }
}

Status MakeSqliteError(int result_code, const std::string& message) {
  return MakeError(CodeOfResult(result_code), message,
                   {.domain = Domain::kSqlite, .native_code = result_code, .log = {}});
}

// "file:" URI with everything that means something in a URI escaped.
std::string Uri(const ConnectionOptions& options) {
  static constexpr char kDigits[] = "0123456789ABCDEF";
  std::string uri = "file:";
  for (unsigned char c : options.path) {
    if (c == '%' || c == '?' || c == '#' || c < 0x20) {
      uri += '%';
      uri += kDigits[c >> 4];
      uri += kDigits[c & 15];
    } else {
      uri += static_cast<char>(c);
    }
  }
  if (options.immutable) uri += "?immutable=1";
  return uri;
}

// Nothing in a database file may run code, and a damaged page is to be noticed, not followed.
Status Harden(Connection& connection, sqlite3* db) {
  sqlite3_extended_result_codes(db, 1);
  sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, nullptr);
  return connection.Execute("PRAGMA cell_size_check=1; PRAGMA mmap_size=0");
}

}  // namespace

bool IsDamage(int result_code) {
  const int primary = result_code & 0xFF;
  return primary == SQLITE_CORRUPT || primary == SQLITE_NOTADB || primary == SQLITE_FORMAT ||
         primary == SQLITE_CONSTRAINT || primary == SQLITE_MISMATCH;
}

bool IsDamage(const Status& status) {
  const ErrorDetail detail = DetailOf(status);
  return !status.ok() && detail.domain == Domain::kSqlite &&
         IsDamage(static_cast<int>(detail.native_code));
}

StatusOr<std::unique_ptr<Connection>> Connection::Open(const ConnectionOptions& options) {
  // NOMUTEX: every connection is guarded by its owner. NOFOLLOW: a link is not a cache.
  int flags = SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE;
  flags |= options.immutable ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE;
  // An immutable file may lie behind links that an administrator set up.
  if (!options.immutable) flags |= SQLITE_OPEN_NOFOLLOW;
  sqlite3* db = nullptr;
  const int code = sqlite3_open_v2(Uri(options).c_str(), &db, flags,
                                   options.vfs.empty() ? nullptr : options.vfs.c_str());
  if (db == nullptr) return MakeSqliteError(code, "open " + options.path + ": out of memory");
  std::unique_ptr<Connection> connection(new Connection(db));
  if (code != SQLITE_OK) return connection->Error(code, "open " + options.path);
  // Before anything that may meet a lock.
  connection->SetBusyTimeout(options.busy_timeout);
  TL_RETURN_IF_ERROR(Harden(*connection, db));
  return connection;
}

Connection::~Connection() {
  for (const auto& [sql, statement] : statements_) sqlite3_finalize(statement);
  sqlite3_close_v2(db_);
}

Status Connection::Execute(const char* sql) {
  const int code = sqlite3_exec(db_, sql, nullptr, nullptr, nullptr);
  // The whole schema would be a long message.
  return code == SQLITE_OK ? absl::OkStatus() : Error(code, std::string_view(sql).substr(0, 60));
}

StatusOr<int64_t> Connection::Number(const char* sql) {
  Query query(*this, sql);
  if (query.Step()) return query.ColumnInt(0);
  TL_RETURN_IF_ERROR(query.status());
  return MakeError(absl::StatusCode::kInternal, std::string("no result: ") + sql);
}

void Connection::SetBusyTimeout(absl::Duration timeout) {
  sqlite3_busy_timeout(db_, static_cast<int>(absl::ToInt64Milliseconds(timeout)));
}

void Connection::LeaveLogOnClose() {
  sqlite3_db_config(db_, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
}

bool Connection::read_only() const { return sqlite3_db_readonly(db_, "main") == 1; }

bool Connection::in_transaction() const { return sqlite3_get_autocommit(db_) == 0; }

int64_t Connection::changes() const { return sqlite3_changes64(db_); }

Status Connection::Error(int result_code, std::string_view what) const {
  // errmsg belongs to the last failed call, which need not be this one (a statement reset in
  // between); the code is authoritative.
  const char* text = sqlite3_extended_errcode(db_) == result_code ? sqlite3_errmsg(db_)
                                                                  : sqlite3_errstr(result_code);
  return MakeSqliteError(result_code, std::string(what) + ": " + text);
}

int Connection::Prepare(const char* sql, sqlite3_stmt** statement) {
  sqlite3_stmt*& cached = statements_[sql];
  if (cached == nullptr) {
    const int code = sqlite3_prepare_v3(db_, sql, -1, SQLITE_PREPARE_PERSISTENT, &cached, nullptr);
    if (code != SQLITE_OK) {
      statements_.erase(sql);
      return code;
    }
  }
  *statement = cached;
  return SQLITE_OK;
}

Query::Query(Connection& connection, const char* sql) : connection_(connection), sql_(sql) {
  code_ = connection_.Prepare(sql, &statement_);
}

Query::~Query() {
  if (statement_ == nullptr) return;
  sqlite3_reset(statement_);
  sqlite3_clear_bindings(statement_);
}

Query& Query::Blob(std::string_view bytes) {
  if (code_ != SQLITE_OK) return *this;
  // A null pointer would bind NULL.
  const char* data = bytes.data() == nullptr ? "" : bytes.data();
  code_ = sqlite3_bind_blob64(statement_, ++bound_, data, bytes.size(), SQLITE_STATIC);
  return *this;
}

Query& Query::Text(std::string_view text) {
  if (code_ != SQLITE_OK) return *this;
  const char* data = text.data() == nullptr ? "" : text.data();
  code_ = sqlite3_bind_text64(statement_, ++bound_, data, text.size(), SQLITE_STATIC, SQLITE_UTF8);
  return *this;
}

Query& Query::Int(int64_t value) {
  if (code_ == SQLITE_OK) code_ = sqlite3_bind_int64(statement_, ++bound_, value);
  return *this;
}

bool Query::Step() {
  if (code_ != SQLITE_OK && code_ != SQLITE_ROW) return false;
  code_ = sqlite3_step(statement_);
  return code_ == SQLITE_ROW;
}

Status Query::Run() {
  while (Step()) {
  }
  return status();
}

Status Query::status() const {
  const bool fine = code_ == SQLITE_OK || code_ == SQLITE_ROW || code_ == SQLITE_DONE;
  return fine ? absl::OkStatus() : connection_.Error(code_, sql_);
}

int64_t Query::ColumnInt(int column) const { return sqlite3_column_int64(statement_, column); }

std::string_view Query::ColumnBlob(int column) const {
  // The pointer first: asking for it may convert the value and change its size.
  const void* data = sqlite3_column_blob(statement_, column);
  const int size = sqlite3_column_bytes(statement_, column);
  if (data == nullptr || size <= 0) return {};
  return {static_cast<const char*>(data), static_cast<size_t>(size)};
}

Transaction::~Transaction() {
  // After some errors SQLite has rolled back by itself; this may then fail, which changes nothing.
  if (connection_.in_transaction()) connection_.Execute("ROLLBACK").IgnoreError();
}

Status Transaction::Begin(Kind kind) {
  return Query(connection_, kind == kRead ? kBegin : kBeginImmediate).Run();
}

Status Transaction::Commit() { return Query(connection_, kCommit).Run(); }

}  // namespace tl
