// The two programs of tests/programs, through the C interface, against the plain formula in
// float64: softmax(scale·q·k)·v of one row of weights after the other.
#include <fstream>
#include <iterator>

#include "tests/abi/families_testing.h"
#include "tests/oracle/attention.h"

namespace {

using families::Dims;
using families::Kernel;
using families::Values;
using oracle::Attention;

std::string ReadProgram(const std::string& name) {
  std::ifstream file(std::string(TL_SOURCE_DIR) + "/tests/programs/" + name);
  EXPECT_TRUE(file) << name;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// Both programs take the scale of powers of 2.
Attention Of(tl_dtype t, bool causal) {
  return {.t = t, .causal = causal, .base_2 = true, .page = 128};
}

struct Case {
  std::string backend;
  Values values;
  std::vector<Dims> dims;
};

// `scale`: the program's scalar; 0: its init clause gives it.
void Check(const std::string& program, tl_oracle oracle, const Case& c, const Attention& subject,
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
    options.oracle_user = const_cast<Attention*>(&subject);
    tl_check_result result = families::Sized<tl_check_result>();
    const tl_status status = tl_check(kernel.get(), &options, &result);
    EXPECT_EQ(status, TL_OK) << c.backend << " " << families::Show(c.values) << "at "
                             << families::Show(dims) << ": " << families::LastError();
    const bool no_queries = oracle == &oracle::CheckAttention && dims[3] == 0;
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
    const Attention subject = Of(dtype, causal);
    Values values = Small(name, causal);
    Check("attention.tl", &oracle::CheckAttention, {backend, values, kAttention}, subject, 0.375);
    for (auto& [key, value] : values) {
      if (key == "bm") value = "128";
    }
    values.push_back({"stages", "2"});
    values.push_back({"turns", "on"});
    Check("attention.tl", &oracle::CheckAttention, {backend, values, kAttention}, subject, 0.375);
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
  const Attention plain = Of(TL_BF16, false), causal = Of(TL_BF16, true);
  const std::vector<Dims> dims = {{1, 2, 1, 130, 161}, {1, 1, 1, 129, 20}, {1, 1, 1, 3, 0}};
  Check("attention.tl", &oracle::CheckAttention, {"cpu", {}, dims}, plain, 0.125);
  Check("attention.tl", &oracle::CheckAttention, {"cpu", {{"causal", "on"}}, dims}, causal, 0.125);
}

// B, H, L, pages, P: one run, more runs than units, no length at all, pages in any order.
const std::vector<Dims> kMla = {{1, 64, 128, 1, 1},   {3, 64, 300, 9, 1},   {3, 64, 300, 12, 4},
                                {4, 64, 1000, 40, 3}, {2, 128, 260, 6, 16}, {3, 64, 0, 4, 2},
                                {5, 64, 1, 5, 7},     {2, 64, 129, 4, 5}};

Values SmallMla(const std::string& dtype) { return {{"t", dtype}, {"Dv", "32"}, {"Dr", "16"}}; }

TEST(MlaDecode, Reference) {
  Check("mla_decode.tl", &oracle::CheckMlaDecode, {"reference", SmallMla("bf16"), kMla},
        Of(TL_BF16, false), 0);
  Check("mla_decode.tl", &oracle::CheckMlaDecode, {"reference", SmallMla("f32"), kMla},
        Of(TL_F32, false), 0);
}

TEST(MlaDecode, Cpu) {
  Check("mla_decode.tl", &oracle::CheckMlaDecode, {"cpu", SmallMla("bf16"), kMla},
        Of(TL_BF16, false), 0);
  Check("mla_decode.tl", &oracle::CheckMlaDecode, {"cpu", SmallMla("f32"), kMla}, Of(TL_F32, false),
        0);
}

TEST(MlaDecode, CpuAsWritten) {
  Check("mla_decode.tl", &oracle::CheckMlaDecode, {"cpu", {}, {{2, 64, 500, 8, 3}}},
        Of(TL_BF16, false), 0);
}

}  // namespace
