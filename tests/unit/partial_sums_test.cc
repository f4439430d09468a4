// Sums that lanes keep in parts until they are finished: which reducers those are, told by where
// lanes exchange. What the numbers are, tests/programs/table/reducers.tl checks on every target.
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/unit/cuda_testing.h"

namespace tl {
namespace {

// A loop that adds up rows. Behind it stands a store that no other statement makes.
constexpr std::string_view kProgram = R"(tl 1.0
kernel rows(N: dim) {
  in X: tensor<f32>[64, N] out Y: tensor<f32>[64], Z: tensor<f32>[64, N]
  launch m in 1 threads=128 {
    x = alloc_fragment<f32>[64, 32]
    y = alloc_fragment<f32>[64]
    ALLOC
    BEGIN
    serial k in ceildiv(N, 32) {
      copy X[0, k*32] -> x
      BODY
    }
    END
    copy sum -> Y
  }
})";

struct Row {
  std::string_view alloc, begin, body, end;
  bool parts;
};

constexpr std::string_view kSum = "sum = alloc_reducer<f32, sum>[64]";
constexpr std::string_view kAdd = "reduce_sum x -> sum dim=1", kFinish = "finish sum";

constexpr Row kRows[] = {
    {kSum, "", kAdd, kFinish, true},
    {kSum, "clear sum", kAdd, kFinish, true},
    {kSum, "", "parallel r in 64 { sum[r] *= 0.5 } reduce_sum x -> sum dim=1", kFinish, true},
    {kSum, "", "if k % 2 == 0 { reduce_sum x -> sum dim=1 }", kFinish, true},
    {"sum = alloc_reducer<f64, sum>[64]", "", kAdd, "finish sum", true},
    // Parts of it would begin with as many times the number.
    {kSum, "fill sum, 1.0", kAdd, kFinish, false},
    // The smaller of two parts scaled by -1 is the larger.
    {"sum = alloc_reducer<f32, max>[64]", "", "reduce_max x -> sum dim=1", kFinish, false},
    // Numbers that are rounded each time.
    {"sum = alloc_reducer<bf16, sum>[64]", "", kAdd, kFinish, false},
    // No reducer: it may be read.
    {"sum = alloc_fragment<f32>[64]", "clear sum", kAdd, "", false},
};

TEST(PartialSums, WhereLanesExchange) {
  for (const Row& row : kRows) {
    const std::string text = absl::StrReplaceAll(
        kProgram,
        {{"ALLOC", row.alloc}, {"BEGIN", row.begin}, {"BODY", row.body}, {"END", row.end}});
    SCOPED_TRACE(text);
    const auto lowered = testing::LowerText(text, {}, *FindCudaTarget("sm_80"));
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    const std::string source = testing::KernelText(lowered->generated);
    // The loop is the only one that is not unrolled and indented by two.
    const size_t begin = source.find("\n  for (long long"), end = source.find("\n  }\n", begin);
    ASSERT_NE(end, std::string::npos) << source;
    const std::string loop = source.substr(begin, end - begin), behind = source.substr(end);
    EXPECT_EQ(absl::StrContains(loop, "tl_lane_xor"), !row.parts) << source;
    EXPECT_EQ(absl::StrContains(behind, "tl_lane_xor"), row.parts) << source;
  }
}

}  // namespace
}  // namespace tl
