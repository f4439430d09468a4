// softmax and vector_add on every backend with a device here, against their oracles, through the C
// interface only.
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/abi/families_testing.h"
#include "tests/oracle/softmax.h"
#include "tests/oracle/vector_add.h"
#include "tl/tl.h"

namespace families {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

TEST(FamiliesTest, AreListed) {
  std::vector<std::string> names;
  for (uint32_t i = 0; i < tl_family_count(); ++i) names.push_back(tl_family_name(i));
  EXPECT_EQ(tl_family_name(tl_family_count()), nullptr);
  EXPECT_EQ(tl_family_source("no such family"), nullptr);
  for (const char* name : {"attention", "attention_decode", "elementwise", "gemm", "gemm_batched",
                           "gemm_split_k", "layer_norm", "mla_decode", "moe_topk", "rms_norm",
                           "rope", "silu_and_mul", "softmax", "vector_add"}) {
    EXPECT_EQ(std::count(names.begin(), names.end(), name), 1) << name;
  }
}

TEST(FamiliesTest, TheReferenceIsAlwaysThere) {
  EXPECT_GE(FindDevice(SharedContext(), "reference"), 0);
}

// ---- softmax
// -------------------------------------------------------------------------------------

struct SoftmaxType {
  const char* t;
  tl_dtype dtype;
};
constexpr SoftmaxType kSoftmaxTypes[] = {{"bf16", TL_BF16}, {"f16", TL_F16}, {"f32", TL_F32}};

TEST_P(FamilyTest, Softmax) {
  for (const SoftmaxType& type : kSoftmaxTypes) {
    const Values values = {{"t", type.t}};
    const Kernel kernel = Compile(SharedContext(), "softmax", values, device_);
    ASSERT_NE(kernel, nullptr);
    oracle::Softmax softmax{type.dtype};
    Series series(GetParam() + " softmax " + Show(values), oracle::CheckSoftmax, &softmax);
    for (int64_t n : {0, 1, 2, 7, 96, 160, 229, 256, 257, 1000, 4097}) {
      for (int64_t m : {0, 1, 3, 17}) {
        if (!series.Check(kernel.get(), device_, {m, n})) return;
      }
    }
    if (!interprets()) series.Check(kernel.get(), device_, {65, 32768});
  }
}

TEST_P(FamilyTest, SoftmaxOfFixedDims) {
  for (int64_t n : {0, 1, 160, 4097}) {
    const Values values = {{"N", std::to_string(n)}, {"t", "f32"}};
    const Kernel kernel = Compile(SharedContext(), "softmax", values, device_);
    ASSERT_NE(kernel, nullptr);
    oracle::Softmax softmax{TL_F32};
    Series series(GetParam() + " softmax " + Show(values), oracle::CheckSoftmax, &softmax);
    for (int64_t m : {0, 1, 9}) series.Check(kernel.get(), device_, {m});
  }
}

// The family's program with other inputs.
std::string SoftmaxWithInputs(const std::string& init) {
  std::string text = tl_family_source("softmax");
  const std::string own = "init X = normal(0, 2)";
  const size_t at = text.find(own);
  EXPECT_NE(at, std::string::npos);
  return text.replace(at, own.size(), "init X = " + init);
}

// Nothing overflows, and rows of -inf are NaN as documented.
TEST_P(FamilyTest, SoftmaxOfExtremeValues) {
  for (const char* init : {"uniform(-60000, 60000)", "constant(65504)", "constant(-65504)",
                           "normal(0, 0.001)", "constant(-inf)", "constant(inf)"}) {
    const Values values = {{"t", "f16"}};
    const Kernel kernel = Compile(SharedContext(), SoftmaxWithInputs(init), values, device_);
    ASSERT_NE(kernel, nullptr) << init;
    oracle::Softmax softmax{TL_F16};
    Series series(GetParam() + " softmax of " + init, oracle::CheckSoftmax, &softmax);
    for (const Dims& dims : std::vector<Dims>{{3, 1}, {5, 229}, {9, 1000}}) {
      series.Check(kernel.get(), device_, dims);
    }
  }
}

// Rows that mix -inf, +inf and NaN with finite values, in memory of our own.
TEST_P(FamilyTest, SoftmaxOfSpecialRows) {
  if (!on_host()) GTEST_SKIP() << "needs host memory";
  constexpr int64_t kColumns = 1300;
  const auto row = [](float fill) { return std::vector<float>(kColumns, fill); };
  std::vector<std::vector<float>> rows = {row(-kInf), row(-kInf), row(-kInf),
                                          row(1),     row(1),     row(-kInf)};
  rows[1][0] = 2;              // finite in the first block of columns only
  rows[2][kColumns - 1] = -3;  // and in the last one only
  rows[3][700] = kInf;
  rows[4][1299] = std::nanf("");
  rows[5][600] = rows[5][1200] = -1e30f;
  std::vector<float> x, y(rows.size() * kColumns, 7);
  for (const auto& r : rows) x.insert(x.end(), r.begin(), r.end());

  const Kernel kernel = Compile(SharedContext(), "softmax", {{"t", "f32"}}, device_);
  ASSERT_NE(kernel, nullptr);
  void* tensors[] = {x.data(), y.data()};
  const int64_t dims[] = {static_cast<int64_t>(rows.size()), kColumns};
  tl_launch_args args = Sized<tl_launch_args>();
  args.device = device_;
  args.tensors = tensors;
  args.num_tensors = 2;
  args.dims = dims;
  args.num_dims = 2;
  ASSERT_EQ(tl_launch(kernel.get(), &args), TL_OK) << LastError();

  std::vector<double> input(kColumns), expected(kColumns), bound(kColumns);
  for (size_t r = 0; r < rows.size(); ++r) {
    std::copy(rows[r].begin(), rows[r].end(), input.begin());
    oracle::SoftmaxRow({TL_F32}, input.data(), kColumns, expected.data(), bound.data());
    for (int64_t i = 0; i < kColumns; ++i) {
      const double actual = y[r * kColumns + i];
      if (std::isnan(expected[i])) {
        ASSERT_TRUE(std::isnan(actual)) << "row " << r << " column " << i << ": " << actual;
      } else {
        ASSERT_NEAR(actual, expected[i], bound[i]) << "row " << r << " column " << i;
      }
    }
  }
}

// ---- vector_add
// ----------------------------------------------------------------------------------

TEST_P(FamilyTest, VectorAdd) {
  const struct {
    const char* t;
    tl_dtype dtype;
  } types[] = {{"i8", TL_I8},   {"u8", TL_U8},     {"i16", TL_I16},   {"u16", TL_U16},
               {"i32", TL_I32}, {"u32", TL_U32},   {"i64", TL_I64},   {"e4m3", TL_E4M3},
               {"f16", TL_F16}, {"e5m2", TL_E5M2}, {"bf16", TL_BF16}, {"f32", TL_F32},
               {"f64", TL_F64}};
  for (const auto& type : types) {
    const Values values = {{"t", type.t}};
    const Kernel kernel = Compile(SharedContext(), "vector_add", values, device_);
    ASSERT_NE(kernel, nullptr);
    oracle::VectorAdd add{type.dtype};
    Series series(GetParam() + " vector_add " + Show(values), oracle::CheckVectorAdd, &add);
    for (int64_t n : {0, 1, 2, 7, 63, 255, 1023, 1024, 1025, 4099, 16385, 100003}) {
      if (!series.Check(kernel.get(), device_, {n})) break;
    }
    if (!interprets()) series.Check(kernel.get(), device_, {1000003});
  }
}

INSTANTIATE_TEST_SUITE_P(On, FamilyTest, testing::ValuesIn(Present({"reference", "cpu", "cuda"})),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace families
