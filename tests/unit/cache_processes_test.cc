// Several processes on one cache, some of which die.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <random>

#include "absl/time/clock.h"
#include "cache/open_cache.h"
#include "tests/unit/cache_testing.h"

namespace tl {
namespace {

using namespace cache_testing;  // NOLINT(build/namespaces)

// Forks while no store is open here; the child ends with the result of `body`.
pid_t Spawn(const std::function<bool()>& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body() ? 0 : 1);
  return child;
}

bool EndedWell(pid_t child) {
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

Artifact LargeArtifact(const std::string& name) {
  // Sizes from one page to many, the same for the same name.
  return ArtifactOf(name, 1000 + std::hash<std::string>()(name) % 120'000);
}

// Writes, replaces and evicts until it is killed.
bool WriteForEver(const TempDir& dir, int round) {
  CacheOptions options;
  options.directory = dir.cache();
  options.max_bytes = 3'000'000;
  auto store = OpenCache(options);
  for (int i = 0;; ++i) {
    const std::string name = std::to_string(round % 2) + "/" + std::to_string(i % 80);
    if (!store->Put(KeyOf(name), LargeArtifact(name)).ok()) return false;
    store->Find(KeyOf(std::to_string(i % 40)), {});
  }
}

void Audit(const TempDir& dir) {
  WarningLog log;
  SqliteStoreOptions options;
  options.warn = log.callback();
  auto store = OpenStore(dir, options);
  ASSERT_NE(store, nullptr);
  const auto report = store->Verify();
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->damaged, 0);
  EXPECT_TRUE(report->notes.empty());
  EXPECT_TRUE(log.messages().empty());
  int64_t bytes = 0, entries = 0;
  ASSERT_TRUE(store
                  ->Visit([&](const ArtifactKey& key, const Artifact& artifact) {
                    const std::string name = key.semantic_document.substr(9);
                    EXPECT_EQ(artifact, LargeArtifact(name));
                    bytes += SizeOf(key, artifact);
                    ++entries;
                    return true;
                  })
                  .ok());
  EXPECT_EQ(store->Stats().bytes, bytes);
  EXPECT_EQ(store->Stats().entries, entries);
  EXPECT_EQ(dir.CountQuarantined(), 0);
}

// TL_KILL_ROUNDS: how often; the long form is for people.
TEST(CacheProcessesTest, KilledAtAnyInstant) {
  const char* wanted = getenv("TL_KILL_ROUNDS");
  const int rounds = wanted != nullptr ? atoi(wanted) : 5;
  TempDir dir;
  std::mt19937 random(1);
  for (int round = 0; round < rounds; ++round) {
    pid_t writers[2];
    for (pid_t& writer : writers) writer = Spawn([&] { return WriteForEver(dir, round); });
    absl::SleepFor(absl::Milliseconds(5 + random() % 150));
    for (pid_t writer : writers) {
      kill(writer, SIGKILL);
      int status = 0;
      ASSERT_EQ(waitpid(writer, &status, 0), writer);
      ASSERT_TRUE(WIFSIGNALED(status)) << "the writer ended by itself";
    }
    if (std::filesystem::exists(dir.cache())) Audit(dir);
    if (HasFailure()) break;
  }
}

TEST(CacheProcessesTest, SixteenColdStarts) {
  TempDir dir;
  std::vector<pid_t> children;
  for (int c = 0; c < 16; ++c) {
    children.push_back(Spawn([&, c] {
      WarningLog log;
      CacheOptions options;
      options.directory = dir.cache();
      options.warn = log.callback();
      auto store = OpenCache(options);
      bool good = true;
      for (const std::string& name : {std::string("shared"), std::to_string(c)}) {
        good = good && store->Put(KeyOf(name), LargeArtifact(name)).ok();
        const auto hit = store->Find(KeyOf(name), {});
        good = good && hit.has_value() && hit->artifact == LargeArtifact(name);
      }
      for (const std::string& message : log.messages()) fprintf(stderr, "%s\n", message.c_str());
      return good && log.messages().empty();
    }));
  }
  for (pid_t child : children) EXPECT_TRUE(EndedWell(child));
  Audit(dir);
  EXPECT_EQ(OpenStore(dir)->Stats().entries, 17);
}

// All find the same damage; one moves the file aside, nobody moves the new one.
TEST(CacheProcessesTest, SixteenFindADamagedFile) {
  TempDir dir;
  ASSERT_TRUE(OpenStore(dir)->Put(KeyOf("p"), LargeArtifact("p")).ok());
  WriteFile(dir.database(), "no database");
  std::vector<pid_t> children;
  for (int c = 0; c < 16; ++c) {
    children.push_back(Spawn([&, c] {
      auto store = OpenStore(dir);
      const std::string name = std::to_string(c);
      return store != nullptr && store->Put(KeyOf(name), LargeArtifact(name)).ok() &&
             store->Find(KeyOf(name), {}).has_value();
    }));
  }
  for (pid_t child : children) EXPECT_TRUE(EndedWell(child));
  EXPECT_EQ(dir.CountQuarantined(), 1);
  EXPECT_EQ(OpenStore(dir)->Stats().entries, 16);
}

TEST(CacheProcessesTest, LeaseOfADeadOwnerRunsOut) {
  TempDir dir;
  const KeyHash key = HashBytes("k");
  const pid_t owner = Spawn([&] {
    return OpenStore(dir)->TryAcquireLease(key, "dead", absl::Milliseconds(200))->acquired;
  });
  ASSERT_TRUE(EndedWell(owner));
  auto store = OpenStore(dir);
  const absl::Time start = absl::Now();
  while (!store->TryAcquireLease(key, "alive", absl::Seconds(1))->acquired) {
    ASSERT_LT(absl::Now() - start, absl::Seconds(5));
    absl::SleepFor(absl::Milliseconds(10));
  }
  EXPECT_FALSE(store->TryAcquireLease(key, "third", absl::Seconds(1))->acquired);
}

}  // namespace
}  // namespace tl
