// The families of attention and of routing, on every backend with a device here, against their
// oracles.
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/abi/families_testing.h"
#include "tests/oracle/attention.h"
#include "tests/oracle/moe_topk.h"
#include "tl/tl.h"

namespace families {
namespace {

using oracle::Attention;
using oracle::MoeTopk;

struct Type {
  const char* name;
  tl_dtype dtype;
};
constexpr Type kTypes[] = {{"bf16", TL_BF16}, {"f16", TL_F16}, {"f32", TL_F32}};

class AttentionTest : public FamilyTest {};
// Slow in the interpreter, and there the same program as with other numbers.
class LargeAttentionTest : public AttentionTest {};

// B, H, Hkv, Sq, Sk: odd sizes, shared heads, no keys, no queries, rows that see no key.
const std::vector<Dims> kForward = {{1, 1, 1, 64, 64}, {2, 4, 2, 19, 37}, {1, 2, 1, 5, 0},
                                    {1, 2, 2, 70, 9},  {1, 1, 1, 1, 70},  {1, 3, 1, 0, 8},
                                    {0, 2, 1, 4, 4},   {1, 1, 1, 1, 1}};

TEST_P(AttentionTest, Forward) {
  for (const Type& type : kTypes) {
    for (int flags = 0; flags < 4; ++flags) {
      Attention attention{.t = type.dtype, .causal = (flags & 1) != 0, .lse = (flags & 2) != 0};
      const Values values = {{"t", type.name},
                             {"causal", Bool(attention.causal)},
                             {"lse", Bool(attention.lse)},
                             {"D", "16"},
                             {"Dv", flags == 3 ? "24" : "16"}};
      CheckSizes("attention", values, oracle::CheckAttention, &attention, kForward);
    }
  }
}

TEST_P(LargeAttentionTest, HeadsOfEverySize) {
  for (const char* depth : {"64", "80", "96", "128", "256"}) {
    Attention attention{.t = TL_BF16, .causal = true, .lse = true};
    CheckSizes("attention", {{"D", depth}, {"causal", "on"}, {"lse", "on"}}, oracle::CheckAttention,
               &attention, {{1, 2, 1, 130, 150}, {2, 1, 1, 7, 129}});
  }
}

// B, H, Hkv, Lmax, pages, P: one run, more runs than steps, no tokens, no sequences, pages in any
// order.
const std::vector<Dims> kDecode = {
    {1, 8, 8, 64, 1, 1}, {3, 8, 2, 300, 20, 4}, {2, 5, 1, 129, 9, 1},   {3, 4, 4, 0, 1, 2},
    {0, 2, 1, 64, 1, 3}, {4, 2, 1, 1, 4, 7},    {2, 40, 2, 130, 6, 16}, {1, 1, 1, 1000, 16, 3}};

TEST_P(AttentionTest, Decode) {
  for (const Type& type : kTypes) {
    for (int flags = 0; flags < 4; ++flags) {
      Attention attention{.t = type.dtype, .lse = (flags & 1) != 0, .paged = (flags & 2) != 0};
      const Values values = {{"t", type.name},
                             {"lse", Bool(attention.lse)},
                             {"paged", Bool(attention.paged)},
                             {"D", "32"},
                             {"Dv", flags == 3 ? "16" : "32"}};
      CheckSizes("attention_decode", values, oracle::CheckAttentionDecode, &attention, kDecode);
    }
  }
}

// Pages smaller and larger than a step.
TEST_P(AttentionTest, DecodePages) {
  for (const char* page : {"16", "32", "128"}) {
    Attention attention{.t = TL_BF16, .paged = true, .page = std::stoi(page)};
    CheckSizes("attention_decode", {{"page", page}, {"D", "64"}}, oracle::CheckAttentionDecode,
               &attention, {{3, 4, 2, 200, 39, 5}, {2, 2, 1, 17, 4, 1}});
  }
}

// B, H, Lmax, pages, P.
const std::vector<Dims> kMla = {{1, 64, 128, 2, 1}, {3, 20, 300, 15, 4}, {2, 16, 65, 4, 1},
                                {3, 4, 0, 1, 2},    {0, 4, 64, 1, 2},    {5, 1, 1, 5, 7},
                                {2, 65, 129, 6, 5}, {1, 3, 1000, 16, 3}};

TEST_P(AttentionTest, MlaDecode) {
  for (const Type& type : kTypes) {
    for (const bool lse : {false, true}) {
      Attention attention{.t = type.dtype, .lse = lse};
      const Values values = {{"t", type.name}, {"lse", Bool(lse)}, {"Dv", "32"}, {"Dr", "16"}};
      CheckSizes("mla_decode", values, oracle::CheckMlaDecode, &attention, kMla);
    }
  }
}

TEST_P(LargeAttentionTest, MlaDecodeOfItsOwnSize) {
  Attention attention{.t = TL_BF16, .lse = true};
  CheckSizes("mla_decode", {{"lse", "on"}}, oracle::CheckMlaDecode, &attention,
             {{2, 64, 300, 10, 3}, {1, 16, 65, 2, 1}});
}

TEST_P(AttentionTest, MoeTopk) {
  const struct {
    const char *experts, *k;
  } shapes[] = {{"256", "8"}, {"64", "6"}, {"160", "6"}, {"8", "2"}, {"1", "1"}, {"5", "5"}};
  for (const auto& [experts, k] : shapes) {
    for (int flags = 0; flags < 8; ++flags) {
      MoeTopk topk{(flags & 1) != 0, (flags & 2) != 0, (flags & 4) != 0};
      const Values values = {{"t", kTypes[flags % 3].name},
                             {"E", experts},
                             {"k", k},
                             {"score", topk.sigmoid ? "sigmoid" : "softmax"},
                             {"bias", Bool(topk.bias)},
                             {"renormalize", Bool(topk.renormalize)}};
      CheckSizes("moe_topk", values, oracle::CheckMoeTopk, &topk, {{0}, {1}, {77}});
    }
  }
}

// ---- What stands in memory behind the tokens, and rows that random inputs do not bring

struct Tensors {
  std::vector<void*> pointers;
  template <typename T>
  void Add(std::vector<T>& values) {
    pointers.push_back(values.data());
  }
};

void Launch(tl_kernel* kernel, int32_t device, const Tensors& tensors, const Dims& dims,
            double scale) {
  tl_scalar scalar;
  scalar.f = scale;
  tl_launch_args args = Sized<tl_launch_args>();
  args.device = device;
  args.tensors = tensors.pointers.data();
  args.num_tensors = static_cast<uint32_t>(tensors.pointers.size());
  args.dims = dims.data();
  args.num_dims = static_cast<uint32_t>(dims.size());
  args.scalars = &scalar;
  args.num_scalars = scale == 0 ? 0 : 1;
  size_t bytes = 0;
  ASSERT_EQ(tl_workspace_size(kernel, &args, &bytes), TL_OK) << LastError();
  std::vector<char> workspace(bytes + 256);
  const auto start = reinterpret_cast<uintptr_t>(workspace.data());
  args.workspace = workspace.data() + (256 - start % 256) % 256;
  args.workspace_size = bytes;
  ASSERT_EQ(tl_launch(kernel, &args), TL_OK) << LastError();
}

// A cache holds anything behind the last token of a sequence, NaN too.
TEST_P(AttentionTest, DecodeDoesNotReadBehindTheTokens) {
  if (!on_host()) GTEST_SKIP() << "needs host memory";
  constexpr int64_t kLength = 128, kDepth = 16;
  const float nan = std::nanf("");
  const Kernel kernel =
      Compile(SharedContext(), "attention_decode",
              {{"t", "f32"}, {"D", "16"}, {"paged", "off"}, {"lse", "on"}}, device_);
  ASSERT_NE(kernel, nullptr);
  std::vector<float> q(kDepth, 1), k(2 * kLength * kDepth, nan), v(k), o(2 * kDepth), l(2);
  q.resize(2 * kDepth, 1);
  std::vector<int32_t> len = {3, 67};
  for (int64_t b = 0; b < 2; ++b) {
    for (int64_t i = 0; i < len[b] * kDepth; ++i) {
      k[b * kLength * kDepth + i] = 0;
      v[b * kLength * kDepth + i] = 2;
    }
  }
  Tensors tensors;
  for (auto* t : {&q, &k, &v}) tensors.Add(*t);
  tensors.Add(len);
  tensors.Add(o);
  tensors.Add(l);
  // B, H, Hkv, Lmax, pages, P.
  Launch(kernel.get(), device_, tensors, {2, 1, 1, kLength, 0, 1}, 0.25);
  for (const float value : o) EXPECT_FLOAT_EQ(value, 2);
  for (size_t b = 0; b < 2; ++b) EXPECT_NEAR(l[b], std::log(len[b]), 1e-5);
}

// Masked experts come last, NaN is not chosen before a number.
TEST_P(AttentionTest, MoeTopkOfSpecialRows) {
  if (!on_host()) GTEST_SKIP() << "needs host memory";
  const float inf = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  const Kernel kernel =
      Compile(SharedContext(), "moe_topk", {{"t", "f32"}, {"E", "4"}, {"k", "3"}}, device_);
  ASSERT_NE(kernel, nullptr);
  std::vector<float> x = {-inf, 1, -inf, -inf,  // one expert left
                          2,    2, 2,    2,     // equal ones
                          nan,  1, 3,    2};
  std::vector<float> w(9);
  std::vector<int32_t> chosen(9);
  Tensors tensors;
  tensors.Add(x);
  tensors.Add(w);
  tensors.Add(chosen);
  Launch(kernel.get(), device_, tensors, {3}, 0);
  EXPECT_EQ(chosen, (std::vector<int32_t>{1, 0, 2, 0, 1, 2, 2, 3, 1}));
  const float expected[] = {1, 0, 0, 1.0f / 3, 1.0f / 3, 1.0f / 3};
  for (size_t i = 0; i < std::size(expected); ++i) EXPECT_FLOAT_EQ(w[i], expected[i]) << i;
}

INSTANTIATE_TEST_SUITE_P(On, LargeAttentionTest, testing::ValuesIn(Present({"cpu", "cuda"})),
                         [](const auto& info) { return info.param; });
INSTANTIATE_TEST_SUITE_P(On, AttentionTest,
                         testing::ValuesIn(Present({"reference", "cpu", "cuda"})),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace families
