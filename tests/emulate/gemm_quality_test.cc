// The shipped tiles of gemm as sm_80 gets them: whole vectors, matrix instructions, no bank
// conflicts, no spills. Judged by the passes' notes, the text, the emulator's counters, and where
// there is NVRTC by the assembler's log and the PTX.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "tests/emulate/emulate_testing.h"
#include "tests/unit/nvrtc_testing.h"

namespace tl {
namespace {

using ::testing::Contains;
using testing::CudaCase;
using ::testing::HasSubstr;

// bm, bn, bk, stages: candidates of kernels/gemm.tl, the default first.
struct Tile {
  int bm, bn, bk, stages;
};
constexpr Tile kTiles[] = {
    {128, 128, 64, 2}, {128, 128, 32, 3}, {128, 128, 32, 4}, {128, 64, 64, 2}, {64, 128, 32, 4},
    {64, 64, 64, 4},   {64, 64, 32, 3},   {256, 64, 32, 3},  {64, 256, 32, 2}, {32, 128, 64, 3},
    {128, 32, 64, 3},  {16, 64, 64, 4},   {16, 256, 32, 3},
};
constexpr int kVariants = 8;  // types and orders of the operands

CudaCase CaseOf(const Tile& t, int variant) {
  const auto flag = [&](int bit) { return variant >> bit & 1 ? "true" : "false"; };
  const auto text = [](int n) { return std::to_string(n); };
  CudaCase c;
  c.text = testing::FamilyText("gemm");
  c.values = {{"t", variant & 4 ? "f16" : "bf16"},
              {"ta", flag(1)},
              {"tb", flag(0)},
              {"bm", text(t.bm)},
              {"bn", text(t.bn)},
              {"bk", text(t.bk)},
              {"stages", text(t.stages)}};
  c.name = absl::StrJoin(c.values, " ", absl::PairFormatter("="));
  c.dims = {{t.bm, t.bn, 3 * t.bk}};
  return c;
}

// The default with everything, the others with two variants each, in turn.
std::vector<CudaCase> Cases(int each) {
  std::vector<CudaCase> cases;
  for (int v = 0; v < kVariants; ++v) cases.push_back(CaseOf(kTiles[0], v));
  for (size_t i = 1; i < std::size(kTiles); ++i) {
    const int number = static_cast<int>(i);
    for (int n = 0; n < each; ++n) cases.push_back(CaseOf(kTiles[i], (number + 3 * n) % kVariants));
  }
  return cases;
}

size_t IndentOf(std::string_view line) { return line.find_first_not_of(' '); }

// The lines of the loop that waits for copies, without what runs where a tensor is not aligned.
std::vector<std::string> FastMainLoop(const std::string& kernel) {
  std::vector<std::string> lines = absl::StrSplit(kernel, '\n');
  size_t wait = 0;
  while (wait < lines.size() &&
         !(absl::StrContains(lines[wait], "tl_async_wait<") && IndentOf(lines[wait]) > 2)) {
    ++wait;
  }
  if (wait == lines.size()) return {};
  const size_t indent = IndentOf(lines[wait]) - 2;
  std::vector<std::string> loop;
  size_t alignment = std::string::npos, skipped = std::string::npos;
  for (size_t i = wait; i < lines.size(); ++i) {
    const size_t at = IndentOf(lines[i]);
    if (at == std::string::npos) continue;
    if (at <= indent) break;
    if (skipped != std::string::npos) {
      if (at == skipped && absl::StrContains(lines[i], "}")) skipped = std::string::npos;
      continue;
    }
    if (absl::StrContains(lines[i], "if (tl_is_aligned")) alignment = at;
    if (at == alignment && absl::StrContains(lines[i], "else {")) {
      skipped = at;
      continue;
    }
    loop.push_back(lines[i]);
  }
  return loop;
}

TEST(GemmQuality, TextIsMadeOfWholeVectors) {
  const std::regex scalar(R"((^|[^&\w])s\d+\[)");
  for (const CudaCase& c : Cases(kVariants)) {
    SCOPED_TRACE(c.name);
    const auto lowered = testing::LowerText(c.text, c.values, *FindCudaTarget("sm_80"));
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    for (const std::string& note : lowered->thread.notes) {
      EXPECT_FALSE(absl::StrContains(note, "converted") ||
                   absl::StrContains(note, "plain arithmetic") ||
                   absl::StrContains(note, "bank conflicts"))
          << note;
    }
    const std::vector<std::string> loop = FastMainLoop(testing::KernelText(lowered->generated));
    EXPECT_THAT(loop, Contains(HasSubstr("tl_load_matrix<")));
    EXPECT_THAT(loop, Contains(HasSubstr("tl_async_move<16>(")));
    EXPECT_THAT(loop, Contains(HasSubstr("tl_mma_m16n8k16")));
    for (const std::string& line : loop) EXPECT_FALSE(std::regex_search(line, scalar)) << line;
  }
}

void ExpectNoConflicts(const BankCount& count, bool used) {
  EXPECT_EQ(count.extra, 0) << "of " << count.accesses;
  if (used) {
    EXPECT_GT(count.accesses, 0);
  }
}

TEST(GemmQuality, NoBankConflicts) {
  for (const CudaCase& c : Cases(1)) {
    SCOPED_TRACE(c.name);
    EmulateStats stats;
    ExpectRightNumbers(c, testing::TargetFor("sm_80", true), {.seeds = {1}, .stats = &stats});
    ExpectNoConflicts(stats.matrix_loads, true);
    ExpectNoConflicts(stats.async_writes, true);
    ExpectNoConflicts(stats.vector_reads, false);
    ExpectNoConflicts(stats.vector_writes, false);
  }
}

// ---- with a compiler

class GemmQualityNvrtc : public testing::WithNvrtc<> {
 protected:
  const Target target_ = *FindCudaTarget("sm_80");
};

TEST_F(GemmQualityNvrtc, NoSpills) {
  for (const CudaCase& c : Cases(2)) {
    SCOPED_TRACE(c.name);
    const auto lowered = testing::LowerText(c.text, c.values, target_);
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    const auto built = backend_->Build(lowered->generated, target_);
    ASSERT_TRUE(built.ok()) << built.status() << DetailOf(built.status()).log;
    const BuildFacts facts =
        backend_->ReadBuild(built->binary, built->log, lowered->generated.entries, target_);
    ASSERT_EQ(facts.entries.size(), 1u) << built->log;
    EXPECT_EQ(facts.entries[0].spill_store_bytes, 0);
    EXPECT_EQ(facts.entries[0].stack_bytes, 0);
    EXPECT_GE(facts.entries[0].blocks_per_unit, 1);
    EXPECT_TRUE(facts.notes.empty()) << facts.notes[0];
  }
}

// The lines between a label and a jump back to it with the first matrix instruction between them;
// of several loops the outermost.
std::vector<std::string_view> MainLoopOf(std::string_view ptx) {
  const std::vector<std::string_view> lines = absl::StrSplit(ptx, '\n');
  size_t mma = 0;
  while (mma < lines.size() && !absl::StrContains(lines[mma], "mma.sync")) ++mma;
  for (size_t begin = 0; begin < mma; ++begin) {
    const std::string_view label = lines[begin].substr(0, lines[begin].find(':'));
    if (!absl::StartsWith(label, "$L") || label.size() == lines[begin].size()) continue;
    const std::string jump = absl::StrCat("\t", label, ";");
    for (size_t end = lines.size(); end-- > mma;) {
      if (!absl::StrContains(lines[end], "bra") || !absl::EndsWith(lines[end], jump)) continue;
      return {lines.begin() + static_cast<std::ptrdiff_t>(begin),
              lines.begin() + static_cast<std::ptrdiff_t>(end)};
    }
  }
  return {};
}

TEST_F(GemmQualityNvrtc, PtxOfTheMainLoop) {
  for (const CudaCase& c : Cases(1)) {
    SCOPED_TRACE(c.name);
    const auto lowered = testing::LowerText(c.text, c.values, target_);
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    const auto ptx = backend_->Disassemble(lowered->generated, "", target_, "ptx");
    ASSERT_TRUE(ptx.ok()) << ptx.status();
    const std::vector<std::string_view> loop = MainLoopOf(*ptx);
    EXPECT_THAT(loop, Contains(HasSubstr("mma.sync.aligned.m16n8k16")));
    EXPECT_THAT(loop, Contains(HasSubstr("ldmatrix.sync.aligned.m8n8.x")));
    EXPECT_THAT(loop, Contains(HasSubstr("cp.async.cg.shared.global")));
    const std::regex division(R"(\s(div|rem)\.)");
    for (std::string_view line : loop) {
      EXPECT_FALSE(std::regex_search(line.begin(), line.end(), division)) << line;
    }
  }
}

}  // namespace
}  // namespace tl
