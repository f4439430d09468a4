// Every way in which a program can fail while it runs: the message and the statement it points at.
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "tests/unit/reference_testing.h"

namespace tl::reference {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct ErrorCase {
  const char* name;
  const char* body;  // lines from 7 on
  int line;
  const char* message;
  bool exact_only;  // in kRounded the fault is not looked for
};

class Errors : public ::testing::TestWithParam<ErrorCase> {};

TEST_P(Errors, NameTheFaultAndThePlace) {
  const ErrorCase& c = GetParam();
  Program p(absl::StrCat(R"(tl 1.0
kernel k(M: dim, N: dim) {
  in X: tensor<f32>[M, 4], I: tensor<i32>[2]
  out Y: tensor<f32>[M, 4], Z: tensor<i32>[4]
  workspace W: tensor<f32>[4]
  launch m in 1 {
)",
                         c.body, "\n  }\n}\n"));
  TL_ASSERT_OK(p.status());
  p.Dim("M", 5).Dim("N", 0).Set("X", Ramp(20)).Set("I", {7, -1});
  EXPECT_THAT(p.Run(1, false), FailsAt(c.line, c.message));
  if (!c.exact_only) {
    EXPECT_THAT(RunRounded(p.module(), p.arguments()), FailsAt(c.line, c.message));
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, Errors,
    ::testing::ValuesIn<ErrorCase>({
        {"ReadOutsideTensor", "x = alloc_fragment<f32>[4]\nparallel i in 4 { x[i] = X[i + 2, 1] }",
         8, "read of X[5, 1], outside its shape [5, 4]", false},
        {"ReadAtIndexFromMemory",
         "x = alloc_fragment<f32>[4]\nparallel i in 4 { x[i] = X[I[1], i] }", 8,
         "read of X[-1, 0], outside its shape [5, 4]", false},
        {"WriteOutsideTensor", "parallel i in 8 {\n Y[0, i] = 1\n}", 8,
         "write of Y[0, 4], outside its shape [5, 4]", false},
        {"ReadOutsideTile",
         "x = alloc_shared<f32>[4]\nfill x, 0\nparallel i in 4 { x[i] = x[i + 1] }", 9,
         "read of x[4], outside its shape [4]", false},
        {"WriteOutsideTile", "x = alloc_shared<f32>[4]\nparallel i in 4 { x[i - 1] = 0 }", 8,
         "write of x[-1], outside its shape [4]", false},
        {"WindowOutsideTile",
         "x = alloc_shared<f32>[4]\nfill x, 0\nk = I[0]\ny = view x[k][2]\nfill y, 1", 11,
         "window of x covers 7 to 8 in dim 0, outside its shape [4]", false},
        {"UniformReadOutside", "v = I[2]\nparallel i in 1 { Z[v] = 1 }", 7,
         "read of I[2], outside its shape [2]", false},
        {"DivisionByZero", "parallel i in 4 { Z[i] = i / N }", 7, "integer division by zero",
         false},
        {"RemainderByZero", "parallel i in 4 { Z[i] = i % N }", 7, "integer division by zero",
         false},
        {"AtomicOutside", "parallel i in 1 { atomic_add 1 -> Z[i + 4] }", 7,
         "atomic update of Z[4], outside its shape [4]", false},
        {"UndefinedToOutput", "x = alloc_shared<f32>[4, 4]\ncopy x -> Y[0, 0]", 8,
         "copies to 'Y' elements of 'x' that nothing has written", true},
        {"UndefinedElementToOutput",
         "x = alloc_fragment<f32>[4]\nparallel i in 4 {\n Y[0, i] = x[i] + 1\n}", 9,
         "writes to 'Y' a value that depends on an element of 'x' that nothing has written", true},
        {"UndefinedThroughGemm",
         "a, b = alloc_shared<f32>[4, 4]\nc = alloc_fragment<f32>[4, 4]\nfill a, 1\n"
         "gemm a, b -> c clear\ncopy c -> Y[0, 0]",
         11, "elements of 'c'", true},
        {"UndefinedAccumulator",
         "a, b = alloc_shared<f32>[4, 4]\nc = alloc_fragment<f32>[4, 4]\nfill a, 1\nfill b, 1\n"
         "gemm a, b -> c\ncopy c -> Y[0, 0]",
         12, "elements of 'c'", true},
        {"UndefinedThroughReduce",
         "a = alloc_fragment<f32>[4, 4]\nc = alloc_fragment<f32>[4]\nparallel i in 4 { a[i, 0] = 1 "
         "}\n"
         "reduce_sum a -> c dim=1 clear\ncopy c -> Y[0, 0:]",
         11, "elements of 'c'", true},
        {"UndefinedCondition",
         "x = alloc_fragment<f32>[4]\nparallel i in 4 {\n if x[i] > 0 { x[i] = 1 }\n}", 9,
         "the condition depends on an element of 'x' that nothing has written", true},
        {"UndefinedIndex", "x = alloc_fragment<i32>[4]\nparallel i in 4 {\n Z[x[i]] = 1\n}", 9,
         "an index depends on an element of 'x'", true},
        {"UndefinedWorkspace", "v = alloc_var<f32>(W[0])\nparallel i in 1 { Y[0, 0] = v }", 8,
         "depends on an element of 'W' that nothing has written", true},
        {"AllocPoisonsAgain",
         "for i in 2 {\n x = alloc_fragment<f32>[4]\n if i == 0 { fill x, 1 }\n copy x -> Y[0, "
         "0:]\n}",
         10, "elements of 'x'", true},
        {"AtomicOnUnwritten", "parallel i in 1 { atomic_add 1 -> Z[0] }", 7,
         "atomic update of an element of 'Z' that nothing has written", true},
        {"RaceOverwrite", "x = alloc_fragment<f32>[4]\nparallel i, j in [4, 2] { x[i] = j }", 8,
         "one overwrites an element of 'x' that another one has stored", true},
        {"RaceAccumulate",
         "x = alloc_fragment<f32>[4]\nfill x, 0\nparallel i, j in [4, 2] { x[i] += 1 }", 9,
         "iterations of 'parallel' depend on each other", true},
        {"RaceRead",
         "x = alloc_shared<f32>[4]\nfill x, 0\nparallel i in 4 { x[i] = if i > 0 then x[i - 1] + 1 "
         "else 1 }",
         9, "one reads an element of 'x' that another one has stored", true},
    }),
    [](const ::testing::TestParamInfo<ErrorCase>& info) { return std::string(info.param.name); });

TEST(NoError, SameValueStoredByManyIterations) {
  Program p(R"(tl 1.0
kernel k() {
  out Y: tensor<f32>[4]
  launch m in 1 {
    x = alloc_fragment<f32>[4]
    parallel i, j in [4, 3] { x[i] = i }
    copy x -> Y[0]
  }
})");
  TL_ASSERT_OK(p.Run());
  EXPECT_THAT(p.Exact("Y"), ElementsAre(0, 1, 2, 3));
}

TEST(NoError, UndefinedThatIsDroppedOutside) {
  Program p(R"(tl 1.0
kernel k() {
  out Y: tensor<f32>[2]
  launch m in 1 {
    x = alloc_fragment<f32>[4]
    parallel i in 2 { x[i] = i }
    copy x -> Y[0]
    copy x -> Y[0] rows=1
  }
})");
  TL_ASSERT_OK(p.Run());
  EXPECT_THAT(p.Exact("Y"), ElementsAre(0, 1));
}

TEST(NoError, GuardedAccessesAreNoAccesses) {
  Program p(R"(tl 1.0
kernel k(M: dim) {
  in X: tensor<f32>[M]
  out Y: tensor<f32>[4], Z: tensor<f32>[4]
  launch m in 1 {
    parallel i in 4 {
      Y[i] = if i < M then X[i] else -1
      if i < M and X[i] > 1 { Z[i] = X[i] } else { Z[i] = 0 }
    }
  }
})");
  p.Dim("M", 2).Set("X", {1, 2});
  TL_ASSERT_OK(p.Run());
  EXPECT_THAT(p.Exact("Y"), ElementsAre(1, 2, -1, -1));
  EXPECT_THAT(p.Exact("Z"), ElementsAre(0, 2, 0, 0));
}

TEST(Arguments, AreCheckedByName) {
  Program p(R"(tl 1.0
kernel k(M: dim, N: dim) {
  in X: tensor<f32>[M, N] strides[?, 1]
  out Y: tensor<f32>[M - 2]
  launch m in 1 { x = alloc_shared<f32>[1] }
})");
  TL_ASSERT_OK(p.status());
  float memory[4] = {};
  Arguments a;
  a.operands = {memory, memory};
  a.dims = {2, 2};
  a.strides = {2};
  EXPECT_TRUE(RunExact(p.module(), a).ok());
  const auto message = [&](const Arguments& args) {
    const Status s = RunExact(p.module(), args).status();
    EXPECT_EQ(s.code(), absl::StatusCode::kInvalidArgument);
    return std::string(s.message());
  };
  Arguments bad = a;
  bad.dims = {-3, 2};
  EXPECT_THAT(message(bad), HasSubstr("dim 'M' is negative (-3)"));
  bad.dims = {1, 2};
  EXPECT_THAT(message(bad), HasSubstr("tensor 'Y': extent 0 is negative (-1)"));
  bad.dims = {2};
  EXPECT_THAT(message(bad), HasSubstr("1 dims given, 2 expected"));
  bad = a;
  bad.strides = {-2};
  EXPECT_THAT(message(bad), HasSubstr("tensor 'X': stride 0 is negative (-2)"));
  bad.strides = {int64_t{1} << 62};
  bad.dims = {9, 2};
  EXPECT_THAT(message(bad), HasSubstr("overflow"));
  bad = a;
  bad.operands[0] = nullptr;
  EXPECT_THAT(message(bad), HasSubstr("operand 'X' is null"));
  bad.operands.pop_back();
  EXPECT_THAT(message(bad), HasSubstr("1 operands given, 2 expected"));
}

TEST(Arguments, HugeGridsAreRefused) {
  Program p(R"(tl 1.0
kernel k(M: dim) {
  out Y: tensor<f32>[1]
  launch a in M, b in M, c in M { x = alloc_shared<f32>[1] }
})");
  p.Dim("M", int64_t{1} << 31);
  EXPECT_THAT(p.Run(1, false), FailsAt(4, "more than 2^48 blocks"));
}

// ---- uncertain decisions
// -------------------------------------------------------------------------

// A float comparison within the operands' error may come out either way elsewhere.
TEST(Bounds, CoverBothSidesOfACloseComparison) {
  Program p(R"(tl 1.0
kernel k() {
  in X: tensor<f32>[2]
  out Y: tensor<f32>[4]
  launch m in 1 {
    y = alloc_fragment<f32>[4]
    parallel r in 1 {
      d = X[0] * X[0] - X[1]
      y[0] = if d > 0 then 5 else 3
      y[1] = 7
      if d > 0 { y[1] = 8 }
      y[2] = if d > 1 then 5 else 3
      y[3] = max(d, 0)
    }
    copy y -> Y[0]
  }
})");
  const double x = static_cast<float>(1.1f);
  p.Set("X", {x, static_cast<float>(x * x)});
  TL_ASSERT_OK(p.Run());
  EXPECT_GE(p.Bounds("Y")[0], 2);
  EXPECT_GE(p.Bounds("Y")[1], 1);
  EXPECT_EQ(p.Bounds("Y")[2], 0);
  EXPECT_LT(p.Bounds("Y")[3], 1e-6);
}

TEST(Bounds, IntsFromFloatsCoverTheNeighbours) {
  Program p(R"(tl 1.0
kernel k() {
  in X: tensor<f32>[4]
  out Y: tensor<i32>[3]
  launch m in 1 {
    y = alloc_fragment<i32>[3]
    x = alloc_fragment<f32>[3]
    parallel r in 1 {
      y[0] = i32(X[0] * X[1])
      y[1] = i32(X[0] * X[1] + 0.5)
      x[0] = X[0] * X[1]
      x[1] = 0
      x[2] = X[2]
    }
    v = view y[2][1]
    argmax x -> v
    copy y -> Y[0]
  }
})");
  const double third = static_cast<float>(1.0f / 3);
  p.Set("X", {3, third, static_cast<float>(third * 3), 0});
  TL_ASSERT_OK(p.Run());
  EXPECT_EQ(p.Bounds("Y")[0], 1);
  EXPECT_EQ(p.Bounds("Y")[1], 0);
  EXPECT_EQ(p.Bounds("Y")[2], 2);
}

TEST(Bounds, OverflowInANarrowTypeIsUnknownOrInfinite) {
  Program p(R"(tl 1.0
kernel k() {
  in X: tensor<f32>[3]
  out Y: tensor<f16>[3], Z: tensor<e4m3>[3]
  launch m in 1 {
    x = alloc_fragment<f32>[3]
    copy X[0] -> x
    copy x -> Y[0]
    copy x -> Z[0]
  }
})");
  p.Set("X", {1e6, 65520, 3});
  TL_ASSERT_OK(p.Run());
  EXPECT_EQ(p.Exact("Y")[0], std::numeric_limits<double>::infinity());
  EXPECT_EQ(p.Exact("Z")[0], 448);
  EXPECT_THAT(p.Rounded("Z"), ElementsAre(448, 448, 3));
}

// What is infinite for certain stays so, whatever the other operand's error, and is forgotten where
// it becomes a zero again: the masked scores of attention.
TEST(Bounds, CertainInfinitiesHaveNoError) {
  Program p(R"(tl 1.0
kernel k() {
  in X: tensor<f32>[2]
  out Y: tensor<f32>[8]
  launch m in 1 {
    y = alloc_fragment<f32>[8]
    parallel r in 1 {
      s = X[0] * 1.1
      z = X[1] * 1.1 - X[1] * 1.1
      y[0] = -inf * s
      y[1] = s * inf
      y[2] = inf / s
      y[3] = s / inf
      y[4] = exp2(-inf * s - s)
      y[5] = exp2(-inf * s - s) + s
      y[6] = inf * z
      y[7] = inf / z
    }
    copy y -> Y[0]
  }
})");
  p.Set("X", {3, 0.7});
  TL_ASSERT_OK(p.Run());
  for (int i = 0; i < 5; ++i) EXPECT_EQ(p.Bounds("Y")[i], 0) << i;
  EXPECT_GT(p.Bounds("Y")[5], 0);
  EXPECT_LT(p.Bounds("Y")[5], 1e-5);
  // Of what may be zero nothing is certain.
  for (int i = 6; i < 8; ++i) EXPECT_TRUE(std::isinf(p.Bounds("Y")[i])) << i;
}

// Scale times x overflows f16, not f32, in which it is computed.
TEST(Bounds, IntermediateValuesAreF32) {
  Program p(R"(tl 1.0
kernel k() {
  in X: tensor<f16>[4]
  out Y: tensor<f16>[1]
  launch m in 1 {
    x = alloc_fragment<f32>[4]
    y = alloc_fragment<f32>[1]
    copy X[0] -> x
    parallel i in 4 { x[i] = x[i] * 1000 }
    reduce_sum x -> y clear
    parallel i in 1 { y[i] = y[i] / 10000 }
    copy y -> Y[0]
  }
})");
  p.Set("X", {1000, 2000, 3000, 4000});
  TL_ASSERT_OK(p.Run());
  EXPECT_THAT(p.Rounded("Y"), ElementsAre(1000));
}

}  // namespace
}  // namespace tl::reference
