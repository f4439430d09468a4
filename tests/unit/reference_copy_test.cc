// Copies: padding, windows, rows, transposes, strides, conversions.
#include "absl/strings/str_cat.h"
#include "tests/unit/reference_testing.h"

namespace tl::reference {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

TEST(Copy, PadsReadsAndClipsWrites) {
  Program p(R"(tl 1.0
kernel k(M: dim, N: dim) {
  in X: tensor<f32>[M, N]
  out Y: tensor<f32>[M, N], Z: tensor<f32>[8, 8]
  launch m in ceildiv(M, 4), n in ceildiv(N, 4) {
    x = alloc_shared<f32>[4, 4]
    copy X[m*4, n*4] -> x
    copy x -> Y[m*4, n*4]
    copy x -> Z[m*4, n*4]
  }
})");
  p.Dim("M", 5).Dim("N", 6).Set("X", Ramp(30));
  TL_ASSERT_OK(p.Run());
  EXPECT_THAT(p.Exact("Y"), ElementsAreArray(Ramp(30)));
  EXPECT_THAT(p.Rounded("Y"), ElementsAreArray(Ramp(30)));
  EXPECT_THAT(p.Bounds("Y"), Each(0.0));
  Doubles z(64, 0.0);
  for (int i = 0; i < 5; ++i) {
    for (int j = 0; j < 6; ++j) z[i * 8 + j] = Ramp(30)[i * 6 + j];
  }
  EXPECT_THAT(p.Exact("Z"), ElementsAreArray(z));
}

TEST(Copy, NegativeOffsetsAndOtherDimsOutside) {
  Program p(R"(tl 1.0
kernel k(M: dim) {
  in X: tensor<f32>[2, M]
  out Y: tensor<f32>[3, 4]
  launch m in 1 {
    x = alloc_shared<f32>[4]
    copy X[1, -2:] -> x
    copy x -> Y[0, 0:]
    copy X[2, 0:] -> x
    copy x -> Y[1, 0]
    copy X[-1, 0:] -> x
    copy x -> Y[2, 0]
    copy x -> Y[3, 0]
  }
})");
  p.Dim("M", 3).Set("X", {1, 2, 3, 4, 5, 6});
  TL_ASSERT_OK(p.Run());
  EXPECT_THAT(p.Exact("Y"), ElementsAre(0, 0, 4, 5, 0, 0, 0, 0, 0, 0, 0, 0));
}

TEST(Copy, RowsLimitsTheTensorSide) {
  Program p(R"(tl 1.0
kernel k() {
  in X: tensor<f32>[4, 2]
  inout Y: tensor<f32>[4, 2]
  out V: tensor<f32>[4], T: tensor<f32>[2, 4]
  launch m in 1 {
    x = alloc_shared<f32>[4, 2]
    t = alloc_shared<f32>[2, 4]
    copy X[0, 0] -> x rows=3
    copy x -> Y[0, 0] rows=2
    v = alloc_shared<f32>[4]
    copy X[0:, 1] -> v rows=1
    copy v -> V[0]
    copy X[0, 0] -> t rows=2 transpose
    copy t -> T[0, 0]
    copy X[0, 0] -> x rows=-5
    copy x -> Y[3, 0]
  }
})");
  p.Set("X", {1, 2, 3, 4, 5, 6, 7, 8}).Set("Y", Filled(8, 9));
  TL_ASSERT_OK(p.Run());
  EXPECT_THAT(p.Exact("Y"), ElementsAre(1, 2, 3, 4, -999, -999, 0, 0));
  EXPECT_THAT(p.Rounded("Y"), ElementsAre(1, 2, 3, 4, 9, 9, 0, 0));
  EXPECT_THAT(p.Exact("V"), ElementsAre(2, 0, 0, 0));
  EXPECT_THAT(p.Exact("T"), ElementsAre(1, 3, 0, 0, 2, 4, 0, 0));
}

TEST(Copy, TransposeInOutAndBetweenTiles) {
  Program p(R"(tl 1.0
kernel k() {
  in X: tensor<f32>[2, 3]
  out A: tensor<f32>[3, 2], B: tensor<f32>[3, 2], C: tensor<f32>[3, 2]
  launch m in 1 {
    x = alloc_shared<f32>[2, 3]
    t = alloc_shared<f32>[3, 2]
    copy X[0, 0] -> t transpose
    copy t -> A[0, 0]
    copy X[0, 0] -> x
    copy x -> B[0, 0] transpose
    copy x -> t transpose
    copy t -> C[0, 0]
  }
})");
  p.Set("X", {1, 2, 3, 4, 5, 6});
  TL_ASSERT_OK(p.Run());
  for (const char* name : {"A", "B", "C"}) {
    EXPECT_THAT(p.Exact(name), ElementsAre(1, 4, 2, 5, 3, 6)) << name;
    EXPECT_THAT(p.Rounded(name), ElementsAre(1, 4, 2, 5, 3, 6)) << name;
  }
}

TEST(Copy, StridesMarkedDimsAndPrepacked) {
  Program p(R"(tl 1.0
kernel k(M: dim) {
  in X: tensor<f32>[2, M, 3] strides[?, ?, 1]
  out Y: tensor<f32>[2, M, 3] prepacked[2, 2]
  launch b in 2 {
    x = alloc_shared<f32>[4, 3]
    copy X[b, 0:, 0:] -> x
    copy x -> Y[b, 0:, 0:]
  }
})");
  // 2 matrices of 3x3, rows 4 apart, matrices 20 apart; packed: 2x2 tiles of 2x2 per matrix.
  p.Dim("M", 3).Stride(0, 20).Stride(1, 4).Set("X", Ramp(31));
  TL_ASSERT_OK(p.Run());
  Doubles y(32, -999);
  for (int b = 0; b < 2; ++b) {
    for (int i = 0; i < 3; ++i) {
      for (int j = 0; j < 3; ++j) {
        y[b * 16 + (i / 2 * 2 + j / 2) * 4 + i % 2 * 2 + j % 2] = Ramp(31)[b * 20 + i * 4 + j];
      }
    }
  }
  EXPECT_THAT(p.Exact("Y"), ElementsAreArray(y));
}

TEST(Copy, WindowsOfOneTileMayOverlap) {
  Program p(R"(tl 1.0
kernel k() {
  in X: tensor<f32>[6]
  out Y: tensor<f32>[6]
  launch m in 1 {
    x = alloc_shared<f32>[6]
    a = view x[0][4]
    b = view x[2][4]
    copy X[0] -> x
    copy a -> b
    copy x -> Y[0]
  }
})");
  p.Set("X", {1, 2, 3, 4, 5, 6});
  TL_ASSERT_OK(p.Run());
  EXPECT_THAT(p.Exact("Y"), ElementsAre(1, 2, 1, 2, 3, 4));
}

// Every pair of types: values as the conversion rules say.
TEST(Copy, ConvertsBetweenAllTypes) {
  const char* types[] = {"bool", "i8",   "u8",   "i16", "u16",  "i32", "u32",
                         "i64",  "e4m3", "e5m2", "f16", "bf16", "f32", "f64"};
  const Doubles values = {0, 1, -1, 2.5, -3.75, 100, 300, -40000, 70000};
  for (const char* from : types) {
    for (const char* to : types) {
      if ((std::string(from) == "bool") != (std::string(to) == "bool")) continue;
      Program p(absl::StrCat(R"(tl 1.0
kernel k() {
  in X: tensor<)",
                             from, R"(>[9]
  out Y: tensor<)",
                             to, R"(>[9]
  launch m in 1 {
    x = alloc_shared<)",
                             to, R"(>[9]
    copy X[0] -> x
    copy x -> Y[0]
  }
})"));
      p.Set("X", values);
      TL_ASSERT_OK(p.Run());
      const DType f = *ParseDType(from), t = *ParseDType(to);
      for (size_t i = 0; i < values.size(); ++i) {
        uint8_t bytes[8];
        StoreElement(f, bytes, values[i]);
        const double v = LoadElement(f, bytes);
        double want = RoundTo(t, v);
        if (!IsFloat(f) && !IsFloat(t)) {
          want =
              t == DType::kBool ? v != 0 : static_cast<double>(WrapTo(t, static_cast<int64_t>(v)));
        }
        if (t == DType::kBool) want = v != 0;
        EXPECT_EQ(p.Rounded("Y")[i], want) << from << " to " << to << ": " << v;
      }
    }
  }
}

}  // namespace
}  // namespace tl::reference
