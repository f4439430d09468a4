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

}  // namespace
}  // namespace tl
