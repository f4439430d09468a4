// Bits flipped anywhere in the database file or in a pack, SQLite's own structures included.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "cache/memory_store.h"
#include "cache/pack.h"
#include "tests/unit/cache_fault_vfs.h"
#include "tests/unit/cache_testing.h"

namespace tl {
namespace {

using namespace cache_testing;  // NOLINT(build/namespaces)

const char* const kNames[] = {"a", "b", "c"};

void CheckCopy(const std::string& bytes) {
  TempDir copy;
  ASSERT_TRUE(std::filesystem::create_directory(copy.cache()));
  WriteFile(copy.database(), bytes);
  chmod(copy.cache().c_str(), 0700);
  chmod(copy.database().c_str(), 0600);
  SqliteStoreOptions options;
  options.vfs = FaultVfs();  // which does not wait for the disk
  auto store = OpenStore(copy, options);
  ASSERT_NE(store, nullptr);
  for (const char* name : kNames) {
    const auto hit = store->Find(KeyOf(name), {});
    EXPECT_TRUE(!hit.has_value() || hit->artifact == ArtifactOf(name, 6000));
    EXPECT_TRUE(store->Put(KeyOf(name), ArtifactOf(name, 6000)).ok());
    const auto again = store->Find(KeyOf(name), {});
    // What was just stored may be hit by damage that shows only now, but it is never wrong.
    EXPECT_TRUE(!again.has_value() || again->artifact == ArtifactOf(name, 6000));
  }
}

// TL_FLIP_STRIDE=1: every byte.
TEST(CacheBytesSweepTest, NeverAWrongBinary) {
  TempDir dir;
  {
    auto store = OpenStore(dir);
    for (const char* name : kNames) {
      ASSERT_TRUE(store->Put(KeyOf(name), ArtifactOf(name, 6000)).ok());
    }
  }
  const std::string whole = ReadFile(dir.database());
  const char* wanted = getenv("TL_FLIP_STRIDE");
  const size_t stride = wanted != nullptr ? static_cast<size_t>(atoi(wanted)) : 127;
  // The header, whole; then a sample of all pages.
  for (size_t at = 0; at < whole.size(); at += at < 112 ? 1 : stride) {
    SCOPED_TRACE(at);
    std::string bytes = whole;
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << (at % 8)));
    CheckCopy(bytes);
  }
}

// Every byte of a pack in turn: refused, or a miss, or what was packed. Never anything else, and
// nothing that was damaged is imported.
TEST(CacheBytesSweepTest, PacksNeverServeAWrongBinary) {
  TempDir dir;
  const std::string path = dir.path() + "/my.pack";
  MemoryStore store(0);
  for (const char* name : kNames) ASSERT_TRUE(store.Put(KeyOf(name), ArtifactOf(name, 500)).ok());
  ASSERT_TRUE(store.PutRecord({"scope", "key", "value"}).ok());
  ASSERT_TRUE(WritePack(store, path, [](const ArtifactKey&) { return true; }).ok());
  chmod(path.c_str(), 0600);
  const std::string whole = ReadFile(path);
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  const auto put = [&](size_t at, char byte) {
    file.seekp(static_cast<std::streamoff>(at));
    file.put(byte).flush();
  };
  int refused = 0, misses = 0, hits = 0;
  for (size_t at = 0; at < whole.size(); ++at) {
    SCOPED_TRACE(at);
    put(at, static_cast<char>(whole[at] ^ (1 << (at % 8))));
    const auto pack = OpenPack(path, nullptr);
    if (!pack.ok()) ++refused;
    for (const char* name : kNames) {
      if (!pack.ok()) break;
      const auto hit = (*pack)->Find(KeyOf(name), {});
      ++(hit.has_value() ? hits : misses);
      EXPECT_TRUE(!hit.has_value() || hit->artifact == ArtifactOf(name, 500));
    }
    const auto record = pack.ok() ? (*pack)->FindRecord("key") : std::nullopt;
    EXPECT_TRUE(!record.has_value() || *record == (Record{"scope", "key", "value"}));
    put(at, whole[at]);
    if (HasFailure()) break;
  }
  std::printf("%zu bytes: %d refusals, %d misses, %d right answers\n", whole.size(), refused,
              misses, hits);
  EXPECT_GT(refused, 1000);  // the schema's text alone
  EXPECT_GT(misses, 1500);   // the binaries alone
}

}  // namespace
}  // namespace tl
