// Threads that share loops out. Several callers may use one pool at the same time.
#ifndef TILEJIT_BASE_THREAD_POOL_H_
#define TILEJIT_BASE_THREAD_POOL_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"

namespace tl {

class ThreadPool {
 public:
  // `threads` counts the caller of ParallelFor; 0: one per processor. Threads start at first use.
  explicit ThreadPool(int threads = 0);
  // No ParallelFor may be running.
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return threads_; }

  // Calls body(begin, end) for consecutive chunks of 0..count-1, `chunk` long but for the last, in
  // any order on any of the threads and the calling one. Returns when all are done. The caller
  // works along, so a short loop is over before a sleeping thread wakes up, and a loop inside a
  // loop cannot deadlock. `body` must not throw.
  void ParallelFor(int64_t count, int64_t chunk,
                   absl::FunctionRef<void(int64_t begin, int64_t end)> body);

 private:
  struct Job {
    int64_t count;
    int64_t chunk;
    absl::FunctionRef<void(int64_t, int64_t)> body;
    std::atomic<int64_t> next{0};
    int helpers = 0;  // threads inside, guarded by mutex_
  };

  static void Work(Job& job);
  void Start() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Run();
  Job* NextJob() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const int threads_;
  absl::Mutex mutex_;
  absl::CondVar work_;  // a job came, or the end
  absl::CondVar left_;  // a helper left its job
  std::deque<Job*> jobs_ ABSL_GUARDED_BY(mutex_);
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  bool started_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> workers_;
};

}  // namespace tl

#endif  // TILEJIT_BASE_THREAD_POOL_H_
