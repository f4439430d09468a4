// What a report says about registers, occupancy, copies and bank conflicts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "backends/cuda/occupancy.h"
#include "backends/cuda/ptxas_info.h"
#include "layout/shared_layout.h"
#include "passes/bank_notes.h"
#include "tests/unit/cuda_programs.h"

namespace tl {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

struct OccupancyCase {
  const char* target;
  int registers, threads;
  int64_t shared_bytes;
  int blocks;
  double warps;
  const char* limited_by;
};

TEST(Occupancy, WhatBindsFirst) {
  const OccupancyCase cases[] = {
      {"sm_80", 216, 128, 65536, 2, 0.125, "registers"},
      {"sm_80", 32, 256, 0, 8, 1.0, "threads"},
      {"sm_80", 16, 64, 0, 32, 1.0, "threads"},
      {"sm_80", 16, 32, 0, 32, 0.5, "blocks"},
      {"sm_80", 40, 128, 163 * 1024, 1, 0.0625, "shared memory"},
      {"sm_80", 255, 512, 0, 0, 0, "registers"},  // does not fit
      // Registers come by four warps: three take the room of four.
      {"sm_80", 32, 96, 0, 16, 0.75, "registers"},
      {"sm_75", 64, 1024, 0, 1, 1.0, "threads"},
      {"sm_75", 32, 256, 32 * 1024, 2, 0.5, "shared memory"},
      {"sm_86", 32, 1024, 0, 1, 2.0 / 3, "threads"},
      {"sm_90a", 168, 384, 200 * 1024, 1, 0.1875, "registers"},
  };
  for (const OccupancyCase& c : cases) {
    SCOPED_TRACE(::testing::Message() << c.target << " " << c.registers << " " << c.threads);
    const Occupancy o =
        OccupancyOf(*FindCudaTarget(c.target), c.registers, c.threads, c.shared_bytes);
    EXPECT_EQ(o.blocks, c.blocks);
    EXPECT_DOUBLE_EQ(o.warps, c.warps);
    EXPECT_EQ(o.limited_by, c.limited_by);
  }
}

TEST(Occupancy, UnknownIsNothing) {
  EXPECT_EQ(OccupancyOf(*FindCudaTarget("sm_80"), 0, 128, 0).blocks, 0);
  Target other;
  other.name = "gfx90a";
  EXPECT_TRUE(OccupancyOf(other, 32, 128, 0).limited_by.empty());
}

constexpr char kLog[] =
    "ptxas info    : Compiling entry function 'tl_kernel_1' for 'sm_80'\n"
    "ptxas info    : Function properties for tl_kernel_1\n"
    "    24 bytes stack frame, 12 bytes spill stores, 8 bytes spill loads\n"
    "ptxas info    : Used 64 registers, used 1 barriers\n"
    "ptxas info    : Compiling entry function 'tl_kernel_0' for 'sm_80'\n"
    "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
    "ptxas info    : Used 20 registers, used 1 barriers, 440 bytes cmem[0]\n";

TEST(ReadBuild, EntriesInTheProgramsOrder) {
  const std::unique_ptr<Backend> backend = MakeCudaBackend({});
  const Target target = *FindCudaTarget("sm_80");
  const std::vector<Entry> entries = {{"tl_kernel_0", 128, 1, 0}, {"tl_kernel_1", 256, 1, 0}};
  const BuildFacts facts = backend->ReadBuild("", kLog, entries, target);
  ASSERT_EQ(facts.entries.size(), 2u);
  EXPECT_EQ(facts.entries[0].registers, 20);
  EXPECT_EQ(facts.entries[0].stack_bytes, 0);
  EXPECT_EQ(facts.entries[1].registers, 64);
  EXPECT_EQ(facts.entries[1].stack_bytes, 24);
  EXPECT_EQ(facts.entries[1].spill_store_bytes, 12);
  EXPECT_EQ(facts.entries[1].spill_load_bytes, 8);
  EXPECT_EQ(facts.entries[1].blocks_per_unit, 4);
  EXPECT_THAT(facts.notes, Contains(HasSubstr("tl_kernel_1 spills registers")));
  // Half an answer is none: nobody could tell which half.
  EXPECT_THAT(backend->ReadBuild("", kLog, {{"tl_kernel_2"}}, target).entries, IsEmpty());
  EXPECT_THAT(backend->ReadBuild("", "", entries, target).entries, IsEmpty());
}

TEST(ReadBuild, SerialisedMatrixInstructionsAreTheGeneratorsFault) {
  const PtxasInfo info = ParsePtxasInfo(
      "ptxas info    : (C7517) Potential Performance Loss: wait is injected\n"
      "ptxas info    : (C7602) Not enough registers\n"
      "ptxas info    : (C7412) something else\n");
  ASSERT_EQ(info.serialised.size(), 1u);
  EXPECT_THAT(info.serialised[0], HasSubstr("C7517"));
  ASSERT_EQ(info.performance.size(), 1u);
  EXPECT_EQ(PtxasNotes(info).size(), 2u);
}

std::vector<std::string> NotesOf(std::string_view text, const testing::Values& values = {}) {
  const auto lowered = testing::LowerText(text, values, *FindCudaTarget("sm_80"));
  EXPECT_TRUE(lowered.ok()) << FormatSpan(DetailOf(lowered.status()).span) << lowered.status();
  return lowered.ok() ? lowered->thread.notes : std::vector<std::string>();
}

TEST(CopyNotes, OnceForEveryCopyOfAPlannedLoop) {
  const std::vector<std::string> notes = NotesOf(testing::FamilyText("gemm"));
  EXPECT_THAT(notes, Contains(::testing::AllOf(
                         HasSubstr("copy of A at "),
                         HasSubstr("16-byte vectors, asynchronous; element by element where"))));
  EXPECT_THAT(notes, Contains(HasSubstr("copy of B at ")));
  EXPECT_THAT(notes, Contains(HasSubstr("copy to C at ")));
  EXPECT_EQ(std::set<std::string>(notes.begin(), notes.end()).size(), notes.size());
  size_t copies = 0;
  for (const std::string& note : notes) copies += note.find("copy ") == 0;
  EXPECT_EQ(copies, 3u);
  EXPECT_THAT(notes, Not(Contains(HasSubstr("bank conflicts"))));
}

TEST(CopyNotes, FixedStridesNeedNoTestButAlignment) {
  const auto gemm = testing::FamilyText("gemm");
  const std::vector<std::string> notes = NotesOf(gemm, {{"M", "256"}, {"N", "256"}, {"K", "256"}});
  EXPECT_THAT(notes, Contains(HasSubstr("where it is not aligned to 16 bytes")));
  EXPECT_THAT(notes, Not(Contains(HasSubstr("multiples"))));
  // Rows of 4095 elements never start at a vector.
  EXPECT_THAT(NotesOf(gemm, {{"K", "4095"}}),
              Contains(HasSubstr("element by element: the tensor's rows are no multiples")));
}

// A window that starts at a multiple of a vector for some dims: the launch decides.
TEST(CopyNotes, WindowsThatStartAtADim) {
  const auto notes = NotesOf(testing::FamilyText("silu_and_mul"));
  EXPECT_THAT(notes, Not(Contains(HasSubstr("no thread has neighbours"))));
  const auto lowered =
      testing::LowerText(testing::FamilyText("silu_and_mul"), {}, *FindCudaTarget("sm_80"));
  ASSERT_TRUE(lowered.ok()) << lowered.status();
  EXPECT_THAT(testing::KernelText(lowered->generated),
              ::testing::ContainsRegex(R"(\(n1 \+ v[0-9]+ \* 2048\) & 7)"));
  // A fixed number decides at once.
  EXPECT_THAT(NotesOf(testing::FamilyText("silu_and_mul"), {{"N", "4095"}}),
              Contains(HasSubstr("element by element")));
}

TEST(CopyNotes, WhyElementByElement) {
  const auto copy = [](std::string_view tile, std::string_view arrow) {
    return NotesOf(absl::StrCat(R"(tl 1.0
kernel k(N: dim) {
  in X: tensor<f32>[N, 64] out Y: tensor<f32>[N, 64]
  launch i in ceildiv(N, 64) {
    x = alloc_shared<)",
                                tile, R"(>[64, 64]
    copy X[i*64, 0] -> x)",
                                arrow, R"(
    copy x -> Y[i*64, 0]
  }
})"));
  };
  EXPECT_THAT(copy("bf16", ""), Contains(HasSubstr("the types differ")));
  EXPECT_THAT(copy("f32", " transpose"), Contains(HasSubstr("it transposes")));
}

// Every lane reads the first 16 bytes of a row of 256: eight lanes at a time, all in one bank.
TEST(BankNotes, RowsOfOneColumn) {
  Module module;
  Buffer tile;
  tile.name = "x";
  tile.scope = Scope::kShared;
  tile.extents = {128, 64};
  const BufferId x = module.AddBuffer(tile);
  const Target target = *FindCudaTarget("sm_80");
  const Launch launch;
  Lowering l(module, target, launch);
  Region window = l.Whole(x);
  window.extents = {128, 4};
  const FragmentLayout rows(window.extents,
                            {.warp = {{4, 128}}, .lane = {{32, 4}}, .slot = {{4, 1}}});
  NoteConflicts(l, "reading", window, rows, 4);
  NoteMatrixConflicts(l, "reading", window);
  NoteMatrixConflicts(l, "reading", window);
  EXPECT_THAT(module.notes,
              ElementsAre("reading x: 28 extra passes per access of a warp (bank conflicts)",
                          "reading matrices of x: 7 extra passes per access of a warp (bank "
                          "conflicts)"));
  module.notes.clear();
  module.buffers[x].swizzle = SwizzleFor(256);
  NoteConflicts(l, "reading", window, rows, 4);
  NoteMatrixConflicts(l, "reading", window);
  EXPECT_THAT(module.notes, IsEmpty());
}

}  // namespace
}  // namespace tl
