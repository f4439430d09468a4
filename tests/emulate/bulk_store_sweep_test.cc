// `stores=bulk` on sm_90a: which copies leave in boxes, why the others do not, and that whole
// programs compute the right numbers whenever boxes are read and written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/emulate/emulate_testing.h"

namespace tl {
namespace {

using ::testing::Contains;
using testing::CudaCase;
using testing::FamilyText;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::Values;

std::string NameOf(const CudaCase& c) {
  return absl::StrCat(c.name, " ", absl::StrJoin(c.values, " ", absl::PairFormatter("=")));
}

// Every launch of a program asks for boxes.
std::string WithBulk(const std::string& text) {
  return std::regex_replace(text, std::regex("(\n  launch [^{]*[^{ ]) \\{"), "$1 stores=bulk {");
}

void ExpectRightWheneverBoxesLeave(const CudaCase& c) {
  SCOPED_TRACE(NameOf(c));
  ExpectRightNumbers(
      c, *FindCudaTarget("sm_90a"),
      {.seeds = {1}, .arrivals = {Arrival::kRandom, Arrival::kEager, Arrival::kLazy}});
}

std::string SourceOf(const CudaCase& c) {
  const auto lowered = testing::LowerText(c.text, c.values, *FindCudaTarget("sm_90a"));
  EXPECT_TRUE(lowered.ok()) << NameOf(c) << lowered.status();
  return lowered.ok() ? testing::KernelText(lowered->generated) : "";
}

// ---- gemm

CudaCase Gemm(const Values& values) {
  CudaCase c{"gemm",
             FamilyText("gemm"),
             {{"boxes", "on"}, {"bm", "64"}, {"bn", "64"}, {"bk", "32"}, {"stages", "2"}},
             // Whole tiles; clipped ones; rows that no map describes; several tiles of a block.
             {{64, 64, 64}, {72, 136, 40}, {70, 67, 33}, {500, 72, 64}},
             {}};
  for (const auto& [name, value] : values) {
    std::erase_if(c.values, [&](const auto& old) { return old.first == name; });
    c.values.emplace_back(name, value);
  }
  return c;
}

TEST(BulkStores, Gemm) {
  const std::vector<Values> forms = {
      {{"t", "bf16"}},
      {{"t", "f16"}, {"bn", "128"}},
      {{"t", "f16"}, {"tc", "f32"}},
      {{"t", "bf16"}, {"tc", "e4m3"}},
      {{"t", "e4m3"}, {"tc", "bf16"}},
      {{"t", "f32"}},
      {{"ta", "on"}, {"tb", "off"}},
      {{"bias", "on"}, {"act", "relu"}, {"residual", "on"}},
      {{"bm", "128"}, {"bn", "32"}},
      {{"swap", "on"}, {"bm", "16"}},
      {{"swap", "on"}, {"bm", "32"}, {"bn", "128"}, {"bias", "on"}},
  };
  for (Values values : forms) {
    for (const char* stay : {"off", "on"}) {
      values.push_back({"stay", stay});
      const CudaCase c = Gemm(values);
      EXPECT_THAT(SourceOf(c), HasSubstr("tl_bulk_store<2>")) << NameOf(c);
      ExpectRightWheneverBoxesLeave(c);
      values.pop_back();
    }
  }
}

// Results that are rounded to 16 bits come to their tile by matrices, without conflicts.
TEST(BulkStores, MatricesOfResults) {
  for (const char* t : {"bf16", "f16"}) {
    for (const char* bn : {"32", "64", "128"}) {
      const CudaCase c = Gemm({{"t", t}, {"bn", bn}});
      SCOPED_TRACE(NameOf(c));
      const std::string source = SourceOf(c);
      EXPECT_THAT(source, HasSubstr("tl_store_matrix<4, false>"));
      EmulateStats stats;
      CudaCase whole = c;
      whole.dims = {{64, 128, 64}};
      ExpectRightNumbers(whole, *FindCudaTarget("sm_90a"), {.seeds = {1}, .stats = &stats});
      EXPECT_GT(stats.matrix_stores.accesses, 0);
      EXPECT_EQ(stats.matrix_stores.extra, 0);
      EXPECT_EQ(stats.vector_writes.accesses, 0);
    }
  }
}

// Tiles whose rows run down the columns of the matrix instructions' results.
TEST(BulkStores, MatricesTransposed) {
  const CudaCase c = Gemm({{"swap", "on"}, {"bm", "16"}});
  EXPECT_THAT(SourceOf(c), HasSubstr("tl_store_matrix<4, true>"));
  EmulateStats stats;
  ExpectRightNumbers(c, *FindCudaTarget("sm_90a"), {.seeds = {1}, .stats = &stats});
  EXPECT_GT(stats.matrix_stores.accesses, 0);
  EXPECT_EQ(stats.matrix_stores.extra, 0);
}

// Where there are no boxes results come to their tile by matrices all the same.
TEST(BulkStores, MatricesWithoutBoxes) {
  const CudaCase c = Gemm({{"t", "bf16"}});
  for (const char* name : {"sm_80", "sm_100", "sm_120"}) {
    SCOPED_TRACE(name);
    const auto lowered = testing::LowerText(c.text, c.values, *FindCudaTarget(name));
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    EXPECT_THAT(lowered->thread.notes,
                Contains(HasSubstr(absl::StrCat("not in boxes: none are made for ", name))));
    const std::string source = testing::KernelText(lowered->generated);
    EXPECT_EQ(absl::StrContains(source, "tl_store_matrix<4, false>"),
              std::string_view(name) != "sm_80");
    EXPECT_THAT(source, Not(HasSubstr("tl_bulk_")));
    ExpectRightNumbers(c, *FindCudaTarget(name), {.seeds = {1}});
  }
}

// ---- Other families

TEST(BulkStores, Attention) {
  const std::string text = WithBulk(FamilyText("attention"));
  for (const char* causal : {"off", "on"}) {
    const CudaCase c{"attention",
                     text,
                     {{"D", "64"},
                      {"bm", "64"},
                      {"bn", "32"},
                      {"rows", "16"},
                      {"causal", causal},
                      {"lse", "on"}},
                     {{1, 2, 1, 70, 90}, {2, 1, 1, 64, 33}, {1, 1, 1, 1, 0}},
                     {}};
    EXPECT_THAT(SourceOf(c), HasSubstr("tl_bulk_store<4>"));
    EXPECT_THAT(SourceOf(c), HasSubstr("tl_store_matrix<4, false>"));
    ExpectRightWheneverBoxesLeave(c);
  }
}

TEST(BulkStores, Softmax) {
  ExpectRightWheneverBoxesLeave({"softmax",
                                 WithBulk(FamilyText("softmax")),
                                 {{"t", "bf16"}, {"bm", "8"}, {"bn", "128"}},
                                 {{9, 104}, {17, 99}, {3, 300}, {8, 1104}},
                                 {}});
}

TEST(BulkStores, Norm) {
  ExpectRightWheneverBoxesLeave(
      {"rms_norm", WithBulk(FamilyText("rms_norm")), {{"t", "bf16"}}, {{9, 104}, {17, 99}}, {}});
}

// ---- Programs that store in other ways

struct Program {
  const char* name;
  const char* text;  // of a launch's body, and the signature before it
  std::vector<std::vector<int64_t>> dims;
  const char* note;  // a part of the line about the copy to Y
  std::vector<int64_t> strides = {};
};

const std::vector<Program>& Programs() {
  static const auto& programs = *new std::vector<Program>{
      {"a tile of the user's",
       R"(kernel k(M: dim, N: dim) {
  in X: tensor<f16>[M, N]
  out Y: tensor<f16>[M, N]
  launch n in ceildiv(N, 64), m in ceildiv(M, 64) stores=bulk {
    x = alloc_fragment<f16>[64, 64]  y = alloc_shared<f16>[64, 64]
    copy X[m*64, n*64] -> x
    parallel i, j in [64, 64] { x[i, j] = x[i, j] + 1 }
    copy x -> y
    copy y -> Y[m*64, n*64]
  }
})",
       {{64, 64}, {70, 72}, {65, 67}},
       ": boxes of 64 x 64"},
      {"straight from tile to tensor, persistent",
       R"(kernel k(M: dim, N: dim) {
  in X: tensor<f32>[M, N]
  out Y: tensor<f32>[M, N]
  launch n in ceildiv(N, 64), m in ceildiv(M, 64) persistent stores=bulk {
    y = alloc_shared<f32>[64, 64]
    copy X[m*64, n*64] -> y
    copy y -> Y[m*64, n*64]
  }
})",
       {{64, 64}, {500, 72}, {65, 67}},
       ": boxes of 64 x 32"},
      {"tiles that share memory",
       R"(kernel k(M: dim, N: dim) {
  in X: tensor<f16>[M, N]
  out Y: tensor<f16>[M, N], Z: tensor<f32>[M, N]
  launch n in ceildiv(N, 64), m in ceildiv(M, 64) stores=bulk {
    x = alloc_fragment<f16>[64, 64]  z = alloc_fragment<f32>[64, 64]
    copy X[m*64, n*64] -> x
    copy x -> Y[m*64, n*64]
    parallel i, j in [64, 64] { z[i, j] = x[i, j] * 2 }
    copy z -> Z[m*64, n*64]
  }
})",
       {{64, 64}, {70, 72}, {65, 67}},
       ": boxes of 64 x 64"},
      {"the same place again and again",
       R"(kernel k(M: dim, N: dim) {
  in X: tensor<f16>[M, N]
  out Y: tensor<f16>[M, N]
  launch n in ceildiv(N, 64), m in ceildiv(M, 64) stores=bulk {
    x = alloc_fragment<f16>[64, 64]
    copy X[m*64, n*64] -> x
    serial k in 3 {
      parallel i, j in [64, 64] { x[i, j] = x[i, j] + k }
      copy x -> Y[m*64, n*64]
    }
  }
})",
       {{64, 64}, {70, 72}, {65, 67}},
       ": boxes of 64 x 64"},
      {"steps along the columns",
       R"(kernel k(M: dim, N: dim) {
  in X: tensor<f16>[M, N]
  out Y: tensor<f16>[M, N]
  launch m in ceildiv(M, 32) persistent stores=bulk {
    x = alloc_fragment<f16>[32, 64]
    pipelined k in ceildiv(N, 64) stages=2 {
      s = alloc_shared<f16>[32, 64]
      copy X[m*32, k*64] -> s
      copy s -> x
      parallel i, j in [32, 64] { x[i, j] = x[i, j] + 1 }
      copy x -> Y[m*32, k*64]
    }
  }
})",
       {{64, 64}, {300, 200}, {65, 67}},
       ": boxes of 32 x 64"},
      {"more rows than one box has",
       R"(kernel k(M: dim, N: dim) {
  in X: tensor<f32>[M, N]
  out Y: tensor<f32>[M, N]
  launch n in ceildiv(N, 8), m in ceildiv(M, 272) stores=bulk {
    y = alloc_shared<f32>[272, 8]
    copy X[m*272, n*8] -> y
    copy y -> Y[m*272, n*8]
  }
})",
       {{272, 8}, {300, 12}, {65, 7}},
       ": boxes of 136 x 8"},
      {"rows left out",
       R"(kernel k(M: dim, N: dim) {
  in X: tensor<f16>[M, N]
  out Y: tensor<f16>[M, N]
  launch n in ceildiv(N, 64), m in ceildiv(M, 64) stores=bulk {
    x = alloc_fragment<f16>[64, 64]
    copy X[m*64, n*64] -> x
    copy x -> Y[m*64, n*64] rows=min(64, M - m*64)
  }
})",
       {{64, 64}, {70, 72}, {65, 67}},
       ": boxes of 64 x 64; otherwise where rows are left out"},
      {"five dims, strides of the caller's",
       R"(kernel k(M: dim, N: dim) {
  in X: tensor<f16>[2, M, 1, 2, N]
  out Y: tensor<f16>[2, M, 1, 2, N] strides [?, ?, ?, ?, 1]
  launch n in ceildiv(N, 64), m in ceildiv(M, 16), b in 2, h in 2 stores=bulk {
    x = alloc_fragment<f16>[16, 64]
    copy X[b, m*16:, 0, h, n*64:] -> x
    copy x -> Y[b, m*16:, 0, h, n*64:]
  }
})",
       {{16, 64}, {20, 72}, {17, 40}},
       ": boxes of 16 x 64",
       {80 * 2 * 20, 80 * 2, 80 * 2, 80}},
      {"a transposed tile",
       R"(kernel k(M: dim, N: dim) {
  in X: tensor<f16>[M, 32], W: tensor<f16>[N, 32]
  out Y: tensor<f16>[N, M]
  launch n in ceildiv(N, 32), m in ceildiv(M, 64) threads=128 stores=bulk {
    x = alloc_shared<f16>[64, 32]  w = alloc_shared<f16>[32, 32]  y = alloc_fragment<f32>[64, 32]
    copy X[m*64, 0] -> x
    copy W[n*32, 0] -> w
    gemm x, w -> y transpose_b clear
    copy y -> Y[n*32, m*64] transpose
  }
})",
       {{64, 64}, {72, 40}, {65, 67}},
       ": boxes of 32 x 64"},
      // What stays with the threads.
      {"read in the same launch",
       R"(kernel k(M: dim, N: dim) {
  inout Y: tensor<f16>[M, N]
  launch n in ceildiv(N, 64), m in ceildiv(M, 64) stores=bulk {
    y = alloc_fragment<f16>[64, 64]
    copy Y[m*64, n*64] -> y
    parallel i, j in [64, 64] { y[i, j] = y[i, j] + 1 }
    copy y -> Y[m*64, n*64]
  }
})",
       {{64, 64}, {70, 72}},
       ": not in boxes: the launch also reads it or writes it elsewhere"},
      {"written twice",
       R"(kernel k(M: dim, N: dim) {
  in X: tensor<f16>[M, N]
  out Y: tensor<f16>[M, N]
  launch n in ceildiv(N, 64), m in ceildiv(M, 64) stores=bulk {
    y = alloc_fragment<f16>[64, 64]
    fill y, 1
    copy y -> Y[m*64, n*64]
    copy X[m*64, n*64] -> y
    copy y -> Y[m*64, n*64]
  }
})",
       {{64, 64}, {70, 72}},
       ": not in boxes: the launch also reads it or writes it elsewhere"},
      {"rows left out in a loop",
       R"(kernel k(M: dim, N: dim) {
  in X: tensor<f16>[M, N]
  out Y: tensor<f16>[M, N]
  launch m in ceildiv(M, 64) stores=bulk {
    y = alloc_fragment<f16>[64, 64]
    serial n in ceildiv(N, 64) {
      copy X[m*64, n*64] -> y
      copy y -> Y[m*64, n*64] rows=min(64, M - m*64)
    }
  }
})",
       {{64, 64}, {70, 72}},
       ": not in boxes: it leaves rows out in a loop"},
      {"groups",
       R"(kernel k(M: dim, N: dim) {
  in X: tensor<f16>[M, N]
  out Y: tensor<f16>[M, N]
  launch n in ceildiv(N, 64), m in ceildiv(M, 128) groups=2 threads=128 stores=bulk {
    on g in 2 {
      y = alloc_fragment<f16>[64, 64]
      copy X[m*128 + g*64, n*64] -> y
      copy y -> Y[m*128 + g*64, n*64]
    }
  }
})",
       {{64, 64}, {170, 72}},
       ": not in boxes: groups store on their own"},
      {"short rows",
       R"(kernel k(M: dim, N: dim) {
  in X: tensor<f16>[M, N]
  out Y: tensor<f16>[M, N]
  launch n in ceildiv(N, 8), m in ceildiv(M, 64) stores=bulk {
    y = alloc_fragment<f16>[64, 8]
    copy X[m*64, n*8] -> y
    copy y -> Y[m*64, n*8]
  }
})",
       {{64, 64}, {70, 72}},
       ": not in boxes: rows of 16 bytes are no multiple of 32"},
      {"few rows",
       R"(kernel k(M: dim, N: dim) {
  in X: tensor<f16>[M, N]
  out Y: tensor<f16>[M, N]
  launch n in ceildiv(N, 64), m in ceildiv(M, 4) stores=bulk {
    y = alloc_fragment<f16>[4, 64]
    copy X[m*4, n*64] -> y
    copy y -> Y[m*4, n*64]
  }
})",
       {{64, 64}, {70, 72}},
       ": not in boxes: 4 rows are no multiple of 8"},
      {"odd rows",
       R"(kernel k(M: dim) {
  in X: tensor<f16>[M, 67]
  out Y: tensor<f16>[M, 67]
  launch n in 2, m in ceildiv(M, 64) stores=bulk {
    y = alloc_fragment<f16>[64, 64]
    copy X[m*64, n*64] -> y
    copy y -> Y[m*64, n*64]
  }
})",
       {{64}, {70}},
       ": not in boxes: its strides are no multiples of 16 bytes"},
      {"another type",
       R"(kernel k(M: dim, N: dim) {
  in X: tensor<f32>[M, N]
  out Y: tensor<f16>[M, N]
  launch n in ceildiv(N, 64), m in ceildiv(M, 64) stores=bulk {
    y = alloc_shared<f32>[64, 64]
    copy X[m*64, n*64] -> y
    copy y -> Y[m*64, n*64]
  }
})",
       {{64, 64}, {70, 72}},
       ": not in boxes: the types differ"},
      {"a part of a tile",
       R"(kernel k(M: dim, N: dim) {
  in X: tensor<f16>[M, N]
  out Y: tensor<f16>[M, N]
  launch n in ceildiv(N, 64), m in ceildiv(M, 64) stores=bulk {
    y = alloc_shared<f16>[128, 64]
    z = view y[64, 0] [64, 64]
    copy X[m*64, n*64] -> z
    copy z -> Y[m*64, n*64]
  }
})",
       {{64, 64}, {70, 72}},
       ": not in boxes: it takes a part of its tile"},
  };
  return programs;
}

TEST(BulkStores, Programs) {
  for (const Program& p : Programs()) {
    const CudaCase c{p.name, absl::StrCat("tl 1.0\n", p.text), {}, p.dims, p.strides};
    SCOPED_TRACE(p.name);
    const auto lowered = testing::LowerText(c.text, c.values, *FindCudaTarget("sm_90a"));
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    EXPECT_THAT(lowered->thread.notes,
                Contains(::testing::AllOf(HasSubstr("copy to Y"), HasSubstr(p.note))));
    const bool boxes = !absl::StrContains(p.note, "not in boxes");
    EXPECT_EQ(absl::StrContains(SourceOf(c), "tl_bulk_store<"), boxes);
    ExpectRightWheneverBoxesLeave(c);
  }
}

// ---- Where waits stand

// The next tile's products run while this one's boxes leave.
TEST(BulkStores, PersistentBlocksWaitWhereTheyWriteAgain) {
  CudaCase c = Gemm({{"t", "bf16"}, {"stay", "on"}});
  const std::string source = SourceOf(c);
  const size_t product = source.find("tl_wgmma<"), wait = source.find("tl_bulk_wait_read<0>");
  ASSERT_NE(product, source.npos);
  ASSERT_NE(wait, source.npos) << source;
  EXPECT_LT(product, wait) << source;
  EXPECT_LT(wait, source.find("tl_store_matrix<")) << source;
  EXPECT_EQ(source.find("tl_bulk_wait_read<", wait + 1), source.npos) << source;
  const size_t end = source.rfind("tl_bulk_wait<0>");
  ASSERT_NE(end, source.npos);
  EXPECT_LT(source.find("tl_bulk_commit()"), end);
}

// Once, each loop around a box doubled what compiling takes.
TEST(BulkStores, DeepLoopsCompile) {
  constexpr int kDepth = 40;
  std::string text = R"(tl 1.0
kernel deep(M: dim) {
  in X: tensor<f16>[M, 32]
  out Y: tensor<f16>[M, 32]
  launch m in ceildiv(M, 32) threads=64 stores=bulk {
    x = alloc_fragment<f16>[32, 32]
    copy X[m*32, 0] -> x
)";
  for (int i = 0; i < kDepth; ++i) absl::StrAppend(&text, "serial k", i, " in 1 { ");
  absl::StrAppend(&text, "copy x -> Y[m*32, 0]", std::string(kDepth, '}'), "}}\n");
  const auto lowered = testing::LowerText(text, {}, *FindCudaTarget("sm_90a"));
  ASSERT_TRUE(lowered.ok()) << lowered.status();
  EXPECT_THAT(testing::KernelText(lowered->generated), HasSubstr("tl_bulk_store<2>"));
}

}  // namespace
}  // namespace tl
