// Products of warpgroups in whole programs: which gemms become some, why the others do not, and
// that rings of any depth with any number of iterations compute the right numbers, whenever copies
// and products end. The programs are those of tests/programs/table.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/emulate/emulate_testing.h"

namespace tl {
namespace {

using ::testing::Contains;
using testing::CudaCase;
using ::testing::HasSubstr;
using testing::NameOf;
using testing::TableText;
using testing::Values;

// ---- Which

struct Choice {
  const char* program;
  Values values;
  const char* note;  // a part of the line about the gemm
};

const std::vector<Choice>& Choices() {
  static const auto& choices = *new std::vector<Choice>{
      {"product", {}, ": wgmma.m64k16.f32.bf16.bf16, 4 x 1 warps"},
      {"product", {{"t", "f16"}, {"acc", "f16"}}, ": wgmma.m64k16.f16.f16.f16, 4 x 1 warps"},
      {"product", {{"ta", "on"}, {"tb", "off"}}, ": wgmma.m64k16.f32.bf16.bf16, 4 x 1 warps"},
      {"product", {{"t", "f32"}, {"tf32", "on"}}, ": wgmma.m64k8.f32.tf32.tf32, 4 x 1 warps"},
      {"product", {{"t", "i8"}, {"acc", "i32"}, {"tc", "i32"}}, ": wgmma.m64k32.s32.s8.s8"},
      {"product", {{"t", "u8"}, {"u", "i8"}, {"acc", "i32"}, {"tc", "i32"}}, ".s32.u8.s8"},
      {"product", {{"t", "e4m3"}, {"tc", "f32"}, {"fast", "on"}}, ": wgmma.m64k32.f32.e4m3.e4m3"},
      {"product",
       {{"t", "e5m2"}, {"u", "e4m3"}, {"tc", "bf16"}, {"fast", "on"}},
       ": wgmma.m64k32.f32.e5m2.e4m3, 4 x 1 warps"},
      // Of the ways to share it the one that reads least, unless the policy says otherwise.
      {"product", {{"thr", "256"}, {"bm", "128"}}, ", 8 x 1 warps"},
      {"product", {{"thr", "256"}, {"bm", "64"}, {"bn", "80"}}, ", 4 x 2 warps"},
      {"product", {{"thr", "512"}, {"bm", "128"}, {"bn", "128"}}, ", 8 x 2 warps"},
      {"product", {{"thr", "256"}, {"bm", "128"}, {"bn", "128"}, {"pol", "full_col"}}, ", 4 x 2"},
      {"fragment_operand", {{"thr", "128"}, {"bm", "64"}}, ": wgmma.m64k16.f32.bf16.bf16"},
      {"windows", {}, ": wgmma.m64k16.f32.bf16.bf16"},
      {"windows", {{"late", "on"}, {"deep", "64"}}, ": wgmma.m64k16.f32.bf16.bf16"},
      // What they cannot take, each with the reason.
      {"product",
       {{"t", "e4m3"}, {"tc", "f32"}},
       "_e4m3_e4m3_f32, 2 x 2 warps; precision=fast_accum would permit a faster one"},
      {"product",
       {{"t", "e4m3"}, {"tc", "f32"}, {"fast", "on"}, {"tb", "off"}},
       ": b_s runs along the depth, which takes 16-bit elements"},
      {"product",
       {{"bm", "96"}},
       "; not wgmma.m64k16.f32.bf16.bf16: 96 rows are no multiple of 64"},
      {"product", {{"bn", "68"}}, ": 68 columns are no multiple of 8"},
      {"product", {{"bk", "24"}}, ": a depth of 24 is no multiple of 16"},
      {"product", {{"thr", "96"}}, ": 3 warps cannot share it by fours"},
      {"product", {{"thr", "192"}}, ": 6 warps cannot share it by fours"},
      {"product", {{"thr", "256"}, {"pol", "full_row"}}, ": 8 warps cannot share it by fours"},
      {"product",
       {{"thr", "256"}, {"bn", "144"}, {"tb", "off"}},
       "8 warps cannot share it by fours"},
      {"product", {{"bn", "72"}, {"tb", "off"}}, ": b_s has rows that are no multiple of 32 bytes"},
      {"product",
       {{"t", "i8"}, {"acc", "i32"}, {"tc", "i32"}, {"ta", "on"}},
       ": a_s runs along the depth, which takes 16-bit elements"},
      {"product",
       {{"t", "f32"}, {"tf32", "on"}, {"tb", "off"}},
       ": b_s runs along the depth, which takes 16-bit elements"},
      {"windows",
       {{"deep", "32"}},
       ": a_s is used from a place on that is no multiple of what is read at once"},
      {"windows", {{"at", "24"}}, ": a_s is used from a place on that is no multiple of what"},
      {"windows",
       {{"tb", "off"}, {"col", "16"}},
       ": b_s is used from a place on that is no multiple"},
      {"fragment_operand", {{"thr", "128"}, {"bm", "64"}, {"k", "24"}}, ": a depth of 24 is no"},
  };
  return choices;
}

// Nor does the report promise what the order of a factor forbids.
TEST(Warpgroups, PromiseNothingThatTheyCannotTake) {
  const Values values{{"t", "e4m3"}, {"tc", "f32"}, {"tb", "off"}};
  const auto lowered = testing::LowerText(TableText("product"), values, *FindCudaTarget("sm_90a"));
  ASSERT_TRUE(lowered.ok()) << lowered.status();
  EXPECT_THAT(lowered->thread.notes, Not(Contains(HasSubstr("would permit a faster one"))));
}

TEST(Warpgroups, TakeWhatTheyCanAndSayWhyNot) {
  for (const Choice& c : Choices()) {
    SCOPED_TRACE(NameOf(c.program, c.values));
    const auto lowered =
        testing::LowerText(TableText(c.program), c.values, *FindCudaTarget("sm_90a"));
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    EXPECT_THAT(lowered->thread.notes, Contains(HasSubstr(c.note)));
  }
}

// Their sums of 8-bit floats keep fewer bits than f32, which the program did not permit, and other
// types have no such instruction.
TEST(Warpgroups, LeaveOtherTypesToOthers) {
  for (const Values& values : {Values{{"t", "e4m3"}, {"tc", "f32"}}, Values{{"t", "f32"}},
                               Values{{"t", "f64"}, {"acc", "f64"}, {"tc", "f64"}}}) {
    SCOPED_TRACE(NameOf("product", values));
    const auto lowered =
        testing::LowerText(TableText("product"), values, *FindCudaTarget("sm_90a"));
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    EXPECT_THAT(lowered->thread.notes, Not(Contains(HasSubstr("wgmma"))));
  }
}

// ---- Rings

// 0 ... 2 * stages + 1 iterations.
std::vector<int64_t> Trips(int stages) {
  std::vector<int64_t> trips;
  for (int i = 0; i <= 2 * stages + 1; ++i) trips.push_back(i);
  return trips;
}

void ExpectRightWheneverThingsEnd(const CudaCase& c) {
  ExpectRightNumbers(
      c, *FindCudaTarget("sm_90a"),
      {.seeds = {1}, .arrivals = {Arrival::kRandom, Arrival::kEager, Arrival::kLazy}});
}

// Who copies, and whether blocks stay for the next tile.
const std::vector<Values>& Forms() {
  static const auto& forms = *new std::vector<Values>{{{"copies", "self"}, {"stay", "off"}},
                                                      {{"copies", "warp"}, {"stay", "off"}},
                                                      {{"copies", "self"}, {"stay", "on"}},
                                                      {{"copies", "warp"}, {"stay", "on"}}};
  return forms;
}
Values With(Values values, const Values& more) {
  values.insert(values.end(), more.begin(), more.end());
  return values;
}

class Stages : public ::testing::TestWithParam<int> {};

TEST_P(Stages, Products) {
  const int stages = GetParam();
  for (const char* bn : {"64", "24"}) {
    for (const Values& form : Forms()) {
      CudaCase c{"product",
                 TableText("product"),
                 With(form, {{"stages", absl::StrCat(stages)}, {"bk", "16"}, {"bn", bn}}),
                 {},
                 {}};
      SCOPED_TRACE(NameOf(c.name, c.values));
      for (int64_t trips : Trips(stages)) c.dims.push_back({64, 24, 16 * trips});
      ExpectRightWheneverThingsEnd(c);
    }
  }
}

// What is known when compiling leaves conditions away.
TEST_P(Stages, ProductsOfFixedExtents) {
  for (const Values& form : Forms()) {
    for (int trips : {1, GetParam(), 2 * GetParam() + 1}) {
      const CudaCase c{"product",
                       TableText("product"),
                       With(form, {{"stages", absl::StrCat(GetParam())},
                                   {"bk", "16"},
                                   {"bn", "24"},
                                   {"M", "256"},
                                   {"N", "24"},
                                   {"K", absl::StrCat(16 * trips)}}),
                       {{}},
                       {}};
      SCOPED_TRACE(NameOf(c.name, c.values));
      ExpectRightNumbers(c, *FindCudaTarget("sm_90a"), {.seeds = {1}});
    }
  }
}

// The counters of a ring go on from one tile to the next: any number of tiles (there are three
// blocks) of any number of steps.
TEST_P(Stages, TilesOfPersistentBlocks) {
  const int stages = GetParam();
  for (const char* copies : {"self", "warp"}) {
    CudaCase c{"product",
               TableText("product"),
               {{"copies", copies},
                {"stay", "on"},
                {"stages", absl::StrCat(stages)},
                {"bk", "16"},
                {"bn", "24"}},
               {},
               {}};
    SCOPED_TRACE(NameOf(c.name, c.values));
    for (int64_t tiles = 0; tiles <= 10; ++tiles) {
      const std::vector<int64_t> trips = Trips(stages);
      c.dims.push_back({64 * tiles, 24, 16 * trips[tiles % trips.size()]});
      c.dims.push_back({60, 24 * tiles, 16 * trips[(tiles * 5 + 3) % trips.size()]});
    }
    ExpectRightNumbers(c, *FindCudaTarget("sm_90a"), {.seeds = {1}});
  }
}

// Two loops in one kernel, both within a third: what one has left under way the next one meets.
TEST_P(Stages, LoopsBehindLoops) {
  const int stages = GetParam();
  for (const Values& form : Forms()) {
    CudaCase c{
        "pipelines",
        TableText("pipelines"),
        With(form, {{"stages", absl::StrCat(stages)}, {"bm", "64"}, {"bn", "24"}, {"thr", "128"}}),
        {},
        {}};
    SCOPED_TRACE(NameOf(c.name, c.values));
    const std::vector<int64_t> trips = Trips(stages);
    for (size_t i = 0; i < trips.size(); ++i) {
      const int64_t tiles = static_cast<int64_t>(i) % 5 + 1;
      c.dims.push_back({64, 24 * tiles, 16 * trips[i], 16 * trips[trips.size() - 1 - i]});
    }
    ExpectRightWheneverThingsEnd(c);
  }
}

// Steps of which rows are left out are not boxes: there producers copy them one by one.
TEST_P(Stages, StepsWithoutTheirLastRows) {
  const int stages = GetParam();
  for (const Values& form : Forms()) {
    CudaCase c{"rows",
               TableText("rows"),
               With(form, {{"stages", absl::StrCat(stages)}, {"bn", "24"}, {"bk", "16"}}),
               {},
               {}};
    SCOPED_TRACE(NameOf(c.name, c.values));
    for (int64_t trips : Trips(stages)) c.dims.push_back({64 * (trips % 5 + 1), 16 * trips});
    ExpectRightNumbers(c, *FindCudaTarget("sm_90a"), {.seeds = {1}});
  }
}

TEST_P(Stages, Groups) {
  const int stages = GetParam();
  for (const char* direct : {"on", "off"}) {
    CudaCase c{"group_tiles",
               TableText("group_tiles"),
               {{"stages", absl::StrCat(stages)}, {"direct", direct}, {"bn", "24"}, {"bk", "32"}},
               {},
               {}};
    for (int64_t trips : Trips(stages)) c.dims.push_back({128, 24, 32 * trips});
    ExpectRightWheneverThingsEnd(c);
  }
}

INSTANTIATE_TEST_SUITE_P(Warpgroups, Stages, ::testing::Range(1, 6));

class Lags : public ::testing::TestWithParam<const char*> {};

TEST_P(Lags, OfOneAndTwoIterations) {
  for (int stages = 1; stages <= 4; ++stages) {
    for (int distance : {1, 2}) {
      for (const Values& form : Forms()) {
        CudaCase c{"lags",
                   TableText("lags"),
                   With(form, {{"what", GetParam()},
                               {"stages", absl::StrCat(stages)},
                               {"distance", absl::StrCat(distance)},
                               {"d", "32"},
                               {"bn", "16"}}),
                   {},
                   {}};
        SCOPED_TRACE(NameOf(c.name, c.values));
        for (int64_t trips : Trips(stages)) c.dims.push_back({64 * (trips % 5 + 1), 16 * trips});
        ExpectRightNumbers(c, *FindCudaTarget("sm_90a"), {.seeds = {1}});
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Warpgroups, Lags, ::testing::Values("values", "keys", "both", "sum"));

}  // namespace
}  // namespace tl
