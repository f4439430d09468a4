#include "tests/oracle/parallel.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace oracle {

void ParallelFor(int64_t count, const std::function<void(int64_t)>& body) {
  std::atomic<int64_t> next{0};
  const auto work = [&] {
    for (int64_t i; (i = next.fetch_add(1)) < count;) body(i);
  };
  // A few rows are not worth a thread.
  const int64_t threads = std::min<int64_t>(std::thread::hardware_concurrency(), count / 8);
  std::vector<std::thread> pool;
  for (int64_t i = 1; i < threads; ++i) pool.emplace_back(work);
  work();
  for (std::thread& thread : pool) thread.join();
}

}  // namespace oracle
