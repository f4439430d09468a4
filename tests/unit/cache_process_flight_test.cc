// One makes an entry, the others wait. Several owners of one store stand for several processes.
#include <functional>
#include <thread>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "cache/memory_store.h"
#include "cache/process_flight.h"
#include "tests/unit/cache_testing.h"

namespace tl {
namespace {

using namespace cache_testing;  // NOLINT(build/namespaces)

const KeyHash kKey = HashBytes("k");

bool Nothing() { return false; }

// What `other` would have to wait for; zero when the key is free.
absl::Duration Remaining(ArtifactStore& store) {
  const auto answer = store.TryAcquireLease(kKey, "observer", absl::Nanoseconds(1));
  EXPECT_TRUE(answer.ok());
  return answer->acquired ? absl::ZeroDuration() : answer->remaining;
}

TEST(ProcessFlightTest, TheFirstMakesIt) {
  TempDir dir;
  const auto store = OpenStore(dir);
  ProcessFlight flight(*store);
  {
    const ProcessFlight::Turn turn = flight.Enter(kKey, &Nothing);
    EXPECT_FALSE(turn.found());
    EXPECT_FALSE(turn.waited());
    EXPECT_GT(Remaining(*store), absl::ZeroDuration());
  }
  EXPECT_EQ(Remaining(*store), absl::ZeroDuration());
}

TEST(ProcessFlightTest, WhatIsThereIsNotMade) {
  TempDir dir;
  const auto store = OpenStore(dir);
  ProcessFlight flight(*store);
  const ProcessFlight::Turn turn = flight.Enter(kKey, [] { return true; });
  EXPECT_TRUE(turn.found());
}

// The second finds what the first made, or, when that failed, makes it itself.
TEST(ProcessFlightTest, TheSecondWaits) {
  for (const bool first_succeeds : {true, false}) {
    TempDir dir;
    const auto store = OpenStore(dir);
    ProcessFlight first(*store), second(*store);
    std::atomic<bool> made{false};
    absl::Notification asked;
    std::optional<ProcessFlight::Turn> turn(first.Enter(kKey, &Nothing));
    std::thread waiter([&] {
      const ProcessFlight::Turn theirs = second.Enter(kKey, [&] {
        if (asked.HasBeenNotified()) return made.load();
        asked.Notify();
        return false;
      });
      EXPECT_TRUE(theirs.waited());
      EXPECT_EQ(theirs.found(), first_succeeds);
    });
    asked.WaitForNotification();
    made = first_succeeds;
    turn.reset();
    waiter.join();
  }
}

// However long it takes, an owner that lives keeps its turn: its lease is renewed.
TEST(ProcessFlightTest, AnOwnerThatLivesRenews) {
  TempDir dir;
  const auto store = OpenStore(dir);
  ProcessFlight flight(*store, {.ttl = absl::Seconds(4)});
  const ProcessFlight::Turn turn = flight.Enter(kKey, &Nothing);
  const absl::Time first_end = absl::Now() + Remaining(*store);
  // Each renewal moves the end; without one this would only finish with the test's time.
  while (absl::Now() + Remaining(*store) < first_end + absl::Milliseconds(300)) {
    ASSERT_GT(Remaining(*store), absl::ZeroDuration()) << "the lease ran out";
    absl::SleepFor(absl::Milliseconds(20));
  }
}

TEST(ProcessFlightTest, ADeadOwnersTurnRunsOut) {
  TempDir dir;
  const auto store = OpenStore(dir);
  ASSERT_TRUE(store->TryAcquireLease(kKey, "dead", absl::Milliseconds(200))->acquired);
  ProcessFlight flight(*store);
  const ProcessFlight::Turn turn = flight.Enter(kKey, &Nothing);
  EXPECT_TRUE(turn.waited());
  EXPECT_FALSE(turn.found());
}

// An owner that hangs but lives is not waited for without end.
TEST(ProcessFlightTest, WaitingIsBounded) {
  TempDir dir;
  const auto store = OpenStore(dir);
  ASSERT_TRUE(store->TryAcquireLease(kKey, "hanging", kMaxLease)->acquired);
  ProcessFlight flight(*store, {.max_wait = absl::Milliseconds(50)});
  EXPECT_TRUE(flight.Enter(kKey, &Nothing).waited());
  EXPECT_GT(Remaining(*store), absl::ZeroDuration()) << "it was not the waiter's to give back";
}

TEST(ProcessFlightTest, WithoutLeasesEverybodyGoesAhead) {
  TempDir dir;
  OpenStore(dir);
  const auto store = SqliteStore::OpenReadOnly(dir.database(), {});
  ASSERT_TRUE(store.ok());
  ProcessFlight first(**store), second(**store);
  const ProcessFlight::Turn turn = first.Enter(kKey, &Nothing);
  EXPECT_FALSE(second.Enter(kKey, &Nothing).waited());
}

TEST(ProcessFlightTest, GivesBackAtItsEnd) {
  TempDir dir;
  const auto store = OpenStore(dir);
  auto flight = std::make_unique<ProcessFlight>(*store);
  {
    const ProcessFlight::Turn turn = flight->Enter(kKey, &Nothing);
    EXPECT_GT(Remaining(*store), absl::ZeroDuration());
  }
  flight.reset();
  EXPECT_EQ(Remaining(*store), absl::ZeroDuration());
}

}  // namespace
}  // namespace tl
