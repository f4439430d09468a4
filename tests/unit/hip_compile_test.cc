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
#include "backends/hip/targets.h"
#include "service/context.h"

namespace tl {
namespace {

using ::testing::Each;
using ::testing::Field;
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
    const auto facts = ReadHipRemarks(artifact.log, (*kernel)->program().entries());
    ASSERT_THAT(facts, SizeIs((*kernel)->program().entries().size()));
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
