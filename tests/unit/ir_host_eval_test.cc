#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "ir/host_eval.h"

namespace tl {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

struct Fixture {
  Module m;
  ExprRef M, N, S, a, b, f;

  Fixture() {
    M = Var("M", VarRole::kDim, ScalarType::kInt, &m.dims);
    N = Var("N", VarRole::kDim, ScalarType::kInt, &m.dims);
    S = Var("S", VarRole::kStride, ScalarType::kInt, &m.strides);
    a = Var("a", VarRole::kScalar, ScalarType::kInt, &m.scalars);
    b = Var("b", VarRole::kScalar, ScalarType::kBool, &m.scalars);
    f = Var("f", VarRole::kScalar, ScalarType::kF32, &m.scalars);
  }
  ExprRef Var(const char* name, VarRole role, ScalarType type, std::vector<VarId>* list) {
    const VarId id = m.AddVar(name, type, role);
    list->push_back(id);
    return MakeVar(id, type);
  }
  StatusOr<int64_t> Eval(const ExprRef& e, std::vector<int64_t> dims, int64_t s = 0, int64_t av = 0,
                         bool bv = false) {
    const std::vector<int64_t> strides{s};
    const std::vector<ScalarValue> scalars{ScalarValue(av), ScalarValue(int64_t{bv}),
                                           ScalarValue(0.5)};
    TL_ASSIGN_OR_RETURN(const HostExpr compiled, HostExpr::Compile(m, e));
    TL_ASSIGN_OR_RETURN(const HostExpr read, HostExpr::Parse(compiled.Serialize()));
    EXPECT_EQ(compiled, read);
    return read.Eval({dims, strides, scalars});
  }
};

ExprRef Op(BinaryOp op, ExprRef x, ExprRef y) { return MakeBinary(op, std::move(x), std::move(y)); }

TEST(HostExpr, EvaluatesEveryOperatorLikeEvalInt) {
  Fixture t;
  const int64_t samples[] = {-7, -2, -1, 0, 1, 2, 3, 5, 17};
  for (int op = 0; op <= static_cast<int>(BinaryOp::kNe); ++op) {
    const BinaryOp o = static_cast<BinaryOp>(op);
    if (o == BinaryOp::kAnd || o == BinaryOp::kOr) continue;
    for (int64_t x : samples) {
      for (int64_t y : samples) {
        const bool divides = o == BinaryOp::kDiv || o == BinaryOp::kMod || o == BinaryOp::kCeilDiv;
        if ((divides && y == 0) || (o == BinaryOp::kShl && y < 0)) continue;
        const StatusOr<int64_t> got = t.Eval(Op(o, t.M, t.N), {x, y});
        ASSERT_TRUE(got.ok()) << got.status();
        EXPECT_EQ(*got, EvalInt(o, x, y)) << x << " " << Symbol(o) << " " << y;
      }
    }
  }
}

TEST(HostExpr, ReportsOverflowAndDivisionByZero) {
  Fixture t;
  const int64_t min = std::numeric_limits<int64_t>::min();
  EXPECT_FALSE(t.Eval(Op(BinaryOp::kMul, t.M, t.N), {int64_t{1} << 32, int64_t{1} << 31}).ok());
  EXPECT_FALSE(t.Eval(Op(BinaryOp::kAdd, t.M, t.N), {kMax, 1}).ok());
  EXPECT_FALSE(t.Eval(Op(BinaryOp::kSub, t.M, t.N), {min, 1}).ok());
  EXPECT_FALSE(t.Eval(MakeUnary(UnaryOp::kNeg, t.M), {min, 0}).ok());
  EXPECT_FALSE(t.Eval(Op(BinaryOp::kShl, t.M, t.N), {1, 63}).ok());
  for (BinaryOp op : {BinaryOp::kDiv, BinaryOp::kMod, BinaryOp::kCeilDiv}) {
    EXPECT_FALSE(t.Eval(Op(op, t.M, t.N), {5, 0}).ok());
    EXPECT_FALSE(t.Eval(Op(op, t.M, t.N), {min, -1}).ok());
  }
}

TEST(HostExpr, EvaluatesOnlyTheChosenSide) {
  Fixture t;
  const ExprRef quotient = Op(BinaryOp::kDiv, MakeInt(10), t.N);
  const ExprRef nonzero = Op(BinaryOp::kNe, t.N, MakeInt(0));
  EXPECT_EQ(*t.Eval(MakeSelect(nonzero, quotient, MakeInt(-1)), {0, 0}), -1);
  EXPECT_EQ(*t.Eval(MakeSelect(nonzero, quotient, MakeInt(-1)), {0, 5}), 2);
  const ExprRef guarded = Op(BinaryOp::kAnd, nonzero, Op(BinaryOp::kGt, quotient, MakeInt(3)));
  EXPECT_EQ(*t.Eval(guarded, {0, 0}), 0);
  EXPECT_EQ(*t.Eval(guarded, {0, 2}), 1);
  const ExprRef either = Op(BinaryOp::kOr, MakeUnary(UnaryOp::kNot, nonzero), t.b);
  EXPECT_EQ(*t.Eval(either, {0, 0}), 1);
  EXPECT_EQ(*t.Eval(either, {0, 1}, 0, 0, true), 1);
  EXPECT_EQ(*t.Eval(either, {0, 1}), 0);
}

TEST(HostExpr, StridesScalarsCastsAndAbs) {
  Fixture t;
  EXPECT_EQ(*t.Eval(Op(BinaryOp::kAdd, t.S, t.a), {0, 0}, 40, 2), 42);
  EXPECT_EQ(*t.Eval(MakeCast(DType::kI8, t.M), {200, 0}), -56);
  EXPECT_EQ(*t.Eval(MakeCall(MathFn::kAbs, {t.M}), {-9, 0}), 9);
}

TEST(HostExpr, RefusesWhatIsNotKnownAtLaunch) {
  Fixture t;
  const VarId loop = t.m.AddVar("i", ScalarType::kInt, VarRole::kLoop);
  const auto fails = [&](const ExprRef& e) {
    return HostExpr::Compile(t.m, e).status().code() == absl::StatusCode::kInvalidArgument;
  };
  EXPECT_TRUE(fails(MakeVar(loop, ScalarType::kInt)));
  EXPECT_TRUE(fails(t.f));
  EXPECT_TRUE(fails(MakeCast(DType::kI64, t.f)));
  EXPECT_TRUE(fails(Op(BinaryOp::kLt, t.f, t.f)));
  EXPECT_TRUE(fails(MakeLoad(0, DType::kI32, {MakeInt(0)})));
}

TEST(HostExpr, MissingArgumentsAreAnError) {
  Fixture t;
  const HostExpr e = *HostExpr::Compile(t.m, Op(BinaryOp::kAdd, t.M, t.N));
  const std::vector<int64_t> one{1};
  EXPECT_FALSE(e.Eval({one, {}, {}}).ok());
  EXPECT_FALSE(e.is_constant());
  EXPECT_TRUE(HostExpr().is_constant());
  EXPECT_EQ(*HostExpr().Eval({}), 0);
}

TEST(HostExpr, DeepExpressionsAreRefusedNotCrashed) {
  Fixture t;
  ExprRef deep = t.M;
  for (int i = 0; i < 400; ++i) deep = Op(BinaryOp::kSub, t.N, deep);
  EXPECT_EQ(HostExpr::Compile(t.m, deep).status().code(), absl::StatusCode::kResourceExhausted);
}

// Bytes from a cache may be anything.
TEST(HostExpr, ParsesRandomBytesSafely) {
  Fixture t;
  std::mt19937 random(7);
  const std::string good =
      HostExpr::Compile(t.m, MakeSelect(Op(BinaryOp::kLt, t.M, t.N), t.a, t.S))->Serialize();
  int accepted = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string bytes = good;
    const int changes = 1 + static_cast<int>(random() % 3);
    for (int c = 0; c < changes; ++c)
      bytes[random() % bytes.size()] = static_cast<char>(random() % 16);
    if (random() % 4 == 0) bytes.resize(random() % bytes.size());
    const StatusOr<HostExpr> e = HostExpr::Parse(bytes);
    if (!e.ok()) continue;
    ++accepted;
    const std::vector<int64_t> dims{3, 4}, strides{5};
    const std::vector<ScalarValue> scalars(3);
    (void)e->Eval({dims, strides, scalars});
  }
  EXPECT_GT(accepted, 0);
}

}  // namespace
}  // namespace tl
