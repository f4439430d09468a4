// `owner=group`: groups of a block that work on tiles of their own. What the report says, that a
// ring which a producer fills is used in the order of tiles, and that numbers are right and nobody
// waits for good, whatever the number of groups, tiles, slots and iterations.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ir/unparse.h"
#include "tests/emulate/emulate_testing.h"

namespace tl {
namespace {

using ::testing::Contains;
using testing::CudaCase;
using testing::FamilyText;
using ::testing::HasSubstr;
using testing::NameOf;
using testing::TableText;
using testing::Values;

const testing::CheckOptions kAllArrivals{
    .seeds = {1}, .arrivals = {Arrival::kRandom, Arrival::kEager, Arrival::kLazy}};

// Every launch of a program stays, and its tiles are given to groups.
std::string WithOwners(const std::string& text) {
  const std::string attrs = " persistent groups=2 owner=group ";
  const std::regex own(R"( (persistent=\w+|(groups|owner)=if \w+ then \w+ else \w+))");
  const std::string plain = std::regex_replace(text, own, "");
  return std::regex_replace(plain, std::regex("(\n  launch [^{]*[^{ ]) \\{"), "$1" + attrs + "{");
}

// ---- What is planned

struct Plan {
  Values values;
  const char* target;
  const char* note;
  bool turns = false;  // of groups that share a ring
};

const std::vector<Plan>& Plans() {
  static const auto& plans = *new std::vector<Plan>{
      {{{"copies", "warp"}}, "sm_90a", "128 threads more, which only copy", true},
      {{{"copies", "auto"}}, "sm_90a", "128 threads more, which only copy", true},
      {{{"copies", "self"}}, "sm_90a", "each group fills slots of its own: the program says so"},
      {{{"copies", "warp"}, {"thr", "512"}},
       "sm_90a",
       "each group fills slots of its own: a block would have 1152 threads"},
      {{}, "sm_80", "3 slots of a_s, b_s filled by asynchronous copies"},
      {{}, "sm_75", "2 slots of a_s, b_s filled by registers"},
  };
  return plans;
}

TEST(Owners, ShareARingThatAProducerFills) {
  for (const Plan& p : Plans()) {
    Values values = p.values;
    values.insert(values.end(), {{"owners", "2"}, {"stay", "on"}, {"stages", "3"}});
    SCOPED_TRACE(NameOf(p.target, values));
    const auto lowered =
        testing::LowerText(TableText("product"), values, *FindCudaTarget(p.target));
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    EXPECT_THAT(lowered->thread.notes, Contains(HasSubstr(p.note)));
    EXPECT_EQ(absl::StrContains(ToText(lowered->thread), "mbarrier_wait turns"), p.turns);
  }
}

// Where groups are none, their tiles are the block's.
TEST(Owners, AreBlocksWhereThereAreNoGroups) {
  Target one = *FindCudaTarget("sm_80");
  one.max_groups = 1;
  const Values values{{"owners", "2"}, {"stay", "on"}};
  const auto lowered = testing::LowerText(TableText("product"), values, one);
  ASSERT_TRUE(lowered.ok()) << lowered.status();
  EXPECT_THAT(lowered->thread.notes, Contains(HasSubstr("blocks of one group own the tiles")));
  EXPECT_EQ(lowered->thread.launches[0].groups, 1);
}

// ---- Numbers

// Any trip count, and tiles that give some groups one more than others, or none.
class Products : public ::testing::TestWithParam<int> {};

TEST_P(Products, AreRightWithAnyNumberOfTilesAndSteps) {
  const int stages = GetParam();
  for (const Values& form :
       {Values{{"owners", "2"}, {"copies", "warp"}}, Values{{"owners", "3"}, {"copies", "warp"}},
        Values{{"owners", "2"}, {"copies", "warp"}, {"stores", "bulk"}},
        Values{{"owners", "2"}, {"copies", "self"}, {"stores", "bulk"}}}) {
    Values values = form;
    values.insert(values.end(), {{"stay", "on"}, {"stages", absl::StrCat(stages)}});
    CudaCase c{"product", TableText("product"), values, {}, {}};
    SCOPED_TRACE(NameOf(c.name, c.values));
    for (int64_t trips = 0; trips <= 2 * stages + 1; ++trips) {
      // Three blocks stay: 1 to 10 tiles.
      c.dims.push_back({64 * (trips * 3 % 10 + 1), 64, 32 * trips});
    }
    ExpectRightNumbers(c, *FindCudaTarget("sm_90a"), kAllArrivals);
  }
}

INSTANTIATE_TEST_SUITE_P(Stages, Products, ::testing::Range(1, 5));

// Two loops, nested, guarded, downwards.
TEST(Owners, CountTheSlotsOfSeveralLoops) {
  for (const char* target : {"sm_90a", "sm_80"}) {
    for (const char* owners : {"2", "3"}) {
      for (const char* copies : {"warp", "self"}) {
        CudaCase c{"pipelines",
                   TableText("pipelines"),
                   {{"owners", owners}, {"copies", copies}, {"stay", "on"}, {"thr", "128"}},
                   {{32, 32, 16, 0}, {100, 70, 0, 40}, {200, 64, 100, 16}, {320, 33, 40, 100}},
                   {}};
        ExpectRightNumbers(c, *FindCudaTarget(target), kAllArrivals);
      }
    }
  }
}

struct Program {
  const char* name;
  std::string text;
  Values values;
  std::vector<std::vector<int64_t>> dims;
};

// What else a tile's work consists of: results by way of shared memory, reductions, loops whose
// trips differ from tile to tile, boxes that leave.
std::vector<Program> Programs() {
  return {
      {"gemm",
       FamilyText("gemm"),
       {{"bias", "on"},
        {"residual", "on"},
        {"act", "gelu_tanh"},
        {"boxes", "on"},
        {"bm", "64"},
        {"bn", "64"},
        {"bk", "32"},
        {"stages", "2"}},
       {{500, 72, 64}, {70, 200, 96}, {70, 67, 33}}},
      {"attention",
       FamilyText("attention"),
       {{"causal", "on"}, {"lse", "on"}, {"D", "64"}, {"bm", "64"}, {"bn", "32"}},
       {{1, 2, 1, 300, 333}, {2, 2, 2, 65, 31}}},
      {"rms_norm", FamilyText("rms_norm"), {{"silu", "on"}}, {{77, 229}}},
      {"softmax", FamilyText("softmax"), {{"N", "229"}}, {{77}, {9}}},
      {"layer_norm", FamilyText("layer_norm"), {{"C", "160"}}, {{77}}},
  };
}

TEST(Owners, RunWholeFamilies) {
  for (const Program& p : Programs()) {
    for (const char* target : {"sm_90a", "sm_80", "sm_75"}) {
      ExpectRightNumbers({p.name, WithOwners(p.text), p.values, p.dims, {}},
                         *FindCudaTarget(target), kAllArrivals);
    }
  }
}

// Blocks that load for each other.
TEST(Owners, OfClusters) {
  CudaCase c{"product",
             TableText("product"),
             {{"owners", "2"},
              {"copies", "warp"},
              {"stay", "on"},
              {"cm", "2"},
              {"M", "512"},
              {"N", "128"},
              {"stages", "3"}},
             {{0}, {32}, {96}, {200}},
             {}};
  ExpectRightNumbers(c, *FindCudaTarget("sm_90a"), kAllArrivals);
}

}  // namespace
}  // namespace tl
