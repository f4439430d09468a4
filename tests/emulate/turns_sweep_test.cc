// Groups that take turns: where they do and why not elsewhere, that a turn ends before what was
// begun in it is waited for, and that no number of groups, slots or iterations makes them wait for
// each other for good.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "ir/unparse.h"
#include "tests/emulate/emulate_testing.h"

namespace tl {
namespace {

using ::testing::Contains;
using testing::CudaCase;
using ::testing::HasSubstr;
using testing::NameOf;
using testing::TableText;
using testing::Values;

struct Choice {
  Values values;
  const char* target;
  const char* note;
  bool taken = false;
};

const std::vector<Choice>& Choices() {
  static const auto& choices = *new std::vector<Choice>{
      {{}, "sm_90a", "in_turn at 19:9: the 2 groups take turns", true},
      {{{"groups", "3"}}, "sm_90a", "in_turn at 19:9: the 3 groups take turns", true},
      {{{"place", "both"}, {"copies", "warp"}}, "sm_90a", "in_turn at 24:9: the 2 groups", true},
      {{}, "sm_80", "in_turn at 19:9: the 2 groups take turns", true},
      {{{"groups", "1"}}, "sm_90a", ": groups take no turns: the launch has one"},
      {{}, "sm_75", ": there are no barriers in memory"},
      {{{"place", "group"}}, "sm_90a", ": inside 'on' they may come by different numbers of times"},
      {{{"place", "steps"}, {"copies", "warp"}},
       "sm_90a",
       ": what is copied is waited for in between"},
      {{{"place", "steps"}}, "sm_90a", ": all threads of the block meet in between"},
      {{{"place", "meeting"}}, "sm_90a", ": all threads of the block meet in between"},
  };
  return choices;
}

TEST(Turns, AreTakenOrTheReportSaysWhyNot) {
  for (const Choice& c : Choices()) {
    SCOPED_TRACE(absl::StrCat(NameOf(c.target, c.values)));
    const auto lowered =
        testing::LowerText(TableText("turns"), c.values, *FindCudaTarget(c.target));
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    EXPECT_THAT(lowered->thread.notes, Contains(HasSubstr(c.note)));
    // Nothing is left of turns that are not taken.
    EXPECT_EQ(absl::StrContains(ToText(lowered->thread), "turns_"), c.taken);
  }
}

// The next group may multiply while this one waits.
TEST(Turns, EndBeforeWhatTheyBeganIsWaitedFor) {
  const auto lowered = testing::LowerText(TableText("turns"), {}, *FindCudaTarget("sm_90a"));
  ASSERT_TRUE(lowered.ok()) << lowered.status();
  const std::string text = ToText(lowered->thread);
  bool in_turn = false, multiplied = false;
  int ends = 0;
  for (std::string_view line : absl::StrSplit(text, '\n')) {
    if (absl::StrContains(line, "mbarrier_wait turns")) in_turn = true, multiplied = false;
    if (!in_turn) continue;
    EXPECT_FALSE(absl::StrContains(line, "wgmma_wait")) << text;
    multiplied = multiplied || absl::StrContains(line, "wgmma ");
    if (!absl::StrContains(line, "mbarrier_arrive turns")) continue;
    EXPECT_TRUE(multiplied) << text;
    in_turn = false;
    ++ends;
  }
  EXPECT_GE(ends, 1) << text;
}

class AnyTurns : public ::testing::TestWithParam<int> {};

TEST_P(AnyTurns, NobodyWaitsForGood) {
  const int stages = GetParam();
  for (const char* groups : {"2", "3"}) {
    for (const Values& form : {Values{{"place", "products"}}, Values{{"place", "both"}},
                               Values{{"place", "products"}, {"copies", "warp"}, {"stay", "on"}},
                               Values{{"place", "both"}, {"copies", "self"}, {"stay", "on"}}}) {
      Values values = form;
      values.insert(values.end(), {{"groups", groups}, {"stages", absl::StrCat(stages)}});
      CudaCase c{"turns", TableText("turns"), values, {}, {}};
      SCOPED_TRACE(NameOf(c.name, c.values));
      for (int64_t trips = 0; trips <= 2 * stages + 1; ++trips) {
        c.dims.push_back({64 * (trips * 3 % 11), 32 * trips});
      }
      ExpectRightNumbers(
          c, *FindCudaTarget("sm_90a"),
          {.seeds = {1}, .arrivals = {Arrival::kRandom, Arrival::kEager, Arrival::kLazy}});
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Stages, AnyTurns, ::testing::Range(1, 5));

}  // namespace
}  // namespace tl
