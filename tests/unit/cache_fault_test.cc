// The store on a bad day: damage, hostile places, failing disks. Whatever happens, the answer is
// the right artifact or none, and work goes on.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <tuple>

#include "cache/directory.h"
#include "cache/open_cache.h"
#include "tests/unit/cache_fault_vfs.h"
#include "tests/unit/cache_testing.h"

namespace tl {
namespace {

using namespace cache_testing;  // NOLINT(build/namespaces)
namespace fs = std::filesystem;
using ::testing::HasSubstr;

// --- Damaged entries
// ------------------------------------------------------------------------------

// Every byte of every stored field, one after the other.
TEST(CacheDamageTest, EveryFlippedByteIsNoticed) {
  TempDir dir;
  auto store = OpenStore(dir);
  const ArtifactKey key = KeyOf("p");
  const Artifact artifact = ArtifactOf("p", 24);
  ASSERT_TRUE(store->Put(key, artifact).ok());
  RawDatabase raw(dir.database());
  int64_t flips = 0;
  for (const std::string column : {"semantic_document", "compiler_identity", "compiler", "metadata",
                                   "report", "log", "binary", "checksum"}) {
    const size_t size = raw.Value("SELECT " + column + " FROM artifact").size();
    ASSERT_GT(size, 0u) << column;
    for (size_t i = 0; i < size; ++i) {
      std::string bytes = raw.Value("SELECT " + column + " FROM artifact");
      bytes[i] = static_cast<char>(bytes[i] ^ (1 << (i % 8)));
      raw.SetBlob("UPDATE artifact SET " + column + " = ?1", bytes);
      ++flips;
      ASSERT_FALSE(store->Find(key, {}).has_value()) << column << " byte " << i;
      ASSERT_EQ(store->Stats().quarantined, flips) << column << " byte " << i;
      ASSERT_EQ(store->Stats().entries, 0);
      ASSERT_TRUE(store->Put(key, artifact).ok());
      ASSERT_EQ(store->Find(key, {})->artifact, artifact);
    }
  }
  raw.Execute("UPDATE artifact SET created = created + 1");
  EXPECT_FALSE(store->Find(key, {}).has_value());
  // Evidence is kept, but not without end.
  EXPECT_EQ(raw.Value("SELECT count(*) FROM quarantine"), "16");
  EXPECT_EQ(raw.Value("SELECT reason FROM quarantine"), "its checksum does not match");
}

TEST(CacheDamageTest, BinaryWithAnothersMetadata) {
  TempDir dir;
  auto store = OpenStore(dir);
  ASSERT_TRUE(store->Put(KeyOf("p"), ArtifactOf("p")).ok());
  ASSERT_TRUE(store->Put(KeyOf("q"), ArtifactOf("q")).ok());
  RawDatabase raw(dir.database());
  raw.Execute(
      "UPDATE artifact SET binary = (SELECT binary FROM artifact WHERE id = 2) WHERE id = 1");
  raw.Execute("UPDATE artifact SET log = metadata, metadata = log WHERE id = 2");
  EXPECT_FALSE(store->Find(KeyOf("p"), {}).has_value());
  EXPECT_FALSE(store->Find(KeyOf("q"), {}).has_value());
}

// A damaged build does not hide a sound one.
TEST(CacheDamageTest, NextBuildServes) {
  TempDir dir;
  auto store = OpenStore(dir);
  ASSERT_TRUE(store->Put(KeyOf("p", "other"), ArtifactOf("other")).ok());
  ASSERT_TRUE(store->Put(KeyOf("p", "own"), ArtifactOf("own")).ok());
  RawDatabase(dir.database()).Execute("UPDATE artifact SET binary = x'00' WHERE id = 2");
  EXPECT_EQ(store->Find(KeyOf("p", "own"), {})->artifact, ArtifactOf("other"));
}

TEST(CacheDamageTest, VerifyFindsAndQuarantines) {
  TempDir dir;
  WarningLog log;
  SqliteStoreOptions options;
  options.warn = log.callback();
  auto store = OpenStore(dir, options);
  for (const char* name : {"a", "b", "c", "d"}) {
    ASSERT_TRUE(store->Put(KeyOf(name), ArtifactOf(name)).ok());
  }
  RawDatabase(dir.database()).Execute("UPDATE artifact SET report = x'00' WHERE id IN (2, 3)");
  const auto report = store->Verify();
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->checked, 4);
  EXPECT_EQ(report->damaged, 2);
  EXPECT_EQ(report->notes.size(), 2u);
  EXPECT_EQ(store->Verify()->checked, 2);
  EXPECT_EQ(log.messages().size(), 1u);
}

TEST(CacheDamageTest, DamagedPackIsNotServedNorChanged) {
  TempDir dir;
  ASSERT_TRUE(OpenStore(dir)->Put(KeyOf("p"), ArtifactOf("p")).ok());
  RawDatabase(dir.database()).Execute("UPDATE artifact SET report = x'00'");
  const std::string before = ReadFile(dir.database());
  {
    auto pack = SqliteStore::OpenReadOnly(dir.database(), {});
    ASSERT_TRUE(pack.ok());
    EXPECT_FALSE((*pack)->Find(KeyOf("p"), {}).has_value());
    EXPECT_FALSE((*pack)->Find(KeyOf("p"), {}).has_value());
    EXPECT_EQ((*pack)->Stats().quarantined, 1);
  }
  EXPECT_EQ(ReadFile(dir.database()), before);
}

TEST(CacheDamageTest, DamagedRecordIsAMiss) {
  TempDir dir;
  auto store = OpenStore(dir);
  ASSERT_TRUE(store->PutRecord({"s", "k", "value"}).ok());
  RawDatabase(dir.database()).Execute("UPDATE record SET value = CAST('velue' AS BLOB)");
  EXPECT_FALSE(store->FindRecord("k").has_value());
  ASSERT_TRUE(store->PutRecord({"s", "k", "value"}).ok());
  EXPECT_EQ(store->FindRecord("k")->value, "value");
}

// --- Damaged files
// --------------------------------------------------------------------------------

struct FileCase {
  const char* name;
  std::function<void(const TempDir&)> spoil;
  // What becomes of the file: moved aside, or (for an empty one) simply used.
  bool moved_aside = true;
};

class DamagedFileTest : public ::testing::TestWithParam<FileCase> {};

void Truncate(const TempDir& dir, uintmax_t size) { fs::resize_file(dir.database(), size); }

void Replace(const TempDir& dir, const std::function<void()>& put) {
  fs::remove(dir.database());
  put();
}

const FileCase kFileCases[] = {
    {"Empty", [](const TempDir& dir) { Truncate(dir, 0); }, false},
    // SQLite takes a single byte for an empty database.
    {"OneByte", [](const TempDir& dir) { Truncate(dir, 1); }, false},
    {"HalfAHeader", [](const TempDir& dir) { Truncate(dir, 50); }},
    {"HeaderOnly", [](const TempDir& dir) { Truncate(dir, 100); }},
    {"Zeroed",
     [](const TempDir& dir) {
       WriteFile(dir.database(), std::string(fs::file_size(dir.database()), '\0'));
     }},
    {"Text", [](const TempDir& dir) { WriteFile(dir.database(), "This is no database.\n"); }},
    {"LongText", [](const TempDir& dir) { WriteFile(dir.database(), std::string(300'000, 'x')); }},
    {"Directory",
     [](const TempDir& dir) { Replace(dir, [&] { fs::create_directory(dir.database()); }); }},
    {"FullDirectory",
     [](const TempDir& dir) {
       Replace(dir, [&] { fs::create_directories(dir.database() + "/x"); });
     }},
    {"Fifo",
     [](const TempDir& dir) { Replace(dir, [&] { mkfifo(dir.database().c_str(), 0600); }); }},
    {"SymbolicLink",
     [](const TempDir& dir) {
       Replace(dir, [&] {
         WriteFile(dir.path() + "/precious", "not to be touched");
         fs::create_symlink(dir.path() + "/precious", dir.database());
       });
     }},
    {"DanglingLink",
     [](const TempDir& dir) {
       Replace(dir, [&] { fs::create_symlink(dir.path() + "/nowhere", dir.database()); });
     }},
    {"WorldWritable", [](const TempDir& dir) { chmod(dir.database().c_str(), 0666); }},
    {"AnotherProgramsDatabase",
     [](const TempDir& dir) {
       Replace(dir, [&] { RawDatabase(dir.database()).Execute("CREATE TABLE users (name)"); });
     }},
    {"TablesMissing",
     [](const TempDir& dir) { RawDatabase(dir.database()).Execute("DROP TABLE usage"); }},
    {"ColumnsMissing",
     [](const TempDir& dir) {
       RawDatabase(dir.database()).Execute("ALTER TABLE artifact DROP COLUMN report");
     }},
};

INSTANTIATE_TEST_SUITE_P(Files, DamagedFileTest, ::testing::ValuesIn(kFileCases),
                         [](const auto& info) { return info.param.name; });

TEST_P(DamagedFileTest, IsMovedAsideAndWorkGoesOn) {
  TempDir dir;
  ASSERT_TRUE(OpenStore(dir)->Put(KeyOf("p"), ArtifactOf("p", 50'000)).ok());
  GetParam().spoil(dir);
  for (int round = 0; round < 2; ++round) {
    WarningLog log;
    SqliteStoreOptions options;
    options.warn = log.callback();
    auto store = OpenStore(dir, options);
    ASSERT_NE(store, nullptr);
    // The first process repairs, the second finds all in order.
    EXPECT_EQ(store->Find(KeyOf("p"), {}).has_value(), round == 1);
    ASSERT_TRUE(store->Put(KeyOf("p"), ArtifactOf("p")).ok());
    EXPECT_EQ(store->Find(KeyOf("p"), {})->artifact, ArtifactOf("p"));
    const int moved = GetParam().moved_aside && round == 0 ? 1 : 0;
    EXPECT_EQ(store->Stats().quarantined, moved);
    EXPECT_EQ(log.messages().size(), static_cast<size_t>(moved));
  }
  EXPECT_EQ(fs::exists(fs::symlink_status(dir.database() + ".quarantined-1")),
            GetParam().moved_aside);
  if (fs::exists(dir.path() + "/precious")) {
    EXPECT_EQ(ReadFile(dir.path() + "/precious"), "not to be touched");
  }
  EXPECT_FALSE(fs::exists(dir.path() + "/nowhere"));
}

TEST(CacheFileTest, QuarantinedFilesAreNumbered) {
  TempDir dir;
  for (int i = 1; i <= 3; ++i) {
    ASSERT_NE(OpenStore(dir), nullptr);
    WriteFile(dir.database(), "text " + std::to_string(i));
  }
  ASSERT_NE(OpenStore(dir), nullptr);
  for (int i = 1; i <= 3; ++i) {
    EXPECT_EQ(ReadFile(dir.database() + ".quarantined-" + std::to_string(i)),
              "text " + std::to_string(i));
  }
}

// Truncated at every page, and in the middle of each.
TEST(CacheFileTest, TruncatedAnywhere) {
  TempDir dir;
  {
    auto store = OpenStore(dir);
    for (int i = 0; i < 6; ++i) {
      const std::string name = std::to_string(i);
      ASSERT_TRUE(store->Put(KeyOf(name), ArtifactOf(name, 20'000)).ok());
    }
  }
  const std::string whole = ReadFile(dir.database());
  ASSERT_GT(whole.size(), 100'000u);
  for (size_t size = 4096; size < whole.size(); size += 4096) {
    TempDir copy;
    ASSERT_TRUE(fs::create_directory(copy.cache()));
    chmod(copy.cache().c_str(), 0700);
    WriteFile(copy.database(), whole.substr(0, size));
    chmod(copy.database().c_str(), 0600);
    auto store = OpenStore(copy);
    ASSERT_NE(store, nullptr);
    for (int i = 0; i < 6; ++i) {
      const std::string name = std::to_string(i);
      const auto hit = store->Find(KeyOf(name), {});
      EXPECT_TRUE(!hit.has_value() || hit->artifact == ArtifactOf(name, 20'000));
    }
    EXPECT_TRUE(store->Put(KeyOf("new"), ArtifactOf("new")).ok());
    EXPECT_TRUE(store->Find(KeyOf("new"), {}).has_value());
    // Half of the last page may be all that it held.
    if (size + 8192 <= whole.size()) {
      EXPECT_EQ(copy.CountQuarantined(), 1) << size;
    }
  }
}

// The header still promises all pages, but the last ones are gone while the store is open.
TEST(CacheFileTest, DamagedUnderAnOpenStore) {
  TempDir dir;
  WarningLog log;
  SqliteStoreOptions options;
  options.warn = log.callback();
  {
    auto store = OpenStore(dir);
    for (int i = 0; i < 40; ++i) {
      ASSERT_TRUE(store->Put(KeyOf(std::to_string(i)), ArtifactOf("x", 50'000)).ok());
    }
  }
  auto store = OpenStore(dir, options);
  fs::resize_file(dir.database(), 8192 * 3);
  for (int i = 0; i < 40; ++i) {
    const auto hit = store->Find(KeyOf(std::to_string(i)), {});
    EXPECT_TRUE(!hit.has_value() || hit->artifact == ArtifactOf("x", 50'000));
  }
  EXPECT_TRUE(store->Put(KeyOf("new"), ArtifactOf("new")).ok());
  EXPECT_EQ(store->Find(KeyOf("new"), {})->artifact, ArtifactOf("new"));
  EXPECT_EQ(dir.CountQuarantined(), 1);
  EXPECT_LE(log.messages().size(), 2u);
}

TEST(CacheFileTest, RemovedUnderAnOpenStore) {
  TempDir dir;
  auto store = OpenStore(dir);
  ASSERT_TRUE(store->Put(KeyOf("p"), ArtifactOf("p")).ok());
  fs::remove_all(dir.cache());
  ASSERT_TRUE(store->Put(KeyOf("q"), ArtifactOf("q")).ok());
  EXPECT_EQ(store->Find(KeyOf("q"), {})->artifact, ArtifactOf("q"));
  // It is in the new file, not in the one without a name.
  EXPECT_TRUE(OpenStore(dir)->Find(KeyOf("q"), {}).has_value());
}

// Another process found the file damaged and put a new one in its place: ours closes without
// touching the new one's log.
TEST(CacheFileTest, ReplacedUnderAnOpenStore) {
  TempDir dir;
  auto old_store = OpenStore(dir);
  ASSERT_TRUE(old_store->Put(KeyOf("old"), ArtifactOf("old")).ok());
  for (const char* suffix : {"-wal", "-shm", ""}) {
    fs::rename(dir.database() + suffix, dir.database() + ".quarantined-1" + suffix);
  }
  auto new_store = OpenStore(dir);
  ASSERT_TRUE(new_store->Put(KeyOf("new"), ArtifactOf("new")).ok());
  EXPECT_TRUE(old_store->Find(KeyOf("old"), {}).has_value());
  old_store.reset();
  ASSERT_TRUE(new_store->Put(KeyOf("new2"), ArtifactOf("new2")).ok());
  auto third = OpenStore(dir);
  EXPECT_TRUE(third->Find(KeyOf("new"), {}).has_value());
  EXPECT_TRUE(third->Find(KeyOf("new2"), {}).has_value());
  EXPECT_EQ(third->Stats().quarantined, 0);
}

TEST(CacheFileTest, OtherSchemaVersionIsLeftAlone) {
  for (const int version : {0, kSchemaVersion + 1, 1'000'000}) {
    TempDir dir;
    ASSERT_TRUE(OpenStore(dir)->Put(KeyOf("p"), ArtifactOf("p")).ok());
    RawDatabase(dir.database()).Execute("PRAGMA user_version=" + std::to_string(version));
    const std::string before = ReadFile(dir.database());
    for (int round = 0; round < 2; ++round) {
      auto store = OpenStore(dir);
      EXPECT_EQ(store->Find(KeyOf("p"), {}).has_value(), round == 1);
      EXPECT_TRUE(store->Put(KeyOf("p"), ArtifactOf("p")).ok());
      EXPECT_EQ(store->Stats().quarantined, 0);
    }
    EXPECT_EQ(ReadFile(dir.database()), before);
    EXPECT_EQ(dir.Count("quarantined"), 0);
    EXPECT_EQ(dir.Count(kAlternateName), 1);
  }
}

// --- Places
// ---------------------------------------------------------------------------------------

TEST(CacheDirectoryTest, Default) {
  const struct {
    const char* xdg;
    const char* home;
    const char* expected;  // null: an error
  } cases[] = {
      {"/x", "/h", "/x/tilejit"},      {nullptr, "/h", "/h/.cache/tilejit"},
      {"", "/h", "/h/.cache/tilejit"}, {"relative", "/h", "/h/.cache/tilejit"},
      {"relative", nullptr, nullptr},  {nullptr, "", nullptr},
      {nullptr, ".", nullptr},         {nullptr, nullptr, nullptr},
  };
  for (const auto& c : cases) {
    const auto directory = DefaultCacheDirectory(c.xdg, c.home);
    EXPECT_EQ(directory.ok(), c.expected != nullptr);
    if (directory.ok() && c.expected != nullptr) {
      EXPECT_EQ(*directory, c.expected);
    }
  }
}

TEST(CacheDirectoryTest, NetworkFileSystems) {
  for (const uint64_t type : {0x6969u, 0xFF534D42u, 0xFE534D42u, 0x65735546u, 0x00C36400u}) {
    EXPECT_TRUE(IsNetworkFileSystemType(type));
  }
  // ext4, xfs, btrfs, tmpfs, overlayfs
  for (const uint64_t type : {0xEF53u, 0x58465342u, 0x9123683Eu, 0x01021994u, 0x794C7630u}) {
    EXPECT_FALSE(IsNetworkFileSystemType(type));
  }
  EXPECT_FALSE(IsOnNetworkFileSystem("/does/not/exist"));
}

struct PlaceCase {
  const char* name;
  std::function<std::string(const TempDir&)> prepare;  // returns the cache directory to use
  const char* message;                                 // part of the warning
  bool needs_root = false;
};

const PlaceCase kPlaceCases[] = {
    {"UnderAFile",
     [](const TempDir& dir) {
       WriteFile(dir.path() + "/file", "");
       return dir.path() + "/file/cache";
     },
     "Not a directory"},
    {"AFile",
     [](const TempDir& dir) {
       WriteFile(dir.cache(), "");
       return dir.cache();
     },
     "Not a directory"},
    {"AFifo",
     [](const TempDir& dir) {
       mkfifo(dir.cache().c_str(), 0600);
       return dir.cache();
     },
     "Not a directory"},
    {"ALink",
     [](const TempDir& dir) {
       fs::create_directory(dir.path() + "/elsewhere");
       fs::create_directory_symlink(dir.path() + "/elsewhere", dir.cache());
       return dir.cache();
     },
     "symbolic link"},
    {"ALinkWithSlash",
     [](const TempDir& dir) {
       fs::create_directory(dir.path() + "/elsewhere");
       fs::create_directory_symlink(dir.path() + "/elsewhere", dir.cache());
       return dir.cache() + "//";
     },
     "symbolic link"},
    {"WorldWritable",
     [](const TempDir& dir) {
       fs::create_directory(dir.cache());
       chmod(dir.cache().c_str(), 0777);
       return dir.cache();
     },
     "chmod go-w"},
    {"GroupWritable",
     [](const TempDir& dir) {
       fs::create_directory(dir.cache());
       chmod(dir.cache().c_str(), 0770);
       return dir.cache();
     },
     "chmod go-w"},
    {"WorldWritableParent",
     [](const TempDir& dir) {
       fs::create_directory(dir.path() + "/open");
       chmod((dir.path() + "/open").c_str(), 0777);
       return dir.path() + "/open/cache";
     },
     "writable by everybody"},
    {"SomebodyElses",
     [](const TempDir& dir) {
       fs::create_directory(dir.cache());
       EXPECT_EQ(chown(dir.cache().c_str(), 65534, 65534), 0);
       return dir.cache();
     },
     "belongs to user 65534", true},
    {"NowhereAtAll", [](const TempDir&) { return std::string("/proc/no/such/place"); }, "/proc"},
    {"EmptyName", [](const TempDir&) { return std::string(); }, "is empty"},
    {"NulInName", [](const TempDir&) { return std::string("/tmp/a\0b", 8); }, "NUL"},
    {"LongName", [](const TempDir& dir) { return dir.path() + "/" + std::string(300, 'n'); },
     "File name too long"},
    {"LongPath",
     [](const TempDir& dir) {
       std::string path = dir.path();
       while (path.size() < 5000) path += "/" + std::string(200, 'n');
       return path;
     },
     "File name too long"},
};

class HostilePlaceTest : public ::testing::TestWithParam<PlaceCase> {};

INSTANTIATE_TEST_SUITE_P(Places, HostilePlaceTest, ::testing::ValuesIn(kPlaceCases),
                         [](const auto& info) { return info.param.name; });

TEST_P(HostilePlaceTest, MemoryTakesOver) {
  if (GetParam().needs_root && geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  TempDir dir;
  WarningLog log;
  CacheOptions options;
  options.directory = GetParam().prepare(dir);
  options.warn = log.callback();
  auto store = OpenCache(options);
  ASSERT_TRUE(store->Put(KeyOf("p"), ArtifactOf("p")).ok());
  EXPECT_EQ(store->Find(KeyOf("p"), {})->artifact, ArtifactOf("p"));
  ASSERT_EQ(log.messages().size(), 1u);
  EXPECT_THAT(log.messages()[0], HasSubstr(GetParam().message));
  EXPECT_FALSE(fs::exists(dir.path() + "/elsewhere/" + kDatabaseName));
}

TEST(CachePlaceTest, NoHome) {
  WarningLog log;
  CacheOptions options;
  options.directory = DefaultCacheDirectory(nullptr, nullptr);
  options.warn = log.callback();
  auto store = OpenCache(options);
  EXPECT_TRUE(store->Put(KeyOf("p"), ArtifactOf("p")).ok());
  EXPECT_TRUE(store->Find(KeyOf("p"), {}).has_value());
  EXPECT_EQ(log.messages().size(), 1u);
}

TEST(CachePlaceTest, LinksAboveTheDirectoryAreFine) {
  TempDir dir;
  fs::create_directory(dir.path() + "/real");
  fs::create_directory_symlink(dir.path() + "/real", dir.path() + "/link");
  CacheOptions options;
  WarningLog log;
  options.directory = dir.path() + "/link/a b?c#d%41/cache";
  options.warn = log.callback();
  ASSERT_TRUE(OpenCache(options)->Put(KeyOf("p"), ArtifactOf("p")).ok());
  EXPECT_TRUE(OpenCache(options)->Find(KeyOf("p"), {}).has_value());
  EXPECT_TRUE(fs::exists(dir.path() + "/real/a b?c#d%41/cache/" + kDatabaseName));
  EXPECT_TRUE(log.messages().empty());
}

// What is there is used, nothing is written.
TEST(CachePlaceTest, NetworkFileSystem) {
  TempDir dir;
  ASSERT_TRUE(OpenStore(dir)->Put(KeyOf("p"), ArtifactOf("p")).ok());
  const std::string before = ReadFile(dir.database());
  WarningLog log;
  CacheOptions options;
  options.directory = dir.cache();
  options.assume_network_file_system = true;
  options.warn = log.callback();
  {
    auto store = OpenCache(options);
    EXPECT_EQ(store->Find(KeyOf("p"), {})->artifact, ArtifactOf("p"));
    ASSERT_TRUE(store->Put(KeyOf("q"), ArtifactOf("q")).ok());
    EXPECT_EQ(store->Find(KeyOf("q"), {})->artifact, ArtifactOf("q"));
    EXPECT_TRUE(store->TryAcquireLease(HashBytes("k"), "me", absl::Seconds(1))->acquired);
  }
  EXPECT_EQ(ReadFile(dir.database()), before);
  EXPECT_EQ(dir.Count(""), 2);  // the database and the lock of its creation
  ASSERT_EQ(log.messages().size(), 1u);
  EXPECT_THAT(log.messages()[0], HasSubstr("network file system"));
}

TEST(CachePlaceTest, PacksBelow) {
  TempDir pack, dir;
  ASSERT_TRUE(OpenStore(pack)->Put(KeyOf("p"), ArtifactOf("p")).ok());
  WarningLog log;
  CacheOptions options;
  options.directory = dir.cache();
  options.packs = {pack.database(), pack.path() + "/missing"};
  options.warn = log.callback();
  auto store = OpenCache(options);
  EXPECT_EQ(store->Find(KeyOf("p"), {})->artifact, ArtifactOf("p"));
  ASSERT_TRUE(store->Put(KeyOf("q"), ArtifactOf("q")).ok());
  EXPECT_TRUE(OpenStore(dir)->Find(KeyOf("q"), {}).has_value());
  ASSERT_EQ(log.messages().size(), 1u);
  EXPECT_THAT(log.messages()[0], HasSubstr("missing"));
}

// A real read-only directory, as a user whom permissions bind.
TEST(CachePlaceTest, ReadOnlyDirectory) {
  if (geteuid() != 0) GTEST_SKIP() << "needs another user to become";
  TempDir dir;
  chmod(dir.path().c_str(), 0755);
  fs::create_directory(dir.cache());
  ASSERT_EQ(chown(dir.cache().c_str(), 65534, 65534), 0);
  const pid_t child = fork();
  if (child == 0) {
    bool good = setgid(65534) == 0 && setuid(65534) == 0;
    CacheOptions options;
    options.directory = dir.cache();
    good = good && OpenCache(options)->Put(KeyOf("p"), ArtifactOf("p")).ok();
    chmod(dir.database().c_str(), 0400);
    chmod(dir.cache().c_str(), 0500);
    WarningLog log;
    options.warn = log.callback();
    auto store = OpenCache(options);
    const auto hit = store->Find(KeyOf("p"), {});
    good = good && hit.has_value() && hit->artifact == ArtifactOf("p");
    good = good && store->Put(KeyOf("q"), ArtifactOf("q")).ok();
    good = good && store->Find(KeyOf("q"), {}).has_value();
    good = good && log.messages().size() == 1;
    _exit(good ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// --- Failing disks
// --------------------------------------------------------------------------------

struct DiskCase {
  const char* name;
  FaultOp op;
  int code;
  bool short_write = false;
};

const DiskCase kDiskCases[] = {
    {"CannotOpen", kOpenOp, SQLITE_CANTOPEN},
    {"ReadFails", kReadOp, SQLITE_IOERR_READ},
    {"DiskFull", kWriteOp, SQLITE_FULL},
    {"DiskFullShortWrite", kWriteOp, SQLITE_FULL, true},
    {"WriteFails", kWriteOp, SQLITE_IOERR_WRITE},
    {"ReadOnlyDisk", kWriteOp, SQLITE_READONLY},
    {"SyncFails", kSyncOp, SQLITE_IOERR_FSYNC},
    {"TruncateFails", kTruncateOp, SQLITE_IOERR_TRUNCATE},
    {"LockBusy", kLockOp, SQLITE_BUSY},
    {"LockFails", kLockOp, SQLITE_IOERR_LOCK},
    {"NoSharedMemory", kShmOp, SQLITE_IOERR_SHMMAP},
    {"SizeFails", kSizeOp, SQLITE_IOERR_FSTAT},
    {"OutOfMemory", kReadOp, SQLITE_IOERR_NOMEM},
};

class FailingDiskTest : public ::testing::TestWithParam<DiskCase> {
 protected:
  void TearDown() override { FailNothing(); }
};

INSTANTIATE_TEST_SUITE_P(Disks, FailingDiskTest, ::testing::ValuesIn(kDiskCases),
                         [](const auto& info) { return info.param.name; });

// The disk fails from the n-th operation on, for good or once; every n until nothing fails any
// more. In all cases the program gets its kernels, and the next one finds a sound cache.
TEST_P(FailingDiskTest, EveryCallStillWorks) {
  const DiskCase& disk = GetParam();
  for (const int count : {1 << 30, 1}) {
    for (int skip = 0; skip < 120; skip += skip < 12 ? 1 : 9) {
      SCOPED_TRACE(::testing::Message() << "after " << skip << ", " << count << " times");
      TempDir dir;
      CacheOptions options;
      options.directory = dir.cache();
      options.vfs = FaultVfs();
      WarningLog log;
      options.warn = log.callback();
      ASSERT_TRUE(OpenCache(options)->Put(KeyOf("before"), ArtifactOf("before")).ok());
      Faults().short_write = disk.short_write;
      FailAfter(disk.op, disk.code, skip, count);
      {
        auto store = OpenCache(options);
        const auto before = store->Find(KeyOf("before"), {});
        EXPECT_TRUE(!before.has_value() || before->artifact == ArtifactOf("before"));
        for (const char* name : {"p", "q"}) {
          EXPECT_TRUE(store->Put(KeyOf(name), ArtifactOf(name, 30'000)).ok());
          const auto hit = store->Find(KeyOf(name), {});
          EXPECT_TRUE(!hit.has_value() || hit->artifact == ArtifactOf(name, 30'000));
          store->Stats();
        }
      }
      FailNothing();
      EXPECT_LE(log.messages().size(), 4u);  // at most once per kind
      SqliteStoreOptions sound;
      sound.vfs = FaultVfs();
      auto store = OpenStore(dir, sound);
      EXPECT_EQ(store->Find(KeyOf("before"), {})->artifact, ArtifactOf("before"));
      const auto report = store->Verify();
      ASSERT_TRUE(report.ok());
      EXPECT_EQ(report->damaged, 0);
      EXPECT_TRUE(report->notes.empty());
      EXPECT_TRUE(store->Put(KeyOf("after"), ArtifactOf("after")).ok());
      EXPECT_TRUE(store->Find(KeyOf("after"), {}).has_value());
    }
  }
}

TEST_F(FailingDiskTest, FullDiskIsToldOnceAndMemoryServes) {
  TempDir dir;
  WarningLog log;
  CacheOptions options;
  options.directory = dir.cache();
  options.vfs = FaultVfs();
  options.warn = log.callback();
  auto store = OpenCache(options);
  FailAfter(kWriteOp, SQLITE_FULL, 0);
  for (int i = 0; i < 5; ++i) {
    const std::string name = std::to_string(i);
    ASSERT_TRUE(store->Put(KeyOf(name), ArtifactOf(name)).ok());
    EXPECT_EQ(store->Find(KeyOf(name), {})->artifact, ArtifactOf(name));
  }
  ASSERT_EQ(log.messages().size(), 1u);
  EXPECT_THAT(log.messages()[0], HasSubstr("full"));
  EXPECT_EQ(store->Stats().errors, 5);
  FailNothing();
  ASSERT_TRUE(store->Put(KeyOf("later"), ArtifactOf("later")).ok());
  EXPECT_TRUE(OpenStore(dir)->Find(KeyOf("later"), {}).has_value());
}

TEST_F(FailingDiskTest, StatusNamesTheCause) {
  TempDir dir;
  SqliteStoreOptions options;
  options.vfs = FaultVfs();
  auto store = OpenStore(dir, options);
  FailAfter(kWriteOp, SQLITE_FULL, 0);
  const Status status = store->Put(KeyOf("p"), ArtifactOf("p"));
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_EQ(DetailOf(status).domain, Domain::kSqlite);
  EXPECT_EQ(DetailOf(status).native_code, SQLITE_FULL);
}

// --- Others at work while the file is opened
// ----------------------------------------------------

struct MeanwhileCase {
  const char* name;
  std::string content;  // of the file that is found; empty: a sound cache
  std::function<void(const TempDir&)> others;
  bool entry_is_there = false;  // the one that the others wrote
};

void MoveAway(const TempDir& dir) {
  for (const char* suffix : {"-wal", "-shm", ""}) {
    const std::string path = dir.database() + suffix;
    if (fs::exists(path)) fs::rename(path, path + ".away");
  }
}

void StartAnew(const TempDir& dir) {
  MoveAway(dir);
  ASSERT_TRUE(OpenStore(dir)->Put(KeyOf("theirs"), ArtifactOf("theirs")).ok());
}

const MeanwhileCase kMeanwhileCases[] = {
    {"SoundMovedAway", "", MoveAway},
    {"SoundReplaced", "", StartAnew, true},
    {"DamagedMovedAway", "no database", MoveAway},
    {"DamagedReplaced", "no database", StartAnew, true},
};

class MeanwhileTest : public ::testing::TestWithParam<std::tuple<MeanwhileCase, bool>> {
 protected:
  void TearDown() override { OthersMeanwhile() = {}; }
};

INSTANTIATE_TEST_SUITE_P(Others, MeanwhileTest,
                         ::testing::Combine(::testing::ValuesIn(kMeanwhileCases),
                                            ::testing::Bool()),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param).name) +
                                  (std::get<1>(info.param) ? "Before" : "After");
                         });

// The file that has the name in the end is opened, used and left whole; no file is moved that was
// not damaged.
TEST_P(MeanwhileTest, TheFileOfThatNameIsUsed) {
  const auto& [row, before] = GetParam();
  TempDir dir;
  ASSERT_TRUE(OpenStore(dir)->Put(KeyOf("old"), ArtifactOf("old")).ok());
  if (!row.content.empty()) WriteFile(dir.database(), row.content);
  auto& step = before ? OthersMeanwhile().before : OthersMeanwhile().after;
  step = [&] { row.others(dir); };
  SqliteStoreOptions options;
  options.vfs = FaultVfs();
  {
    auto store = OpenStore(dir, options);
    ASSERT_NE(store, nullptr);
    EXPECT_EQ(step, nullptr);
    EXPECT_FALSE(store->Find(KeyOf("old"), {}).has_value());
    EXPECT_EQ(store->Find(KeyOf("theirs"), {}).has_value(), row.entry_is_there);
    ASSERT_TRUE(store->Put(KeyOf("mine"), ArtifactOf("mine")).ok());
  }
  EXPECT_EQ(dir.CountQuarantined(), 0);
  auto store = OpenStore(dir);
  EXPECT_TRUE(store->Find(KeyOf("mine"), {}).has_value());
  EXPECT_EQ(store->Find(KeyOf("theirs"), {}).has_value(), row.entry_is_there);
  EXPECT_EQ(store->Verify()->damaged, 0);
}

// --- fork
// -----------------------------------------------------------------------------------------

TEST(CacheForkTest, ChildLeavesTheParentsStoreAlone) {
  TempDir dir;
  CacheOptions options;
  options.directory = dir.cache();
  auto store = OpenCache(options);
  ASSERT_TRUE(store->Put(KeyOf("p"), ArtifactOf("p")).ok());
  auto direct = OpenStore(dir);
  const pid_t child = fork();
  if (child == 0) {
    bool good = !direct->Find(KeyOf("p"), {}).has_value();
    good = good && absl::IsFailedPrecondition(direct->Put(KeyOf("q"), ArtifactOf("q")));
    direct.reset();
    // One of its own works, in memory.
    auto own = OpenCache(options);
    good = good && own->Put(KeyOf("q"), ArtifactOf("q")).ok();
    good = good && own->Find(KeyOf("q"), {}).has_value();
    own.reset();
    store.reset();
    _exit(good ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  ASSERT_TRUE(store->Put(KeyOf("r"), ArtifactOf("r")).ok());
  EXPECT_TRUE(store->Find(KeyOf("p"), {}).has_value());
  EXPECT_TRUE(direct->Find(KeyOf("r"), {}).has_value());
}

}  // namespace
}  // namespace tl
