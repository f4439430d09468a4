// The two programs of tests/programs, through the C interface, against the plain formula in
// float64: softmax(scale·q·k)·v of one row of weights after the other.
#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>

#include "tests/abi/families_testing.h"
#include "tests/oracle/bound.h"

namespace {

using families::Dims;
using families::Kernel;
using families::Values;

std::string ReadProgram(const std::string& name) {
  std::ifstream file(std::string(TL_SOURCE_DIR) + "/tests/programs/" + name);
  EXPECT_TRUE(file) << name;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

struct Subject {
  tl_dtype dtype;
  bool causal;
};

// One query against `keys` keys: fills `out` and `bound`, zeros where there is no key.
struct Attend {
  const double* query;
  int64_t depth, width;  // of keys and of values
  double scale;
  tl_dtype dtype;

  template <typename Key, typename Value>
  void operator()(int64_t keys, Key key, Value value, double* out, double* bound) const {
    std::vector<double> score(keys), size(keys);
    double max = -std::numeric_limits<double>::infinity(), largest = 0;
    for (int64_t j = 0; j < keys; ++j) {
      for (int64_t x = 0; x < depth; ++x) {
        const double product = query[x] * key(j)[x] * scale;
        score[j] += product;
        size[j] += std::fabs(product);
      }
      max = std::max(max, score[j]);
      largest = std::max(largest, size[j]);
    }
    double sum = 0;
    for (double& s : score) sum += s = std::exp2(s - max);
    const double eps = oracle::Eps(TL_F32);
    // Relative error of a weight: that of its score, which is summed up in f32 and then scaled, and
    // the rounding of the weight to the dtype of the values.
    const double weight_error =
        2 * oracle::SumBound(static_cast<double>(depth), eps, largest) + oracle::kFunctionEps * eps;
    for (int64_t x = 0; x < width; ++x) {
      double total = 0, magnitude = 0;
      for (int64_t j = 0; j < keys; ++j) {
        const double term = score[j] / sum * value(j)[x];
        total += term;
        magnitude += std::fabs(term);
      }
      const double error =
          oracle::SumBound(static_cast<double>(keys), eps + oracle::Eps(dtype), magnitude) +
          2 * weight_error * magnitude;
      const oracle::Stored stored = oracle::Store(dtype, total, error);
      out[x] = stored.expected;
      bound[x] = stored.bound;
    }
  }
};

// Q[B,Sq,H,D], K[B,Sk,Hkv,D], V[B,Sk,Hkv,Dv], O[B,Sq,H,Dv]
int AttentionOracle(void* user, const tl_oracle_tensor* t, uint32_t count, const int64_t*,
                    const tl_scalar* scalars) {
  const auto& subject = *static_cast<const Subject*>(user);
  if (count != 4) return 1;
  const int64_t B = t[0].shape[0], Sq = t[0].shape[1], H = t[0].shape[2], D = t[0].shape[3];
  const int64_t Sk = t[1].shape[1], Hkv = t[1].shape[2], Dv = t[2].shape[3];
  for (int64_t b = 0; b < B; ++b) {
    for (int64_t i = 0; i < Sq; ++i) {
      for (int64_t h = 0; h < H; ++h) {
        const int64_t g = h * Hkv / H, row = (b * Sq + i) * H + h;
        const int64_t keys = subject.causal ? std::clamp<int64_t>(i + Sk - Sq + 1, 0, Sk) : Sk;
        const auto at = [&](int which, int64_t width) {
          const double* base = t[which].input + (b * Sk * Hkv + g) * width;
          return [base, step = Hkv * width](int64_t j) { return base + j * step; };
        };
        const Attend attend{t[0].input + row * D, D, Dv, scalars[0].f, subject.dtype};
        attend(keys, at(1, D), at(2, Dv), t[3].expected + row * Dv, t[3].bound + row * Dv);
      }
    }
  }
  return 0;
}

// Q[B,H,D], KV[pages,128,D], table[B,·], len[B], O[B,H,Dv]
int MlaOracle(void* user, const tl_oracle_tensor* t, uint32_t count, const int64_t*,
              const tl_scalar* scalars) {
  const auto& subject = *static_cast<const Subject*>(user);
  if (count != 5) return 1;
  const int64_t B = t[0].shape[0], H = t[0].shape[1], D = t[0].shape[2], Dv = t[4].shape[2];
  const int64_t columns = t[2].shape[1];
  for (int64_t b = 0; b < B; ++b) {
    const auto key = [&](int64_t j) {
      const auto page = static_cast<int64_t>(t[2].input[b * columns + j / 128]);
      return t[1].input + (page * 128 + j % 128) * D;
    };
    for (int64_t h = 0; h < H; ++h) {
      const int64_t row = b * H + h;
      const Attend attend{t[0].input + row * D, D, Dv, scalars[0].f, subject.dtype};
      attend(static_cast<int64_t>(t[3].input[b]), key, key, t[4].expected + row * Dv,
             t[4].bound + row * Dv);
    }
  }
  return 0;
}

struct Case {
  std::string backend;
  Values values;
  std::vector<Dims> dims;
};

// `scale`: the program's scalar; 0: its init clause gives it.
void Check(const std::string& program, tl_oracle oracle, const Case& c, const Subject& subject,
           double scale) {
  tl_context* context = families::SharedContext();
  const int32_t device = families::FindDevice(context, c.backend);
  if (device < 0) GTEST_SKIP() << "no device of " << c.backend;
  const Kernel kernel = families::Compile(context, ReadProgram(program), c.values, device);
  ASSERT_TRUE(kernel);
  tl_scalar scalar;
  scalar.f = scale;
  uint64_t seed = 1;
  for (const Dims& dims : c.dims) {
    tl_check_options options = families::Sized<tl_check_options>();
    options.device = device;
    options.dims = dims.data();
    options.num_dims = static_cast<uint32_t>(dims.size());
    options.seed = seed++;
    options.scalars = scale != 0 ? &scalar : nullptr;
    options.num_scalars = scale != 0 ? 1 : 0;
    options.oracle = oracle;
    options.oracle_user = const_cast<Subject*>(&subject);
    tl_check_result result = families::Sized<tl_check_result>();
    const tl_status status = tl_check(kernel.get(), &options, &result);
    EXPECT_EQ(status, TL_OK) << c.backend << " " << families::Show(c.values) << "at "
                             << families::Show(dims) << ": " << families::LastError();
    const bool no_queries = oracle == &AttentionOracle && dims[3] == 0;
    EXPECT_EQ(result.compared == 0, no_queries) << families::Show(dims);
  }
}

// B, H, Hkv, Sq, Sk: odd sizes, grouped heads, no keys, no queries, rows that see no key.
const std::vector<Dims> kAttention = {{1, 1, 1, 64, 64}, {2, 4, 2, 19, 37}, {1, 2, 1, 5, 0},
                                      {1, 2, 2, 70, 9},  {1, 1, 1, 1, 70},  {1, 3, 1, 0, 8}};

Values Small(const std::string& dtype, bool causal) {
  return {{"t", dtype}, {"causal", causal ? "on" : "off"}, {"D", "16"}, {"Dv", "8"}, {"bm", "64"},
          {"bn", "16"}};
}

void CheckAttention(const std::string& backend, const std::string& name, tl_dtype dtype) {
  for (bool causal : {false, true}) {
    const Subject subject{dtype, causal};
    Values values = Small(name, causal);
    Check("attention.tl", &AttentionOracle, {backend, values, kAttention}, subject, 0.375);
    for (auto& [key, value] : values) {
      if (key == "bm") value = "128";
    }
    values.push_back({"stages", "2"});
    values.push_back({"turns", "on"});
    Check("attention.tl", &AttentionOracle, {backend, values, kAttention}, subject, 0.375);
  }
}

TEST(Attention, Reference) {
  CheckAttention("reference", "bf16", TL_BF16);
  CheckAttention("reference", "f32", TL_F32);
}

TEST(Attention, Cpu) {
  CheckAttention("cpu", "bf16", TL_BF16);
  CheckAttention("cpu", "f16", TL_F16);
  CheckAttention("cpu", "f32", TL_F32);
}

// As written: D = 128, the first configuration.
TEST(Attention, CpuAsWritten) {
  const Subject plain{TL_BF16, false}, causal{TL_BF16, true};
  const std::vector<Dims> dims = {{1, 2, 1, 130, 161}, {1, 1, 1, 129, 20}, {1, 1, 1, 3, 0}};
  Check("attention.tl", &AttentionOracle, {"cpu", {}, dims}, plain, 0.125);
  Check("attention.tl", &AttentionOracle, {"cpu", {{"causal", "on"}}, dims}, causal, 0.125);
}

// B, H, L, pages, P: one run, more runs than units, no length at all, pages in any order.
const std::vector<Dims> kMla = {{1, 64, 128, 1, 1},   {3, 64, 300, 9, 1},   {3, 64, 300, 12, 4},
                                {4, 64, 1000, 40, 3}, {2, 128, 260, 6, 16}, {3, 64, 0, 4, 2},
                                {5, 64, 1, 5, 7},     {2, 64, 129, 4, 5}};

Values SmallMla(const std::string& dtype) { return {{"t", dtype}, {"Dv", "32"}, {"Dr", "16"}}; }

TEST(MlaDecode, Reference) {
  Check("mla_decode.tl", &MlaOracle, {"reference", SmallMla("bf16"), kMla}, {TL_BF16, false}, 0);
  Check("mla_decode.tl", &MlaOracle, {"reference", SmallMla("f32"), kMla}, {TL_F32, false}, 0);
}

TEST(MlaDecode, Cpu) {
  Check("mla_decode.tl", &MlaOracle, {"cpu", SmallMla("bf16"), kMla}, {TL_BF16, false}, 0);
  Check("mla_decode.tl", &MlaOracle, {"cpu", SmallMla("f32"), kMla}, {TL_F32, false}, 0);
}

TEST(MlaDecode, CpuAsWritten) {
  Check("mla_decode.tl", &MlaOracle, {"cpu", {}, {{2, 64, 500, 8, 3}}}, {TL_BF16, false}, 0);
}

}  // namespace
