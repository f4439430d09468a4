// Every operator of every type against plain C++.
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/unit/cpu_testing.h"

namespace tl {
namespace {

using testing::Elementwise;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

template <typename T>
bool Same(T a, T b) {
  return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}

// All pairs of `values`.
template <typename T>
void Pairs(const std::vector<T>& values, std::vector<T>* a, std::vector<T>* b) {
  for (T x : values) {
    for (T y : values) {
      a->push_back(x);
      b->push_back(y);
    }
  }
}

TEST(CpuOps, Int) {
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  std::vector<int64_t> a, b;
  Pairs<int64_t>({0,
                  1,
                  -1,
                  2,
                  -2,
                  3,
                  -3,
                  7,
                  -7,
                  63,
                  64,
                  65,
                  -64,
                  1000,
                  int64_t{1} << 32,
                  -(int64_t{1} << 33),
                  kMax,
                  kMin,
                  kMax - 1,
                  kMin + 1,
                  5000000019},
                 &a, &b);
  std::vector<BinaryOp> ops;
  Elementwise e{{DType::kI64, DType::kI64}, {}, static_cast<int64_t>(a.size())};
  for (int i = 0; i <= static_cast<int>(BinaryOp::kNe); ++i) {
    const BinaryOp op = static_cast<BinaryOp>(i);
    if (op == BinaryOp::kAnd || op == BinaryOp::kOr) continue;
    ops.push_back(op);
    e.outputs.push_back({DType::kI64, [op](const std::vector<ExprRef>& x) {
                           return MakeCast(DType::kI64, MakeBinary(op, x[0], x[1]));
                         }});
  }
  // Constant divisors take other paths.
  const std::vector<int64_t> divisors = {1, -1, 2, -2, 3, -3, 8, 64, 100, 0, kMin};
  for (int64_t d : divisors) {
    for (BinaryOp op : {BinaryOp::kDiv, BinaryOp::kMod, BinaryOp::kCeilDiv}) {
      e.outputs.push_back({DType::kI64, [op, d](const std::vector<ExprRef>& x) {
                             return MakeBinary(op, x[0], MakeInt(d));
                           }});
    }
  }
  const auto out = e.Run({a.data(), b.data()});
  ASSERT_TRUE(out.ok()) << out.status();
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t k = 0; k < ops.size(); ++k) {
      EXPECT_EQ(testing::As<int64_t>((*out)[k])[i], EvalInt(ops[k], a[i], b[i]))
          << a[i] << " " << Symbol(ops[k]) << " " << b[i];
    }
    size_t k = ops.size();
    for (int64_t d : divisors) {
      for (BinaryOp op : {BinaryOp::kDiv, BinaryOp::kMod, BinaryOp::kCeilDiv}) {
        EXPECT_EQ(testing::As<int64_t>((*out)[k++])[i], EvalInt(op, a[i], d))
            << a[i] << " " << Symbol(op) << " " << d;
      }
    }
  }
}

template <typename T>
T FloatOp(BinaryOp op, T a, T b) {
  switch (op) {
    case BinaryOp::kAdd:
      return a + b;
    case BinaryOp::kSub:
      return a - b;
    case BinaryOp::kMul:
      return a * b;
    case BinaryOp::kDiv:
      return a / b;
    case BinaryOp::kMin:
      return std::fmin(a, b);
    case BinaryOp::kMax:
      return std::fmax(a, b);
    case BinaryOp::kLt:
      return a < b;
    case BinaryOp::kLe:
      return a <= b;
    case BinaryOp::kGt:
      return a > b;
    case BinaryOp::kGe:
      return a >= b;
    case BinaryOp::kEq:
      return a == b;
    default:
      return a != b;
  }
}

template <typename T>
void CheckFloat(DType type, const char* target) {
  SCOPED_TRACE(absl::StrCat(Name(type), " ", target));
  std::vector<T> a, b;
  using Limits = std::numeric_limits<T>;
  Pairs<T>({0, 1, -1, T(0.5), T(-2.5), T(3.5), T(1e10), T(1e-10), Limits::max(), Limits::min(),
            Limits::denorm_min(), -Limits::denorm_min(), T(kInf), T(-kInf), T(kNan), T(1) / 3},
           &a, &b);
  const std::vector<BinaryOp> ops = {BinaryOp::kAdd, BinaryOp::kSub, BinaryOp::kMul, BinaryOp::kDiv,
                                     BinaryOp::kMin, BinaryOp::kMax, BinaryOp::kLt,  BinaryOp::kLe,
                                     BinaryOp::kGt,  BinaryOp::kGe,  BinaryOp::kEq,  BinaryOp::kNe};
  Elementwise e{{type, type}, {}, static_cast<int64_t>(a.size())};
  for (BinaryOp op : ops) {
    e.outputs.push_back({type, [op, type](const std::vector<ExprRef>& x) {
                           return MakeCast(type, MakeBinary(op, x[0], x[1]));
                         }});
  }
  const auto out = e.Run({a.data(), b.data()}, target);
  ASSERT_TRUE(out.ok()) << out.status();
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t k = 0; k < ops.size(); ++k) {
      const T got = testing::As<T>((*out)[k])[i];
      const T want = FloatOp(ops[k], a[i], b[i]);
      EXPECT_TRUE(Same(got, want) ||
                  (got == want && (ops[k] == BinaryOp::kMin || ops[k] == BinaryOp::kMax)))
          << a[i] << " " << Symbol(ops[k]) << " " << b[i] << " is " << got << ", should be "
          << want;
    }
  }
}

TEST(CpuOps, Float) {
  for (const char* target : {"cpu", "cpu:x86-64"}) {
    CheckFloat<float>(DType::kF32, target);
    CheckFloat<double>(DType::kF64, target);
  }
}

TEST(CpuOps, Bool) {
  const std::vector<BinaryOp> ops = {BinaryOp::kAnd, BinaryOp::kOr, BinaryOp::kEq, BinaryOp::kNe,
                                     BinaryOp::kLt,  BinaryOp::kLe, BinaryOp::kGt, BinaryOp::kGe};
  uint8_t a[] = {0, 0, 1, 1}, b[] = {0, 1, 0, 1};
  Elementwise e{{DType::kBool, DType::kBool}, {}, 4};
  for (BinaryOp op : ops) {
    e.outputs.push_back(
        {DType::kBool, [op](const std::vector<ExprRef>& x) { return MakeBinary(op, x[0], x[1]); }});
  }
  e.outputs.push_back(
      {DType::kBool, [](const std::vector<ExprRef>& x) { return MakeUnary(UnaryOp::kNot, x[0]); }});
  e.outputs.push_back({DType::kI32, [](const std::vector<ExprRef>& x) {
                         return MakeSelect(x[0], MakeInt(3), MakeCast(DType::kI32, x[1]));
                       }});
  const auto out = e.Run({a, b});
  ASSERT_TRUE(out.ok()) << out.status();
  for (int i = 0; i < 4; ++i) {
    for (size_t k = 0; k < ops.size(); ++k) {
      EXPECT_EQ(testing::As<uint8_t>((*out)[k])[i], EvalInt(ops[k], a[i], b[i]))
          << int{a[i]} << Symbol(ops[k]) << int{b[i]};
    }
    EXPECT_EQ(testing::As<uint8_t>((*out)[ops.size()])[i], !a[i]);
    EXPECT_EQ(testing::As<int32_t>((*out)[ops.size() + 1])[i], a[i] ? 3 : b[i]);
  }
}

template <typename T>
void CheckExactFunctions(DType type, const char* target) {
  SCOPED_TRACE(absl::StrCat(Name(type), " ", target));
  std::vector<T> x = {0,        T(-0.0), T(0.5), T(1.5),  T(2.5),   T(-0.5),  T(-1.5), T(-2.5),
                      T(0.499), T(1e9),  T(3.7), T(-3.2), T(kInf),  T(-kInf), T(kNan), T(1e-40),
                      T(9),     T(2),    T(123), T(1e30), T(1e-30), T(0.25)};
  using Fn = T (*)(T);
  struct Case {
    MathFn fn;
    Fn want;
  };
  const Case cases[] = {
      {MathFn::kAbs, [](T v) { return std::fabs(v); }},
      {MathFn::kFloor, [](T v) { return std::floor(v); }},
      {MathFn::kCeil, [](T v) { return std::ceil(v); }},
      {MathFn::kRound, [](T v) { return std::nearbyint(v); }},
      {MathFn::kSqrt, [](T v) { return std::sqrt(v); }},
      {MathFn::kRsqrt, [](T v) { return T(1) / std::sqrt(v); }},
      {MathFn::kFin, [](T v) { return std::isfinite(v) ? v : T(0); }},
  };
  Elementwise e{{type}, {}, static_cast<int64_t>(x.size())};
  for (const Case& c : cases) {
    e.outputs.push_back(
        {type, [fn = c.fn](const std::vector<ExprRef>& v) { return MakeCall(fn, {v[0]}); }});
  }
  e.outputs.push_back(
      {type, [](const std::vector<ExprRef>& v) { return MakeUnary(UnaryOp::kNeg, v[0]); }});
  const auto out = e.Run({x.data()}, target);
  ASSERT_TRUE(out.ok()) << out.status();
  for (size_t i = 0; i < x.size(); ++i) {
    size_t k = 0;
    for (const Case& c : cases) {
      const T got = testing::As<T>((*out)[k++])[i];
      EXPECT_TRUE(Same(got, c.want(x[i]))) << Name(c.fn) << "(" << x[i] << ") is " << got;
    }
    EXPECT_TRUE(Same(testing::As<T>((*out)[k])[i], -x[i]));
  }
}

TEST(CpuOps, ExactFunctions) {
  for (const char* target : {"cpu", "cpu:x86-64"}) {
    CheckExactFunctions<float>(DType::kF32, target);
    CheckExactFunctions<double>(DType::kF64, target);
  }
}

TEST(CpuOps, IntAbsAndNegation) {
  int64_t x[] = {0, 5, -5, std::numeric_limits<int64_t>::min()};
  Elementwise e{{DType::kI64}, {}, 4};
  e.outputs.push_back(
      {DType::kI64, [](const std::vector<ExprRef>& v) { return MakeCall(MathFn::kAbs, {v[0]}); }});
  e.outputs.push_back(
      {DType::kI64, [](const std::vector<ExprRef>& v) { return MakeUnary(UnaryOp::kNeg, v[0]); }});
  const auto out = e.Run({x});
  ASSERT_TRUE(out.ok()) << out.status();
  for (int i = 0; i < 4; ++i) {
    const int64_t negative = EvalInt(BinaryOp::kSub, 0, x[i]);
    EXPECT_EQ(testing::As<int64_t>((*out)[0])[i], x[i] < 0 ? negative : x[i]);
    EXPECT_EQ(testing::As<int64_t>((*out)[1])[i], negative);
  }
}

// The side of a select, of `and` and of `or` that is not needed must not be read: here it lies
// beyond a page that cannot be read.
TEST(CpuOps, LazySidesAreNotRead) {
  testing::ThreadProgram p;
  constexpr int64_t kCount = 100, kFar = int64_t{1} << 46;
  for (DType t : {DType::kF32, DType::kBF16, DType::kI8}) {
    const BufferId in = p.Tensor(t, BufferRole::kIn, kCount);
    const BufferId out = p.Tensor(t, BufferRole::kOut, kCount);
    if (p.module().launches.empty()) p.module().launches.push_back(p.NewLaunch());
    p.module().launches[0].body.push_back(
        p.Threads(MakeInt(kCount), [&](const ExprRef& i) -> Block {
          const ExprRef inside = MakeBinary(BinaryOp::kLt, i, MakeInt(37));
          const ExprRef zero = MakeCast(t, MakeInt(0));
          const ExprRef at =
              MakeBinary(BinaryOp::kAdd, i, MakeSelect(inside, MakeInt(0), MakeInt(kFar)));
          const ExprRef positive = MakeBinary(BinaryOp::kGt, p.Load(in, at), zero);
          const ExprRef both = MakeBinary(BinaryOp::kAnd, inside, positive);
          return {p.Store(out, i, MakeSelect(both, p.Load(in, at), zero))};
        }));
  }
  auto kernel = testing::CompileAndLoad(p.module());
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  std::vector<std::vector<char>> memory;
  std::vector<void*> pointers;
  for (DType t : {DType::kF32, DType::kF32, DType::kBF16, DType::kBF16, DType::kI8, DType::kI8}) {
    memory.emplace_back(kCount * SizeOf(t));
    for (int i = 0; i < kCount; ++i) StoreElement(t, &memory.back()[i * SizeOf(t)], i % 5 - 1);
  }
  for (auto& m : memory) pointers.push_back(m.data());
  ASSERT_TRUE(testing::Launch(**kernel, 1, pointers).ok());
  const DType types[] = {DType::kF32, DType::kBF16, DType::kI8};
  for (int t = 0; t < 3; ++t) {
    for (int i = 0; i < kCount; ++i) {
      const double got = LoadElement(types[t], &memory[2 * t + 1][i * SizeOf(types[t])]);
      EXPECT_EQ(got, i < 37 ? std::max(0, i % 5 - 1) : 0) << i;
    }
  }
}

TEST(CpuOps, LoopsVariablesAndLocalArrays) {
  testing::ThreadProgram p;
  constexpr int64_t kCount = 50;
  const BufferId out = p.Tensor(DType::kI32, BufferRole::kOut, 3 * kCount);
  const BufferId local = p.Tile(DType::kI64, 4, -1);
  const VarId sum = p.Var(ScalarType::kInt, VarRole::kMutable, DType::kI8);
  Launch launch = p.NewLaunch();
  launch.body.push_back(MakeStmt(Assign{sum, MakeInt(0)}));
  // The order of a loop that runs down shows in a rounded running value; i8 wraps.
  launch.body.push_back(p.Serial(
      MakeInt(kCount),
      [&](const ExprRef& i) -> Block {
        const ExprRef twice = MakeBinary(BinaryOp::kMul, p.Read(sum), MakeInt(3));
        return {MakeStmt(Assign{sum, MakeBinary(BinaryOp::kAdd, twice, i)}),
                p.Store(out, i, p.Read(sum))};
      },
      /*down=*/true));
  // A local array with a dynamic index in a parallel loop: private to the iteration.
  launch.body.push_back(p.Threads(MakeInt(kCount), [&](const ExprRef& i) -> Block {
    const ExprRef at = MakeBinary(BinaryOp::kMod, i, MakeInt(4));
    Block b;
    b.push_back(p.Serial(MakeInt(4), [&](const ExprRef& j) -> Block {
      return {p.Store(local, j, MakeBinary(BinaryOp::kMul, i, j))};
    }));
    b.push_back(p.Store(local, at, MakeInt(100), StoreOp::kAdd));
    b.push_back(p.Store(out, MakeBinary(BinaryOp::kAdd, i, MakeInt(kCount)), p.Load(local, at)));
    b.push_back(MakeStmt(
        If{MakeBinary(BinaryOp::kLt, at, MakeInt(2)),
           {p.Store(out, MakeBinary(BinaryOp::kAdd, i, MakeInt(2 * kCount)), at)},
           {p.Store(out, MakeBinary(BinaryOp::kAdd, i, MakeInt(2 * kCount)), MakeInt(-1))}}));
    return b;
  }));
  p.module().launches.push_back(launch);
  auto kernel = testing::CompileAndLoad(p.module());
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  std::vector<int32_t> got(3 * kCount);
  ASSERT_TRUE(testing::Launch(**kernel, 1, {got.data()}).ok());
  int8_t running = 0;
  for (int i = kCount - 1; i >= 0; --i) {
    running = static_cast<int8_t>(running * 3 + i);
    EXPECT_EQ(got[i], running) << i;
  }
  for (int i = 0; i < kCount; ++i) {
    EXPECT_EQ(got[kCount + i], i * (i % 4) + 100) << i;
    EXPECT_EQ(got[2 * kCount + i], i % 4 < 2 ? i % 4 : -1) << i;
  }
}

// Every block adds to the same few elements, from all threads of the pool.
void CheckAtomics(DType type) {
  SCOPED_TRACE(Name(type));
  testing::ThreadProgram p;
  const BufferId out = p.Tensor(type, BufferRole::kInOut, 3);
  Launch launch = p.NewLaunch();
  const ExprRef block = p.Read(launch.block);
  const ScalarType compute = ComputeType(type);
  const ExprRef one = MakeCast(type, MakeInt(1));
  const ExprRef value = IsFloat(compute) ? MakeCast(type, block) : block;
  launch.body.push_back(MakeStmt(AtomicElement{AtomicOp::kAdd, out, {MakeInt(0)}, one}));
  launch.body.push_back(MakeStmt(AtomicElement{AtomicOp::kMax, out, {MakeInt(1)}, value}));
  launch.body.push_back(MakeStmt(AtomicElement{AtomicOp::kMin, out, {MakeInt(2)}, value}));
  p.module().launches.push_back(launch);
  auto kernel = testing::CompileAndLoad(p.module());
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  // Every count up to here is exact in the type.
  const int blocks = SizeOf(type) == 1 ? 8 : type == DType::kBF16 ? 200 : 2000;
  std::vector<char> got(3 * SizeOf(type));
  StoreElement(type, &got[2 * SizeOf(type)], 5);
  ASSERT_TRUE(testing::Launch(**kernel, blocks, {got.data()}).ok());
  EXPECT_EQ(LoadElement(type, &got[0]), blocks);
  EXPECT_EQ(LoadElement(type, &got[SizeOf(type)]), RoundTo(type, blocks - 1));
  EXPECT_EQ(LoadElement(type, &got[2 * SizeOf(type)]), 0);
}

#if defined(__x86_64__)
// The host's floating-point mode is not the kernel's, and is left as it was.
TEST(CpuOps, HostFloatModeDoesNotMatter) {
  float x[] = {1e-20f, 1.0f, 3.0f};
  Elementwise e{{DType::kF32}, {}, 3};
  e.outputs.push_back({DType::kF32, [](const std::vector<ExprRef>& v) {
                         return MakeBinary(BinaryOp::kMul, v[0], MakeFloat(1e-20, v[0]->type));
                       }});
  const unsigned before = _mm_getcsr();
  _mm_setcsr(before | 0x8040 | 0x6000);  // subnormals to zero, round toward zero
  const unsigned host = _mm_getcsr();
  const auto out = e.Run({x});
  EXPECT_EQ(_mm_getcsr() & ~0x3Fu, host & ~0x3Fu);
  _mm_setcsr(before);
  ASSERT_TRUE(out.ok()) << out.status();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(testing::As<float>((*out)[0])[i], x[i] * 1e-20f) << i;
}
#endif

TEST(CpuOps, Atomics) {
  for (DType t :
       {DType::kI8, DType::kU8, DType::kI16, DType::kU16, DType::kI32, DType::kU32, DType::kI64,
        DType::kE4M3, DType::kE5M2, DType::kF16, DType::kBF16, DType::kF32, DType::kF64}) {
    CheckAtomics(t);
  }
}

}  // namespace
}  // namespace tl
