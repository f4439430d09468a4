// The shipped tiles of gemm, attention and mla_decode as sm_90a gets them: products of warpgroups
// that nothing converts for and nothing serialises, no spills, no bank conflicts. Judged by the
// passes' notes, the emulator's counters and, where there is NVRTC, by the assembler's log and the
// PTX.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/visit.h"
#include "tests/emulate/emulate_testing.h"

namespace tl {
namespace {

using ::testing::Contains;
using testing::CudaCase;
using ::testing::HasSubstr;
using ::testing::Not;

struct Shipped {
  const char* family;
  testing::Values values;
  int products;
};

// What the `for sm_90a` clauses of the families come to.
testing::Values With(testing::Values common, const testing::Values& own) {
  common.insert(common.end(), own.begin(), own.end());
  return common;
}
const std::vector<Shipped>& All() {
  const testing::Values gemm = {{"bm", "128"},   {"bn", "256"},  {"bk", "64"},
                                {"stages", "3"}, {"stay", "on"}, {"bytes", "196608"}};
  // C's tile does not fit beside the steps.
  const testing::Values wide_c = {{"bm", "128"},   {"bn", "256"}, {"bk", "64"},
                                  {"stages", "4"}, {"tc", "f32"}, {"bytes", "196608"}};
  const testing::Values attention = {{"bm", "128"},   {"bn", "128"},     {"rows", "16"},
                                     {"stages", "2"}, {"overlap", "on"}, {"bytes", "229376"}};
  const testing::Values wide = {{"D", "256"},    {"bm", "128"},       {"rows", "16"},
                                {"stages", "2"}, {"bytes", "229376"}, {"sums", "32768"}};
  const testing::Values mla = {{"bh", "64"}, {"bn", "64"}, {"stages", "2"}, {"bytes", "221184"}};
  static const auto& all = *new std::vector<Shipped>{
      {"gemm", gemm, 1},
      {"gemm", wide_c, 1},
      {"gemm", With(gemm, {{"ta", "on"}, {"t", "f16"}}), 1},
      {"gemm", With(gemm, {{"tb", "off"}}), 1},
      {"gemm", With(gemm, {{"tb", "off"}, {"M", "4096"}, {"N", "4096"}, {"K", "4096"}}), 1},
      {"gemm", With(gemm, {{"bias", "on"}, {"act", "gelu"}, {"residual", "on"}}), 1},
      {"gemm", With(gemm, {{"M", "4096"}, {"N", "4096"}, {"K", "4096"}}), 1},
      {"gemm", With(gemm, {{"boxes", "on"}}), 1},
      {"gemm", With(gemm, {{"boxes", "on"}, {"M", "4096"}, {"N", "4096"}, {"K", "4096"}}), 1},
      // The last lag runs behind the loop.
      {"attention", attention, 3},
      {"attention", With(attention, {{"causal", "on"}, {"lse", "on"}, {"t", "f16"}}), 3},
      {"attention", With(attention, {{"D", "64"}}), 3},
      {"attention", With(attention, {{"turns", "on"}}), 3},
      {"attention", With(attention, {{"turns", "on"}, {"causal", "on"}, {"t", "f16"}}), 3},
      {"attention", With(wide, {{"bn", "64"}, {"overlap", "off"}}), 2},
      {"attention", With(wide, {{"bn", "48"}, {"overlap", "on"}}), 3},
      {"mla_decode", mla, 2},
      {"mla_decode", With(mla, {{"t", "f16"}, {"lse", "on"}}), 2},
  };
  return all;
}

std::string NameOf(const Shipped& s) {
  return absl::StrCat(s.family, " ", absl::StrJoin(s.values, " ", absl::PairFormatter("=")));
}

StatusOr<testing::Lowered> LoweredFor90a(const Shipped& s) {
  return testing::LowerText(testing::FamilyText(s.family), s.values, *FindCudaTarget("sm_90a"));
}

TEST(WarpgroupQuality, Notes) {
  for (const Shipped& s : All()) {
    SCOPED_TRACE(NameOf(s));
    const auto lowered = LoweredFor90a(s);
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    int products = 0;
    for (const std::string& note : lowered->thread.notes) {
      products += absl::StrContains(note, ": wgmma.");
      // Sums of a part, in f32: once in a block.
      const bool leaves = absl::StrContains(note, "writing ordered");
      EXPECT_FALSE(absl::StrContains(note, "converted") ||
                   (absl::StrContains(note, "bank conflicts") && !leaves) ||
                   absl::StrContains(note, "is not pipelined") ||
                   absl::StrContains(note, "stays in shared memory"))
          << note;
    }
    EXPECT_EQ(products, s.products);
    EXPECT_THAT(lowered->thread.notes, Contains(HasSubstr("filled by boxes")));
  }
}

// Attention's scores go on as the next product's left operand without a way through memory.
TEST(WarpgroupQuality, AttentionLoadsNoMatrices) {
  for (const Shipped& s : All()) {
    if (s.family != std::string_view("attention")) continue;
    SCOPED_TRACE(NameOf(s));
    const auto lowered = LoweredFor90a(s);
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    const std::string text = testing::KernelText(lowered->generated);
    EXPECT_THAT(text, Not(HasSubstr("tl_load_matrix")));
    if (absl::StrContains(NameOf(s), "overlap=off")) continue;
    EXPECT_THAT(text, HasSubstr("tl_wgmma_wait<1>"));  // something runs beside
  }
}

// One thread asks for a later step's boxes when its warp has begun this step's first product,
// unless producers do.
TEST(WarpgroupQuality, ProductsComeBeforeBoxes) {
  for (const Shipped& s : All()) {
    SCOPED_TRACE(NameOf(s));
    const auto lowered = LoweredFor90a(s);
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    const std::string text = testing::KernelText(lowered->generated);
    if (absl::StrContains(text, "producer_thread")) continue;
    const size_t product = text.find("tl_wgmma_commit(");
    ASSERT_NE(product, text.npos);
    EXPECT_LT(text.find("tl_bulk_load<", product), text.find("tl_wgmma_wait<", product));
  }
}

// Half of the compile time of a persistent gemm went into 64-bit arithmetic of its tiles' places,
// guards of rows that always exist, and sums that went from the thread to the instructions and back
// in every step.
TEST(WarpgroupQuality, PersistentGemmIsShort) {
  for (const Shipped& s : All()) {
    const std::string name = NameOf(s);
    if (!absl::StrContains(name, "stay=on")) continue;
    SCOPED_TRACE(name);
    const auto lowered = LoweredFor90a(s);
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    const std::string text = testing::KernelText(lowered->generated);
    const size_t loop = text.find("tl_mbarrier_wait", text.find("tl_more_registers"));
    ASSERT_NE(loop, text.npos);
    EXPECT_LT(text.find("tl_sums_in("), loop);
    EXPECT_GT(text.find("tl_sums_out("), loop);
    if (!absl::StrContains(name, "M=4096")) continue;
    EXPECT_THAT(text, Not(HasSubstr("tl_floor_")));
    EXPECT_THAT(text, Not(HasSubstr("tl_mul(")));
    EXPECT_THAT(text, Not(HasSubstr("< 4096")));
  }
}

// In a producer's block: either one thread waits for slots, or all come to a barrier. Threads that
// only wait could miss two phases in a row, and then they wait for good.
void ExpectInStep(const Block& block) {
  const bool meet = absl::c_any_of(block, [](const StmtRef& s) {
    return As<Barrier>(s) && As<Barrier>(s)->team == Team::kProducer;
  });
  for (const StmtRef& s : block) {
    const Mbarrier* wait = As<Mbarrier>(s);
    EXPECT_TRUE(!wait || wait->op != Mbarrier::Op::kWait || meet);
    if (!As<OnFirstThread>(s)) VisitBlocks(*s, ExpectInStep);
  }
}

TEST(WarpgroupQuality, ProducersStayInStep) {
  const auto producers = [](std::string_view text, const testing::Values& values) {
    const auto lowered = testing::LowerText(text, values, *FindCudaTarget("sm_90a"));
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    int found = 0;
    VisitStmts(lowered->thread.launches[0].body, [&](const StmtRef& s) {
      const OnProducer* producer = As<OnProducer>(s);
      if (!producer) return;
      ++found;
      ExpectInStep(producer->body);
    });
    EXPECT_EQ(found, 1);
  };
  for (const char* stay : {"off", "on"}) {
    SCOPED_TRACE(stay);
    const testing::Values values = {{"copies", "warp"}, {"stay", stay}, {"stages", "3"}};
    producers(testing::TableText("product"), values);
    producers(testing::TableText("rows"), values);  // by boxes or not, which differs by iteration
    producers(testing::TableText("product"),
              testing::Values{
                  {"copies", "warp"}, {"stay", stay}, {"cm", "2"}, {"M", "256"}, {"N", "128"}});
  }
}

TEST(WarpgroupQuality, NoBankConflicts) {
  for (const auto& [ta, boxes] :
       {std::pair("off", "off"), std::pair("on", "off"), std::pair("off", "on")}) {
    EmulateStats stats;
    const CudaCase c{
        "gemm",
        testing::FamilyText("gemm"),
        {{"ta", ta}, {"tb", ta}, {"boxes", boxes}, {"bm", "64"}, {"bn", "64"}, {"bk", "64"}},
        {{64, 64, 192}},
        {}};
    ExpectRightNumbers(c, *FindCudaTarget("sm_90a"), {.seeds = {1}, .stats = &stats});
    EXPECT_EQ(stats.async_writes.accesses, 0);  // boxes
    EXPECT_EQ(stats.async_writes.extra, 0);
    EXPECT_EQ(stats.vector_reads.extra, 0);
    EXPECT_EQ(stats.vector_writes.extra, 0);
    EXPECT_EQ(stats.matrix_stores.extra, 0);
  }
}

TEST(WarpgroupQuality, Assembled) {
  const std::unique_ptr<Backend> backend = MakeCudaBackend(testing::TestPaths());
  const StatusOr<std::string> identity = backend->CompilerIdentity({});
  if (!identity.ok()) GTEST_SKIP() << "SKIP, no NVRTC: " << identity.status().message();
  const Target target = *FindCudaTarget("sm_90a");
  for (const Shipped& s : All()) {
    SCOPED_TRACE(NameOf(s));
    const auto lowered = LoweredFor90a(s);
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    std::string ptx;
    testing::ExpectBuilds(*backend, lowered->generated, target, ptx);
    EXPECT_THAT(ptx, HasSubstr("wgmma.mma_async.sync.aligned.m64n"));
    EXPECT_THAT(ptx, Not(HasSubstr("mma.sync.aligned")));
  }
}

}  // namespace
}  // namespace tl
