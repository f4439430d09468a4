// Programs that differ in words only are one program: one compile, one text generated. Programs
// that differ in a constant are two.
#include "tests/abi/abi_testing.h"

namespace {

constexpr char kPlain[] = R"(tl 1.0
kernel scale_rows(M: dim, N: dim) {
  in X: tensor<f32>[M, N], alpha: f32
  out Y: tensor<f32>[M, N]
  workspace W: tensor<f32>[M]
  launch m in ceildiv(M, 32) groups=2 {
    x = alloc_shared<f32>[32, 64]
    sum = alloc_reducer<f32, sum>[32]
    v = alloc_fragment<f32>[32]
    clear sum
    for n in ceildiv(N, 64) {
      copy X[m*32, n*64] -> x
      parallel r, c in [32, 64] { x[r, c] = x[r, c]*alpha }
      reduce_sum x -> sum dim=1
      part = view x[0, 32] [32, 32]
      fill part, 1
      copy x -> Y[m*32, n*64]
    }
    finish sum
    copy sum -> v
    copy v -> W[m*32]
  }
}
)";

// The same with other names, spacing, comments, parameters for constants, and what goes nowhere.
constexpr char kOther[] = R"(tl   1.0  # scales
kernel f(Rows: dim, Columns: dim; bm: int = 32, extra: bool = off, t: dtype = f32) {
  in In: tensor<t>[Rows, Columns], by: t
  in bias: tensor<t>[Columns] if extra
  out Result: tensor<t>[Rows, Columns]   workspace Sums: tensor<t>[Rows]
  init In = normal(0, 1)
  tune width in {64, 128} where width < 128
  launch block in ceildiv(Rows, bm) groups=1 + 1 { tile = alloc_shared<t>[bm, width]
    total = alloc_reducer<t, sum>[bm]; line = alloc_fragment<t>[bm]; fill total, 0.0
    serial step in ceildiv(Columns, width) {
      copy In[block*bm:, step*width:] -> tile   # a window
      parallel i, j in [bm, width] { tile[i, j] = tile[i, j] * by }
      if extra { copy bias[0] -> line }
      reduce_sum tile -> total dim=-1
      right = view tile[0, width/2] [bm, width/2]
      fill right, 1.0
      copy tile -> Result[block*bm, step*width]
    }
    finish total copy total -> line copy line -> Sums[block*bm]
  }
}
)";

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

// Compiled one after the other in one context.
void ExpectOneProgram(const char* target) {
  const border::Context context = families::MakeContext();
  const border::Kernel plain = border::CompileFor(context.get(), kPlain, target);
  const border::Kernel other = border::CompileFor(context.get(), kOther, target);
  ASSERT_TRUE(plain && other);
  const tl_cache_stats stats = border::Stats(context.get());
  EXPECT_EQ(stats.compiles, 1u) << target;
  EXPECT_EQ(stats.memory_hits, 1u) << target;
  EXPECT_EQ(border::Text(plain.get(), TL_TEXT_BINARY), border::Text(other.get(), TL_TEXT_BINARY));
  // Each keeps its own words.
  EXPECT_NE(border::Text(plain.get(), TL_TEXT_IR).find("kernel scale_rows(M: dim"),
            std::string::npos);
  EXPECT_NE(border::Text(other.get(), TL_TEXT_IR).find("kernel f(Rows: dim"), std::string::npos);
  EXPECT_STREQ(tl_kernel_dim_name(other.get(), 1), "Columns");
  EXPECT_STREQ(tl_kernel_scalar_name(plain.get(), 0), "alpha");
  // And another constant is another program.
  const char* changes[][2] = {{"fill part, 1", "fill part, 2"},
                              {"groups=2", "groups=1"},
                              {"[r, c]*alpha", "[r, c]+alpha"},
                              {"in X: tensor<f32>[M, N]", "in X: tensor<f32>[M, N] strides[?, 1]"},
                              {"x[0, 32]", "x[0, 31]"},
                              {"copy x -> Y[m*32, n*64]", "copy x -> Y[m*32, n*64] rows=3"},
                              {"copy x -> Y[m*32, n*64]", "copy x -> Y[m*32, n*64] evict=first"},
                              {"copy x -> Y[m*32, n*64]", "copy x -> Y[m*32, n*64] evict=last"}};
  uint64_t compiles = 1;
  for (const auto& change : changes) {
    border::CompileFor(context.get(), Replaced(kPlain, change[0], change[1]), target);
    EXPECT_EQ(border::Stats(context.get()).compiles, ++compiles) << change[1];
  }
}

TEST(Key, Reference) { ExpectOneProgram("reference"); }
TEST(Key, Cpu) { ExpectOneProgram("cpu"); }

// Names of the caller do not reach the generated text, and so cannot reach the binary.
TEST(Key, GeneratedTextIsTheSame) {
  for (const char* target : {"cpu", "sm_80"}) {
    const border::Context one = families::MakeContext(), two = families::MakeContext();
    tl_compile_options options = border::SourceOptions(kPlain, target);
    tl_kernel* plain = nullptr;
    const tl_status status = tl_compile(one.get(), &options, &plain);
    if (status != TL_OK && border::LastInfo().reason == TL_REASON_MISSING_LIBRARY) continue;
    ASSERT_EQ(status, TL_OK) << families::LastError();
    const border::Kernel owner(plain);
    const border::Kernel other = border::CompileFor(two.get(), kOther, target);
    ASSERT_TRUE(other);
    EXPECT_EQ(border::Stats(two.get()).compiles, 1u);
    EXPECT_EQ(border::Text(plain, TL_TEXT_SOURCE), border::Text(other.get(), TL_TEXT_SOURCE))
        << target;
    EXPECT_EQ(border::Text(plain, TL_TEXT_BINARY), border::Text(other.get(), TL_TEXT_BINARY))
        << target;
  }
}

// Families too: renamed, they are the same code.
TEST(Key, RenamedFamilies) {
  for (uint32_t i = 0; i < tl_family_count(); ++i) {
    const border::Context context = families::MakeContext();
    const std::string name = tl_family_name(i);
    std::string renamed = tl_family_source(name.c_str());
    renamed = Replaced(renamed, "kernel " + name, "kernel some_other_name");
    const border::Kernel family = families::Compile(context.get(), name, {}, 0);
    border::CompileFor(context.get(), "# renamed\n" + renamed + "\n# end", nullptr);
    EXPECT_EQ(border::Stats(context.get()).compiles, 1u) << name;
  }
}

}  // namespace
