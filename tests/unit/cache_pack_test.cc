// Packs: written whole or not at all, read without writing, never trusted before they are checked.
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <map>

#include "cache/memory_store.h"
#include "cache/open_cache.h"
#include "cache/pack.h"
#include "tests/unit/cache_testing.h"

namespace tl {
namespace {

using namespace cache_testing;  // NOLINT(build/namespaces)
using ::testing::ElementsAre;
using ::testing::HasSubstr;

bool Everything(const ArtifactKey&) { return true; }

// A cache with the entries "a", "b", "c" and one tuned configuration.
void Fill(ArtifactStore& store) {
  for (const char* name : {"a", "b", "c"}) {
    ASSERT_TRUE(store.Put(KeyOf(name), ArtifactOf(name)).ok());
  }
  ASSERT_TRUE(store.PutRecord({"scope", "key", "value"}).ok());
}

std::vector<std::string> FilesIn(const std::string& directory) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    names.push_back(entry.path().filename().string());
  }
  return names;
}

class PackTest : public ::testing::Test {
 protected:
  PackTest() : store_(0) { Fill(store_); }
  std::string Pack() const { return dir_.path() + "/my.pack"; }
  void Write() {
    const auto written = WritePack(store_, Pack(), &Everything);
    ASSERT_TRUE(written.ok()) << written.status();
  }
  // Packs are written by nobody; tests that damage one are somebody.
  void Damage(const std::string& sql) {
    ASSERT_EQ(chmod(Pack().c_str(), 0600), 0);
    RawDatabase(Pack()).Execute(sql);
  }

  TempDir dir_;
  MemoryStore store_;
};

TEST_F(PackTest, IsOneFileThatIsReadWithoutWriting) {
  const auto written = WritePack(store_, Pack(), &Everything);
  ASSERT_TRUE(written.ok()) << written.status();
  EXPECT_EQ(written->entries, 3);
  EXPECT_EQ(written->records, 1);
  EXPECT_EQ(written->bytes, store_.Stats().bytes);
  const std::string before = ReadFile(Pack());
  {
    auto pack = OpenPack(Pack(), nullptr);
    ASSERT_TRUE(pack.ok()) << pack.status();
    for (const char* name : {"a", "b", "c"}) {
      const auto hit = (*pack)->Find(KeyOf(name), {});
      ASSERT_TRUE(hit.has_value()) << name;
      EXPECT_EQ(hit->artifact, ArtifactOf(name));
    }
    EXPECT_EQ((*pack)->FindRecord("key")->value, "value");
    EXPECT_FALSE((*pack)->persistent());
    EXPECT_TRUE(absl::IsPermissionDenied((*pack)->Put(KeyOf("d"), ArtifactOf("d"))));
    EXPECT_THAT(FilesIn(dir_.path()), ElementsAre("my.pack"));
  }
  EXPECT_THAT(FilesIn(dir_.path()), ElementsAre("my.pack"));
  EXPECT_EQ(ReadFile(Pack()), before);
  struct stat info;
  ASSERT_EQ(stat(Pack().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0444u);
}

TEST_F(PackTest, HoldsWhatIsWanted) {
  const auto written = WritePack(store_, Pack(), [](const ArtifactKey& key) {
    return key.semantic_document == KeyOf("b").semantic_document;
  });
  ASSERT_TRUE(written.ok()) << written.status();
  EXPECT_EQ(written->entries, 1);
  const auto pack = OpenPack(Pack(), nullptr);
  ASSERT_TRUE(pack.ok());
  EXPECT_FALSE((*pack)->Find(KeyOf("a"), {}).has_value());
  EXPECT_TRUE((*pack)->Find(KeyOf("b"), {}).has_value());
}

TEST_F(PackTest, ServesBelowACacheThatIsEmpty) {
  Write();
  CacheOptions options;
  options.directory = dir_.cache();
  options.packs = {Pack()};
  const auto cache = OpenCache(options);
  EXPECT_EQ(cache->Find(KeyOf("a"), {})->artifact, ArtifactOf("a"));
  EXPECT_EQ(cache->FindRecord("key")->value, "value");
  EXPECT_TRUE(cache->persistent());
}

TEST_F(PackTest, ReplacesAnEarlierOneWhichItsReadersKeep) {
  Write();
  const auto earlier = OpenPack(Pack(), nullptr);
  ASSERT_TRUE(earlier.ok());
  MemoryStore other(0);
  ASSERT_TRUE(other.Put(KeyOf("a"), ArtifactOf("another")).ok());
  ASSERT_TRUE(WritePack(other, Pack(), &Everything).ok());
  EXPECT_EQ((*earlier)->Find(KeyOf("a"), {})->artifact, ArtifactOf("a"));
  const auto later = OpenPack(Pack(), nullptr);
  ASSERT_TRUE(later.ok());
  EXPECT_EQ((*later)->Find(KeyOf("a"), {})->artifact, ArtifactOf("another"));
  EXPECT_FALSE((*later)->Find(KeyOf("b"), {}).has_value());
}

TEST_F(PackTest, CannotBeWrittenEverywhere) {
  const std::string missing = dir_.path() + "/no/such/directory/my.pack";
  EXPECT_TRUE(absl::IsNotFound(WritePack(store_, missing, &Everything).status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(WritePack(store_, dir_.path(), &Everything).status()));
  ASSERT_EQ(mkfifo(Pack().c_str(), 0600), 0);
  EXPECT_TRUE(absl::IsFailedPrecondition(WritePack(store_, Pack(), &Everything).status()));
  EXPECT_THAT(FilesIn(dir_.path()), ElementsAre("my.pack"));
}

TEST_F(PackTest, ReplacesNothingElse) {
  std::ofstream(Pack()) << "a letter";
  EXPECT_THAT(std::string(WritePack(store_, Pack(), &Everything).status().message()),
              HasSubstr("exists and is no pack"));
  EXPECT_EQ(ReadFile(Pack()), "a letter");
  std::ofstream(Pack(), std::ios::trunc);
  Write();
  // The database of a cache, also while somebody has it open.
  TempDir dir;
  auto cache = SqliteStore::Open(dir.cache(), {});
  ASSERT_TRUE(cache.ok()) << cache.status();
  ASSERT_TRUE((*cache)->Put(KeyOf("x"), ArtifactOf("x")).ok());
  EXPECT_THAT(std::string(WritePack(store_, dir.database(), &Everything).status().message()),
              HasSubstr("exists and is no pack"));
  EXPECT_TRUE((*cache)->Find(KeyOf("x"), {}).has_value());
}

TEST_F(PackTest, IsImportedOnce) {
  Write();
  MemoryStore into(0);
  for (int64_t added : {3, 0}) {
    const auto counts = ImportPack(Pack(), into);
    ASSERT_TRUE(counts.ok()) << counts.status();
    EXPECT_EQ(counts->added, added);
    EXPECT_EQ(counts->present, 3 - added);
    EXPECT_EQ(counts->records, 1);
  }
  EXPECT_EQ(into.Find(KeyOf("b"), {})->artifact, ArtifactOf("b"));
  EXPECT_EQ(into.FindRecord("key")->value, "value");
}

// Any damage: verification names it, import takes nothing, readers are served the rest.
TEST_F(PackTest, IsTakenWholeOrNotAtAll) {
  const std::map<std::string, std::string> damages = {
      {"UPDATE artifact SET binary = x'00' WHERE id = 2", "entry 2 is damaged"},
      {"UPDATE artifact SET metadata = (SELECT metadata FROM artifact WHERE id = 1) WHERE id = 2",
       "entry 2 is damaged"},
      {"UPDATE record SET value = x'00'", "1 tuned configurations are damaged"},
  };
  for (const auto& [sql, note] : damages) {
    SCOPED_TRACE(sql);
    Write();
    Damage(sql);
    MemoryStore into(0);
    const auto counts = ImportPack(Pack(), into);
    EXPECT_TRUE(absl::IsDataLoss(counts.status())) << counts.status();
    EXPECT_THAT(std::string(counts.status().message()), HasSubstr(note));
    EXPECT_EQ(into.Stats().entries, 0);
    EXPECT_FALSE(into.FindRecord("key").has_value());
    auto pack = OpenPack(Pack(), nullptr);
    ASSERT_TRUE(pack.ok());
    const auto report = (*pack)->Verify();
    ASSERT_TRUE(report.ok());
    EXPECT_EQ(report->checked, 4);
    EXPECT_EQ(report->damaged, 1);
    EXPECT_THAT(report->notes, ElementsAre(note));
    EXPECT_EQ((*pack)->Find(KeyOf("a"), {})->artifact, ArtifactOf("a"));
    EXPECT_EQ((*pack)->Find(KeyOf("b"), {}).has_value(), note[0] == '1');
  }
}

TEST_F(PackTest, IsRefusedWhenItIsNone) {
  WriteFile(Pack(), "this is no pack");
  EXPECT_TRUE(absl::IsDataLoss(OpenPack(Pack(), nullptr).status()));
  ASSERT_TRUE(std::filesystem::remove(Pack()));
  Write();
  Damage("PRAGMA user_version = 99");
  EXPECT_TRUE(absl::IsDataLoss(OpenPack(Pack(), nullptr).status()));
  ASSERT_EQ(chmod(Pack().c_str(), 0666), 0);
  EXPECT_TRUE(absl::IsPermissionDenied(OpenPack(Pack(), nullptr).status()));
  EXPECT_TRUE(absl::IsPermissionDenied(OpenPack(dir_.path(), nullptr).status()));
  EXPECT_FALSE(OpenPack(dir_.path() + "/missing", nullptr).ok());
}

TEST_F(PackTest, ThatIsLeftOutIsTold) {
  WarningLog log;
  std::vector<std::string> left_out;
  CacheOptions options;
  options.memory_only = true;
  options.packs = {dir_.path() + "/missing"};
  options.packs_left_out = &left_out;
  options.warn = log.callback();
  EXPECT_FALSE(OpenCache(options)->persistent());
  EXPECT_THAT(left_out, ElementsAre(HasSubstr("missing is left out")));
  EXPECT_THAT(log.messages(), ElementsAre(HasSubstr("missing is left out")));
}

}  // namespace
}  // namespace tl
