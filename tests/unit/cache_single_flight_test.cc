#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "absl/synchronization/barrier.h"
#include "absl/time/clock.h"
#include "cache/single_flight.h"

namespace tl {
namespace {

using Flight = SingleFlight<std::shared_ptr<const int>>;

constexpr int kThreads = 24;

void RunThreads(const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) threads.emplace_back(body, t);
  for (std::thread& thread : threads) thread.join();
}

TEST(SingleFlightTest, OneComputesForAll) {
  Flight flight;
  // What a service has: a place where later callers look.
  absl::Mutex mu;
  std::shared_ptr<const int> published;
  std::atomic<int> computations{0}, waited{0};
  RunThreads([&](int) {
    const Flight::Result result = flight.Do("k", [&]() -> StatusOr<std::shared_ptr<const int>> {
      {
        absl::MutexLock lock(&mu);
        if (published != nullptr) return published;
      }
      ++computations;
      absl::SleepFor(absl::Milliseconds(30));
      absl::MutexLock lock(&mu);
      published = std::make_shared<int>(42);
      return published;
    });
    ASSERT_TRUE(result.value.ok());
    EXPECT_EQ(**result.value, 42);
    waited += result.waited ? 1 : 0;
  });
  EXPECT_EQ(computations, 1);
  EXPECT_LE(waited, kThreads - 1);
  EXPECT_EQ(flight.InFlight(), 0u);
}

// Every one of the 24 is in its computation at the same time: no lock is held meanwhile.
TEST(SingleFlightTest, KeysComputeInParallel) {
  Flight flight;
  auto* barrier = new absl::Barrier(kThreads);
  RunThreads([&](int t) {
    const auto result = flight.Do(std::to_string(t), [&]() -> StatusOr<std::shared_ptr<const int>> {
      if (barrier->Block()) delete barrier;
      return std::make_shared<int>(t);
    });
    EXPECT_EQ(**result.value, t);
    EXPECT_FALSE(result.waited);
  });
}

TEST(SingleFlightTest, FailureIsSharedButNotKept) {
  Flight flight;
  std::atomic<int> computations{0};
  std::atomic<bool> fail{true};
  const auto compute = [&]() -> StatusOr<std::shared_ptr<const int>> {
    ++computations;
    absl::SleepFor(absl::Milliseconds(20));
    if (fail) return absl::InternalError("the compiler crashed");
    return std::make_shared<int>(1);
  };
  RunThreads([&](int) { EXPECT_TRUE(absl::IsInternal(flight.Do("k", compute).value.status())); });
  EXPECT_GE(computations, 1);
  fail = false;
  EXPECT_TRUE(flight.Do("k", compute).value.ok());
}

TEST(SingleFlightTest, WaitingIsBounded) {
  Flight flight;
  absl::Notification started, finish;
  std::thread leader([&] {
    flight.Do("k", [&]() -> StatusOr<std::shared_ptr<const int>> {
      started.Notify();
      finish.WaitForNotification();
      return std::make_shared<int>(1);
    });
  });
  started.WaitForNotification();
  const auto never = [&]() -> StatusOr<std::shared_ptr<const int>> {
    ADD_FAILURE() << "computed twice";
    return absl::InternalError("");
  };
  const auto late = flight.Do("k", never, absl::Milliseconds(20));
  EXPECT_TRUE(absl::IsDeadlineExceeded(late.value.status()));
  EXPECT_TRUE(late.waited);
  finish.Notify();
  leader.join();
}

// A computation may need another one.
TEST(SingleFlightTest, NestedKeys) {
  Flight flight;
  const auto result = flight.Do("outer", [&]() -> StatusOr<std::shared_ptr<const int>> {
    return flight
        .Do("inner",
            []() -> StatusOr<std::shared_ptr<const int>> { return std::make_shared<int>(7); })
        .value;
  });
  EXPECT_EQ(**result.value, 7);
}

}  // namespace
}  // namespace tl
