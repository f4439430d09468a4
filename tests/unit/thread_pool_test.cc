#include "base/thread_pool.h"

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace tl {
namespace {

TEST(ThreadPool, EveryIndexOnce) {
  for (int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (int64_t count : {0, 1, 2, 7, 1000}) {
      for (int64_t chunk : {0, 1, 3, 1000, 5000}) {
        std::vector<std::atomic<int>> seen(count);
        pool.ParallelFor(count, chunk, [&](int64_t begin, int64_t end) {
          ASSERT_LT(begin, end);
          for (int64_t i = begin; i < end; ++i) ++seen[i];
        });
        for (int64_t i = 0; i < count; ++i) EXPECT_EQ(seen[i], 1) << i;
      }
    }
  }
}

TEST(ThreadPool, ResultsAreVisibleToTheCaller) {
  ThreadPool pool(4);
  for (int round = 0; round < 500; ++round) {
    std::vector<int> values(64);
    pool.ParallelFor(64, 1, [&](int64_t begin, int64_t) { values[begin] = round; });
    for (int v : values) ASSERT_EQ(v, round);
  }
}

TEST(ThreadPool, SeveralCallersAndLoopsInLoops) {
  ThreadPool pool(3);
  std::atomic<int64_t> sum{0};
  std::vector<std::thread> callers;
  for (int c = 0; c < 6; ++c) {
    callers.emplace_back([&] {
      for (int round = 0; round < 20; ++round) {
        pool.ParallelFor(10, 1, [&](int64_t, int64_t) {
          pool.ParallelFor(10, 2, [&](int64_t begin, int64_t end) { sum += end - begin; });
        });
      }
    });
  }
  for (std::thread& t : callers) t.join();
  EXPECT_EQ(sum, 6 * 20 * 10 * 10);
}

TEST(ThreadPool, UnusedPoolStartsNoThread) {
  for (int i = 0; i < 1000; ++i) ThreadPool pool(64);
}

}  // namespace
}  // namespace tl
