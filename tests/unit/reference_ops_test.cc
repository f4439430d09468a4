// Every operation of the language on small programs, against numbers that the test works out
// itself.
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "tests/unit/reference_testing.h"

namespace tl::reference {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNan = std::nan("");

// ---- fill, parallel, scalars
// ---------------------------------------------------------------------

TEST(Fill, WholeTilesAndWindows) {
  Program p(R"(tl 1.0
kernel k() {
  in s: f32
  out Y: tensor<f32>[2, 3]
  launch m in 1 {
    x = alloc_fragment<f32>[2, 3]
    v = view x[1, 1][1, 2]
    fill x, s * 2
    clear v
    copy x -> Y[0, 0]
  }
})");
  p.Scalar("s", 1.5);
  TL_ASSERT_OK(p.Run());
  EXPECT_THAT(p.Exact("Y"), ElementsAre(3, 3, 3, 3, 0, 0));
}

TEST(Parallel, StoreOperatorsIfAndLocals) {
  Program p(R"(tl 1.0
kernel k() {
  in X: tensor<f32>[4]
  out Y: tensor<f32>[6, 4]
  launch m in 1 {
    x = alloc_fragment<f32>[4]
    y = alloc_fragment<f32>[6, 4]
    copy X[0] -> x
    parallel r, c in [6, 4] { y[r, c] = x[c] }
    parallel i in 4 {
      y[0, i] += 2
      y[1, i] -= 2
      y[2, i] *= 2
      y[3, i] /= 2
      if i % 2 == 0 { y[4, i] = i } else { y[4, i] = -i }
      t = alloc_local<f32>[3]
      for j in 3 { t[j] = x[i] * j }
      y[5, i] = t[0] + t[1] + t[2]
    }
    copy y -> Y[0, 0]
  }
})");
  p.Set("X", {1, 2, 3, 4});
  TL_ASSERT_OK(p.Run());
  EXPECT_THAT(p.Exact("Y"), ElementsAre(3, 4, 5, 6, -1, 0, 1, 2, 2, 4, 6, 8, 0.5, 1, 1.5, 2, 0, -1,
                                        2, -3, 3, 6, 9, 12));
}

struct ExprCase {
  const char* expr;
  double want;
};

class Expressions : public ::testing::TestWithParam<ExprCase> {};

TEST_P(Expressions, GivesTheNumber) {
  // a, b: f32; i, j: int; through loads, so that nothing folds at compile time.
  Program p(absl::StrCat(R"(tl 1.0
kernel k() {
  in A: tensor<f32>[8], I: tensor<i32>[4], D: tensor<f64>[1]
  out Y: tensor<f64>[1]
  launch m in 1 {
    y = alloc_fragment<f64>[1]
    parallel r in 1 {
      a = A[0]
      b = A[1]
      zero = A[2]
      infinite = A[3]
      none = A[4]
      i = I[0]
      j = I[1]
      d = D[0]
      y[r] = f64()",
                         GetParam().expr, R"()
    }
    copy y -> Y[0]
  }
})"));
  p.Set("A", {2.5, -1.25, 0, kInf, kNan, 3.5, 0.5, 1}).Set("I", {-7, 2, 0, 5}).Set("D", {0.1});
  TL_ASSERT_OK(p.status());
  TL_ASSERT_OK(p.Run());
  const double got = p.Exact("Y")[0];
  if (std::isnan(GetParam().want)) {
    EXPECT_TRUE(std::isnan(got)) << got;
  } else {
    EXPECT_TRUE(got == GetParam().want ||
                std::fabs(got - GetParam().want) <= 1e-15 * std::fabs(GetParam().want))
        << GetParam().expr << " is " << got;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Expressions,
                         ::testing::ValuesIn<ExprCase>({
                             {"a + b", 1.25},
                             {"a - b", 3.75},
                             {"a * b", -3.125},
                             {"a / b", -2},
                             {"-a", -2.5},
                             {"i / j", -4},
                             {"i % j", 1},
                             {"-i / -j", -4},
                             {"ceildiv(i, j)", -3},
                             {"7 / j", 3},
                             {"i % -j", -1},
                             {"min(i, j)", -7},
                             {"max(i, j)", 2},
                             {"i & 15", 9},
                             {"(i | 1) ^ 4", -3},
                             {"j << 3", 16},
                             {"i >> 1", -4},
                             {"min(a, b)", -1.25},
                             {"max(a, none)", 2.5},
                             {"min(none, b)", -1.25},
                             {"clamp(a, 0, 1)", 1},
                             {"clamp(b, 0, 1)", 0},
                             {"if a > b then 1 else 2", 1},
                             {"if none == none then 1 else 2", 2},
                             {"if not (a < b) and (i < 0 or j < 0) then 1 else 0", 1},
                             {"if i != 0 and 10 / i < 0 then 1 else 0", 1},
                             {"if i == 0 or 10 / i < 0 then 1 else 0", 1},
                             {"abs(b)", 1.25},
                             {"abs(i)", 7},
                             {"floor(b)", -2},
                             {"ceil(b)", -1},
                             {"round(a)", 2},
                             {"round(A[5])", 4},
                             {"round(A[6])", 0},
                             {"exp(a)", std::exp(2.5)},
                             {"exp2(b)", std::exp2(-1.25)},
                             {"log(a)", std::log(2.5)},
                             {"log2(a)", std::log2(2.5)},
                             {"sqrt(a)", std::sqrt(2.5)},
                             {"rsqrt(a)", 1 / std::sqrt(2.5)},
                             {"tanh(b)", std::tanh(-1.25)},
                             {"erf(b)", std::erf(-1.25)},
                             {"sigmoid(b)", 1 / (1 + std::exp(1.25))},
                             {"sin(a)", std::sin(2.5)},
                             {"cos(a)", std::cos(2.5)},
                             {"pow(a, b)", std::pow(2.5, -1.25)},
                             {"fin(a)", 2.5},
                             {"fin(infinite)", 0},
                             {"fin(-infinite)", 0},
                             {"fin(none)", 0},
                             {"exp2(-infinite)", 0},
                             {"a / zero", kInf},
                             {"zero / zero", kNan},
                             {"infinite - infinite", kNan},
                             {"d + a", 2.6},
                             {"i32(a)", 2},
                             {"i32(b)", -1},
                             {"u8(i)", 249},
                             {"i8(I[3] * 60)", 44},

                             {"i32(none)", 0},
                             {"u8(infinite)", 255},
                             {"f32(i) / f32(j)", -3.5},
                             {"i64(infinite)", 9223372036854775807.0},
                         }));

TEST(Casts, RoundInRoundedModeAndBoundInExactMode) {
  Program p(R"(tl 1.0
kernel k() {
  in X: tensor<f32>[1]
  out Y: tensor<f32>[5]
  launch m in 1 {
    y = alloc_fragment<f32>[5]
    parallel r in 1 {
      y[0] = bf16(X[0])
      y[1] = f16(X[0])
      y[2] = e4m3(X[0])
      y[3] = e5m2(X[0])
      y[4] = e4m3(X[0] * 1000)
    }
    copy y -> Y[0]
  }
})");
  p.Set("X", {1.1});
  const double x = static_cast<float>(1.1f);
  TL_ASSERT_OK(p.Run());
  EXPECT_THAT(p.Rounded("Y"), ElementsAre(RoundTo(DType::kBF16, x), RoundTo(DType::kF16, x),
                                          RoundTo(DType::kE4M3, x), RoundTo(DType::kE5M2, x), 448));
  EXPECT_THAT(p.Exact("Y"), ElementsAre(x, x, x, x, 448));
  EXPECT_NEAR(p.Bounds("Y")[0], x * 0x1p-8, 1e-9);
  EXPECT_LT(p.worst_ratio(), 1);
}

TEST(Vars, AreRoundedAndKeepTheirValue) {
  Program p(R"(tl 1.0
kernel k(n: dim) {
  out Y: tensor<f64>[3]
  launch m in 1 {
    total = alloc_var<i32>(5)
    small = alloc_var<i8>(100)
    half = alloc_var<bf16>(1.00390625)
    for i in n { total += i }
    for i in 2..5 { total -= 1 }
    small = small + 100
    y = alloc_fragment<f64>[3]
    parallel r in 1 {
      y[0] = f64(total)
      y[1] = f64(small)
      y[2] = f64(half)
    }
    copy y -> Y[0]
  }
})");
  p.Dim("n", 4);
  TL_ASSERT_OK(p.Run());
  EXPECT_THAT(p.Rounded("Y"), ElementsAre(8, -56, RoundTo(DType::kBF16, 1.00390625)));
}

TEST(Loops, TripsZeroNegativeDownAndNested) {
  Program p(R"(tl 1.0
kernel k(n: dim, lo: dim) {
  out Y: tensor<i32>[3]
  launch m in 1 {
    a = alloc_var<i32>(0)
    b = alloc_var<i32>(0)
    c = alloc_var<i32>(0)
    for i in n { a = a * 10 + i + 1 }
    for i in lo..n down { b = b * 10 + i + 1 }
    pipelined i in n stages=3 { unrolled j in 2 { c += i * j } }
    y = alloc_fragment<i32>[3]
    parallel r in 1 { y[0] = a; y[1] = b; y[2] = c }
    copy y -> Y[0]
  }
})");
  const struct {
    int n, lo;
    Doubles want;
  } cases[] = {{0, 0, {0, 0, 0}},
               {1, 0, {1, 1, 0}},
               {3, 0, {123, 321, 3}},
               {3, 1, {123, 32, 3}},
               {2, 5, {12, 0, 1}}};
  for (const auto& c : cases) {
    p.Dim("n", c.n).Dim("lo", c.lo);
    TL_ASSERT_OK(p.Run());
    EXPECT_THAT(p.Exact("Y"), ElementsAreArray(c.want)) << c.n;
  }
}

TEST(Gather, ByIndexTensorAndUniformLoads) {
  Program p(R"(tl 1.0
kernel k() {
  in X: tensor<f32>[4, 2], I: tensor<i32>[3]
  out Y: tensor<f32>[3, 2]
  launch m in 3 {
    page = I[m]
    x = alloc_shared<f32>[2]
    copy X[page, 0] -> x
    parallel c in 2 { x[c] = x[c] + X[I[m], c] }
    copy x -> Y[m, 0]
  }
})");
  p.Set("X", {1, 2, 3, 4, 5, 6, 7, 8}).Set("I", {3, 0, 2});
  TL_ASSERT_OK(p.Run());
  EXPECT_THAT(p.Exact("Y"), ElementsAre(14, 16, 2, 4, 10, 12));
}

// ---- gemm
// ----------------------------------------------------------------------------------------

std::string GemmText(const std::string& t, const std::string& acc, bool ta, bool tb,
                     const std::string& attrs) {
  return absl::StrCat(R"(tl 1.0
kernel k(M: dim, N: dim, K: dim) {
  in A: tensor<)",
                      t, ">[", ta ? "K, M" : "M, K", R"(], B: tensor<)", t, ">[",
                      tb ? "N, K" : "K, N",
                      R"(]
  out C: tensor<)",
                      acc, R"(>[M, N]
  launch m in ceildiv(M, 8), n in ceildiv(N, 8) {
    a = alloc_shared<)",
                      t, ">[", ta ? "4, 8" : "8, 4", R"(]
    b = alloc_shared<)",
                      t, ">[", tb ? "8, 4" : "4, 8", R"(]
    c = alloc_acc<)",
                      acc, R"(>[8, 8]
    clear c
    pipelined k in ceildiv(K, 4) stages=2 {
      copy A[)",
                      ta ? "k*4, m*8" : "m*8, k*4", R"(] -> a
      copy B[)",
                      tb ? "n*8, k*4" : "k*4, n*8", R"(] -> b
      gemm a, b -> c )",
                      ta ? "transpose_a " : "", tb ? "transpose_b " : "", attrs, R"(
    }
    copy c -> C[m*8, n*8]
  }
})");
}

TEST(Gemm, AllTransposesTypesAndTails) {
  const struct {
    const char* t;
    const char* acc;
  } types[] = {{"bf16", "f32"}, {"f16", "f32"}, {"f32", "f32"},  {"f64", "f64"},
               {"i8", "i32"},   {"u8", "i32"},  {"e4m3", "f32"}, {"e5m2", "f32"}};
  const int sizes[][3] = {{1, 1, 1}, {8, 8, 4}, {7, 9, 5}, {13, 3, 11}, {3, 5, 0}, {0, 4, 4}};
  for (const auto& type : types) {
    for (int transposes = 0; transposes < 4; ++transposes) {
      const bool ta = transposes & 1, tb = transposes & 2;
      Program p(GemmText(type.t, type.acc, ta, tb, ""));
      TL_ASSERT_OK(p.status());
      for (const auto& s : sizes) {
        const int M = s[0], N = s[1], K = s[2];
        Doubles a = Ramp(M * K, 1), b = Ramp(K * N, 2);
        for (Doubles* v : {&a, &b}) {  // exact in every type
          for (double& x : *v) x = std::round(x * 4);
          if (type.t[0] == 'u')
            for (double& x : *v) x = std::fabs(x);
        }
        p.Dim("M", M).Dim("N", N).Dim("K", K).Set("A", a).Set("B", b);
        TL_ASSERT_OK(p.Run(2));
        Doubles want;
        for (int i = 0; i < M; ++i) {
          for (int j = 0; j < N; ++j) {
            double sum = 0;
            for (int k = 0; k < K; ++k) {
              sum += a[ta ? k * M + i : i * K + k] * b[tb ? j * K + k : k * N + j];
            }
            want.push_back(sum);
          }
        }
        EXPECT_THAT(p.Exact("C"), ElementsAreArray(want)) << type.t << transposes;
        EXPECT_THAT(p.Rounded("C"), ElementsAreArray(want)) << type.t << transposes;
      }
    }
  }
}

TEST(Gemm, BoundIsTheStatedOne) {
  Program p(GemmText("f32", "f32", false, false, ""));
  p.Dim("M", 3).Dim("N", 2).Dim("K", 4).Set("A", Ramp(12)).Set("B", Ramp(8));
  TL_ASSERT_OK(p.Run());
  double magnitude = 0;
  for (int k = 0; k < 4; ++k) magnitude += std::fabs(Ramp(12)[k] * Ramp(8)[k * 2]);
  EXPECT_NEAR(p.Bounds("C")[0], 4 * 2 * 0x1p-23 * magnitude, 1e-12);
  Program tf32(GemmText("f32", "f32", false, false, "precision=tf32"));
  Doubles a = Ramp(12), b = Ramp(8);
  for (double& x : a) x = static_cast<float>(x * 1.1);
  for (double& x : b) x = static_cast<float>(x / 1.3);
  tf32.Dim("M", 3).Dim("N", 2).Dim("K", 4).Set("A", a).Set("B", b);
  TL_ASSERT_OK(tf32.Run());
  EXPECT_GT(tf32.Bounds("C")[0], 1e-4);
  EXPECT_GT(tf32.worst_ratio(), 0.001);  // it does round
}

// Every step of 32 terms cuts what the sum is on its way.
TEST(Gemm, BoundOfFastAccumulation) {
  Program p(GemmText("e4m3", "f32", false, false, "precision=fast_accum"));
  p.Dim("M", 3).Dim("N", 2).Dim("K", 4).Set("A", Doubles(12, 1.5)).Set("B", Doubles(8, 2));
  TL_ASSERT_OK(p.Run());
  const double reach = 4 * 3 + 4 * std::sqrt(4 * 3.0 * 3);
  EXPECT_NEAR(p.Bounds("C")[0], 0x1p-12 * reach, 1e-4);
}

// 1 + 2^-11 lies between two f16 numbers; twice that, added at once, would not.
TEST(Gemm, NarrowAccumulatorRoundsEveryTime) {
  Program p(R"(tl 1.0
kernel k() {
  in A: tensor<f16>[1, 1], B: tensor<f16>[1, 1]
  out C: tensor<f32>[1, 1]
  launch {
    a, b = alloc_shared<f16>[1, 1]
    c = alloc_fragment<f16>[1, 1]
    copy A -> a
    copy B -> b
    fill c, 1
    gemm a, b -> c
    gemm a, b -> c
    copy c -> C
  }
})");
  p.Set("A", {0x1p-7}).Set("B", {0x1p-4});
  TL_ASSERT_OK(p.Run());
  EXPECT_THAT(p.Rounded("C"), ElementsAre(1));
  EXPECT_THAT(p.Exact("C"), ElementsAre(1 + 0x1p-10));
}

// What the accumulator holds already is rounded at every step too.
TEST(Gemm, BoundCountsThePresentValue) {
  Program p(R"(tl 1.0
kernel k() {
  in A: tensor<f32>[1, 64], B: tensor<f32>[64, 1]
  out C: tensor<f32>[1, 1]
  launch {
    a = alloc_shared<f32>[1, 64]
    b = alloc_shared<f32>[64, 1]
    c = alloc_fragment<f32>[1, 1]
    copy A[0, 0] -> a
    copy B[0, 0] -> b
    fill c, 1024
    gemm a, b -> c
    copy c -> C
  }
})");
  p.Set("A", Filled(64, 0x1p-7)).Set("B", Filled(64, 0x1.8p-7));  // each step is rounded up
  TL_ASSERT_OK(p.Run());
  EXPECT_GE(p.Bounds("C")[0], 8 * 1024 * 0x1p-23);
}

TEST(Gemm, ClearFlagStartsAnew) {
  Program p(GemmText("f32", "f32", false, false, "clear"));
  p.Dim("M", 1).Dim("N", 1).Dim("K", 6).Set("A", {1, 1, 1, 1, 1, 1}).Set("B", {1, 1, 1, 1, 1, 1});
  TL_ASSERT_OK(p.Run());
  EXPECT_THAT(p.Exact("C"), ElementsAre(2));  // the last step's two
}

TEST(Gemm, IntAccumulatorsWrap) {
  Program p(GemmText("i8", "i32", false, false, ""));
  const int64_t k = 131072;  // times 2^14 is 2^31
  p.Dim("M", 1).Dim("N", 1).Dim("K", k).Set("A", Filled(k, -128)).Set("B", Filled(k, -128));
  TL_ASSERT_OK(p.Run());
  EXPECT_THAT(p.Exact("C"), ElementsAre(-2147483648.0));
  EXPECT_THAT(p.Rounded("C"), ElementsAre(-2147483648.0));
}

// ---- reductions
// ------------------------------------------------------------------------------------

struct ReduceCase {
  const char* op;
  Doubles dim0, dim1;  // of {{1, -4, 2}, {0, 3, -5}}
};

TEST(Reduce, AllOperationsAlongBothDims) {
  const ReduceCase cases[] = {{"sum", {1, -1, -3}, {-1, -2}},
                              {"max", {1, 3, 2}, {2, 3}},
                              {"min", {0, -4, -5}, {-4, -5}},
                              {"absmax", {1, 4, 5}, {4, 5}},
                              {"prod", {0, -12, -10}, {-8, 0}}};
  for (const ReduceCase& c : cases) {
    for (const char* t : {"f32", "f64", "bf16", "i32"}) {
      Program p(absl::StrCat(R"(tl 1.0
kernel k() {
  in X: tensor<)",
                             t, R"(>[2, 3]
  out A: tensor<)",
                             t, R"(>[3], B: tensor<)", t, R"(>[2]
  launch m in 1 {
    x = alloc_fragment<)",
                             t, R"(>[2, 3]
    a = alloc_fragment<)",
                             t, R"(>[3]
    b = alloc_fragment<)",
                             t, R"(>[2]
    copy X[0, 0] -> x
    fill a, 77
    reduce_)",
                             c.op, R"( x -> a dim=0 clear
    reduce_)",
                             c.op, R"( x -> b dim=-1 clear
    copy a -> A[0]
    copy b -> B[0]
  }
})"));
      p.Set("X", {1, -4, 2, 0, 3, -5});
      TL_ASSERT_OK(p.status());
      TL_ASSERT_OK(p.Run());
      EXPECT_THAT(p.Exact("A"), ElementsAreArray(c.dim0)) << c.op << t;
      EXPECT_THAT(p.Exact("B"), ElementsAreArray(c.dim1)) << c.op << t;
      EXPECT_THAT(p.Rounded("B"), ElementsAreArray(c.dim1)) << c.op << t;
    }
  }
}

TEST(Reduce, FoldsIntoThePresentValueAndRankOne) {
  Program p(R"(tl 1.0
kernel k() {
  in X: tensor<f32>[3], F: tensor<bool>[4]
  out Y: tensor<f32>[3], G: tensor<bool>[3]
  launch m in 1 {
    x = alloc_fragment<f32>[3]
    s, mx, mn = alloc_fragment<f32>[1]
    copy X[0] -> x
    fill s, 10; fill mx, 10; fill mn, -10
    reduce_sum x -> s
    reduce_max x -> mx
    reduce_min x -> mn dim=0
    copy s -> Y[0]; copy mx -> Y[1]; copy mn -> Y[2]
    f = alloc_fragment<bool>[4]
    any, all, was = alloc_fragment<bool>[1]
    copy F[0] -> f
    reduce_any f -> any clear
    reduce_all f -> all clear
    fill was, true
    reduce_any f -> was
    copy any -> G[0]; copy all -> G[1]; copy was -> G[2]
  }
})");
  p.Set("X", {1, 2, 4}).Set("F", {0, 1, 0, 0});
  TL_ASSERT_OK(p.status());
  TL_ASSERT_OK(p.Run());
  EXPECT_THAT(p.Exact("Y"), ElementsAre(17, 10, -10));
  EXPECT_THAT(p.Exact("G"), ElementsAre(1, 0, 1));
}

TEST(Reduce, OddExtentsAndInfinities) {
  for (int n : {1, 96, 160, 229}) {
    Program p(absl::StrCat(R"(tl 1.0
kernel k() {
  in X: tensor<f32>[2, )",
                           n, R"(]
  out Y: tensor<f32>[2], Z: tensor<f32>[2]
  launch m in 1 {
    x = alloc_fragment<f32>[2, )",
                           n, R"(]
    y, z = alloc_fragment<f32>[2]
    copy X[0, 0] -> x
    reduce_sum x -> y dim=1 clear
    reduce_max x -> z dim=1 clear
    copy y -> Y[0]; copy z -> Z[0]
  }
})"));
    Doubles x = Ramp(2 * n);
    double sum = 0, max = -kInf;
    for (int i = 0; i < n; ++i) {
      sum += x[i];
      max = std::max(max, x[i]);
      x[n + i] = -kInf;
    }
    p.Set("X", x);
    TL_ASSERT_OK(p.Run());
    EXPECT_THAT(p.Exact("Y"), ElementsAre(sum, -kInf));
    EXPECT_THAT(p.Exact("Z"), ElementsAre(max, -kInf));
  }
}

TEST(Reduce, NanLosesAgainstNumbersAndSpreadsInSums) {
  Program p(R"(tl 1.0
kernel k() {
  in X: tensor<f32>[3]
  out Y: tensor<f32>[2], I: tensor<i32>[1]
  launch m in 1 {
    x = alloc_fragment<f32>[3]
    s, mx = alloc_fragment<f32>[1]
    i = alloc_fragment<i32>[1]
    copy X[0] -> x
    reduce_sum x -> s clear
    reduce_max x -> mx clear
    argmax x -> i
    copy s -> Y[0]; copy mx -> Y[1]; copy i -> I[0]
  }
})");
  p.Set("X", {kNan, 1, 2});
  TL_ASSERT_OK(p.Run());
  EXPECT_TRUE(std::isnan(p.Exact("Y")[0]));
  EXPECT_EQ(p.Exact("Y")[1], 2);
  EXPECT_THAT(p.Exact("I"), ElementsAre(2));
}

TEST(ArgMax, FirstOfEqualsAlongEachDim) {
  Program p(R"(tl 1.0
kernel k() {
  in X: tensor<f32>[2, 3]
  out A: tensor<i32>[3], B: tensor<i64>[2]
  launch m in 1 {
    x = alloc_fragment<f32>[2, 3]
    a = alloc_fragment<i32>[3]
    b = alloc_fragment<i64>[2]
    copy X[0, 0] -> x
    argmax x -> a dim=0
    argmax x -> b dim=1
    copy a -> A[0]; copy b -> B[0]
  }
})");
  p.Set("X", {1, 5, 5, 2, 5, 7});
  TL_ASSERT_OK(p.Run());
  EXPECT_THAT(p.Exact("A"), ElementsAre(1, 0, 1));
  EXPECT_THAT(p.Exact("B"), ElementsAre(1, 2));
}

TEST(CumSum, ForwardReverseInPlaceAndInts) {
  Program p(R"(tl 1.0
kernel k() {
  in X: tensor<f32>[2, 3], N: tensor<i32>[4]
  out A: tensor<f32>[2, 3], B: tensor<f32>[2, 3], C: tensor<i32>[4]
  launch m in 1 {
    x, y = alloc_fragment<f32>[2, 3]
    n = alloc_fragment<i32>[4]
    copy X[0, 0] -> x
    cumsum x -> y dim=0
    copy y -> A[0, 0]
    cumsum x -> x dim=1 reverse
    copy x -> B[0, 0]
    copy N[0] -> n
    cumsum n -> n dim=0
    copy n -> C[0]
  }
})");
  p.Set("X", {1, 2, 3, 4, 5, 6}).Set("N", {1, -2, 3, 4});
  TL_ASSERT_OK(p.Run());
  EXPECT_THAT(p.Exact("A"), ElementsAre(1, 2, 3, 5, 7, 9));
  EXPECT_THAT(p.Exact("B"), ElementsAre(6, 5, 3, 15, 11, 6));
  EXPECT_THAT(p.Exact("C"), ElementsAre(1, -1, 2, 6));
}

TEST(Reducer, AccumulatesScalesAndFinishes) {
  Program p(R"(tl 1.0
kernel k(n: dim) {
  in X: tensor<f32>[n, 2, 4]
  out S: tensor<f32>[2], M: tensor<f32>[2], L: tensor<f32>[2]
  launch b in 1 {
    x = alloc_fragment<f32>[2, 4]
    s = alloc_reducer<f32, sum>[2]
    mx = alloc_reducer<f32, max>[2]
    mn = alloc_reducer<f32, min>[2]
    for i in n {
      copy X[i, 0, 0] -> x
      parallel r in 2 { s[r] *= 2 }
      reduce_sum x -> s dim=1
      reduce_max x -> mx dim=1
      reduce_min x -> mn dim=1
    }
    finish s; finish mx; finish mn
    copy s -> S[0]; copy mx -> M[0]; copy mn -> L[0]
  }
})");
  TL_ASSERT_OK(p.status());
  p.Dim("n", 2).Set("X", {1, 2, 3, 4, 5, 6, 7, 8, -1, 0, 0, 0, 9, 0, 0, 0});
  TL_ASSERT_OK(p.Run());
  EXPECT_THAT(p.Exact("S"), ElementsAre(10 * 2 - 1, 26 * 2 + 9));
  EXPECT_THAT(p.Exact("M"), ElementsAre(4, 9));
  EXPECT_THAT(p.Exact("L"), ElementsAre(-1, 0));
  p.Dim("n", 0).Set("X", {});
  TL_ASSERT_OK(p.Run());
  EXPECT_THAT(p.Exact("S"), ElementsAre(0, 0));
  EXPECT_THAT(p.Exact("M"), ElementsAre(-kInf, -kInf));
  EXPECT_THAT(p.Exact("L"), ElementsAre(kInf, kInf));
}

// ---- launches, atomics, workspace ---------------------------------------------------------------

TEST(Atomics, TilesAndElementsFromManyBlocks) {
  Program p(R"(tl 1.0
kernel k(M: dim) {
  in X: tensor<f32>[M, 4], B: tensor<i32>[M]
  inout S: tensor<f32>[3], H: tensor<i32>[3], T: tensor<f32>[1]
  launch m in M {
    x = alloc_fragment<f32>[4]
    copy X[m, 0] -> x
    atomic_add x -> S[0]
    parallel i in 1 {
      atomic_add 1 -> H[B[m]]
      atomic_max x[0] -> T[0]
    }
  }
})");
  TL_ASSERT_OK(p.status());
  p.Dim("M", 3).Set("X", {1, 2, 3, 4, 5, 6, 7, 8, 0, 1, 0, 1}).Set("B", {2, 0, 2});
  p.Set("S", {100, 0, 0}).Set("H", {0, 0, 10}).Set("T", {-1});
  TL_ASSERT_OK(p.Run(4));
  EXPECT_THAT(p.Exact("S"), ElementsAre(106, 9, 10));
  EXPECT_THAT(p.Exact("H"), ElementsAre(1, -999, 12));
  EXPECT_THAT(p.Exact("T"), ElementsAre(5));
}

TEST(Launches, PassValuesThroughWorkspace) {
  Program p(R"(tl 1.0
kernel k(M: dim) {
  in X: tensor<bf16>[M]
  out Y: tensor<f32>[1]
  workspace W: tensor<f32>[M]
  launch m in M {
    x = alloc_fragment<f32>[1]
    copy X[m] -> x
    parallel i in 1 { x[i] = x[i] * x[i] }
    copy x -> W[m]
  }
  launch m in 1 {
    s = alloc_var<f32>(0)
    for i in M { s += W[i] }
    y = alloc_fragment<f32>[1]
    fill y, s
    copy y -> Y[0]
  }
})");
  TL_ASSERT_OK(p.status());
  p.Dim("M", 3).Set("X", {1, 2, 3});
  TL_ASSERT_OK(p.Run(2));
  EXPECT_THAT(p.Exact("Y"), ElementsAre(14));
  EXPECT_GT(p.Bounds("Y")[0], 0);
  p.Dim("M", 0).Set("X", {});
  TL_ASSERT_OK(p.Run(2));
  EXPECT_THAT(p.Exact("Y"), ElementsAre(0));
}

TEST(Launches, EmptyGridsWriteNothing) {
  Program p(R"(tl 1.0
kernel k(M: dim, N: dim) {
  in X: tensor<f32>[M, N]
  out Y: tensor<f32>[M, N]
  launch m in ceildiv(M, 4), n in ceildiv(N, 4) {
    x = alloc_shared<f32>[4, 4]
    copy X[m*4, n*4] -> x
    copy x -> Y[m*4, n*4]
  }
})");
  p.Dim("M", 0).Dim("N", 5).Set("X", {});
  TL_ASSERT_OK(p.Run());
  EXPECT_EQ(p.outputs().blocks, 0);
}

}  // namespace
}  // namespace tl::reference
