// What every store promises, and what the one on disk adds on a good day.
#include <gmock/gmock.h>

#include <set>
#include <thread>

#include "cache/layered_store.h"
#include "cache/memory_store.h"
#include "tests/unit/cache_testing.h"

namespace tl {
namespace {

using namespace cache_testing;  // NOLINT(build/namespaces)
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

struct Kind {
  const char* name;
  std::unique_ptr<ArtifactStore> (*make)(const TempDir& dir, int64_t max_bytes);
};

std::unique_ptr<ArtifactStore> MakeSqlite(const TempDir& dir, int64_t max_bytes) {
  SqliteStoreOptions options;
  options.max_bytes = max_bytes;
  return OpenStore(dir, options);
}

std::unique_ptr<ArtifactStore> MakeMemory(const TempDir&, int64_t max_bytes) {
  return std::make_unique<MemoryStore>(max_bytes);
}

std::unique_ptr<ArtifactStore> MakeLayered(const TempDir& dir, int64_t max_bytes) {
  std::vector<std::unique_ptr<ArtifactStore>> layers;
  layers.push_back(MakeSqlite(dir, max_bytes));
  layers.push_back(MakeMemory(dir, max_bytes));
  return std::make_unique<LayeredStore>(std::move(layers));
}

class StoreTest : public ::testing::TestWithParam<Kind> {
 protected:
  std::unique_ptr<ArtifactStore> Make(int64_t max_bytes = 0) {
    return GetParam().make(dir_, max_bytes);
  }
  TempDir dir_;
};

INSTANTIATE_TEST_SUITE_P(Kinds, StoreTest,
                         ::testing::Values(Kind{"Sqlite", &MakeSqlite}, Kind{"Memory", &MakeMemory},
                                           Kind{"Layered", &MakeLayered}),
                         [](const auto& info) { return info.param.name; });

TEST_P(StoreTest, RoundTrip) {
  auto store = Make();
  const Artifact cases[] = {
      ArtifactOf("gemm"),
      ArtifactOf("large", 3'000'000),
      {},
      {std::string("\0\0", 2), "\xff\xfe", "r\"'", std::string("a\0b", 3), "x"},
  };
  int n = 0;
  for (const Artifact& artifact : cases) {
    const ArtifactKey key = KeyOf(std::to_string(n++));
    EXPECT_FALSE(store->Find(key, {}).has_value());
    ASSERT_TRUE(store->Put(key, artifact).ok());
    const auto hit = store->Find(key, {});
    ASSERT_TRUE(hit.has_value());
    EXPECT_EQ(hit->artifact, artifact);
    EXPECT_TRUE(hit->own_build);
    EXPECT_EQ(hit->build, BuildHash(key));
  }
  const StoreStats stats = store->Stats();
  EXPECT_EQ(stats.hits, 4);
  EXPECT_EQ(stats.misses, 4);
  EXPECT_EQ(stats.puts, 4);
  EXPECT_EQ(stats.entries, 4);
  EXPECT_GT(stats.bytes, 3'000'000);
  EXPECT_EQ(stats.errors, 0);
}

TEST_P(StoreTest, KeysWithNulAndWithoutText) {
  auto store = Make();
  const ArtifactKey keys[] = {
      {"", ""}, {std::string("\0", 1), ""}, {"", std::string("\0", 1)}, {"ab", "c"}, {"a", "bc"}};
  for (const ArtifactKey& key : keys) {
    ASSERT_TRUE(store->Put(key, ArtifactOf(BuildDocument(key))).ok());
  }
  for (const ArtifactKey& key : keys) {
    const auto hit = store->Find(key, {.match = MatchMode::kBuild, .exclude = {}});
    ASSERT_TRUE(hit.has_value());
    EXPECT_EQ(hit->artifact, ArtifactOf(BuildDocument(key)));
  }
}

TEST_P(StoreTest, PutReplacesTheSameBuild) {
  auto store = Make();
  ASSERT_TRUE(store->Put(KeyOf("p"), ArtifactOf("first")).ok());
  ASSERT_TRUE(store->Put(KeyOf("p"), ArtifactOf("second")).ok());
  EXPECT_EQ(store->Find(KeyOf("p"), {})->artifact, ArtifactOf("second"));
  EXPECT_EQ(store->Stats().entries, 1);
}

TEST_P(StoreTest, AnotherCompilersBuildServes) {
  auto store = Make();
  ASSERT_TRUE(store->Put(KeyOf("p", "nvrtc 13.5"), ArtifactOf("new")).ok());
  for (const char* compiler : {"nvrtc 13.0", ""}) {
    const auto hit = store->Find(KeyOf("p", compiler), {});
    ASSERT_TRUE(hit.has_value());
    EXPECT_EQ(hit->artifact, ArtifactOf("new"));
    EXPECT_FALSE(hit->own_build);
    EXPECT_FALSE(
        store->Find(KeyOf("p", compiler), {.match = MatchMode::kBuild, .exclude = {}}).has_value());
  }
  EXPECT_EQ(store->Stats().foreign_hits, 2);
}

// Own first, then the newest; each refusal leads to the next one.
TEST_P(StoreTest, ExclusionWalksThroughTheBuilds) {
  auto store = Make();
  for (const char* compiler : {"a", "own", "b", "c"}) {
    ASSERT_TRUE(store->Put(KeyOf("p", compiler), ArtifactOf(compiler)).ok());
  }
  FindOptions options;
  std::vector<std::string> order;
  while (const auto hit = store->Find(KeyOf("p", "own"), options)) {
    order.push_back(hit->artifact.compiler);
    options.exclude.push_back(hit->build);
    ASSERT_LE(order.size(), 4u);
  }
  EXPECT_THAT(order,
              ElementsAre("compiler of own", "compiler of c", "compiler of b", "compiler of a"));
}

TEST_P(StoreTest, QuarantinedBuildIsNotServed) {
  auto store = Make();
  ASSERT_TRUE(store->Put(KeyOf("p", "own"), ArtifactOf("own")).ok());
  ASSERT_TRUE(store->Put(KeyOf("p", "other"), ArtifactOf("other")).ok());
  store->Quarantine(BuildHash(KeyOf("p", "own")), "the driver calls it malformed");
  EXPECT_EQ(store->Find(KeyOf("p", "own"), {})->artifact, ArtifactOf("other"));
  EXPECT_EQ(store->Stats().quarantined, 1);
  EXPECT_EQ(store->Stats().entries, 1);
  // A new build of the same key is a new entry.
  ASSERT_TRUE(store->Put(KeyOf("p", "own"), ArtifactOf("again")).ok());
  EXPECT_EQ(store->Find(KeyOf("p", "own"), {})->artifact, ArtifactOf("again"));
}

TEST_P(StoreTest, LeastRecentlyUsedGoFirst) {
  // Four entries fit, five do not.
  const int64_t one = 1200 + static_cast<int64_t>(KeyOf("0").semantic_document.size() +
                                                  KeyOf("0").compiler_identity.size());
  auto store = Make(4 * one + one / 2);
  const auto put = [&](const std::string& name) {
    Artifact artifact;
    artifact.binary.assign(1200, name[0]);
    ASSERT_TRUE(store->Put(KeyOf(name), artifact).ok());
  };
  for (const char* name : {"0", "1", "2", "3"}) put(name);
  ASSERT_TRUE(store->Find(KeyOf("0"), {}).has_value());
  ASSERT_TRUE(store->Find(KeyOf("2"), {}).has_value());
  put("4");
  put("5");
  std::vector<std::string> left;
  for (const char* name : {"0", "1", "2", "3", "4", "5"}) {
    if (store->Find(KeyOf(name), {}).has_value()) left.push_back(name);
  }
  EXPECT_THAT(left, ElementsAre("0", "2", "4", "5"));
  EXPECT_EQ(store->Stats().evictions, 2);
  EXPECT_LE(store->Stats().bytes, 4 * one + one / 2);
}

TEST_P(StoreTest, TooLargeIsRefusedAndHarmsNothing) {
  auto store = Make(10'000);
  ASSERT_TRUE(store->Put(KeyOf("small"), ArtifactOf("small")).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(store->Put(KeyOf("big"), ArtifactOf("big", 20'000))));
  EXPECT_TRUE(store->Find(KeyOf("small"), {}).has_value());
}

TEST_P(StoreTest, TrimListVisitVerify) {
  auto store = Make();
  for (const char* name : {"a", "b", "c"}) {
    ASSERT_TRUE(store->Put(KeyOf(name), ArtifactOf(name, 5000)).ok());
  }
  const auto entries = store->ListEntries();
  ASSERT_TRUE(entries.ok());
  ASSERT_EQ(entries->size(), 3u);
  EXPECT_EQ((*entries)[0].semantic, SemanticHash(KeyOf("a")));
  EXPECT_EQ((*entries)[2].build, BuildHash(KeyOf("c")));
  EXPECT_EQ((*entries)[1].compiler, "compiler of b");
  EXPECT_GT((*entries)[1].bytes, 5000);

  std::vector<std::string> seen;
  ASSERT_TRUE(store
                  ->Visit([&](const ArtifactKey& key, const Artifact& artifact) {
                    EXPECT_EQ(artifact.binary.size(), 5000u);
                    seen.push_back(key.semantic_document);
                    return seen.size() < 2;
                  })
                  .ok());
  EXPECT_THAT(seen, ElementsAre("semantic:a", "semantic:b"));

  const auto report = store->Verify();
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->checked, 3);
  EXPECT_EQ(report->damaged, 0);
  EXPECT_THAT(report->notes, IsEmpty());

  ASSERT_TRUE(store->Trim(6000).ok());
  EXPECT_EQ(store->Stats().entries, 1);
  EXPECT_TRUE(store->Find(KeyOf("c"), {}).has_value());
  ASSERT_TRUE(store->Trim(0).ok());
  EXPECT_EQ(store->Stats().bytes, 0);
}

TEST_P(StoreTest, Leases) {
  auto store = Make();
  const KeyHash key = HashBytes("k");
  EXPECT_TRUE(store->TryAcquireLease(key, "me", absl::Minutes(1))->acquired);
  EXPECT_TRUE(store->TryAcquireLease(key, "me", absl::Minutes(1))->acquired);
  const auto refused = store->TryAcquireLease(key, "you", absl::Minutes(1));
  EXPECT_FALSE(refused->acquired);
  EXPECT_EQ(refused->holder, "me");
  EXPECT_GT(refused->remaining, absl::Seconds(30));
  EXPECT_TRUE(store->TryAcquireLease(HashBytes("other"), "you", absl::Minutes(1))->acquired);
  ASSERT_TRUE(store->ReleaseLease(key, "you").ok());
  EXPECT_FALSE(store->TryAcquireLease(key, "you", absl::Minutes(1))->acquired);
  ASSERT_TRUE(store->ReleaseLease(key, "me").ok());
  EXPECT_TRUE(store->TryAcquireLease(key, "you", absl::ZeroDuration())->acquired);
  // It has run out already.
  EXPECT_TRUE(store->TryAcquireLease(key, "me", absl::Hours(1000))->acquired);
  EXPECT_LE(store->TryAcquireLease(key, "you", absl::Minutes(1))->remaining, kMaxLease);
}

TEST_P(StoreTest, Records) {
  auto store = Make();
  EXPECT_FALSE(store->FindRecord("k1").has_value());
  const Record one{"gemm bf16", "k1", "bm=128"};
  const Record two{"gemm bf16", "k2", "bm=64"};
  const Record other{"softmax", "k3", "bn=8"};
  for (const Record& record : {one, two, other}) ASSERT_TRUE(store->PutRecord(record).ok());
  EXPECT_EQ(store->FindRecord("k2"), two);
  EXPECT_THAT(store->FindRecords("gemm bf16"), ElementsAre(two, one));
  const Record better{"gemm bf16", "k1", "bm=256"};
  ASSERT_TRUE(store->PutRecord(better).ok());
  EXPECT_EQ(store->FindRecord("k1"), better);
  EXPECT_THAT(store->FindRecords("gemm bf16"), ElementsAre(better, two));
}

TEST_P(StoreTest, ManyThreads) {
  auto store = Make();
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        // Half of the keys are shared by all threads.
        const std::string name = std::to_string(i) + (i % 2 == 0 ? "" : "of" + std::to_string(t));
        const auto before = store->Find(KeyOf(name), {});
        if (before.has_value() && before->artifact != ArtifactOf(name)) ++wrong;
        if (!store->Put(KeyOf(name), ArtifactOf(name)).ok()) ++wrong;
        const auto after = store->Find(KeyOf(name), {});
        if (!after.has_value() || after->artifact != ArtifactOf(name)) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(store->Stats().puts, 8 * 200);
  EXPECT_EQ(store->Stats().entries, 100 + 100 * 8);
  EXPECT_EQ(store->Verify()->damaged, 0);
}

TEST(SqliteStoreTest, SurvivesTheProcess) {
  TempDir dir;
  ASSERT_TRUE(OpenStore(dir)->Put(KeyOf("p"), ArtifactOf("p")).ok());
  auto store = OpenStore(dir);
  EXPECT_EQ(store->Find(KeyOf("p"), {})->artifact, ArtifactOf("p"));
  EXPECT_EQ(store->Stats().entries, 1);
}

TEST(SqliteStoreTest, EverythingIsPrivate) {
  TempDir dir;
  auto store = OpenStore(dir);
  ASSERT_TRUE(store->Put(KeyOf("p"), ArtifactOf("p")).ok());
  namespace fs = std::filesystem;
  EXPECT_EQ(fs::status(dir.cache()).permissions(), fs::perms::owner_all);
  for (const auto& entry : fs::directory_iterator(dir.cache())) {
    EXPECT_EQ(entry.status().permissions(), fs::perms::owner_read | fs::perms::owner_write)
        << entry.path();
  }
}

KeyHash OneForAll(std::string_view) { return {7, 7}; }

TEST(SqliteStoreTest, CollisionIsAMiss) {
  TempDir dir;
  SqliteStoreOptions options;
  options.hash = &OneForAll;
  auto store = OpenStore(dir, options);
  ASSERT_TRUE(store->Put(KeyOf("p"), ArtifactOf("p")).ok());
  EXPECT_FALSE(store->Find(KeyOf("q"), {}).has_value());
  ASSERT_TRUE(store->Put(KeyOf("q"), ArtifactOf("q")).ok());
  // Both live on, side by side.
  for (const MatchMode match : {MatchMode::kSemantic, MatchMode::kBuild}) {
    for (const char* name : {"p", "q"}) {
      EXPECT_EQ(store->Find(KeyOf(name), {.match = match, .exclude = {}})->artifact,
                ArtifactOf(name));
    }
  }
  EXPECT_EQ(store->Stats().quarantined, 0);
  ASSERT_TRUE(store->PutRecord({"s", "k1", "v1"}).ok());
  EXPECT_FALSE(store->FindRecord("k2").has_value());
  EXPECT_THAT(store->FindRecords("t"), IsEmpty());
}

TEST(SqliteStoreTest, FindWritesNothing) {
  TempDir dir;
  ASSERT_TRUE(OpenStore(dir)->Put(KeyOf("p"), ArtifactOf("p")).ok());
  auto store = OpenStore(dir);
  RawDatabase raw(dir.database());
  // Changes when any other connection commits.
  const auto version = [&] { return raw.Value("PRAGMA data_version"); };
  const std::string before = version();
  for (int i = 0; i < 50; ++i) {
    EXPECT_TRUE(store->Find(KeyOf("p"), {}).has_value());
    EXPECT_FALSE(store->Find(KeyOf("q"), {}).has_value());
  }
  EXPECT_EQ(version(), before);
  ASSERT_TRUE(store->Flush().ok());
  EXPECT_NE(version(), before);
}

TEST(SqliteStoreTest, RecencyIsWrittenAtTheEnd) {
  TempDir dir;
  {
    auto store = OpenStore(dir);
    for (const char* name : {"a", "b"}) {
      ASSERT_TRUE(store->Put(KeyOf(name), ArtifactOf(name, 5000)).ok());
    }
  }
  {
    ASSERT_TRUE(OpenStore(dir)->Find(KeyOf("a"), {}).has_value());
  }
  auto store = OpenStore(dir);
  ASSERT_TRUE(store->Trim(6000).ok());
  EXPECT_TRUE(store->Find(KeyOf("a"), {}).has_value());
  EXPECT_FALSE(store->Find(KeyOf("b"), {}).has_value());
}

TEST(SqliteStoreTest, TrimGivesSpaceBack) {
  TempDir dir;
  auto store = OpenStore(dir);
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(store->Put(KeyOf(std::to_string(i)), ArtifactOf("x", 200'000)).ok());
  }
  ASSERT_TRUE(store->Trim(int64_t{1} << 40).ok());
  EXPECT_GT(std::filesystem::file_size(dir.database()), 4'000'000u);
  ASSERT_TRUE(store->Trim(0).ok());
  EXPECT_LT(std::filesystem::file_size(dir.database()), 300'000u);
}

TEST(SqliteStoreTest, TwoStoresOnOneFile) {
  TempDir dir;
  auto one = OpenStore(dir);
  auto two = OpenStore(dir);
  ASSERT_TRUE(one->Put(KeyOf("p"), ArtifactOf("p")).ok());
  EXPECT_EQ(two->Find(KeyOf("p"), {})->artifact, ArtifactOf("p"));
  ASSERT_TRUE(two->Put(KeyOf("p"), ArtifactOf("p2")).ok());
  EXPECT_EQ(one->Find(KeyOf("p"), {})->artifact, ArtifactOf("p2"));
  EXPECT_TRUE(one->TryAcquireLease(HashBytes("k"), "one", absl::Minutes(1))->acquired);
  EXPECT_FALSE(two->TryAcquireLease(HashBytes("k"), "two", absl::Minutes(1))->acquired);
}

// A writer elsewhere that never ends does not keep us from reading, and our write gives up in time.
TEST(SqliteStoreTest, LockedByAnother) {
  TempDir dir;
  WarningLog log;
  SqliteStoreOptions options;
  options.write_timeout = absl::Milliseconds(50);
  options.warn = log.callback();
  auto store = OpenStore(dir, options);
  ASSERT_TRUE(store->Put(KeyOf("p"), ArtifactOf("p")).ok());
  RawDatabase raw(dir.database());
  raw.Execute("BEGIN IMMEDIATE");
  EXPECT_TRUE(store->Find(KeyOf("p"), {}).has_value());
  for (int i = 0; i < 3; ++i) {
    const Status status = store->Put(KeyOf("q"), ArtifactOf("q"));
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_EQ(DetailOf(status).domain, Domain::kSqlite);
    EXPECT_EQ(DetailOf(status).native_code & 0xFF, SQLITE_BUSY);
  }
  EXPECT_EQ(log.messages().size(), 1u);
  EXPECT_EQ(store->Stats().errors, 3);
  raw.Execute("ROLLBACK");
  EXPECT_TRUE(store->Put(KeyOf("q"), ArtifactOf("q")).ok());
}

TEST(SqliteStoreTest, PackIsReadOnly) {
  TempDir dir;
  ASSERT_TRUE(OpenStore(dir)->Put(KeyOf("p"), ArtifactOf("p")).ok());
  const std::string before = ReadFile(dir.database());
  {
    auto pack = SqliteStore::OpenReadOnly(dir.database(), {});
    ASSERT_TRUE(pack.ok()) << pack.status();
    EXPECT_EQ((*pack)->Find(KeyOf("p"), {})->artifact, ArtifactOf("p"));
    EXPECT_TRUE(absl::IsPermissionDenied((*pack)->Put(KeyOf("q"), ArtifactOf("q"))));
    EXPECT_TRUE(absl::IsPermissionDenied(
        (*pack)->TryAcquireLease(HashBytes("k"), "me", absl::Seconds(1)).status()));
    (*pack)->Quarantine(BuildHash(KeyOf("p")), "refused");
    EXPECT_FALSE((*pack)->Find(KeyOf("p"), {}).has_value());
    EXPECT_TRUE((*pack)->Flush().ok());
  }
  EXPECT_EQ(ReadFile(dir.database()), before);
  EXPECT_EQ(dir.Count("-wal") + dir.Count("-shm"), 0);
}

TEST(LayeredStoreTest, UpperFirstButOwnBuildBeforeAll) {
  TempDir dir;
  {
    auto below = OpenStore(dir);
    ASSERT_TRUE(below->Put(KeyOf("p", "own"), ArtifactOf("own below")).ok());
    ASSERT_TRUE(below->Put(KeyOf("q", "other"), ArtifactOf("q below")).ok());
  }
  auto memory = std::make_unique<MemoryStore>(0);
  ASSERT_TRUE(memory->Put(KeyOf("p", "other"), ArtifactOf("other above")).ok());
  ASSERT_TRUE(memory->Put(KeyOf("q", "third"), ArtifactOf("q above")).ok());
  std::vector<std::unique_ptr<ArtifactStore>> layers;
  layers.push_back(std::move(memory));
  layers.push_back(*SqliteStore::OpenReadOnly(dir.database(), {}));
  LayeredStore store(std::move(layers));
  EXPECT_EQ(store.Find(KeyOf("p", "own"), {})->artifact, ArtifactOf("own below"));
  EXPECT_EQ(store.Find(KeyOf("p", "fourth"), {})->artifact, ArtifactOf("other above"));
  EXPECT_EQ(store.Find(KeyOf("q", "own"), {})->artifact, ArtifactOf("q above"));
  EXPECT_FALSE(store.Find(KeyOf("r"), {}).has_value());
  ASSERT_TRUE(store.Put(KeyOf("r"), ArtifactOf("r")).ok());
  EXPECT_TRUE(store.Find(KeyOf("r"), {}).has_value());
  EXPECT_EQ(store.Stats().hits, 4);
  EXPECT_EQ(store.Stats().misses, 1);
  EXPECT_EQ(store.Stats().entries, 5);
}

TEST(KeyTest, HashesAreFramedAndPrintable) {
  const std::set<std::string> all = {BuildHash({"ab", "c"}).Hex(), BuildHash({"a", "bc"}).Hex(),
                                     BuildHash({"", "abc"}).Hex(), BuildHash({"abc", ""}).Hex()};
  EXPECT_EQ(all.size(), 4u);
  const KeyHash hash{0x0123456789abcdef, 0xfedcba9876543210};
  EXPECT_EQ(hash.Hex(), "0123456789abcdeffedcba9876543210");
  EXPECT_EQ(KeyHash::FromBytes(hash.Bytes()), hash);
  EXPECT_EQ(KeyHash::FromBytes("short"), KeyHash());
  // The published value of XXH3-128 for no input: an index made by one build serves the next.
  EXPECT_EQ(HashBytes("").Hex(), "99aa06d3014798d86001c324468d497f");
}

}  // namespace
}  // namespace tl
