#include "cache/database_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/time/clock.h"
#include "cache/directory.h"
#include "cache/schema.h"

namespace tl {
namespace {

constexpr char kSchemaTexts[] = "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL";

// What AUTOINCREMENT adds to the objects of kSchema.
constexpr std::string_view kSequenceTable = "CREATE TABLE sqlite_sequence(name,seq)";

constexpr int kMaxQuarantinedFiles = 100;

// Serialises creation and moving aside between processes. A file of its own, because locks on the
// database belong to SQLite. The kernel releases it with the process.
class SetupLock {
 public:
  static StatusOr<SetupLock> Take(const DatabaseFileOptions& options, absl::Time deadline) {
    const std::string path = options.directory + "/tilejit.lock";
    const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (fd < 0) return OsError(errno, "open " + path);
    SetupLock lock(fd);
    while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK && errno != EINTR) return OsError(errno, "lock " + path);
      if (absl::Now() > deadline) return OsError(ETIMEDOUT, "lock " + path);
      absl::SleepFor(absl::Milliseconds(1));
    }
    return lock;
  }
  SetupLock(SetupLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  SetupLock& operator=(SetupLock&&) = delete;
  ~SetupLock() {
    if (fd_ >= 0) close(fd_);
  }

 private:
  explicit SetupLock(int fd) : fd_(fd) {}
  int fd_;
};

enum class Found {
  kUsable,
  kAbsent,        // no file, or an empty database: to be created
  kUnusable,      // to be moved aside
  kOtherVersion,  // ours, but not for this library
  kReplaced,      // moved, removed or created by somebody else while it was looked at
};

struct Finding {
  Found found;
  std::string why;  // for kUnusable
  std::unique_ptr<Connection> connection;
  FileIdentity identity;  // of what was looked at
};

Finding Unusable(std::string_view why) {
  return {.found = Found::kUnusable, .why = std::string(why)};
}

// What stands under the name, without opening it.
Finding LookAt(const std::string& path) {
  struct stat info;
  if (lstat(path.c_str(), &info) != 0) {
    // Other errors will be told by whoever opens or creates it.
    return {.found = errno == ENOENT ? Found::kAbsent : Found::kUsable};
  }
  if (!S_ISREG(info.st_mode)) return Unusable("it is no regular file");
  if (info.st_uid != geteuid()) return Unusable("it belongs to another user");
  if (info.st_mode & (S_IWGRP | S_IWOTH)) return Unusable("group or others may write it");
  return {.found = info.st_size == 0 ? Found::kAbsent : Found::kUsable};
}

// SQLITE_ERROR for statements that are right in themselves: the tables or the format are not what
// they should be.
bool IsPlainError(const Status& status) {
  const ErrorDetail detail = DetailOf(status);
  return detail.domain == Domain::kSqlite && detail.native_code == SQLITE_ERROR;
}

int CountStatements(std::string_view schema) {
  int count = 0;
  for (size_t at = 0; (at = schema.find("\nCREATE ", at)) != std::string_view::npos; ++at) ++count;
  return count;
}

// SQLite keeps the text of each definition. One flipped bit in it can make every write fail.
StatusOr<bool> HasOurTables(Connection& connection) {
  const std::string_view schema = kSchema;
  int count = 0;
  Query query(connection, kSchemaTexts);
  while (query.Step()) {
    const std::string_view text = query.ColumnBlob(0);
    if (text == kSequenceTable) continue;
    if (schema.find(text) == std::string_view::npos) return false;
    ++count;
  }
  TL_RETURN_IF_ERROR(query.status());
  return count == CountStatements(schema);
}

// What an open database contains. The error may be one of reading or of content.
StatusOr<Finding> Inspect(Connection& connection) {
  TL_ASSIGN_OR_RETURN(const int64_t application, connection.Number("PRAGMA application_id"));
  TL_ASSIGN_OR_RETURN(const int64_t version, connection.Number("PRAGMA user_version"));
  TL_ASSIGN_OR_RETURN(const int64_t objects,
                      connection.Number("SELECT count(*) FROM sqlite_schema"));
  // A process was killed while creating it.
  if (objects == 0 && application == 0 && version == 0) return Finding{.found = Found::kAbsent};
  if (application != kApplicationId) return Unusable("another program's database");
  if (version != kSchemaVersion) return Finding{.found = Found::kOtherVersion};
  TL_ASSIGN_OR_RETURN(const bool ours, HasOurTables(connection));
  if (!ours) return Unusable("its tables are not ours");
  return Finding{.found = Found::kUsable};
}

// NORMAL keeps the file sound at power loss (the last entries may be missing). The log is cut back
// to 4 MiB after a burst.
Status Configure(Connection& connection) {
  return connection.Execute(
      "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA journal_size_limit=4194304");
}

StatusOr<Finding> OpenAndInspect(const ConnectionOptions& options) {
  StatusOr<std::unique_ptr<Connection>> connection = Connection::Open(options);
  Status status = connection.status();
  Finding finding{.found = Found::kUsable};
  if (status.ok()) {
    StatusOr<Finding> inspected = Inspect(**connection);
    status = inspected.status();
    if (status.ok()) finding = *std::move(inspected);
    if (status.ok() && finding.found == Found::kUsable && !options.immutable) {
      status = Configure(**connection);
      if (status.ok() && (*connection)->read_only() && access(options.path.c_str(), W_OK) == 0) {
        return Unusable("its header forbids writing");
      }
    }
  }
  if (IsDamage(status) || IsPlainError(status)) {
    // Closing must not copy a log into a file that is kept as evidence.
    if (connection.ok()) (*connection)->LeaveLogOnClose();
    return Unusable(status.message());
  }
  TL_RETURN_IF_ERROR(status);
  if (finding.found == Found::kUsable) finding.connection = *std::move(connection);
  return finding;
}

ConnectionOptions ConnectionTo(const DatabaseFileOptions& options, const std::string& path) {
  return {
      .path = path, .immutable = false, .busy_timeout = options.busy_timeout, .vfs = options.vfs};
}

// Without the lock another process may move or create the file at any point of this. Then neither
// the answer nor an error tells anything, and the connection is to a file that no longer has the
// name: its log on closing would be that of the new one.
StatusOr<Finding> Examine(const DatabaseFileOptions& options, const std::string& path) {
  const FileIdentity identity = IdentityOf(path);
  StatusOr<Finding> finding = LookAt(path);
  if (finding->found == Found::kUsable) finding = OpenAndInspect(ConnectionTo(options, path));
  if (IdentityOf(path) != identity) {
    if (finding.ok() && finding->connection != nullptr) finding->connection->LeaveLogOnClose();
    return Finding{.found = Found::kReplaced};
  }
  if (finding.ok()) finding->identity = identity;
  return finding;
}

Status WriteSchema(Connection& connection) {
  Transaction transaction(connection);
  TL_RETURN_IF_ERROR(transaction.Begin());
  TL_RETURN_IF_ERROR(connection.Execute(kSchema));
  char header[80];
  std::snprintf(header, sizeof(header), "PRAGMA application_id=%lld; PRAGMA user_version=%d",
                static_cast<long long>(kApplicationId), kSchemaVersion);
  TL_RETURN_IF_ERROR(connection.Execute(header));
  return transaction.Commit();
}

Status Create(const DatabaseFileOptions& options, const std::string& path) {
  // mknod makes a file without a descriptor (see IdentityOf) and with the right mode from the
  // start; SQLite gives its log the same one.
  if (mknod(path.c_str(), S_IFREG | 0600, 0) != 0 && errno != EEXIST) {
    return OsError(errno, "create " + path);
  }
  TL_ASSIGN_OR_RETURN(auto connection, Connection::Open(ConnectionTo(options, path)));
  // Kernels are tens to hundreds of kilobytes: larger pages make shorter chains.
  TL_RETURN_IF_ERROR(connection->Execute("PRAGMA page_size=8192; PRAGMA auto_vacuum=INCREMENTAL"));
  TL_RETURN_IF_ERROR(Configure(*connection));
  return WriteSchema(*connection);
}

bool Exists(const std::string& path) {
  struct stat info;
  return lstat(path.c_str(), &info) == 0;
}

// The log goes first: a database without it is at worst older, a log without its database would be
// taken for the new one's.
StatusOr<std::string> RenameAside(const std::string& path) {
  for (int n = 1; n <= kMaxQuarantinedFiles; ++n) {
    const std::string target = path + ".quarantined-" + std::to_string(n);
    if (Exists(target) || Exists(target + "-wal") || Exists(target + "-shm")) continue;
    for (const char* suffix : {"-wal", "-shm", "-journal", ""}) {
      if (rename((path + suffix).c_str(), (target + suffix).c_str()) != 0 && errno != ENOENT) {
        return OsError(errno, "rename " + path + suffix);
      }
    }
    return target;
  }
  return OsError(ENOSPC, "too many quarantined files beside " + path);
}

// Brings a usable database about under the name, or says kOtherVersion. The second look happens
// under the lock: another process may have done the work meanwhile. kReplaced even then is somebody
// who takes no lock.
StatusOr<Finding> OpenNamed(const DatabaseFileOptions& options, const std::string& path,
                            absl::Time deadline, std::vector<std::string>& notes) {
  TL_ASSIGN_OR_RETURN(Finding finding, Examine(options, path));
  if (finding.found == Found::kUsable || finding.found == Found::kOtherVersion) return finding;
  TL_ASSIGN_OR_RETURN(const SetupLock lock, SetupLock::Take(options, deadline));
  TL_ASSIGN_OR_RETURN(finding, Examine(options, path));
  if (finding.found == Found::kUnusable) {
    TL_ASSIGN_OR_RETURN(const std::string target, RenameAside(path));
    notes.push_back(path + " was moved to " + target + ": " + finding.why);
    finding.found = Found::kAbsent;
  }
  if (finding.found == Found::kAbsent) {
    TL_RETURN_IF_ERROR(Create(options, path));
    TL_ASSIGN_OR_RETURN(finding, Examine(options, path));
  }
  return finding;
}

// Busy is what others cause while they create or recover the file, replaced what those do who clear
// the directory: worth a few tries.
StatusOr<Finding> OpenPatiently(const DatabaseFileOptions& options, const std::string& path,
                                std::vector<std::string>& notes) {
  const absl::Time deadline = absl::Now() + options.open_timeout;
  while (true) {
    StatusOr<Finding> finding = OpenNamed(options, path, deadline, notes);
    const int64_t code = DetailOf(finding.status()).native_code & 0xFF;
    const bool busy = DetailOf(finding.status()).domain == Domain::kSqlite &&
                      (code == SQLITE_BUSY || code == SQLITE_LOCKED || code == SQLITE_PROTOCOL);
    const bool replaced = finding.ok() && finding->found == Found::kReplaced;
    if (!(busy || replaced) || absl::Now() > deadline) return finding;
    absl::SleepFor(absl::Milliseconds(2));
  }
}

}  // namespace

FileIdentity IdentityOf(const std::string& path) {
  struct stat info;
  if (lstat(path.c_str(), &info) != 0) return {};
  return {.device = static_cast<uint64_t>(info.st_dev),
          .inode = static_cast<uint64_t>(info.st_ino)};
}

StatusOr<DatabaseFile> OpenDatabaseFile(const DatabaseFileOptions& options) {
  DatabaseFile file;
  for (const char* name : {kDatabaseName, kAlternateName}) {
    file.path = options.directory + "/" + name;
    TL_ASSIGN_OR_RETURN(Finding finding, OpenPatiently(options, file.path, file.notes));
    if (finding.found == Found::kOtherVersion) continue;
    if (finding.found != Found::kUsable) {
      return MakeError(absl::StatusCode::kUnavailable,
                       "others keep replacing " + file.path + " while it is opened");
    }
    file.connection = std::move(finding.connection);
    file.identity = finding.identity;
    return file;
  }
  return MakeError(absl::StatusCode::kFailedPrecondition,
                   "no usable cache database in " + options.directory +
                       ": the files there belong to another version");
}

StatusOr<std::unique_ptr<Connection>> OpenAnotherConnection(const std::string& path,
                                                            const std::string& vfs,
                                                            absl::Duration busy_timeout) {
  TL_ASSIGN_OR_RETURN(
      auto connection,
      Connection::Open(
          {.path = path, .immutable = false, .busy_timeout = busy_timeout, .vfs = vfs}));
  TL_RETURN_IF_ERROR(Configure(*connection));
  return connection;
}

StatusOr<std::unique_ptr<Connection>> CreatePlainDatabase(const std::string& path) {
  if (mknod(path.c_str(), S_IFREG | 0600, 0) != 0) return OsError(errno, "create " + path);
  TL_ASSIGN_OR_RETURN(auto connection,
                      Connection::Open({.path = path, .busy_timeout = {}, .vfs = {}}));
  // Whoever is interrupted throws the file away, so nothing needs to be undone or kept.
  TL_RETURN_IF_ERROR(connection->Execute(
      "PRAGMA page_size=4096; PRAGMA journal_mode=MEMORY; PRAGMA synchronous=OFF"));
  TL_RETURN_IF_ERROR(WriteSchema(*connection));
  return connection;
}

// https://www.sqlite.org/fileformat.html, "The Database Header".
bool IsPlainDatabase(const std::string& path) {
  constexpr std::string_view kMagic("SQLite format 3\0", 16);
  constexpr unsigned char kWithoutLog = 1;  // of both versions of the format; 2 has a log
  unsigned char header[100];
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return false;
  const bool whole = read(fd, header, sizeof(header)) == sizeof(header);
  close(fd);
  if (!whole || std::memcmp(header, kMagic.data(), kMagic.size()) != 0) return false;
  int64_t application = 0;
  for (int i = 68; i < 72; ++i) application = application << 8 | header[i];
  return header[18] == kWithoutLog && header[19] == kWithoutLog && application == kApplicationId;
}

StatusOr<DatabaseFile> OpenDatabaseFileReadOnly(const std::string& path, const std::string& vfs) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return OsError(errno, "stat " + path);
  const bool trusted = info.st_uid == geteuid() || info.st_uid == 0;
  if (!S_ISREG(info.st_mode) || !trusted || (info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return MakeError(absl::StatusCode::kPermissionDenied,
                     path +
                         " must be a regular file of this user or of root that nobody else may "
                         "write");
  }
  TL_ASSIGN_OR_RETURN(Finding finding,
                      OpenAndInspect({.path = path, .immutable = true, .vfs = vfs}));
  if (finding.found != Found::kUsable) {
    return MakeError(absl::StatusCode::kDataLoss,
                     path + " is no cache of this version" +
                         (finding.why.empty() ? std::string() : ": " + finding.why));
  }
  DatabaseFile file;
  file.connection = std::move(finding.connection);
  file.path = path;
  file.identity = IdentityOf(path);
  return file;
}

StatusOr<std::string> MoveDatabaseAside(const DatabaseFileOptions& options, const std::string& path,
                                        const FileIdentity& damaged) {
  TL_ASSIGN_OR_RETURN(const SetupLock lock,
                      SetupLock::Take(options, absl::Now() + options.open_timeout));
  if (IdentityOf(path) != damaged) return std::string();
  return RenameAside(path);
}

}  // namespace tl
