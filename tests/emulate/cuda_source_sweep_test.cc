// The CUDA source of whole programs, run by the emulator, against the reference interpreter.
#include <gtest/gtest.h>

#include "tests/emulate/emulate_testing.h"

namespace tl {
namespace {

using testing::CudaCase;
using testing::TargetFor;

TEST(CudaSource, SmallProgramsComputeTheRightNumbers) {
  Target target = TargetFor("sm_80", false);
  target.default_threads = 64;  // fewer threads, more of the loops over them
  for (const CudaCase& c : testing::SmallPrograms()) ExpectRightNumbers(c, target);
}

TEST(CudaSource, FamiliesComputeTheRightNumbers) {
  Target target = TargetFor("sm_80", false);
  target.default_threads = 64;
  for (const CudaCase& c : testing::FamilyPrograms()) ExpectRightNumbers(c, target);
}

TEST(CudaSource, SmallProgramsInRegisters) {
  for (const char* arch : {"sm_75", "sm_80"}) {
    for (const CudaCase& c : testing::SmallPrograms()) {
      ExpectRightNumbers(c, TargetFor(arch, true));
    }
  }
}

TEST(CudaSource, FamiliesInRegisters) {
  for (const char* arch : {"sm_75", "sm_80", "sm_89"}) {
    for (const CudaCase& c : testing::FamilyPrograms()) {
      ExpectRightNumbers(c, TargetFor(arch, true));
    }
  }
}

// Tiles of matrix instructions are read without bank conflicts, and the copies that fill them.
TEST(CudaSource, SwizzledTilesHaveNoBankConflicts) {
  for (const char* ta : {"false", "true"}) {
    for (const char* tb : {"false", "true"}) {
      EmulateStats stats;
      const CudaCase c = {"gemm",
                          testing::FamilyText("gemm"),
                          {{"t", "f16"}, {"ta", ta}, {"tb", tb}, {"bm", "64"}, {"bn", "64"}},
                          {{128, 128, 96}},
                          {}};
      ExpectRightNumbers(c, TargetFor("sm_80", true), {.seeds = {1}, .stats = &stats});
      EXPECT_GT(stats.matrix_loads.accesses, 0);
      EXPECT_GT(stats.async_writes.accesses, 0);
      EXPECT_EQ(stats.matrix_loads.extra, 0);
      EXPECT_EQ(stats.async_writes.extra, 0);
      EXPECT_EQ(stats.vector_reads.extra, 0);
      EXPECT_EQ(stats.vector_writes.extra, 0);
    }
  }
}

}  // namespace
}  // namespace tl
