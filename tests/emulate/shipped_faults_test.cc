// Small inputs that tile compilers were seen to get wrong: one test for each kind. Programs of
// tests/programs/table and families, as generated GPU source, against the reference interpreter.
// Elsewhere: tiles that exceed shared memory (passes_test.cc, tune_test.cc, compile_test.cc),
// tuning candidates that fault or never end (tune_test.cc).
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "tests/emulate/emulate_testing.h"

namespace tl {
namespace {

using testing::CudaCase;
using testing::FamilyText;
using testing::TargetFor;
using testing::Values;
using Dims = std::vector<std::vector<int64_t>>;

std::string TableText(const std::string& name) {
  std::ifstream in(std::string(TL_SOURCE_DIR) + "/tests/programs/table/" + name + ".tl");
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

void ExpectRight(const std::string& text, const Values& values, const Dims& dims) {
  ASSERT_FALSE(text.empty());
  for (const char* arch : {"sm_80", "sm_90a"}) {
    testing::ExpectRightNumbers({"program", text, values, dims, {}}, TargetFor(arch, true),
                                {.seeds = {1}});
  }
}

// A family whose operand X is made otherwise.
std::string WithInit(const std::string& text, const std::string& init) {
  const size_t at = text.find("  launch ");
  return text.substr(0, at) + "  init X = " + init + "\n" + text.substr(at);
}
std::string SoftmaxOf(const std::string& init) {
  return absl::StrReplaceAll(FamilyText("softmax"),
                             {{"init X = normal(0, 2)", "init X = " + init}});
}

// The last columns were never written.
TEST(ShippedFaults, ColumnsThatDoNotFillTheWarps) {
  ExpectRight(TableText("product"), {{"bm", "16"}, {"bn", "104"}, {"thr", "384"}},
              {{16, 104, 64}, {16, 103, 40}});
}

// The tail of the depth was dropped.
TEST(ShippedFaults, DepthThatIsNoMultipleOfAnInstructions) {
  ExpectRight(TableText("product"), {{"t", "f16"}, {"bk", "24"}}, {{64, 64, 100}, {33, 20, 24}});
}

// Refused: "divisible by 16".
TEST(ShippedFaults, TilesOfEightRows) {
  ExpectRight(TableText("product"), {{"bm", "8"}}, {{20, 64, 64}, {8, 8, 8}});
}

// Hangs, or slots read before they were filled.
TEST(ShippedFaults, FewerIterationsThanStages) {
  ExpectRight(TableText("pipelines"), {{"stages", "4"}},
              {{32, 32, 0, 0}, {32, 32, 16, 16}, {32, 32, 48, 0}, {20, 30, 40, 100}});
  ExpectRight(TableText("product"), {{"stages", "4"}, {"M", "32"}, {"N", "32"}, {"K", "32"}}, {{}});
}

// Wrong from a block's second tile on, unless the number of iterations divided twice the stages:
// the phases of mbarriers did not carry over.
TEST(ShippedFaults, TilesOfPersistentBlocksWithProducers) {
  for (const char* copies : {"warp", "self"}) {
    for (int stages = 1; stages <= 4; ++stages) {
      Dims dims;
      for (int64_t trips = 0; trips <= 2 * stages + 1; ++trips) {
        dims.push_back({64 * 7, 40, 16 * trips});
      }
      ExpectRight(TableText("product"),
                  {{"copies", copies},
                   {"stay", "on"},
                   {"stages", std::to_string(stages)},
                   {"bk", "16"},
                   {"bn", "40"}},
                  dims);
    }
  }
}

// One warpgroup wrote the next step's operand while the other still read this one's.
TEST(ShippedFaults, WarpgroupsThatShareAnOperandWithoutStages) {
  for (const char* stages : {"0", "1"}) {
    ExpectRight(TableText("product"),
                {{"stages", stages}, {"bm", "128"}, {"bn", "48"}, {"thr", "256"}},
                {{128, 48, 160}, {256, 96, 96}});
  }
}

// A tensor map cannot describe them, and creating it failed.
TEST(ShippedFaults, RowsThatAreNoMultiplesOfSixteenBytes) {
  for (const char* turned : {"off", "on"}) {
    ExpectRight(FamilyText("gemm"),
                {{"t", "f16"}, {"tb", turned}, {"bm", "64"}, {"bn", "64"}, {"bk", "64"}},
                {{65, 61, 67}, {64, 63, 129}});
    ExpectRight(FamilyText("gemm"),
                {{"t", "f16"},
                 {"tb", turned},
                 {"bm", "64"},
                 {"bn", "64"},
                 {"bk", "64"},
                 {"M", "65"},
                 {"N", "61"},
                 {"K", "67"}},
                {{}});
  }
}

// Loaded element by element, and nobody was told.
TEST(ShippedFaults, NarrowFloatsWhoseRowsDoNotRunAlongTheDepth) {
  for (const char* arch : {"sm_89", "sm_90a"}) {
    const Target target = TargetFor(arch, true);
    for (const auto& [ta, tb] : {std::pair("off", "on"), {"off", "off"}, {"on", "on"}}) {
      const Values values{{"t", "e4m3"}, {"tc", "f32"}, {"ta", ta},  {"tb", tb},
                          {"bm", "64"},  {"bn", "32"},  {"bk", "64"}};
      testing::ExpectRightNumbers({"gemm", FamilyText("gemm"), values, {{70, 48, 80}}, {}}, target,
                                  {.seeds = {1}});
      const auto lowered = testing::LowerText(FamilyText("gemm"), values, target);
      ASSERT_TRUE(lowered.ok()) << lowered.status();
      const bool slow = std::string_view(ta) == "on" || std::string_view(tb) == "off";
      const auto told = [](const std::string& note) {
        return absl::StrContains(note, "its rows do not run along the depth");
      };
      EXPECT_EQ(absl::c_any_of(lowered->thread.notes, told), slow) << ta << tb;
    }
  }
}

// Of each of several groups: refused where they are no multiple of 16.
TEST(ShippedFaults, ColumnsOfAGroupThatAreNoMultipleOfSixteen) {
  for (const char* columns : {"8", "24", "40"}) {
    ExpectRight(TableText("group_tiles"), {{"bn", columns}, {"t", "f16"}, {"groups", "2"}},
                {{64, 2 * std::stoi(columns), 64}, {100, 30, 100}});
  }
}

// Could not be inferred.
TEST(ShippedFaults, ReducedExtentsThatAreNoPowerOfTwo) {
  for (const char* columns : {"229", "160", "96"}) {
    ExpectRight(TableText("reductions"), {{"bn", columns}, {"thr", "128"}},
                {{9, std::stoi(columns)}});
  }
}

// NaN where the reference framework has zeros; numbers where it has NaN.
TEST(ShippedFaults, RowsOfMinusInfinityOnly) {
  ExpectRight(SoftmaxOf("constant(-inf)"), {}, {{3, 40}, {2, 4099}});
}
TEST(ShippedFaults, QueriesThatSeeNoKey) {
  ExpectRight(FamilyText("attention"), {{"D", "64"}, {"causal", "on"}, {"lse", "on"}, {"bm", "32"}},
              {{1, 1, 1, 40, 8}, {1, 1, 1, 5, 0}});
}

// Products and sums of large numbers of 16 bits overflowed before they were reduced.
TEST(ShippedFaults, LargeNumbersOfSixteenBits) {
  ExpectRight(SoftmaxOf("uniform(-60000, 60000)"), {{"t", "f16"}}, {{3, 229}});
  ExpectRight(WithInit(FamilyText("rms_norm"), "uniform(-60000, 60000)"), {{"t", "f16"}},
              {{3, 160}});
  ExpectRight(FamilyText("attention"), {{"D", "64"}, {"t", "f16"}, {"bm", "32"}},
              {{1, 1, 1, 20, 33}});
}

}  // namespace
}  // namespace tl
