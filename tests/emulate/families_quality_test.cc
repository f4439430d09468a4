// The builtin families in their default configurations as sm_80 gets them: products by matrix
// instructions, rings of asynchronous copies, fragments in registers, and no spills. Judged by the
// passes' notes and, where there is NVRTC, by the assembler's log.
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
  int64_t spilled = 0;  // bytes at most, where all 255 registers of a thread are taken
};

const std::vector<Family>& Families() {
  static const auto& families = *new std::vector<Family>{
      {"elementwise", {}},
      {"elementwise", {{"op", "gelu"}, {"with", "row"}}},
      {"elementwise", {{"op", "mul"}, {"with", "col"}, {"t", "f32"}}},
      {"softmax", {}},
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
      {"gemm_batched", {}, 1},
      {"gemm_split_k", {{"bias", "on"}, {"act", "gelu"}, {"residual", "on"}}, 1},
      {"attention", {}, 2, 16},
      {"attention", {{"causal", "on"}, {"lse", "on"}, {"t", "f16"}}, 2, 16},
      {"attention", {{"D", "64"}}, 2},
      {"attention", {{"D", "96"}, {"causal", "on"}}, 2},
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

TEST(FamiliesQuality, NoSpills) {
  const std::unique_ptr<Backend> backend = MakeCudaBackend(testing::TestPaths());
  const StatusOr<std::string> identity = backend->CompilerIdentity({});
  if (!identity.ok()) GTEST_SKIP() << "SKIP, no NVRTC: " << identity.status().message();
  const Target target = *FindCudaTarget("sm_80");
  for (const Family& f : Families()) {
    SCOPED_TRACE(NameOf(f));
    const auto lowered = testing::LowerText(testing::FamilyText(f.name), f.values, target);
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    const auto built = backend->Build(lowered->generated, target);
    ASSERT_TRUE(built.ok()) << built.status() << DetailOf(built.status()).log;
    const BuildFacts facts =
        backend->ReadBuild(built->binary, built->log, lowered->generated.entries, target);
    ASSERT_EQ(facts.entries.size(), lowered->generated.entries.size()) << built->log;
    for (const auto& entry : facts.entries) {
      EXPECT_LE(entry.spill_store_bytes, f.spilled);
      EXPECT_LE(entry.stack_bytes, f.spilled);
      EXPECT_GE(entry.blocks_per_unit, 1);
    }
  }
}

}  // namespace
}  // namespace tl
