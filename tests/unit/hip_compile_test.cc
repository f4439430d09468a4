// HIP source by clang to code objects. No AMD GPU is needed, and none has run them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "backends/hip/clang.h"
#include "backends/hip/code_object.h"
#include "backends/hip/targets.h"
#include "service/context.h"

namespace tl {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

using Params = std::vector<std::pair<std::string_view, std::string_view>>;

std::string PathVariable() {
  const char* path = std::getenv("PATH");
  return path ? path : "";
}

class HipCompileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    SearchPaths paths;
    paths.program_dirs = absl::StrSplit(PathVariable(), ':');
    if (!FindClang(paths).ok()) GTEST_SKIP() << "no clang for AMD GPUs";
    setenv("TL_HIP_COMPILER", "clang", 1);  // hiprtc_test.cc is for the other one
    ContextOptions options;
    options.cache_mode = CacheMode::kMemory;
    context_ = *Context::Create(options);
  }

  StatusOr<std::shared_ptr<Kernel>> Compile(std::string_view family, std::string_view target,
                                            Params params = {}) {
    CompileRequest request;
    request.family = family;
    request.target = target;
    request.params = std::move(params);
    return context_->Compile(request);
  }

  // It compiles, and no thread keeps anything in scratch memory.
  void ExpectRegistersSuffice(std::string_view family, std::string_view target,
                              Params params = {}) {
    SCOPED_TRACE(absl::StrCat(family, " for ", target));
    const auto kernel = Compile(family, target, std::move(params));
    ASSERT_TRUE(kernel.ok()) << kernel.status() << DetailOf(kernel.status()).log;
    const Artifact& artifact = (*kernel)->program().artifact();
    EXPECT_THAT(artifact.binary, StartsWith("\x7f"
                                            "ELF"));
    const auto facts = ReadCodeObject(artifact.binary, (*kernel)->program().entries());
    ASSERT_THAT(facts, SizeIs((*kernel)->program().entries().size()));
    EXPECT_THAT(facts, Each(Field(&EntryResources::registers, Gt(0))));
    EXPECT_THAT(facts, Each(Field(&EntryResources::stack_bytes, 0)));
    EXPECT_THAT(facts, Each(Field(&EntryResources::spill_store_bytes, 0)));
  }

  std::shared_ptr<Context> context_;
};

TEST_F(HipCompileTest, GemmsTakeMatrixInstructionsAndNoScratchMemory) {
  ExpectRegistersSuffice("gemm", "gfx90a");
  ExpectRegistersSuffice("gemm", "gfx942");
  ExpectRegistersSuffice("gemm", "gfx90a", {{"t", "f16"}, {"tb", "off"}, {"bias", "on"}});
  ExpectRegistersSuffice("gemm", "gfx90a", {{"t", "f32"}});
  ExpectRegistersSuffice("gemm", "gfx90a", {{"t", "i8"}});
  ExpectRegistersSuffice("gemm", "gfx942", {{"t", "i8"}});
}

TEST_F(HipCompileTest, OtherFamiliesCompileForAllTargets) {
  ExpectRegistersSuffice("attention", "gfx90a");
  for (const char* target : {"gfx90a", "gfx942", "gfx1100"}) {
    ExpectRegistersSuffice("softmax", target);
    ExpectRegistersSuffice("rms_norm", target);
    ExpectRegistersSuffice("silu_and_mul", target, {{"act", "gelu"}});
  }
}

TEST_F(HipCompileTest, EveryFunctionCompiles) {
  for (const char* op : {"exp", "log", "sqrt", "rsqrt", "tanh", "abs"}) {
    ExpectRegistersSuffice("elementwise", "gfx90a", {{"op", op}, {"t", "f32"}});
  }
}

TEST_F(HipCompileTest, WhatSpillsIsTold) {
  const auto kernel = Compile("gemm", "gfx1100");
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  const Program& program = (*kernel)->program();
  const BuildFacts facts = program.backend()->ReadBuild(program.artifact().binary, "",
                                                        program.entries(), program.target());
  EXPECT_THAT(facts.notes, ElementsAre(HasSubstr("bytes of each thread in scratch memory")));
}

TEST_F(HipCompileTest, AssemblyIsTheBinarys) {
  const auto kernel = Compile("gemm", "gfx90a");
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  const Program& program = (*kernel)->program();
  const auto text =
      program.backend()->Disassemble({}, program.artifact().binary, program.target(), "asm");
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, AllOf(StartsWith("\nkernel.co:"), HasSubstr("v_mfma_f32_32x32x8bf16_1k")));
  EXPECT_FALSE(program.backend()->Disassemble({}, "no code object", program.target(), "asm").ok());
}

// Packs bring whatever they bring: an answer or none, never a crash.
TEST_F(HipCompileTest, DamagedCodeObjects) {
  const auto kernel = Compile("vector_add", "gfx90a");
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  const std::string good = (*kernel)->program().artifact().binary;
  const std::vector<Entry>& entries = (*kernel)->program().entries();
  ASSERT_THAT(ReadCodeObject(good, entries), SizeIs(1));
  for (size_t n = 0; n < good.size(); ++n) {
    (void)ReadCodeObject(std::string_view(good).substr(0, n), entries);
    for (const char value : {'\0', '\x7f', '\xff'}) {
      std::string bad = good;
      bad[n] = value;
      EXPECT_LE(ReadCodeObject(bad, entries).size(), 1) << n;
    }
  }
}

TEST_F(HipCompileTest, FunctionsOfDoublesAreRefused) {
  const auto kernel = Compile("elementwise", "gfx90a", {{"op", "exp"}, {"t", "f64"}});
  EXPECT_EQ(DetailOf(kernel.status()).reason, Reason::kUnsupported);
  EXPECT_THAT(kernel.status().message(), HasSubstr("code for gfx90a has no 'exp' of f64"));
}

TEST_F(HipCompileTest, GroupsWithBarriersOfTheirOwnAreRefused) {
  CompileRequest request;
  request.source =
      "tl 1.0\nkernel two(N: dim) {\n  in X: tensor<f32>[N]\n  out Y: tensor<f32>[N]\n"
      "  launch n in ceildiv(N, 64) groups=2 {\n    x = alloc_shared<f32>[64]\n"
      "    copy X[n*64] -> x\n    copy x -> Y[n*64]\n  }\n}\n";
  request.target = "gfx90a";
  EXPECT_THAT(context_->Compile(request).status().message(),
              HasSubstr("gfx90a has barriers for 1 to 1"));
}

TEST(HipTargets, AreFoundByArchitectureAndByGpu) {
  EXPECT_EQ(FindHipTarget("gfx90a")->warp_size, 64);
  EXPECT_EQ(FindHipTarget("AMD Instinct MI250X")->name, "gfx90a");
  EXPECT_EQ(FindHipTarget("mi300x")->name, "gfx942");
  EXPECT_EQ(FindHipTarget("Radeon RX 7900 XTX")->warp_size, 32);
  EXPECT_TRUE(absl::IsNotFound(FindHipTarget("gfx9000").status()));
}

TEST(HipClang, WhoseAbsenceIsToldWithThePlaces) {
  SearchPaths paths;
  paths.program_dirs = {"/nowhere"};
  const Status status = FindClang(paths).status();
  EXPECT_EQ(DetailOf(status).reason, Reason::kMissingLibrary);
  EXPECT_THAT(status.message(), HasSubstr("/nowhere"));
}

}  // namespace
}  // namespace tl
