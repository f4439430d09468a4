#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/bind.h"
#include "ir/unparse.h"
#include "ir/verify.h"
#include "ir/visit.h"
#include "passes/expand_lag.h"
#include "passes/pipeline_plan.h"
#include "passes/plan_pipelines.h"

namespace tl {
namespace {

using ::testing::HasSubstr;

Target Overlapping(int64_t max_shared = 0) {
  Target t;
  t.name = "overlapping";
  t.simt = true;
  t.warp_size = 32;
  t.default_threads = 128;
  t.max_shared_bytes = max_shared;
  t.register_fragments = true;
  t.async_copies = true;
  return t;
}

Module BindText(std::string_view body, std::string_view decls) {
  const std::string text = absl::StrCat("tl 1.0\nkernel k(N: dim) {\n", decls, "\n", body, "\n}\n");
  const StatusOr<syntax::Program> program = syntax::Parse(text);
  EXPECT_TRUE(program.ok()) << program.status();
  StatusOr<Module> m = Bind(*program, {});
  EXPECT_TRUE(m.ok()) << FormatSpan(DetailOf(m.status()).span) << " " << m.status();
  return m.ok() ? *std::move(m) : Module();
}

TEST(PlanPipelines, Gemm) {
  Module m = BindText(R"(launch m in 2 {
  a = alloc_shared<f16>[64, 32]
  b = alloc_shared<f16>[32, 64]
  c = alloc_fragment<f32>[64, 64]
  clear c
  pipelined k in ceildiv(N, 32) stages=3 {
    copy A[m*64, k*32] -> a
    copy B[k*32, 0] -> b
    gemm a, b -> c
  }
  copy c -> C[m*64, 0]
})", "in A: tensor<f16>[128, N], B: tensor<f16>[N, 64] out C: tensor<f32>[128, 64]");
  Status s = PlanPipelines(m, Overlapping(), 0);
  EXPECT_TRUE(s.ok()) << s;
  EXPECT_TRUE(Verify(m, Level::kPlanned).ok()) << Verify(m, Level::kPlanned);
  std::cout << ToText(m) << absl::StrJoin(m.notes, "\n") << "\n";
}

}  // namespace
}  // namespace tl
