// The search against a lab whose clock and times are made up.
#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/bind.h"
#include "ir/parser.h"
#include "service/families.h"
#include "tuner/search.h"
#include "tuner/statistics.h"

namespace tl {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Two parameters of `side` values each; candidate 0 is the default.
Combinations Square(int side) {
  Combinations out;
  for (int x = 0; x < side; ++x) {
    for (int y = 0; y < side; ++y) out.push_back({absl::StrCat(x), absl::StrCat(y)});
  }
  return out;
}

class FakeLab : public Lab {
 public:
  std::map<size_t, double> ns;  // of a launch; 100 where nothing is said
  std::map<size_t, Status> refuse, fail, fault, wrong;
  std::map<size_t, std::vector<double>> noise;  // factors of later rounds, in turn
  double seconds_per_round = 0;
  int cancel_after = -1;  // rounds

  std::set<size_t> admitted, built, validated;
  std::vector<size_t> timed;
  std::vector<std::pair<size_t, Fate>> reports;

  Status Admit(size_t i) override {
    absl::MutexLock lock(&mu_);
    admitted.insert(i);
    return Of(refuse, i);
  }
  Status Build(size_t i) override {
    absl::MutexLock lock(&mu_);
    built.insert(i);
    return Of(fail, i);
  }
  StatusOr<Measured> Time(size_t i, const Effort&) override {
    EXPECT_TRUE(built.contains(i));
    timed.push_back(i);
    seconds_ += seconds_per_round;
    if (!Of(fault, i).ok()) return Measured{Of(fault, i), 0};
    const double base = ns.contains(i) ? ns[i] : 100;
    const auto& factors = noise[i];
    const size_t round = static_cast<size_t>(std::count(timed.begin(), timed.end(), i)) - 1;
    return Measured{absl::OkStatus(),
                    factors.empty() ? base : base * factors[round % factors.size()]};
  }
  StatusOr<Measured> Validate(size_t i, uint64_t) override {
    validated.insert(i);
    return Measured{Of(wrong, i), 0};
  }
  double Seconds() override { return seconds_; }
  bool cancelled() override {
    return cancel_after >= 0 && static_cast<int>(timed.size()) >= cancel_after;
  }
  void Report(const Progress& p) override { reports.emplace_back(p.candidate, p.fate); }

 private:
  static Status Of(const std::map<size_t, Status>& statuses, size_t i) {
    const auto found = statuses.find(i);
    return found == statuses.end() ? absl::OkStatus() : found->second;
  }
  absl::Mutex mu_;
  double seconds_ = 0;
};

constexpr SearchOptions kPlenty{.max_seconds = 1e9, .jobs = 2};

TEST(Tuner, Median) {
  EXPECT_EQ(Median({3}), 3);
  EXPECT_EQ(Median({5, 1, 3}), 3);
  EXPECT_EQ(Median({4, 1, 2, 3}), 3);
}

TEST(Tuner, ATieIsNoWin) {
  const std::vector<double> incumbent = {100, 100, 100, 100};
  const struct {
    std::vector<double> challenger;
    bool beats;
  } rows[] = {
      {{90, 90, 90, 90}, true},
      {{98, 98, 98, 98}, true},
      {{99, 99, 99, 99}, false},
      {{100, 100, 100, 100}, false},
      {{90, 90, 90, 130}, true},
      {{90, 90, 130, 130}, false},
      {{}, false},
  };
  for (const auto& row : rows)
    EXPECT_EQ(Beats(row.challenger, incumbent, 0.02), row.beats)
        << testing::PrintToString(row.challenger);
}

TEST(Tuner, NearestDiffersInFewParameters) {
  const Combinations square = Square(3);
  EXPECT_THAT(Nearest(square, {1, 2, 3, 4, 5, 6, 7, 8}, 0, 5), ElementsAre(1, 2, 3, 6, 4));
  EXPECT_THAT(Nearest(square, {0, 1, 2, 3, 5}, 4, 9), ElementsAre(1, 3, 5, 0, 2));
  EXPECT_TRUE(Nearest(square, {}, 0, 3).empty());
}

TEST(Tuner, NewValuesComeWithWhatTheyNeed) {
  // y = 2 is possible only with x = 1 and z = 1.
  const Combinations some = {{"0", "0", "0"}, {"0", "1", "0"}, {"1", "0", "0"},
                             {"1", "1", "0"}, {"1", "1", "1"}, {"1", "2", "1"}};
  EXPECT_THAT(WithNewValues(some, {1, 2, 3, 4, 5}, {0}, 0), ElementsAre(1, 2, 4, 5));
  EXPECT_THAT(WithNewValues(some, {1, 2, 3, 5}, {0, 4}, 0), ElementsAre(5));
  EXPECT_THAT(WithNewValues(some, {1, 2, 3}, {0, 5}, 0), ElementsAre(1));
  EXPECT_TRUE(WithNewValues(some, {}, {0}, 0).empty());
}

// What is fast lies behind a condition, four parameters from the default, whose neighbours are all
// the same.
TEST(Tuner, ReachesWhatIsPossibleOnlyTogether) {
  Combinations combinations;
  FakeLab lab;
  for (const auto& [a, b, c] : {std::array{0, 0, 0}, {1, 0, 0}, {0, 1, 0}, {0, 0, 1}}) {
    for (int size = 0; size < 20; ++size) {
      combinations.push_back(
          {absl::StrCat(a), absl::StrCat(b), absl::StrCat(c), absl::StrCat(size), "off"});
    }
  }
  combinations.push_back({"1", "1", "1", "7", "on"});
  combinations.push_back({"1", "1", "1", "8", "on"});
  lab.ns = {{combinations.size() - 2, 50}, {combinations.size() - 1, 40}};
  SearchOptions options = kPlenty;
  options.max_candidates = 30;
  const StatusOr<Outcome> found = Search(combinations, lab, options);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->winner, combinations.size() - 1);
}

// 16 rows by 8192 x 8192 weights on sm_90a: what counts is how many multiprocessors load how much
// at a time. Within forty candidates the search comes from the default for many rows to swapped
// products with deep steps.
TEST(Tuner, SkinnyProductsAreReached) {
  const syntax::Program program = *syntax::Parse(FindFamily("gemm")->text);
  const StatusOr<TuneSpace> space = TuneSpaceOf(
      program, {.values = {{"M", "16"}, {"N", "8192"}, {"K", "8192"}, {"rows", "65536"}},
                .target_class = "cuda sm_90a"});
  ASSERT_TRUE(space.ok()) << space.status();
  const auto value = [&](size_t candidate, std::string_view name) {
    const auto at = std::find(space->names.begin(), space->names.end(), name);
    const auto index = static_cast<size_t>(at - space->names.begin());
    const std::string& text = space->combinations[candidate][index];
    return text == "true" ? 1 : text == "false" ? 0 : std::stoi(text);
  };
  FakeLab lab;
  for (size_t i = 0; i < space->combinations.size(); ++i) {
    const int bn = value(i, "bn"), units = std::min(132, 8192 / bn);
    const double kib_in_flight =
        value(i, "stages") * bn * value(i, "bk") * value(i, "deep") * 2 / 1024.0;
    const double rate = units * std::min(kib_in_flight, 256.0);
    // What pads the instructions is multiplied, too.
    lab.ns[i] = 1e6 / rate * (value(i, "swap") == 1 ? 1 : 1.2);
  }
  SearchOptions options = kPlenty;
  options.max_candidates = 40;
  const StatusOr<Outcome> found = Search(space->combinations, lab, options);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(value(0, "swap"), 0);
  EXPECT_EQ(value(found->winner, "swap"), 1);
  EXPECT_LT(value(found->winner, "bm"), 64);
  EXPECT_EQ(value(found->winner, "bn"), 64);
  EXPECT_EQ(value(found->winner, "bk") * value(found->winner, "deep"), 256);
  EXPECT_GE(value(found->winner, "stages"), 4);
}

TEST(Tuner, FindsTheFastestAndStopsTheRest) {
  FakeLab lab;
  lab.ns = {{7, 60}, {3, 80}, {5, 300}};
  const StatusOr<Outcome> found = Search(Square(3), lab, kPlenty);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->winner, 7u);
  EXPECT_EQ(found->runner_up, 3u);
  EXPECT_EQ(found->built, 9u);
  EXPECT_EQ(found->measured, 9u);
  EXPECT_TRUE(lab.validated.contains(0) && lab.validated.contains(7));
  EXPECT_FALSE(found->default_times.empty());
  // One launch is enough for what takes more than twice the best.
  EXPECT_EQ(found->candidates[5].fate, Fate::kStopped);
  EXPECT_EQ(std::count(lab.timed.begin(), lab.timed.end(), size_t{5}), 1);
  // In the finals everybody has the same number of rounds.
  EXPECT_EQ(found->winner_times.size(), found->default_times.size());
}

TEST(Tuner, TheDefaultStaysOnATie) {
  FakeLab lab;
  lab.ns = {{4, 99}};
  const StatusOr<Outcome> found = Search(Square(3), lab, kPlenty);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->winner, 0u);
  EXPECT_EQ(found->runner_up, 4u);
  EXPECT_EQ(found->winner_times, found->default_times);
}

TEST(Tuner, TheEarlierWinnerStaysOnATie) {
  const struct {
    double incumbent, other;
    size_t winner;
  } rows[] = {{60, 59.5, 8}, {60, 50, 4}, {99, 50, 4}, {99.5, 99.4, 0}, {130, 90, 4}};
  for (const auto& row : rows) {
    FakeLab lab;
    lab.ns = {{8, row.incumbent}, {4, row.other}};
    SearchOptions options = kPlenty;
    options.incumbent = 8;
    const StatusOr<Outcome> found = Search(Square(3), lab, options);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(found->winner, row.winner) << row.incumbent << " " << row.other;
    EXPECT_EQ(lab.timed[1], 8u) << "it comes right after the default";
  }
}

TEST(Tuner, ALuckyRoundDoesNotWin) {
  FakeLab lab;
  // Fast once, while the field was narrowed; as fast as the default in the finals.
  lab.noise[8] = {0.5, 1, 1, 1};
  const StatusOr<Outcome> found = Search(Square(3), lab, kPlenty);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->winner, 0u);
}

TEST(Tuner, WhatDoesNotFitIsNeverBuilt) {
  FakeLab lab;
  for (size_t i : {1, 2, 5, 8}) lab.refuse[i] = absl::ResourceExhaustedError("too much");
  const StatusOr<Outcome> found = Search(Square(3), lab, kPlenty);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_THAT(lab.built, ElementsAre(0, 3, 4, 6, 7));
  EXPECT_EQ(lab.admitted.size(), 9u);
  EXPECT_EQ(found->refused, 4u);
  EXPECT_EQ(found->built, 5u);
}

TEST(Tuner, CandidatesThatFailCostOnlyThemselves) {
  FakeLab lab;
  lab.ns = {{1, 10}, {2, 20}, {3, 30}, {4, 40}, {5, 50}};
  lab.fail[1] = absl::InternalError("compiler");
  lab.fault[2] = absl::AbortedError("died");
  lab.wrong[3] = absl::DataLossError("off");
  lab.fault[4] = absl::DeadlineExceededError("spins");
  const StatusOr<Outcome> found = Search(Square(3), lab, kPlenty);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->winner, 5u);
  EXPECT_EQ(found->candidates[1].fate, Fate::kUnbuilt);
  for (size_t i : {2, 3, 4}) EXPECT_EQ(found->candidates[i].fate, Fate::kDisqualified) << i;
  EXPECT_EQ(found->disqualified, 3u);
  EXPECT_EQ(found->candidates[4].fault.message(), "spins");
}

TEST(Tuner, NobodyWinsUnvalidated) {
  FakeLab lab;
  // The five fastest are all wrong.
  for (size_t i = 1; i <= 5; ++i) {
    lab.ns[i] = 10.0 * static_cast<double>(i);
    lab.wrong[i] = absl::DataLossError("off");
  }
  const StatusOr<Outcome> found = Search(Square(3), lab, kPlenty);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_TRUE(found->candidates[found->winner].validated);
  EXPECT_EQ(found->winner, 0u);
}

TEST(Tuner, WhatWasSlowOnlyBesideAWrongOneMayStillWin) {
  FakeLab lab;
  lab.ns = {{1, 1}, {5, 50}, {7, 60}};
  lab.wrong[1] = absl::DataLossError("off");
  const StatusOr<Outcome> found = Search(Square(3), lab, kPlenty);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->winner, 5u);
}

TEST(Tuner, ADefaultThatDoesNotRunIsReplaced) {
  const struct {
    const char* what;
    void (*plant)(FakeLab&);
  } rows[] = {
      {"refused", [](FakeLab& lab) { lab.refuse[0] = absl::ResourceExhaustedError("big"); }},
      {"unbuilt", [](FakeLab& lab) { lab.fail[0] = absl::InternalError("compiler"); }},
      {"faults", [](FakeLab& lab) { lab.fault[0] = absl::AbortedError("died"); }},
      {"wrong", [](FakeLab& lab) { lab.wrong[0] = absl::DataLossError("off"); }},
  };
  for (const auto& row : rows) {
    FakeLab lab;
    lab.ns = {{6, 90}};
    row.plant(lab);
    const StatusOr<Outcome> found = Search(Square(3), lab, kPlenty);
    ASSERT_TRUE(found.ok()) << row.what << found.status();
    EXPECT_EQ(found->winner, 6u) << row.what;
    EXPECT_TRUE(found->default_times.empty()) << row.what;
  }
}

TEST(Tuner, WithoutAnyItSaysWhy) {
  FakeLab lab;
  for (size_t i = 0; i < 4; ++i)
    lab.refuse[i] = absl::ResourceExhaustedError(absl::StrCat("needs ", i, " bytes"));
  const StatusOr<Outcome> found = Search(Square(2), lab, kPlenty);
  EXPECT_TRUE(absl::IsResourceExhausted(found.status())) << found.status();
  EXPECT_THAT(std::string(found.status().message()),
              HasSubstr("none of 4 combinations of tune parameters can be used (4 were tried); the "
                        "first of them: needs 0 bytes"));
  EXPECT_TRUE(lab.built.empty());
}

TEST(Tuner, Budgets) {
  const struct {
    SearchOptions options;
    double seconds_per_round;
    size_t least, most;  // built
  } rows[] = {
      {{.max_seconds = 1e9, .max_candidates = 1, .jobs = 2}, 0, 1, 1},
      {{.max_seconds = 1e9, .max_candidates = 10, .jobs = 2}, 0, 10, 10},
      {{.max_seconds = 1e9, .max_candidates = 1000, .jobs = 2}, 0, 100, 100},
      // No more is begun once the share for exploring is over: four in a wave.
      {{.max_seconds = 10, .jobs = 2}, 1, 5, 9},
      {{.max_seconds = 0.1, .jobs = 2}, 1, 1, 1},
  };
  for (const auto& row : rows) {
    FakeLab lab;
    lab.seconds_per_round = row.seconds_per_round;
    const StatusOr<Outcome> found = Search(Square(10), lab, row.options);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_GE(lab.built.size(), row.least) << row.options.max_seconds;
    EXPECT_LE(lab.built.size(), row.most) << row.options.max_seconds;
    EXPECT_FALSE(found->default_times.empty()) << "the default is always measured";
  }
}

// However slow launches are, hardly more than one round of two is over time.
TEST(Tuner, TimeIsKept) {
  for (double seconds : {0.01, 0.3, 1.0, 4.0}) {
    for (double budget : {1.0, 3.0, 10.0, 30.0, 100.0}) {
      FakeLab lab;
      lab.seconds_per_round = 3 * seconds;  // two launches before that which is timed
      for (size_t i = 0; i < 100; ++i) lab.ns[i] = seconds * (1e9 + static_cast<double>(i));
      const StatusOr<Outcome> found = Search(Square(10), lab, {.max_seconds = budget, .jobs = 2});
      ASSERT_TRUE(found.ok()) << found.status();
      // The default, once and then beside another.
      const double least = 3 * lab.seconds_per_round;
      EXPECT_LE(lab.Seconds(), std::max(least, budget + lab.seconds_per_round))
          << seconds << " of " << budget;
    }
  }
}

TEST(Tuner, CancelledWhileItRuns) {
  for (int rounds : {0, 1, 5, 12}) {
    FakeLab lab;
    lab.cancel_after = rounds;
    const StatusOr<Outcome> found = Search(Square(3), lab, kPlenty);
    EXPECT_TRUE(absl::IsCancelled(found.status())) << rounds << " " << found.status();
    EXPECT_EQ(static_cast<int>(lab.timed.size()), rounds);
  }
}

TEST(Tuner, ReportsEveryCandidate) {
  FakeLab lab;
  lab.refuse[2] = absl::ResourceExhaustedError("too much");
  lab.fault[3] = absl::AbortedError("died");
  ASSERT_TRUE(Search(Square(2), lab, kPlenty).ok());
  std::set<size_t> seen;
  for (const auto& [candidate, fate] : lab.reports) seen.insert(candidate);
  EXPECT_THAT(seen, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(
      std::count(lab.reports.begin(), lab.reports.end(), std::pair(size_t{2}, Fate::kRefused)), 1);
}

}  // namespace
}  // namespace tl
