// The CUDA source of whole programs, run on the host with threads and blocks in random order,
// against the reference interpreter.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "backends/emulate/emulate.h"
#include "tests/unit/cuda_programs.h"

namespace tl {
namespace {

using testing::CudaCase;
using testing::Lowered;

std::vector<void*> Pointers(const std::vector<reference::GuardedMemory>& memories) {
  std::vector<void*> pointers;
  for (const auto& m : memories) pointers.push_back(m.data());
  return pointers;
}

Status RunEmulated(const Lowered& program, EmulatedProgram& emulated,
                   const reference::GeneratedInputs& inputs, uint64_t seed) {
  std::vector<void*> pointers = Pointers(inputs.operands);
  for (void* p : Pointers(inputs.workspaces)) pointers.push_back(p);
  const HostArgs args = inputs.arguments.host();
  testing::Params params(program.thread, std::move(pointers), args);
  for (size_t i = 0; i < program.thread.launches.size(); ++i) {
    TL_ASSIGN_OR_RETURN(const int64_t blocks,
                        testing::NumBlocks(program.thread, program.thread.launches[i], args));
    if (blocks == 0) continue;
    TL_RETURN_IF_ERROR(emulated.Run(static_cast<int>(i), blocks, params.data(), seed));
  }
  return absl::OkStatus();
}

void Check(const CudaCase& c) {
  SCOPED_TRACE(c.name);
  Target target = *FindCudaTarget("sm_80");
  target.default_threads = 64;  // fewer threads, more of the loops over them
  const StatusOr<Lowered> program = testing::LowerText(c.text, c.values, target);
  ASSERT_TRUE(program.ok()) << FormatSpan(DetailOf(program.status()).span) << " "
                            << program.status();
  auto emulated = EmulatedProgram::Build(program->generated, TL_HOST_COMPILER);
  ASSERT_TRUE(emulated.ok()) << emulated.status() << DetailOf(emulated.status()).log;
  for (const std::vector<int64_t>& dims : c.dims) {
    for (uint64_t seed : {1, 2}) {
      SCOPED_TRACE(::testing::PrintToString(dims));
      auto inputs = reference::MakeInputs(program->tile, dims, c.strides, std::nullopt, seed);
      ASSERT_TRUE(inputs.ok()) << inputs.status();
      const auto exact = reference::RunExact(program->tile, inputs->arguments);
      ASSERT_TRUE(exact.ok()) << FormatSpan(DetailOf(exact.status()).span) << exact.status();
      const Status run = RunEmulated(*program, **emulated, *inputs, seed);
      ASSERT_TRUE(run.ok()) << run << testing::KernelText(program->generated);
      if (!testing::ExpectExact(*program, *inputs, *exact)) {
        GTEST_FAIL() << testing::KernelText(program->generated);
      }
    }
  }
}

TEST(CudaSource, SmallProgramsComputeTheRightNumbers) {
  for (const CudaCase& c : testing::SmallPrograms()) Check(c);
}

TEST(CudaSource, FamiliesComputeTheRightNumbers) {
  for (const CudaCase& c : testing::FamilyPrograms()) Check(c);
}

// The emulator itself has to notice what it is there for.
Generated Handwritten(std::string body, int threads, int64_t shared) {
  Generated g;
  g.source =
      "extern \"C\" void tl_kernel_0(int* a0) {\n"
      "  extern unsigned char arena[];\n  int* s0 = (int*)arena;\n" +
      "  const int thread = (int)threadIdx.x;\n" + body + "}\n";
  g.entries = {{.symbol = "tl_kernel_0", .threads = threads, .groups = 1, .shared_bytes = shared}};
  return g;
}

Status RunHandwritten(const std::string& body, int* result, uint64_t seed = 1) {
  TL_ASSIGN_OR_RETURN(auto program,
                      EmulatedProgram::Build(Handwritten(body, 32, 128), TL_HOST_COMPILER));
  void* params[] = {&result};
  return program->Run(0, 3, params, seed);
}

TEST(Emulator, ReportsBarriersThatNotAllReach) {
  int result[32] = {};
  const Status s = RunHandwritten("if (thread < 16) __syncthreads();", result);
  EXPECT_NE(s.message().find("barrier is not reached"), std::string::npos) << s;
}

TEST(Emulator, ReportsWritesPastSharedMemory) {
  int result[32] = {};
  const Status s = RunHandwritten("s0[thread + 1] = 1;", result);
  EXPECT_NE(s.message().find("past the end"), std::string::npos) << s;
}

TEST(Emulator, LostBarrierGivesOtherNumbers) {
  const std::string with = "s0[thread] = thread; __syncthreads(); a0[thread] = s0[31 - thread];";
  const std::string without = "s0[thread] = thread; a0[thread] = s0[31 - thread];";
  int right[32], wrong[32];
  ASSERT_TRUE(RunHandwritten(with, right).ok());
  ASSERT_TRUE(RunHandwritten(without, wrong).ok());
  int differences = 0;
  for (int i = 0; i < 32; ++i) {
    EXPECT_EQ(right[i], 31 - i);
    differences += wrong[i] != 31 - i;
  }
  EXPECT_GT(differences, 4);
}

}  // namespace
}  // namespace tl
