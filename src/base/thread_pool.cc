#include "base/thread_pool.h"

#include <algorithm>
#include <system_error>

namespace tl {
namespace {

int ThreadsOrDefault(int threads) {
  if (threads > 0) return threads;
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace

ThreadPool::ThreadPool(int threads) : threads_(ThreadsOrDefault(threads)) {}

ThreadPool::~ThreadPool() {
  {
    absl::MutexLock lock(&mutex_);
    stop_ = true;
    work_.SignalAll();
  }
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::Start() {
  started_ = true;
  for (int i = 1; i < threads_; ++i) {
    // A machine out of threads still gets its result, more slowly.
    try {
      workers_.emplace_back([this] { Run(); });
    } catch (const std::system_error&) {
      return;
    }
  }
}

void ThreadPool::Work(Job& job) {
  for (;;) {
    const int64_t begin = job.next.fetch_add(job.chunk, std::memory_order_relaxed);
    if (begin >= job.count) return;
    job.body(begin, std::min(begin + job.chunk, job.count));
  }
}

ThreadPool::Job* ThreadPool::NextJob() {
  for (Job* job : jobs_) {
    if (job->next.load(std::memory_order_relaxed) < job->count) return job;
  }
  return nullptr;
}

void ThreadPool::Run() {
  absl::MutexLock lock(&mutex_);
  for (;;) {
    Job* job = NextJob();
    if (job != nullptr) {
      ++job->helpers;
      mutex_.Unlock();
      Work(*job);
      mutex_.Lock();
      // The owner may return, and the job vanish, as soon as the mutex is free again.
      if (--job->helpers == 0) left_.SignalAll();
      continue;
    }
    if (stop_) return;
    work_.Wait(&mutex_);
  }
}

void ThreadPool::ParallelFor(int64_t count, int64_t chunk,
                             absl::FunctionRef<void(int64_t, int64_t)> body) {
  if (count <= 0) return;
  chunk = std::max<int64_t>(chunk, 1);
  if (threads_ == 1 || count <= chunk) return body(0, count);
  Job job{count, chunk, body};
  {
    absl::MutexLock lock(&mutex_);
    if (!started_) Start();
    jobs_.push_back(&job);
    work_.SignalAll();
  }
  Work(job);
  absl::MutexLock lock(&mutex_);
  jobs_.erase(std::find(jobs_.begin(), jobs_.end(), &job));
  while (job.helpers > 0) left_.Wait(&mutex_);
}

}  // namespace tl
