// What the cache adds to a warm start: opening an existing database and finding one kernel in it.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "cache/memory_store.h"
#include "cache/sqlite_store.h"

namespace tl {
namespace {

constexpr int kEntries = 200;

// A directory that goes with the process.
struct Directory {
  Directory() {
    const char* base = std::getenv("TMPDIR");
    path = std::string(base != nullptr ? base : "/tmp") + "/tl-cache-bench-XXXXXX";
    if (mkdtemp(path.data()) == nullptr) std::abort();
  }
  ~Directory() { std::filesystem::remove_all(path); }
  std::string path;
};

ArtifactKey Key(int i) { return {std::string(3000, 's') + std::to_string(i), "nvrtc 13.0 a1b2"}; }

Artifact Sample(size_t binary_bytes) {
  return {std::string(binary_bytes, 'b'), std::string(1000, 'm'), std::string(2000, 'r'), "",
          "NVRTC 13.0"};
}

std::string Filled(size_t binary_bytes) {
  static const Directory root;
  const std::string directory = root.path + "/" + std::to_string(binary_bytes);
  if (std::filesystem::exists(directory)) return directory;
  auto store = SqliteStore::Open(directory, {});
  for (int i = 0; i < kEntries; ++i) {
    if (!(*store)->Put(Key(i), Sample(binary_bytes)).ok()) std::abort();
  }
  return directory;
}

// Open, find one kernel, as the first call of a process does. The end of the store is not timed.
void BM_OpenAndFind(benchmark::State& state) {
  const std::string directory = Filled(state.range(0));
  for (auto _ : state) {
    auto store = SqliteStore::Open(directory, {});
    benchmark::DoNotOptimize((*store)->Find(Key(7), {}));
    state.PauseTiming();
    store->reset();
    state.ResumeTiming();
  }
}
BENCHMARK(BM_OpenAndFind)->Arg(100'000)->Unit(benchmark::kMicrosecond);

void BM_Open(benchmark::State& state) {
  const std::string directory = Filled(100'000);
  for (auto _ : state) {
    auto store = SqliteStore::Open(directory, {});
    state.PauseTiming();
    store->reset();
    state.ResumeTiming();
  }
}
BENCHMARK(BM_Open)->Unit(benchmark::kMicrosecond);

void BM_Find(benchmark::State& state) {
  auto store = SqliteStore::Open(Filled(state.range(0)), {});
  int i = 0;
  for (auto _ : state) {
    auto hit = (*store)->Find(Key(i = (i + 1) % kEntries), {});
    if (!hit.has_value()) state.SkipWithError("a miss");
  }
}
BENCHMARK(BM_Find)->Arg(10'000)->Arg(100'000)->Arg(1'000'000)->Unit(benchmark::kMicrosecond);

void BM_Miss(benchmark::State& state) {
  auto store = SqliteStore::Open(Filled(100'000), {});
  for (auto _ : state) benchmark::DoNotOptimize((*store)->Find(Key(-1), {}));
}
BENCHMARK(BM_Miss)->Unit(benchmark::kMicrosecond);

void BM_Put(benchmark::State& state) {
  auto store = SqliteStore::Open(Filled(100'000), {});
  int i = 0;
  for (auto _ : state) {
    if (!(*store)->Put(Key(i = (i + 1) % kEntries), Sample(100'000)).ok()) {
      state.SkipWithError("a failure");
    }
  }
}
BENCHMARK(BM_Put)->Unit(benchmark::kMicrosecond);

void BM_FindInMemory(benchmark::State& state) {
  MemoryStore store(0);
  store.Put(Key(0), Sample(100'000)).IgnoreError();
  for (auto _ : state) benchmark::DoNotOptimize(store.Find(Key(0), {}));
}
BENCHMARK(BM_FindInMemory)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace tl

BENCHMARK_MAIN();
