// Products whose factors change places (`orientation=swapped`): which instruction they become, why
// another one, and that they compute the right numbers with what comes before and behind them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/emulate/emulate_testing.h"

namespace tl {
namespace {

using ::testing::Contains;
using testing::CudaCase;
using testing::FamilyText;
using ::testing::HasSubstr;
using testing::NameOf;
using ::testing::Not;
using testing::TableText;
using testing::Values;

Values With(Values values, const Values& more) {
  values.insert(values.end(), more.begin(), more.end());
  return values;
}

// ---- Which

struct Choice {
  const char* program;
  Values values;
  const char* note;  // a part of the line about a gemm
};

const std::vector<Choice>& Choices() {
  const Values i8 = {{"t", "i8"}, {"acc", "i32"}, {"tc", "i32"}, {"bm", "16"}};
  static const auto& choices = *new std::vector<Choice>{
      // Warps lie along the columns.
      {"product", {{"bm", "16"}}, ": wgmma.m64k16.f32.bf16.bf16, 1 x 4 warps, swapped"},
      {"product", {{"bm", "8"}, {"thr", "256"}, {"bn", "128"}}, ", 1 x 8 warps, swapped"},
      {"product", {{"bm", "16"}, {"thr", "256"}}, ", 2 x 4 warps, swapped"},
      {"product", {{"bm", "16"}, {"ta", "on"}, {"tb", "off"}}, ": wgmma.m64k16.f32.bf16.bf16, 1 x"},
      {"product", {{"bm", "24"}, {"t", "f32"}, {"tf32", "on"}}, ": wgmma.m64k8.f32.tf32.tf32, 1 x"},
      {"product", i8, ": wgmma.m64k32.s32.s8.s8, 1 x 4 warps, swapped"},
      {"product", {{"bm", "48"}, {"pol", "full_row"}}, ", 1 x 4 warps, swapped"},
      {"product",
       {{"bm", "16"}, {"thr", "256"}, {"pol", "full_row"}, {"bn", "128"}},
       ", 2 x 4 warps, swapped"},
      {"product",
       {{"bm", "64"}, {"thr", "256"}, {"pol", "full_col"}, {"bn", "128"}},
       ", 1 x 8 warps, swapped"},
      {"swapped_fragment", {}, ": wgmma.m64k16.f32.bf16.bf16, 1 x 4 warps, swapped"},
      // What is not possible, with the reason, and what comes instead.
      {"product",
       {{"bn", "96"}},
       ": wgmma.m64k16.f32.bf16.bf16, 4 x 1 warps; not wgmma.m64k16.f32.bf16.bf16 swapped: 96 "
       "columns are no multiple of 64"},
      {"product",
       {{"bm", "20"}},
       "m16n8k16_bf16_bf16_f32, 1 x 4 warps, swapped; not wgmma.m64k16.f32.bf16.bf16 swapped: 20 "
       "rows are no multiple of 8; not wgmma.m64k16.f32.bf16.bf16: 20 rows are no multiple of 64"},
      {"product", {{"bm", "8"}, {"ta", "on"}}, " swapped: a_s has rows that are no multiple of 32"},
      {"product", With(i8, {{"tb", "off"}}),
       " swapped: b_s runs along the depth, which takes 16-bit elements"},
      {"product",
       {{"bm", "8"}, {"thr", "256"}, {"pol", "full_row"}, {"bn", "128"}},
       " swapped: 8 warps cannot share it by fours"},
      {"product", {{"t", "e4m3"}, {"tc", "f32"}, {"bm", "16"}}, "_e4m3_e4m3_f32, 1 x 4 warps, sw"},
      // Whoever says nothing gets what it was.
      {"product", {{"bm", "16"}, {"way", "auto"}}, "m16n8k16_bf16_bf16_f32, 1 x 4 warps; not wgm"},
      {"product", {{"way", "straight"}}, ": wgmma.m64k16.f32.bf16.bf16, 4 x 1 warps"},
  };
  return choices;
}

TEST(Swapped, TakesWhatItCanAndSaysWhyNot) {
  for (const Choice& c : Choices()) {
    Values values = c.values;
    const bool says = NameOf("", values).find("way=") != std::string::npos;
    if (!says) values = With(values, {{"way", "swapped"}});
    SCOPED_TRACE(NameOf(c.program, values));
    const auto lowered =
        testing::LowerText(TableText(c.program), values, *FindCudaTarget("sm_90a"));
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    EXPECT_THAT(lowered->thread.notes, Contains(HasSubstr(c.note)));
  }
}

// ---- What they compute

void ExpectRight(const CudaCase& c, std::string_view target = "sm_90a") {
  SCOPED_TRACE(NameOf(c.name, c.values));
  testing::CheckOptions options{.seeds = {1}};
  if (target == "sm_90a") options.arrivals = {Arrival::kRandom, Arrival::kEager, Arrival::kLazy};
  ExpectRightNumbers(c, *FindCudaTarget(target), options);
}

struct Types {
  const char* name;
  Values values;
};
const std::vector<Types>& AllTypes() {
  static const auto& all =
      *new std::vector<Types>{{"bf16", {}},
                              {"f16", {{"t", "f16"}, {"tc", "f32"}}},
                              {"half", {{"t", "f16"}, {"acc", "f16"}, {"tc", "f16"}}},
                              {"e4m3", {{"t", "e4m3"}, {"tc", "f32"}}},
                              {"fast", {{"t", "e4m3"}, {"tc", "f32"}, {"fast", "on"}}},
                              {"tf32", {{"t", "f32"}, {"tf32", "on"}}},
                              {"i8", {{"t", "i8"}, {"acc", "i32"}, {"tc", "i32"}}},
                              {"mixed", {{"t", "u8"}, {"u", "i8"}, {"acc", "i32"}, {"tc", "i32"}}},
                              {"floats", {{"t", "e4m3"}, {"u", "e5m2"}, {"tc", "f32"}}}};
  return all;
}

class Tiles : public ::testing::TestWithParam<int> {};

// Few rows, odd ones, more than one tile.
TEST_P(Tiles, OfEveryTypeAndOrder) {
  const int bm = GetParam();
  int turn = 0;
  for (const Types& types : AllTypes()) {
    for (const char* order : {"nt", "nn", "tt", "tn"}) {
      const int bn = std::array{64, 128, 256}[turn++ % 3];
      const int64_t n = bn + 24;
      ExpectRight({"product",
                   TableText("product"),
                   With(types.values, {{"way", "swapped"},
                                       {"bm", absl::StrCat(bm)},
                                       {"bn", absl::StrCat(bn)},
                                       {"stages", absl::StrCat(turn % 4 + 1)},
                                       {"thr", bn == 256 ? "256" : "128"},
                                       {"ta", order[0] == 't' ? "on" : "off"},
                                       {"tb", order[1] == 't' ? "on" : "off"}}),
                   {{1, n, 64}, {3, 64, 32}, {16, n, 96}, {17, 72, 40}, {2 * bm + 8, n, 160}},
                   {}});
    }
  }
}

// Numbers that the factors' types do not share.
TEST(Swapped, TypesGoWithTheirFactors) {
  for (const auto& [t, u] : {std::pair("i8", "u8"), std::pair("u8", "i8")}) {
    std::string text = TableText("product");
    const std::string range =
        std::string_view(t) == "u8" ? "uniform(0, 250)" : "uniform(-100, 100)";
    const std::string other =
        std::string_view(u) == "u8" ? "uniform(0, 250)" : "uniform(-100, 100)";
    const size_t launch = text.find("  launch ");
    text.insert(launch, absl::StrCat("  init A = ", range, "\n  init B = ", other, "\n"));
    for (const char* target : {"sm_90a", "sm_80"}) {
      ExpectRight(
          {"product",
           text,
           {{"t", t}, {"u", u}, {"acc", "i32"}, {"tc", "i32"}, {"way", "swapped"}, {"bm", "16"}},
           {{16, 64, 64}},
           {}},
          target);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Swapped, Tiles, ::testing::Values(8, 16, 24, 32, 48));

// Instructions of single warps: 16 columns of c by 8 of its rows.
TEST(Swapped, OnOtherTargets) {
  for (const char* target : {"sm_75", "sm_80", "sm_89"}) {
    for (const Types& types : AllTypes()) {
      const bool narrow = std::string_view(types.name) == "e4m3";
      if (narrow != (std::string_view(target) == "sm_89")) continue;
      for (const char* ta : {"off", "on"}) {
        ExpectRight({"product",
                     TableText("product"),
                     With(types.values, {{"way", "swapped"}, {"bm", "8"}, {"ta", ta}, {"tb", ta}}),
                     {{1, 88, 64}, {17, 64, 100}},
                     {}},
                    target);
      }
    }
  }
}

// The tile's sums in the hands of bias, activation and residual, on their way out by whole rows.
TEST(Swapped, Epilogues) {
  for (const char* tc : {"bf16", "f32"}) {
    for (const char* bm : {"16", "32"}) {
      ExpectRight({"gemm",
                   FamilyText("gemm"),
                   {{"swap", "on"},
                    {"deep", "2"},
                    {"stay", "off"},
                    {"bm", bm},
                    {"bn", "64"},
                    {"bk", "64"},
                    {"stages", "3"},
                    {"tc", tc},
                    {"bias", "on"},
                    {"residual", "on"},
                    {"act", "gelu"}},
                   {{1, 64, 256}, {3, 72, 40}, {17, 136, 400}, {16, 64, 0}},
                   {}});
    }
  }
}

// A rows' and a column's values from a tile that lies transposed, and back.
TEST(Swapped, Reductions) {
  for (const char* bm : {"8", "16", "24"}) {
    for (const char* target : {"sm_90a", "sm_80"}) {
      ExpectRight({"swapped_scores",
                   TableText("swapped_scores"),
                   {{"bm", bm}},
                   {{1, 64}, {17, 200}, {24, 1}},
                   {}},
                  target);
    }
  }
}

// Weights from registers, and the tokens, which have to be put into shared memory.
TEST(Swapped, Fragments) {
  for (const char* w : {"i8", "bf16"}) {
    for (const char* turned : {"on", "off"}) {
      for (const char* left : {"on", "off"}) {
        for (const char* stages : {"1", "3"}) {
          ExpectRight({"swapped_fragment",
                       TableText("swapped_fragment"),
                       {{"w", w}, {"turned", turned}, {"left", left}, {"stages", stages}},
                       {{1, 64, 64}, {17, 96, 200}, {16, 64, 32}},
                       {}});
        }
      }
    }
  }
}

// What an iteration before has left, and what other groups do beside.
TEST(Swapped, Lags) {
  for (const char* what : {"values", "keys", "both", "sum"}) {
    for (const char* copies : {"self", "warp"}) {
      const Values values = {{"way", "swapped"}, {"what", what}, {"copies", copies},
                             {"stages", "3"},    {"bm", "16"},   {"distance", "2"}};
      ExpectRight({"lags", TableText("lags"), values, {{40, 64}, {3, 200}, {16, 448}}, {}});
    }
  }
}

TEST(Swapped, Groups) {
  for (const char* direct : {"on", "off"}) {
    const Values values = {{"way", "swapped"}, {"direct", direct}, {"bn", "64"}, {"stages", "3"}};
    ExpectRight(
        {"group_tiles", TableText("group_tiles"), values, {{200, 130, 300}, {1, 64, 64}}, {}});
  }
}

// Straight products whose b comes through registers go on in the next iteration no more than
// others.
TEST(Swapped, StraightWithFragments) {
  for (const char* left : {"on", "off"}) {
    ExpectRight(
        {"swapped_fragment",
         TableText("swapped_fragment"),
         {{"way", "straight"}, {"turned", left}, {"left", left}, {"bm", "64"}, {"stages", "4"}},
         {{64, 64, 320}},
         {}});
  }
}

// ---- What they cost

struct Costly {
  const char* name;
  std::string text;
  Values values;
  const char* instruction;
};

std::vector<Costly> AllCostly() {
  const std::string gemm = FamilyText("gemm"), decode = FamilyText("attention_decode");
  const Values skinny = {{"swap", "on"}, {"stay", "off"}, {"bn", "64"}, {"bk", "64"}};
  const Values queries = {{"swap", "on"}};
  const char* const n16 = ".m64n16k16.f32.bf16.bf16";
  return {
      {"gemm", gemm, With(skinny, {{"bm", "16"}, {"deep", "4"}, {"stages", "5"}}), n16},
      {"gemm", gemm, With(skinny, {{"bm", "32"}, {"deep", "4"}, {"stages", "4"}, {"t", "f16"}}),
       ".m64n32k16.f32.f16.f16"},
      {"gemm", gemm, With(skinny, {{"bm", "16"}, {"deep", "2"}, {"stages", "8"}, {"act", "gelu"}}),
       n16},
      {"attention_decode", decode, queries, n16},
      {"attention_decode", decode, With(queries, {{"bh", "32"}, {"D", "64"}}), ".m64n32k16"},
      {"attention_decode", decode, With(queries, {{"Dv", "256"}, {"paged", "off"}}), n16},
      // The sums are scaled in front of a barrier, behind which the compiler would do it.
      {"swapped_scores", TableText("swapped_scores"), {{"bm", "8"}}, ".m64n8k16"},
      {"swapped_scores", TableText("swapped_scores"), {{"bm", "48"}, {"D", "128"}}, ".m64n48k16"},
  };
}

// The weights' columns are the instruction's 64 rows, the tokens its columns; boxes fill the ring;
// nothing is converted.
TEST(Swapped, SkinnyGemmsConvertNothing) {
  for (const Costly& c : AllCostly()) {
    if (std::string_view(c.name) != "gemm") continue;
    SCOPED_TRACE(NameOf(c.name, c.values));
    const auto lowered = testing::LowerText(c.text, c.values, *FindCudaTarget("sm_90a"));
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    EXPECT_THAT(lowered->thread.notes, Contains(HasSubstr("1 x 4 warps, swapped")));
    EXPECT_THAT(lowered->thread.notes, Contains(HasSubstr("filled by boxes")));
    for (const std::string& note : lowered->thread.notes) {
      EXPECT_FALSE(absl::StrContains(note, "converted") ||
                   absl::StrContains(note, "bank conflicts") ||
                   absl::StrContains(note, "is not pipelined"))
          << note;
    }
  }
}

TEST(Swapped, Assembled) {
  const std::unique_ptr<Backend> backend = MakeCudaBackend(testing::TestPaths());
  const StatusOr<std::string> identity = backend->CompilerIdentity({});
  if (!identity.ok()) GTEST_SKIP() << "SKIP, no NVRTC: " << identity.status().message();
  const Target target = *FindCudaTarget("sm_90a");
  for (const Costly& c : AllCostly()) {
    SCOPED_TRACE(NameOf(c.name, c.values));
    const auto lowered = testing::LowerText(c.text, c.values, target);
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    std::string ptx;
    testing::ExpectBuilds(*backend, lowered->generated, target, ptx);
    EXPECT_THAT(ptx, HasSubstr(c.instruction));
    EXPECT_THAT(ptx, Not(HasSubstr("mma.sync.aligned")));
  }
}

}  // namespace
}  // namespace tl
