// The text that comes out of the C-family emitter.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_replace.h"
#include "backends/c_family/expr_text.h"
#include "backends/c_family/range.h"
#include "tests/unit/cuda_testing.h"

namespace tl {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class ExprTextTest : public ::testing::Test {
 protected:
  ExprTextTest() {
    i_ = Var("v0", CType::kI32, {0, 63});
    j_ = Var("v1", CType::kI32, {-8, 8});
    n_ = Var("n0", CType::kI64, {0, Range::kMax});
    b_ = Var("block", CType::kI32, {0, std::numeric_limits<int32_t>::max() - 1});
    x_ = Var("x0", CType::kI64, {Range::kMin, Range::kMax, true});
    p_ = Var("v2", CType::kBool, {}, ScalarType::kBool);
    f_ = Var("v3", CType::kF32, {}, ScalarType::kF32);
    d_ = Var("v4", CType::kF64, {}, ScalarType::kF64);
    for (int t = 0; t < kNumDTypes; ++t) {
      Buffer buffer;
      buffer.dtype = static_cast<DType>(t);
      module_.AddBuffer(buffer);
      names_.buffers.push_back("a" + std::to_string(t));
    }
  }

  ExprRef Var(std::string name, CType type, Range range, ScalarType scalar = ScalarType::kInt) {
    const VarId id = module_.AddVar(name, scalar, VarRole::kLet);
    names_.vars.push_back({std::move(name), type, range});
    return MakeVar(id, scalar);
  }
  ExprRef Load(DType t, ExprRef index) const {
    return MakeLoad(static_cast<BufferId>(t), t, {std::move(index)});
  }
  std::string Text(const ExprRef& e) const {
    const StatusOr<tl::Text> text = ExprEmitter(module_, names_).Emit(e);
    return text.ok() ? text->text : std::string(text.status().message());
  }
  std::string Stored(const ExprRef& e, DType t) const {
    const StatusOr<std::string> text = ExprEmitter(module_, names_).EmitStored(e, t);
    return text.ok() ? *text : std::string(text.status().message());
  }

  Module module_;
  Names names_;
  ExprRef i_, j_, n_, b_, x_, p_, f_, d_;
};

ExprRef Add(ExprRef a, ExprRef b) { return MakeBinary(BinaryOp::kAdd, std::move(a), std::move(b)); }
ExprRef Sub(ExprRef a, ExprRef b) { return MakeBinary(BinaryOp::kSub, std::move(a), std::move(b)); }
ExprRef Mul(ExprRef a, ExprRef b) { return MakeBinary(BinaryOp::kMul, std::move(a), std::move(b)); }
ExprRef Bin(BinaryOp op, ExprRef a, ExprRef b) {
  return MakeBinary(op, std::move(a), std::move(b));
}
ExprRef I(int64_t v) { return MakeInt(v); }
ExprRef F(double v) { return MakeFloat(v, ScalarType::kF32); }

TEST_F(ExprTextTest, ParenthesesAndWidths) {
  const std::vector<std::pair<ExprRef, std::string>> cases = {
      {Add(Mul(i_, I(64)), j_), "v0 * 64 + v1"},
      {Mul(Add(i_, j_), I(3)), "(v0 + v1) * 3"},
      {Sub(i_, Sub(j_, i_)), "v0 - (v1 - v0)"},
      {Sub(Sub(i_, j_), i_), "v0 - v1 - v0"},
      {Mul(b_, I(128)), "(long long)block * 128"},
      {Add(b_, I(1)), "block + 1"},
      {Add(b_, i_), "(long long)block + v0"},
      {Mul(n_, n_), "n0 * n0"},
      {MakeUnary(UnaryOp::kNeg, i_), "-v0"},
      {MakeUnary(UnaryOp::kNeg, Add(i_, j_)), "-(v0 + v1)"},
      {MakeUnary(UnaryOp::kNeg, MakeUnary(UnaryOp::kNeg, f_)), "-(-v3)"},
      {MakeUnary(UnaryOp::kNot, Bin(BinaryOp::kLt, i_, n_)), "!(v0 < n0)"},
      {Bin(BinaryOp::kOr, Bin(BinaryOp::kAnd, p_, p_), Bin(BinaryOp::kEq, i_, I(0))),
       "v2 && v2 || v0 == 0"},
      {Bin(BinaryOp::kAnd, p_, Bin(BinaryOp::kOr, p_, p_)), "v2 && (v2 || v2)"},
      {Bin(BinaryOp::kMin, i_, j_), "tl_min(v0, v1)"},
      {Bin(BinaryOp::kMax, i_, n_), "tl_max((long long)v0, n0)"},
      {MakeSelect(p_, Add(i_, I(1)), I(0)), "v2 ? v0 + 1 : 0"},
      {Add(MakeSelect(p_, i_, j_), I(1)), "(v2 ? v0 : v1) + 1"},
      {I(5000000000), "5000000000LL"},
      {I(std::numeric_limits<int64_t>::min()), "(-9223372036854775807LL - 1)"},
  };
  for (const auto& [e, text] : cases) EXPECT_EQ(Text(e), text);
}

TEST_F(ExprTextTest, DivisionFollowsTheSigns) {
  const std::vector<std::pair<ExprRef, std::string>> cases = {
      {Bin(BinaryOp::kDiv, i_, I(8)), "v0 >> 3"},
      {Bin(BinaryOp::kMod, i_, I(8)), "v0 & 7"},
      {Bin(BinaryOp::kDiv, j_, I(2)), "tl_floor_div(v1, 2)"},
      {Bin(BinaryOp::kMod, j_, I(2)), "tl_floor_mod(v1, 2)"},
      {Bin(BinaryOp::kDiv, i_, I(-2)), "tl_floor_div(v0, -2)"},
      {Bin(BinaryOp::kDiv, Add(j_, I(8)), I(2)), "(v1 + 8) >> 1"},
      {Bin(BinaryOp::kCeilDiv, n_, I(128)), "(n0 + 127) >> 7"},
      {Bin(BinaryOp::kCeilDiv, i_, I(8)), "(v0 + 7) >> 3"},
      {Bin(BinaryOp::kCeilDiv, n_, Add(i_, I(1))), "tl_ceil_div(n0, v0 + 1)"},
      {Bin(BinaryOp::kMod, b_, Bin(BinaryOp::kCeilDiv, n_, I(64))), "block % ((n0 + 63) >> 6)"},
      // Data may be anything: zero, negative, overflowing.
      {Bin(BinaryOp::kDiv, n_, x_), "tl_floor_div(n0, x0)"},
      {Add(x_, I(1)), "tl_add(x0, 1)"},
      {Mul(x_, n_), "tl_mul(x0, n0)"},
      {MakeUnary(UnaryOp::kNeg, x_), "tl_sub(0, x0)"},
      {Bin(BinaryOp::kShl, i_, I(4)), "v0 << 4"},
      {Bin(BinaryOp::kShl, i_, j_), "tl_shl(v0, v1)"},
      {Bin(BinaryOp::kShr, x_, I(7)), "x0 >> 7"},
      // The offsets of swizzled tiles: 32 bits and plain operators.
      {Bin(BinaryOp::kBitXor, i_, Bin(BinaryOp::kBitAnd, Bin(BinaryOp::kShr, i_, I(3)), I(7))),
       "v0 ^ ((v0 >> 3) & 7)"},
      {Bin(BinaryOp::kMod, i_, I(48)), "v0 % 48"},
      {Bin(BinaryOp::kDiv, n_, I(1)), "n0"},
      // Counts beyond the width of an int of C.
      {Bin(BinaryOp::kShr, i_, I(40)), "(long long)v0 >> 40"},
      {Bin(BinaryOp::kShr, j_, I(33)), "(long long)v1 >> 33"},
      {Bin(BinaryOp::kShl, i_, I(40)), "(long long)v0 << 40"},
      {Bin(BinaryOp::kShr, i_, MakeCast(DType::kI64, n_)), "tl_shr(v0, n0)"},
      // Elements of narrow types do not overflow 64 bits.
      {Mul(Load(DType::kI32, i_), Load(DType::kI32, j_)), "(long long)a5[v0] * a5[v1]"},
      {Add(Load(DType::kI8, i_), I(1)), "a1[v0] + 1"},
      {Load(DType::kU32, i_), "(long long)a6[v0]"},
  };
  for (const auto& [e, text] : cases) EXPECT_EQ(Text(e), text);
}

TEST_F(ExprTextTest, LiteralsAreExact) {
  const double inf = std::numeric_limits<double>::infinity();
  const std::vector<std::pair<ExprRef, std::string>> cases = {
      {F(1), "1.0f"},
      {F(-0.5), "-0.5f"},
      {F(0.1f), "0.1f"},
      {F(1.0f / 3), "0x1.555556p-2f"},
      {F(1e-20f), "0x1.79ca1p-67f"},
      {F(-0.0), "-0.0f"},
      {F(inf), "tl_inf32()"},
      {F(-inf), "-tl_inf32()"},
      {F(std::numeric_limits<double>::quiet_NaN()), "tl_nan32()"},
      {MakeFloat(0.1, ScalarType::kF64), "0.1"},
      {MakeFloat(1.0 / 3, ScalarType::kF64), "0x1.5555555555555p-2"},
      {MakeFloat(inf, ScalarType::kF64), "tl_inf64()"},
      {MakeBool(true), "true"},
  };
  for (const auto& [e, text] : cases) EXPECT_EQ(Text(e), text);
}

TEST_F(ExprTextTest, FunctionsAndCasts) {
  const std::vector<std::pair<ExprRef, std::string>> cases = {
      {MakeCall(MathFn::kExp, {f_}), "expf(v3)"},
      {MakeCall(MathFn::kExp, {d_}), "exp(v4)"},
      {MakeCall(MathFn::kRound, {f_}), "rintf(v3)"},
      {MakeCall(MathFn::kAbs, {d_}), "fabs(v4)"},
      {MakeCall(MathFn::kAbs, {i_}), "tl_abs(v0)"},
      {MakeCall(MathFn::kFin, {f_}), "tl_fin(v3)"},
      {MakeCall(MathFn::kSigmoid, {f_}), "tl_sigmoid(v3)"},
      {MakeCall(MathFn::kExp2, {f_}), "tl_exp2(v3)"},
      {MakeCall(MathFn::kExp2, {d_}), "tl_exp2(v4)"},
      {MakeCall(MathFn::kPow, {f_, F(2)}), "powf(v3, 2.0f)"},
      {Bin(BinaryOp::kMax, f_, F(0)), "fmaxf(v3, 0.0f)"},
      {Bin(BinaryOp::kMin, d_, d_), "fmin(v4, v4)"},
      {MakeCast(DType::kBF16, f_), "tl_f32(tl_to_bf16(v3))"},
      {MakeCast(DType::kF64, f_), "(double)v3"},
      {MakeCast(DType::kF32, i_), "(float)v0"},
      {MakeCast(DType::kF16, n_), "tl_f32(tl_to_f16((double)n0))"},
      {MakeCast(DType::kF16, i_), "tl_f32(tl_to_f16((float)v0))"},
      {MakeCast(DType::kI32, f_), "tl_to_i32(v3)"},
      {MakeCast(DType::kI8, x_), "(signed char)x0"},
      {MakeCast(DType::kI8, i_), "v0"},
      {MakeCast(DType::kI32, Bin(BinaryOp::kMod, n_, I(8))), "(int)(n0 & 7)"},
      {MakeCast(DType::kU32, x_), "(long long)(unsigned int)x0"},
      {MakeCast(DType::kI64, p_), "(int)v2"},
      {Load(DType::kF16, i_), "tl_f32(a10[v0])"},
      {Load(DType::kBool, i_), "a0[v0] != 0"},
      {MakeIsAligned(static_cast<BufferId>(DType::kF16), 16), "tl_is_aligned<16>(a10)"},
  };
  for (const auto& [e, text] : cases) EXPECT_EQ(Text(e), text);
}

TEST_F(ExprTextTest, Stores) {
  EXPECT_EQ(Stored(f_, DType::kBF16), "tl_to_bf16(v3)");
  EXPECT_EQ(Stored(MakeCast(DType::kBF16, f_), DType::kBF16), "tl_to_bf16(v3)");
  EXPECT_EQ(Stored(MakeCast(DType::kF16, d_), DType::kF16), "tl_to_f16(v4)");
  EXPECT_EQ(Stored(Load(DType::kF16, i_), DType::kF16), "a10[v0]");
  EXPECT_EQ(Stored(MakeSelect(p_, Load(DType::kF16, i_), F(0)), DType::kF16),
            "v2 ? a10[v0] : tl_to_f16(0.0f)");
  EXPECT_EQ(Stored(x_, DType::kI32), "(int)x0");
  EXPECT_EQ(Stored(i_, DType::kI32), "v0");
  EXPECT_EQ(Stored(i_, DType::kU8), "(unsigned char)v0");
  EXPECT_EQ(Stored(p_, DType::kBool), "v2");
}

// Every interval holds every value that it should.
TEST(RangeTest, ContainsAllResults) {
  const std::pair<int, int> bounds[] = {{0, 0}, {0, 5}, {1, 7}, {-4, 3}, {-6, -2}, {3, 3}};
  const BinaryOp ops[] = {
      BinaryOp::kAdd,    BinaryOp::kSub, BinaryOp::kMul,     BinaryOp::kDiv,    BinaryOp::kMod,
      BinaryOp::kMin,    BinaryOp::kMax, BinaryOp::kCeilDiv, BinaryOp::kBitAnd, BinaryOp::kBitOr,
      BinaryOp::kBitXor, BinaryOp::kShl, BinaryOp::kShr};
  for (const auto& [alo, ahi] : bounds) {
    for (const auto& [blo, bhi] : bounds) {
      for (BinaryOp op : ops) {
        const Range r = Apply(op, {alo, ahi}, {blo, bhi});
        for (int a = alo; a <= ahi; ++a) {
          for (int b = blo; b <= bhi; ++b) {
            const int64_t v = EvalInt(op, a, b);
            EXPECT_TRUE(r.lo <= v && v <= r.hi) << a << " " << Symbol(op) << " " << b;
          }
        }
      }
    }
  }
}

// ---- whole kernels ----

StatusOr<Generated> Generate(std::string_view text, const testing::Values& values = {},
                             std::string_view target = "sm_80") {
  TL_ASSIGN_OR_RETURN(auto lowered, testing::LowerText(text, values, *FindCudaTarget(target)));
  return std::move(lowered.generated);
}

constexpr std::string_view kScale = R"(tl 1.0
kernel scale(M: dim, N: dim) {
  in X: tensor<bf16>[M, N], alpha: f32
  out Y: tensor<bf16>[M, N]
  launch m in M threads=256 {
    x = alloc_shared<bf16>[64]
    for n in ceildiv(N, 64) {
      copy X[m, n*64] -> x
      parallel c in 64 { x[c] = x[c] * alpha }
      copy x -> Y[m, n*64]
    }
  }
})";

TEST(EmitC, SignatureAndEntry) {
  const StatusOr<Generated> g = Generate(kScale);
  ASSERT_TRUE(g.ok()) << g.status();
  EXPECT_THAT(testing::KernelText(*g),
              HasSubstr("extern \"C\" __global__ __launch_bounds__(256, 1) void tl_kernel_0("
                        "TL_GLOBAL(const tl_bf16) a0, TL_GLOBAL(tl_bf16) a1, long long n0, "
                        "long long n1, float x0) {"));
  EXPECT_EQ(g->language, "cuda");
  ASSERT_EQ(g->entries.size(), 1u);
  EXPECT_EQ(g->entries[0].symbol, "tl_kernel_0");
  EXPECT_EQ(g->entries[0].threads, 256);
  EXPECT_EQ(g->entries[0].shared_bytes, 128);
  EXPECT_THAT(g->source, Not(HasSubstr("#include")));
}

TEST(EmitC, BlocksOfAMultiprocessor) {
  const StatusOr<Generated> g =
      Generate("tl 1.0\nkernel k() {\nlaunch threads=96 blocks=2*3 { }\n}");
  ASSERT_TRUE(g.ok()) << g.status();
  EXPECT_THAT(g->source, HasSubstr("__launch_bounds__(96, 6)"));
}

TEST(EmitC, NamesDoNotMatter) {
  const std::string renamed = absl::StrReplaceAll(kScale, {{"scale", "other"},
                                                           {"alpha", "zz"},
                                                           {"X", "AA"},
                                                           {"Y", "BB"},
                                                           {"x", "tile"},
                                                           {"M", "P"},
                                                           {"N", "Q"},
                                                           {" m", " row"},
                                                           {"[m", "[row"}});
  const StatusOr<Generated> a = Generate(kScale);
  const StatusOr<Generated> b = Generate(renamed);
  ASSERT_TRUE(b.ok()) << b.status() << renamed;
  EXPECT_EQ(a->source, b->source);
}

TEST(EmitC, TextDoesNotDependOnTheArchitecture) {
  EXPECT_EQ(Generate(kScale, {}, "sm_75")->source, Generate(kScale, {}, "sm_89")->source);
  EXPECT_EQ(Generate(kScale, {}, "sm_90")->source, Generate(kScale, {}, "sm_120a")->source);
}

// Nothing is read or written before the kernel before this one has ended.
TEST(EmitC, KernelsThatStartEarlyWait) {
  for (const auto& [target, early] : {std::pair{"sm_89", false}, {"sm_90a", true}}) {
    const StatusOr<Generated> g = Generate(kScale, {}, target);
    ASSERT_TRUE(g.ok()) << g.status();
    EXPECT_EQ(g->entries[0].early, early);
    const std::string text = testing::KernelText(*g);
    const size_t wait = text.find("tl_await_kernel_before();");
    ASSERT_EQ(wait != std::string::npos, early) << text;
    if (!early) continue;
    EXPECT_LT(wait, text.find("tl_admit_kernel_behind();"));
    for (const char* access : {"a0[", "a1[", "s0[", "tl_move"}) EXPECT_LT(wait, text.find(access));
  }
}

TEST(EmitC, RefusesMoreThreadsThanThereAre) {
  for (const char* threads : {"1025", "2048"}) {
    const std::string text =
        absl::StrReplaceAll(kScale, {{"threads=256", std::string("threads=") + threads}});
    const StatusOr<Generated> g = Generate(text);
    ASSERT_FALSE(g.ok());
    EXPECT_THAT(std::string(g.status().message()), HasSubstr(threads));
    EXPECT_THAT(std::string(g.status().message()), HasSubstr("1024"));
  }
}

TEST(EmitC, RefusesMoreSharedMemoryThanThereIs) {
  const std::string text = absl::StrReplaceAll(kScale, {{"64", "65536"}});
  const StatusOr<Generated> g = Generate(text, {}, "sm_75");
  ASSERT_FALSE(g.ok());
  EXPECT_EQ(g.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(g.status().message()), HasSubstr("131072"));
  EXPECT_THAT(std::string(g.status().message()), HasSubstr("65536"));
}

TEST(EmitC, RefusesOtherLevels) {
  Module module;
  EXPECT_EQ(EmitC(module, *FindCudaTarget("sm_80"), CudaDialect()).status().code(),
            absl::StatusCode::kInternal);
}

// ---- targets ----

TEST(CudaTargets, ByNameOfArchitectureAndGpu) {
  const std::pair<const char*, const char*> cases[] = {
      {"sm_75", "sm_75"},        {"SM_90A", "sm_90a"},
      {"H200", "sm_90a"},        {"h100", "sm_90a"},
      {"NVIDIA H200", "sm_90a"}, {"A100", "sm_80"},
      {"T4", "sm_75"},           {"Tesla T4", "sm_75"},
      {"rtx4090", "sm_89"},      {"NVIDIA GeForce RTX 5090", "sm_120a"},
      {"b200", "sm_100a"},       {"L40S", "sm_89"},
      {"sm_120", "sm_120"},
  };
  for (const auto& [name, arch] : cases) {
    const StatusOr<Target> t = FindCudaTarget(name);
    ASSERT_TRUE(t.ok()) << name;
    EXPECT_EQ(t->name, arch) << name;
    EXPECT_EQ(t->backend, "cuda");
  }
  for (const char* name : {"", "sm_70", "sm_900", "gfx90a", "cpu", "H", "H2000"}) {
    EXPECT_EQ(FindCudaTarget(name).status().code(), absl::StatusCode::kNotFound) << name;
  }
  EXPECT_EQ(FindCudaTarget("H200")->max_shared_bytes, 232448);
}

TEST(CudaTargets, ByCapability) {
  const std::pair<std::pair<int, int>, const char*> cases[] = {
      {{7, 5}, "sm_75"},   {{8, 0}, "sm_80"},    {{8, 6}, "sm_86"},
      {{8, 9}, "sm_89"},   {{9, 0}, "sm_90a"},   {{10, 0}, "sm_100a"},
      {{10, 3}, "sm_100"}, {{12, 0}, "sm_120a"}, {{12, 1}, "sm_120"},
  };
  for (const auto& [capability, arch] : cases) {
    const StatusOr<Target> t = CudaTargetOfCapability(capability.first, capability.second);
    ASSERT_TRUE(t.ok()) << arch;
    EXPECT_EQ(t->name, arch);
  }
  EXPECT_FALSE(CudaTargetOfCapability(7, 0).ok());
  EXPECT_FALSE(CudaTargetOfCapability(11, 0).ok());
}

}  // namespace
}  // namespace tl
