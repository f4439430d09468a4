// The builtin families in their default configurations: as sm_80 gets them, products by matrix
// instructions, rings of asynchronous copies and fragments in registers, judged by the passes'
// notes; for every architecture, that they build and do not spill, where there is NVRTC.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/emulate/emulate_testing.h"

namespace tl {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

struct Family {
  const char* name;
  testing::Values values;
  int products = 0;
  int64_t spilled =
      0;  // bytes at most, where a thread has all the registers that its blocks leave it
};

const std::vector<Family>& Families() {
  static const auto& families = *new std::vector<Family>{
      {"elementwise", {}},
      {"elementwise", {{"op", "gelu"}, {"with", "row"}}},
      {"elementwise", {{"op", "mul"}, {"with", "col"}, {"t", "f32"}}},
      {"softmax", {}, 0, 16},
      {"softmax", {{"N", "32768"}}},
      {"softmax", {{"N", "32768"}, {"t", "f32"}}},
      {"softmax", {{"N", "100000"}}},
      {"rms_norm", {{"silu", "on"}, {"residual", "on"}}},
      {"rms_norm", {{"silu", "on"}, {"C", "160"}}},
      {"rms_norm", {{"silu", "on"}, {"residual", "on"}, {"C", "4096"}}},
      {"layer_norm", {}},
      {"layer_norm", {{"C", "160"}}},
      {"silu_and_mul", {}},
      {"rope", {}},
      {"gemm", {{"bias", "on"}, {"act", "gelu"}, {"residual", "on"}}, 1},
      {"gemm", {{"M", "4096"}, {"N", "4096"}, {"K", "4096"}}, 1},
      {"gemm_batched", {}, 1},
      {"gemm_split_k", {{"bias", "on"}, {"act", "gelu"}, {"residual", "on"}}, 1},
      {"attention", {}, 2, 16},
      {"attention", {{"causal", "on"}, {"lse", "on"}, {"t", "f16"}}, 2, 40},
      {"attention", {{"D", "64"}}, 2},
      {"attention", {{"D", "96"}, {"causal", "on"}}, 2, 16},
      {"attention", {{"D", "256"}}, 2},
      {"attention_decode", {}, 2},
      {"attention_decode", {{"paged", "off"}, {"D", "64"}}, 2},
      {"attention_decode", {{"page", "16"}}, 2},
      {"mla_decode", {}, 2},
      {"mla_decode", {{"bh", "16"}}, 2},
      {"moe_topk", {}},
  };
  return families;
}

// More of them to build: other types' products are by other instructions, few rows take other
// tiles.
std::vector<Family> FamiliesToBuild() {
  std::vector<Family> families = Families();
  for (const char* type : {"e4m3", "e5m2", "i8", "f32", "f64"})
    families.push_back({"gemm", {{"t", type}}});
  for (const char* type : {"e4m3", "e5m2"})
    families.push_back({"gemm", {{"t", type}, {"tc", "bf16"}, {"fast", "on"}}});
  for (const char* depth : {"96", "256"})
    families.push_back({"attention", {{"D", depth}, {"t", "f32"}}});
  for (const char* rows : {"1", "16", "32", "64"})
    families.push_back({"gemm", {{"M", rows}, {"bias", "on"}, {"act", "silu"}}});
  return families;
}

std::string NameOf(const Family& f) {
  return absl::StrCat(f.name, " ", absl::StrJoin(f.values, " ", absl::PairFormatter("=")));
}

int CountOf(const std::vector<std::string>& notes, std::string_view part) {
  int count = 0;
  for (const std::string& note : notes) count += absl::StrContains(note, part);
  return count;
}

TEST(FamiliesQuality, Notes) {
  for (const Family& f : Families()) {
    SCOPED_TRACE(NameOf(f));
    const auto lowered =
        testing::LowerText(testing::FamilyText(f.name), f.values, *FindCudaTarget("sm_80"));
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    const std::vector<std::string>& notes = lowered->thread.notes;
    for (const char* fault : {"plain arithmetic", "stays in shared memory", "is not overlapped",
                              "is not pipelined", "the types differ"}) {
      EXPECT_THAT(notes, Not(Contains(HasSubstr(fault))));
    }
    EXPECT_EQ(CountOf(notes, "tl_mma_m16n8k16"), f.products);
    EXPECT_EQ(CountOf(notes, "filled by asynchronous copies"), f.products > 0);
    EXPECT_THAT(notes, Contains(HasSubstr("16-byte vectors")));
  }
}

// The loop over keys exchanges nothing through shared memory that a warp has in registers.
TEST(FamiliesQuality, AttentionConvertsNothing) {
  const auto lowered =
      testing::LowerText(testing::FamilyText("attention"), {}, *FindCudaTarget("sm_80"));
  ASSERT_TRUE(lowered.ok()) << lowered.status();
  EXPECT_THAT(lowered->thread.notes, Not(Contains(HasSubstr("converted"))));
  EXPECT_THAT(lowered->thread.notes, Not(Contains(HasSubstr("bank conflicts"))));
}

// Offline, in the configuration that each architecture gets by default.
class FamiliesOffline : public ::testing::TestWithParam<const char*> {};

StatusOr<Generated> GeneratedFor(const Family& f, const Target& target) {
  TL_ASSIGN_OR_RETURN(const syntax::Program program, syntax::Parse(testing::FamilyText(f.name)));
  const BindOptions options{.values = f.values, .target_class = target.tune_class()};
  TL_ASSIGN_OR_RETURN(const Module tile, Bind(program, options));
  TL_ASSIGN_OR_RETURN(const Module thread, Lower(tile, target));
  return EmitC(thread, target, CudaDialect());
}

TEST_P(FamiliesOffline, BuildWithoutSpills) {
  const std::unique_ptr<Backend> backend = MakeCudaBackend(testing::TestPaths());
  const StatusOr<std::string> identity = backend->CompilerIdentity({});
  if (!identity.ok()) GTEST_SKIP() << "SKIP, no NVRTC: " << identity.status().message();
  const Target target = *FindCudaTarget(GetParam());
  for (const Family& f : FamiliesToBuild()) {
    SCOPED_TRACE(NameOf(f));
    const auto generated = GeneratedFor(f, target);
    ASSERT_TRUE(generated.ok()) << generated.status();
    const auto built = backend->Build(*generated, target);
    if (DetailOf(built.status()).reason == Reason::kUnsupported) GTEST_SKIP() << "an older NVRTC";
    ASSERT_TRUE(built.ok()) << built.status() << DetailOf(built.status()).log;
    // Of products that run one after the other, and the like.
    EXPECT_THAT(built->log, Not(HasSubstr("(C75")));
    const BuildFacts facts =
        backend->ReadBuild(built->binary, built->log, generated->entries, target);
    ASSERT_EQ(facts.entries.size(), generated->entries.size()) << built->log;
    for (const auto& entry : facts.entries) {
      EXPECT_LE(entry.spill_store_bytes, f.spilled);
      EXPECT_LE(entry.stack_bytes, f.spilled);
      EXPECT_GE(entry.blocks_per_unit, 1);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Architectures, FamiliesOffline,
                         ::testing::Values("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_90a",
                                           "sm_100a", "sm_120a"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tl
