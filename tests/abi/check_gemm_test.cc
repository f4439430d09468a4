// gemm on every backend with a device here, against its oracle, through the C interface only.
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/abi/families_testing.h"
#include "tests/oracle/gemm.h"
#include "tl/tl.h"

namespace families {
namespace {

using oracle::Activation;
using oracle::Gemm;

struct Type {
  const char* t;
  tl_dtype dtype, acc;
};
constexpr Type kF16{"f16", TL_F16, TL_F32}, kBf16{"bf16", TL_BF16, TL_F32},
    kF32{"f32", TL_F32, TL_F32}, kF64{"f64", TL_F64, TL_F64};

Gemm OracleOf(const Type& type, bool ta, bool tb) {
  Gemm gemm;
  gemm.out = type.dtype;
  gemm.acc = type.acc;
  gemm.transpose_a = ta;
  gemm.transpose_b = tb;
  return gemm;
}

Values ValuesOf(const Type& type, bool ta, bool tb) {
  return {{"t", type.t}, {"ta", Bool(ta)}, {"tb", Bool(tb)}};
}

// All M, N, K of 0, 1, 7, 64, 129, and three that are no multiple of anything.
std::vector<Dims> SmallSizes() {
  const int64_t sizes[] = {0, 1, 7, 64, 129};
  std::vector<Dims> list = {{100, 77, 33}, {77, 33, 100}, {33, 100, 77}};
  for (int64_t m : sizes)
    for (int64_t n : sizes)
      for (int64_t k : sizes) list.push_back({m, n, k});
  return list;
}

class GemmTest : public FamilyTest {
 protected:
  bool on_gpu() const { return GetParam() == "cuda" || GetParam() == "hip"; }

  void CheckSizes(const Values& values, Gemm gemm, const std::vector<Dims>& sizes) {
    FamilyTest::CheckSizes("gemm", values, oracle::CheckGemm, &gemm, sizes);
  }

  void CheckTransposes(const Type& type) {
    for (const bool ta : {false, true}) {
      for (const bool tb : {false, true})
        CheckSizes(ValuesOf(type, ta, tb), OracleOf(type, ta, tb), SmallSizes());
    }
  }
};

TEST_P(GemmTest, Bf16) { CheckTransposes(kBf16); }
TEST_P(GemmTest, F16) { CheckTransposes(kF16); }
TEST_P(GemmTest, F32) { CheckTransposes(kF32); }
TEST_P(GemmTest, F64) { CheckTransposes(kF64); }

TEST_P(GemmTest, ActivationsAndBias) {
  const struct {
    const char* name;
    Activation act;
  } acts[] = {{"none", Activation::kNone},
              {"relu", Activation::kRelu},
              {"gelu", Activation::kGelu},
              {"gelu_tanh", Activation::kGeluTanh},
              {"silu", Activation::kSilu}};
  for (const Type& type : {kBf16, kF32, kF64}) {
    for (const auto& [name, act] : acts) {
      for (const bool bias : {false, true}) {
        Values values = ValuesOf(type, false, true);
        values.insert(values.end(), {{"act", name}, {"bias", Bool(bias)}});
        Gemm gemm = OracleOf(type, false, true);
        gemm.act = act;
        gemm.bias = bias;
        CheckSizes(values, gemm, {{33, 70, 50}, {1, 1, 1}, {5, 129, 0}});
      }
    }
  }
}

TEST_P(GemmTest, Residual) {
  for (const Type& type : {kBf16, kF32, kF64}) {
    for (const bool bias : {false, true}) {
      Values values = ValuesOf(type, false, true);
      values.insert(values.end(), {{"residual", "on"}, {"act", "silu"}, {"bias", Bool(bias)}});
      Gemm gemm = OracleOf(type, false, true);
      gemm.act = Activation::kSilu;
      gemm.bias = bias;
      gemm.residual = true;
      CheckSizes(values, gemm, {{33, 70, 50}, {1, 1, 1}, {5, 129, 0}, {0, 3, 3}});
    }
  }
}

// L, M, N, K
TEST_P(GemmTest, Batched) {
  const std::vector<Dims> sizes = {{3, 33, 70, 50}, {1, 1, 1, 1},    {2, 65, 129, 0},
                                   {0, 4, 4, 4},    {5, 7, 64, 129}, {2, 100, 77, 33}};
  for (const Type& type : {kBf16, kF16, kF32, kF64}) {
    for (const bool ta : {false, true}) {
      for (const bool tb : {false, true}) {
        Gemm gemm = OracleOf(type, ta, tb);
        FamilyTest::CheckSizes("gemm_batched", ValuesOf(type, ta, tb), oracle::CheckGemmBatched,
                               &gemm, sizes);
      }
    }
  }
}

// M, N, K, S: one part, more parts than steps, steps that no number of parts divides.
TEST_P(GemmTest, SplitK) {
  const std::vector<Dims> sizes = {{16, 70, 1000, 3}, {1, 1, 1, 1},     {5, 129, 0, 2},
                                   {0, 4, 4, 4},      {33, 513, 77, 9}, {100, 64, 520, 1}};
  for (const Type& type : {kBf16, kF16, kF32, kF64}) {
    for (int flags = 0; flags < 4; ++flags) {
      const bool ta = flags & 1, tb = !(flags & 2);
      Gemm gemm = OracleOf(type, ta, tb);
      gemm.bias = flags & 1;
      gemm.residual = flags & 2;
      gemm.act = flags == 3 ? Activation::kGelu : Activation::kNone;
      Values values = ValuesOf(type, ta, tb);
      values.insert(values.end(), {{"bias", Bool(gemm.bias)},
                                   {"residual", Bool(gemm.residual)},
                                   {"act", flags == 3 ? "gelu" : "none"}});
      FamilyTest::CheckSizes("gemm_split_k", values, oracle::CheckGemm, &gemm, sizes);
    }
  }
}

// Their inputs are 8 bits wide; what comes out is chosen.
TEST_P(GemmTest, EightBitOperands) {
  const std::vector<Dims> sizes = {{100, 77, 33}, {1, 129, 64}, {7, 7, 7}, {64, 1, 0}};
  const struct {
    Type type;
    const char* tc;
    tl_dtype out;
  } rows[] = {
      {{"e4m3", TL_E4M3, TL_F32}, "e4m3", TL_E4M3}, {{"e4m3", TL_E4M3, TL_F32}, "bf16", TL_BF16},
      {{"e5m2", TL_E5M2, TL_F32}, "e5m2", TL_E5M2}, {{"e5m2", TL_E5M2, TL_F32}, "f32", TL_F32},
      {{"i8", TL_I8, TL_I32}, "i32", TL_I32},
  };
  for (const auto& row : rows) {
    for (const bool tb : {false, true}) {
      Values values = ValuesOf(row.type, !tb, tb);
      values.emplace_back("tc", row.tc);
      Gemm gemm = OracleOf(row.type, !tb, tb);
      gemm.out = row.out;
      CheckSizes(values, gemm, sizes);
    }
  }
}

TEST_P(GemmTest, WiderOutput) {
  Values values = ValuesOf(kBf16, false, true);
  values.emplace_back("tc", "f32");
  Gemm gemm = OracleOf(kBf16, false, true);
  gemm.out = TL_F32;
  CheckSizes(values, gemm, {{100, 77, 33}, {129, 64, 129}});
}

// Dims fixed when compiling give the same as dims of a launch.
TEST_P(GemmTest, FixedDims) {
  for (const Dims& dims : std::vector<Dims>{{0, 7, 5}, {1, 1, 1}, {129, 72, 40}, {100, 77, 33}}) {
    Values values = ValuesOf(kBf16, false, true);
    values.emplace_back("M", std::to_string(dims[0]));
    values.emplace_back("N", std::to_string(dims[1]));
    values.emplace_back("K", std::to_string(dims[2]));
    CheckSizes(values, OracleOf(kBf16, false, true), {{}});
  }
}

// One kernel for every M: the only dim that is left dynamic.
TEST_P(GemmTest, OneCompileForAllM) {
  const Context context = MakeContext();
  const Values values = {{"N", "72"}, {"K", "40"}};
  Gemm gemm = OracleOf(kBf16, false, true);
  Series series(GetParam() + " gemm M of 1 to 300, 72x40", oracle::CheckGemm, &gemm);
  for (int64_t m = 1; m <= 300; ++m) {
    const Kernel kernel = Compile(context.get(), "gemm", values, device_);
    ASSERT_NE(kernel, nullptr);
    if (!series.Check(kernel.get(), device_, {m})) break;
  }
  tl_cache_stats stats = Sized<tl_cache_stats>();
  ASSERT_EQ(tl_cache_get_stats(context.get(), &stats), TL_OK) << LastError();
  EXPECT_EQ(stats.compiles, 1u);
  EXPECT_EQ(stats.misses, 1u);
  EXPECT_EQ(stats.memory_hits, 299u);
}

// Too slow for the interpreter.
class LargeGemmTest : public GemmTest {};

TEST_P(LargeGemmTest, RandomRowsAndColumns) {
  for (const Type& type : {kBf16, kF32}) {
    Gemm gemm = OracleOf(type, false, true);
    gemm.sample = 256;
    std::vector<Dims> sizes = {{777, 1000, 333}, {333, 1000, 777}, {1024, 1024, 1024}};
    if (on_gpu()) sizes.push_back({4097, 4095, 4103});
    CheckSizes(ValuesOf(type, false, true), gemm, sizes);
    if (!on_gpu()) continue;
    gemm = OracleOf(type, true, false);
    gemm.sample = 256;
    CheckSizes(ValuesOf(type, true, false), gemm, {{4097, 4095, 4103}});
  }
}

// The check itself: an oracle that expects something else must not be satisfied.
TEST_P(GemmTest, AWrongResultIsSeen) {
  const Kernel kernel = Compile(SharedContext(), "gemm", ValuesOf(kF32, false, true), device_);
  ASSERT_NE(kernel, nullptr);
  Gemm gemm = OracleOf(kF32, false, true);
  gemm.act = Activation::kRelu;
  const Dims dims = {33, 20, 10};
  tl_check_options options = Sized<tl_check_options>();
  options.device = device_;
  options.dims = dims.data();
  options.num_dims = 3;
  options.oracle = oracle::CheckGemm;
  options.oracle_user = &gemm;
  tl_check_result result = Sized<tl_check_result>();
  EXPECT_EQ(tl_check(kernel.get(), &options, &result), TL_DATA_LOSS);
  EXPECT_EQ(result.compared, 33u * 20u);
  EXPECT_GT(result.mismatches, 100u);
  EXPECT_GT(result.worst_ratio, 1);
  tl_error_info info = Sized<tl_error_info>();
  ASSERT_EQ(tl_last_error(&info), TL_OK);
  EXPECT_EQ(info.reason, TL_REASON_MISMATCH);
}

INSTANTIATE_TEST_SUITE_P(On, LargeGemmTest, testing::ValuesIn(Present({"cpu", "cuda"})),
                         [](const auto& info) { return info.param; });
INSTANTIATE_TEST_SUITE_P(On, GemmTest, testing::ValuesIn(Present({"reference", "cpu", "cuda"})),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace families
