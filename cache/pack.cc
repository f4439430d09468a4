#include "cache/pack.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "cache/connection.h"
#include "cache/database_file.h"
#include "cache/directory.h"
#include "cache/row.h"
#include "cache/sqlite_store.h"

namespace tl {
namespace {

constexpr char kContents[] = "SELECT count(*), coalesce(sum(bytes), 0) FROM usage";

// A pack takes the place of nothing but an older pack, or of an empty file: never that of a cache's
// database, whose log beside it would then be read as the pack's.
Status CheckReplaceable(const std::string& path) {
  struct stat info;
  if (lstat(path.c_str(), &info) != 0) return absl::OkStatus();
  if (S_ISREG(info.st_mode) && (info.st_size == 0 || IsPlainDatabase(path))) {
    return absl::OkStatus();
  }
  return MakeError(absl::StatusCode::kFailedPrecondition,
                   path +
                       " exists and is no pack; a pack replaces an older one only. Choose "
                       "another name, or remove the file");
}

// A name beside `path` that goes with the object unless it was published.
class UnfinishedFile {
 public:
  explicit UnfinishedFile(const std::string& path)
      : target_(path), path_(path + ".writing-" + std::to_string(getpid())) {
    // Left by a process of the same number that was killed.
    unlink(path_.c_str());
  }
  ~UnfinishedFile() {
    if (!path_.empty()) unlink(path_.c_str());
  }
  UnfinishedFile(const UnfinishedFile&) = delete;
  UnfinishedFile& operator=(const UnfinishedFile&) = delete;

  const std::string& path() const { return path_; }

  // Readable by everybody, writable by nobody, on the disk, and only then under its name.
  Status Publish() {
    const int fd = open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) return OsError(errno, "open " + path_);
    const int failed = fchmod(fd, 0444) != 0 || fsync(fd) != 0 ? errno : 0;
    close(fd);
    if (failed != 0) return OsError(failed, "synchronise " + path_);
    if (rename(path_.c_str(), target_.c_str()) != 0) return OsError(errno, "rename to " + target_);
    path_.clear();
    return absl::OkStatus();
  }

 private:
  const std::string target_;
  std::string path_;
};

Status CopyEntries(ArtifactStore& store, Connection& pack,
                   absl::FunctionRef<bool(const ArtifactKey& key)> wanted) {
  Status status;
  TL_RETURN_IF_ERROR(store.Visit([&](const ArtifactKey& key, const Artifact& artifact) {
    if (wanted(key)) status = WriteArtifact(pack, key, artifact, &HashBytes);
    return status.ok();
  }));
  return status;
}

StatusOr<PackContents> Fill(ArtifactStore& store, Connection& pack,
                            absl::FunctionRef<bool(const ArtifactKey& key)> wanted) {
  PackContents contents;
  Transaction transaction(pack);
  TL_RETURN_IF_ERROR(transaction.Begin());
  TL_RETURN_IF_ERROR(CopyEntries(store, pack, wanted));
  TL_ASSIGN_OR_RETURN(const std::vector<Record> records, store.ListRecords());
  for (const Record& record : records) {
    TL_RETURN_IF_ERROR(WriteRecord(pack, record, &HashBytes));
  }
  contents.records = static_cast<int64_t>(records.size());
  {
    // Counted in the pack: two layers of a store may hold the same build.
    Query query(pack, kContents);
    if (query.Step()) {
      contents.entries = query.ColumnInt(0);
      contents.bytes = query.ColumnInt(1);
    }
    TL_RETURN_IF_ERROR(query.status());
  }
  TL_RETURN_IF_ERROR(transaction.Commit());
  return contents;
}

Status CheckSound(const std::string& path, ArtifactStore& pack) {
  TL_ASSIGN_OR_RETURN(const VerifyReport report, pack.Verify());
  if (report.sound()) return absl::OkStatus();
  return MakeError(absl::StatusCode::kDataLoss,
                   path + " is damaged and nothing of it was taken: " +
                       (report.notes.empty() ? std::string("an entry") : report.notes.front()));
}

}  // namespace

StatusOr<std::unique_ptr<ArtifactStore>> OpenPack(const std::string& path, WarningCallback warn) {
  SqliteStoreOptions options;
  options.warn = std::move(warn);
  return SqliteStore::OpenReadOnly(path, options);
}

StatusOr<PackContents> WritePack(ArtifactStore& store, const std::string& path,
                                 absl::FunctionRef<bool(const ArtifactKey& key)> wanted) {
  TL_RETURN_IF_ERROR(CheckReplaceable(path));
  UnfinishedFile file(path);
  PackContents contents;
  {
    TL_ASSIGN_OR_RETURN(const auto pack, CreatePlainDatabase(file.path()));
    TL_ASSIGN_OR_RETURN(contents, Fill(store, *pack, wanted));
  }
  TL_RETURN_IF_ERROR(file.Publish());
  return contents;
}

StatusOr<ImportCounts> ImportPack(const std::string& path, ArtifactStore& store) {
  TL_ASSIGN_OR_RETURN(const std::unique_ptr<ArtifactStore> pack, OpenPack(path, nullptr));
  TL_RETURN_IF_ERROR(CheckSound(path, *pack));
  ImportCounts counts;
  Status status;
  TL_RETURN_IF_ERROR(pack->Visit([&](const ArtifactKey& key, const Artifact& artifact) {
    if (store.Find(key, {.match = MatchMode::kBuild, .exclude = {}}).has_value()) {
      ++counts.present;
      return true;
    }
    status = store.Put(key, artifact);
    if (status.ok()) ++counts.added;
    return status.ok();
  }));
  TL_RETURN_IF_ERROR(status);
  TL_ASSIGN_OR_RETURN(const std::vector<Record> records, pack->ListRecords());
  for (const Record& record : records) {
    TL_RETURN_IF_ERROR(store.PutRecord(record));
    ++counts.records;
  }
  return counts;
}

}  // namespace tl
