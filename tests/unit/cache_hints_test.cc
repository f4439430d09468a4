// Hints for the L2 cache (`copy … evict=first`): which accesses have them on which target, what the
// report says, and that NVRTC makes instructions of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <regex>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "backends/hip/targets.h"
#include "ir/unparse.h"
#include "tests/unit/cuda_testing.h"
#include "tests/unit/nvrtc_testing.h"

namespace tl {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using testing::Values;

// Boxes, or asynchronous vectors, which have no hints, and what leaves.
constexpr std::string_view kProduct = R"(tl 1.0
kernel product(; way: enum {normal, first, last} = first, boxes: bool = off, cn: int = 1) {
  in A: tensor<bf16>[128, 256], B: tensor<bf16>[128, 256] out C: tensor<bf16>[128, 128]
  launch n in 2, m in 2 threads=128 producer=warp cluster=[cn, 1] stores=if boxes then bulk else auto {
    a_s, b_s = alloc_shared<bf16>[64, 64]
    c = alloc_fragment<f32>[64, 64]
    clear c
    pipelined k in 4 stages=3 {
      copy A[m*64, k*64] -> a_s evict=way
      copy B[n*64, k*64] -> b_s
      gemm a_s, b_s -> c transpose_b
    }
    copy c -> C[m*64, n*64] evict=way
  }
})";

// Vectors by way of registers: to a fragment of another type, to a shared tile, and back; of rows
// of which only the launch knows where they start.
constexpr std::string_view kRows = R"(tl 1.0
kernel rows(N: dim; way: enum {normal, first, last} = first) {
  in X: tensor<bf16>[N, 64] out Y: tensor<f32>[N, 64], Z: tensor<bf16>[N, 64]
  launch m in ceildiv(N, 64) threads=128 {
    x = alloc_fragment<f32>[64, 64]
    s = alloc_shared<bf16>[64, 64]
    copy X[m*64, 0] -> x evict=way
    copy X[m*64, 0] -> s evict=way rows=N - m*64 - 1
    copy x -> Y[m*64, 0] evict=way
    copy s -> Z[m*64, 0] evict=way
  }
})";

struct Row {
  std::string_view target;
  std::string_view program;
  Values values;
  // Functions that are called with the hint, in alphabetical order.
  std::vector<std::string> hinted;
};

std::vector<Row> Rows() {
  const Values boxes = {{"boxes", "on"}}, cluster = {{"boxes", "on"}, {"cn", "2"}};
  const std::vector<std::string> moves = {"tl_load<16>", "tl_store<16>"};
  return {
      {"sm_80", kProduct, {}, {"tl_store<16>"}},
      {"sm_89", kProduct, boxes, {"tl_store<16>"}},
      {"sm_90", kProduct, boxes, {"tl_bulk_store<2>"}},
      {"sm_90a", kProduct, {}, {"tl_bulk_load<2>", "tl_store<16>"}},
      {"sm_90a", kProduct, boxes, {"tl_bulk_load<2>", "tl_bulk_store<2>"}},
      {"sm_90a", kProduct, cluster, {"tl_bulk_load_to<2>", "tl_bulk_store<2>"}},
      {"sm_120a", kProduct, {}, {"tl_store<16>"}},
      {"sm_75", kProduct, {}, {}},
      {"sm_75", kRows, {}, {}},
      {"sm_80", kRows, {}, moves},
      {"sm_90", kRows, {}, moves},
      {"sm_90a", kRows, {}, moves},
  };
}

// The functions that `source` calls with `policy`, each once.
std::vector<std::string> CalledWith(const std::string& source, std::string_view policy) {
  const std::regex call(absl::StrCat(R"((tl_\w+(<\d+>)?)\(.*, )", policy, R"(\(\)\);)"));
  std::vector<std::string> names;
  for (std::sregex_iterator it(source.begin(), source.end(), call), end; it != end; ++it) {
    names.push_back((*it)[1]);
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::string SourceOf(const Row& row, std::string_view way) {
  Values values = row.values;
  values.emplace_back("way", way);
  const auto lowered = testing::LowerText(row.program, values, *FindCudaTarget(row.target));
  EXPECT_TRUE(lowered.ok()) << lowered.status();
  return lowered.ok() ? testing::KernelText(lowered->generated) : "";
}

TEST(CacheHints, AccessesThatHaveThem) {
  for (const Row& row : Rows()) {
    SCOPED_TRACE(absl::StrCat(row.target, row.program.substr(0, 20)));
    const std::string first = SourceOf(row, "first"), last = SourceOf(row, "last");
    EXPECT_EQ(CalledWith(first, "tl_evict_first"), row.hinted) << first;
    EXPECT_EQ(CalledWith(last, "tl_evict_last"), row.hinted) << last;
    EXPECT_THAT(first, Not(HasSubstr("tl_evict_last")));
    EXPECT_THAT(last, Not(HasSubstr("tl_evict_first")));
    const std::string normal = SourceOf(row, "normal");
    EXPECT_THAT(normal, Not(HasSubstr("tl_evict")));
    // Nothing else is different.
    const std::string without =
        std::regex_replace(first, std::regex(R"(, tl_evict_first\(\))"), "");
    EXPECT_EQ(std::regex_replace(without, std::regex("tl_(load|store)<"), "tl_move<"), normal);
  }
}

// What `--emit thread` shows.
TEST(CacheHints, StatementsOfThreads) {
  const auto text = [](std::string_view target, const Values& values) {
    const auto lowered = testing::LowerText(kProduct, values, *FindCudaTarget(target));
    EXPECT_TRUE(lowered.ok()) << lowered.status();
    return ToText(lowered->thread);
  };
  const std::string hopper = text("sm_90a", {{"boxes", "on"}});
  EXPECT_THAT(hopper, ContainsRegex(R"(load_box 0, .*, evict_first -> a_s)"));
  EXPECT_THAT(hopper, ContainsRegex(R"(load_box 1, .*\] -> b_s)"));
  EXPECT_THAT(hopper, ContainsRegex(R"(store_box .*, evict_first)"));
  const std::string ampere = text("sm_80", {{"way", "last"}});
  EXPECT_THAT(ampere, Not(ContainsRegex(R"(move_async [^\n]*evict)")));
  EXPECT_THAT(ampere, ContainsRegex(R"(move_vector .*, 8, evict_last -> C)"));
  EXPECT_THAT(text("sm_80", {{"way", "normal"}}), Not(HasSubstr("evict")));
}

// ---- the report

std::vector<std::string> NotesFor(const Target& target, std::string_view text,
                                  const Values& values = {}) {
  const StatusOr<Module> tile = testing::BindText(text, values);
  EXPECT_TRUE(tile.ok()) << tile.status();
  const StatusOr<Module> thread = Lower(*tile, target);
  EXPECT_TRUE(thread.ok()) << thread.status();
  return thread->notes;
}

TEST(CacheHints, TheReportNamesThemWithTheCopies) {
  const Target target = *FindCudaTarget("sm_90a");
  const std::vector<std::string> notes = NotesFor(target, kProduct, {{"boxes", "on"}});
  const auto about = [](std::string_view copy, std::string_view how) {
    return Contains(AllOf(StartsWith(std::string(copy)), HasSubstr(std::string(how))));
  };
  EXPECT_THAT(notes, about("copy of A at ", ": boxes of 64 x 64, evicted first; "));
  EXPECT_THAT(notes, about("copy of B at ", ": boxes of 64 x 64; "));
  EXPECT_THAT(notes, about("copy to C at 13:5", ": boxes of 64 x 64, evicted first; "));
  const Target ampere = *FindCudaTarget("sm_80");
  EXPECT_THAT(
      NotesFor(ampere, kProduct),
      Contains(HasSubstr("16-byte vectors, asynchronous, without the hint for the L2 cache; ")));
  EXPECT_THAT(NotesFor(ampere, kRows, {{"way", "last"}}),
              Contains(HasSubstr("copy to Z at 10:5: 16-byte vectors, evicted last; ")));
  EXPECT_THAT(NotesFor(ampere, kRows, {{"way", "normal"}}), Not(Contains(HasSubstr("evict"))));
}

// One note, however many hints.
TEST(CacheHints, TargetsWithoutThem) {
  Target cpu;
  cpu.name = "cpu";
  for (const Target& target :
       {*FindCudaTarget("sm_75"), *FindHipTarget("gfx90a"), *FindHipTarget("gfx1100"), cpu}) {
    const std::vector<std::string> notes = NotesFor(target, kRows);
    const auto about = [](const std::string& note) { return absl::StrContains(note, "evict"); };
    EXPECT_EQ(std::count_if(notes.begin(), notes.end(), about), 1) << target.name;
    EXPECT_THAT(notes, Contains(absl::StrCat("evict at 7:5: no effect: ", target.name,
                                             " takes no hints for a cache")));
    EXPECT_THAT(NotesFor(target, kRows, {{"way", "normal"}}), Not(Contains(HasSubstr("evict"))));
  }
}

// ---- with a compiler

using CacheHintsNvrtcTest = testing::WithNvrtc<>;

// The instructions behind the functions.
std::string_view InstructionOf(std::string_view function) {
  constexpr std::pair<std::string_view, std::string_view> kRows[] = {
      {"tl_load<16>", "ld.global.L2::cache_hint.v4.b32 {"},
      {"tl_store<16>", "st.global.L2::cache_hint.v4.b32 ["},
      {"tl_bulk_load<2>",
       "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes."
       "L2::cache_hint ["},
      {"tl_bulk_load_to<2>",
       "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes."
       "multicast::cluster.L2::cache_hint ["},
      {"tl_bulk_store<2>",
       "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group.L2::cache_hint ["},
  };
  for (const auto& [name, instruction] : kRows) {
    if (name == function) return instruction;
  }
  return "a function of this test's table";
}

TEST_F(CacheHintsNvrtcTest, Instructions) {
  for (const Row& row : Rows()) {
    const Target target = *FindCudaTarget(row.target);
    const auto lowered = testing::LowerText(row.program, row.values, target);
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    const StatusOr<std::string> ptx = backend_->Disassemble(lowered->generated, "", target, "ptx");
    if (DetailOf(ptx.status()).reason == Reason::kUnsupported) continue;  // an older compiler
    ASSERT_TRUE(ptx.ok()) << ptx.status() << DetailOf(ptx.status()).log;
    EXPECT_EQ(absl::StrContains(*ptx, "createpolicy.fractional.L2::evict_first.b64"),
              !row.hinted.empty())
        << target.name;
    // ptxas 13.0 made illegal instructions of some.
    EXPECT_THAT(*ptx, Not(ContainsRegex(R"(cp\.async\.c[ag][^;]*cache_hint)"))) << target.name;
    for (const std::string& function : row.hinted) {
      EXPECT_THAT(*ptx, HasSubstr(std::string(InstructionOf(function)))) << target.name;
    }
  }
}

}  // namespace
}  // namespace tl
