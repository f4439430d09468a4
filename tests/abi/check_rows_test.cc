// The families that work element by element and row by row, on every backend with a device here,
// against their oracles.
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/abi/families_testing.h"
#include "tests/oracle/elementwise.h"
#include "tests/oracle/norms.h"
#include "tests/oracle/rope.h"
#include "tests/oracle/silu_and_mul.h"
#include "tl/tl.h"

namespace families {
namespace {

using oracle::Activation;
using oracle::Elementwise;
using oracle::Other;

struct Type {
  const char* name;
  tl_dtype dtype;
};
constexpr Type kBf16{"bf16", TL_BF16}, kF16{"f16", TL_F16}, kF32{"f32", TL_F32};
constexpr Type kFloats[] = {kBf16, kF16, kF32};

class RowsTest : public FamilyTest {
 protected:
  void CheckElementwise(const char* op, const Type& type, const Type& out, Other with) {
    constexpr const char* kWith[] = {"whole", "whole", "row", "col", "scalar"};
    Elementwise e{oracle::FindElementwiseOp(op), with, type.dtype, out.dtype};
    ASSERT_NE(e.op, nullptr) << op;
    const Values values = {
        {"op", op}, {"t", type.name}, {"ty", out.name}, {"with", kWith[static_cast<int>(with)]}};
    CheckSizes("elementwise", values, oracle::CheckElementwise, &e,
               {{1, 4099}, {37, 129}, {0, 5}, {5, 0}, {1, 1}});
  }
};

TEST_P(RowsTest, ElementwiseOfOne) {
  for (const char* op : {"cast", "neg", "abs", "relu", "square", "sqrt", "rsqrt", "exp", "log",
                         "sigmoid", "tanh", "silu", "gelu", "gelu_tanh"}) {
    CheckElementwise(op, kBf16, kBf16, Other::kNone);
    CheckElementwise(op, kF32, kF32, Other::kNone);
  }
}

TEST_P(RowsTest, ElementwiseOfTwo) {
  for (const char* op : {"add", "sub", "mul", "div", "max", "min"}) {
    CheckElementwise(op, kF16, kF16, Other::kWhole);
    CheckElementwise(op, kF32, kBf16, Other::kRow);
  }
  for (const Other with : {Other::kRow, Other::kCol, Other::kScalar}) {
    CheckElementwise("mul", kBf16, kF32, with);
    CheckElementwise("sub", {"f64", TL_F64}, {"f64", TL_F64}, with);
  }
}

TEST_P(RowsTest, ElementwiseOfInts) {
  const Type ints[] = {{"i8", TL_I8},   {"u8", TL_U8},   {"i16", TL_I16}, {"u16", TL_U16},
                       {"i32", TL_I32}, {"u32", TL_U32}, {"i64", TL_I64}};
  for (const Type& type : ints) CheckElementwise("sub", type, type, Other::kWhole);
  for (const char* op : {"neg", "abs", "relu", "square"}) {
    CheckElementwise(op, ints[0], ints[0], Other::kNone);
  }
  for (const char* op : {"add", "mul", "max", "min"}) {
    CheckElementwise(op, ints[4], ints[4], Other::kScalar);
  }
}

TEST_P(RowsTest, ElementwiseConverts) {
  const Type e4m3{"e4m3", TL_E4M3}, e5m2{"e5m2", TL_E5M2}, i8{"i8", TL_I8}, f64{"f64", TL_F64};
  const Type pairs[][2] = {{kF32, kBf16}, {kBf16, kF32}, {kF32, e4m3}, {e5m2, kF16},
                           {i8, kF32},    {f64, kF32},   {kF16, e5m2}, {e4m3, e4m3}};
  for (const auto& [from, to] : pairs) CheckElementwise("cast", from, to, Other::kNone);
}

// One column to more than a block holds at a time.
const std::vector<Dims> kRows = {{0, 5},   {3, 0},   {1, 1},    {5, 8},    {9, 160},
                                 {7, 229}, {3, 257}, {2, 1024}, {5, 1025}, {3, 5003}};

TEST_P(RowsTest, RmsNorm) {
  for (const Type& type : kFloats) {
    for (int flags = 0; flags < 8; ++flags) {
      oracle::Norm norm{type.dtype};
      norm.weight = flags & 1;
      norm.residual = flags & 2;
      norm.silu = flags & 4;
      const Values values = {{"t", type.name},
                             {"tw", flags & 2 ? "f32" : type.name},
                             {"weight", Bool(norm.weight)},
                             {"residual", Bool(norm.residual)},
                             {"silu", Bool(norm.silu)}};
      CheckSizes("rms_norm", values, oracle::CheckRmsNorm, &norm, kRows);
    }
  }
}

TEST_P(RowsTest, LayerNorm) {
  for (const Type& type : kFloats) {
    for (int flags = 0; flags < 4; ++flags) {
      oracle::Norm norm{type.dtype};
      norm.weight = flags & 1;
      norm.bias = flags & 2;
      const Values values = {{"t", type.name},
                             {"tw", flags == 3 ? "f32" : type.name},
                             {"weight", Bool(norm.weight)},
                             {"bias", Bool(norm.bias)}};
      CheckSizes("layer_norm", values, oracle::CheckLayerNorm, &norm, kRows);
    }
  }
}

// A dim known when compiling takes one side of the program only.
TEST_P(RowsTest, NormsOfFixedRows) {
  for (const char* c : {"0", "1", "160", "4096"}) {
    oracle::Norm norm{TL_BF16};
    CheckSizes("rms_norm", {{"C", c}}, oracle::CheckRmsNorm, &norm, {{0}, {1}, {9}});
    norm.bias = true;
    CheckSizes("layer_norm", {{"C", c}}, oracle::CheckLayerNorm, &norm, {{0}, {1}, {9}});
  }
}

TEST_P(RowsTest, SiluAndMul) {
  const struct {
    const char* name;
    Activation act;
  } acts[] = {{"silu", Activation::kSilu},
              {"gelu", Activation::kGelu},
              {"gelu_tanh", Activation::kGeluTanh},
              {"relu", Activation::kRelu},
              {"sigmoid", Activation::kSigmoid}};
  for (const auto& [name, act] : acts) {
    for (const Type& type : kFloats) {
      oracle::SiluAndMul f{type.dtype, act};
      CheckSizes("silu_and_mul", {{"t", type.name}, {"act", name}}, oracle::CheckSiluAndMul, &f,
                 {{0, 8}, {8, 0}, {1, 1}, {3, 77}, {5, 64}, {2, 4100}});
    }
  }
}

TEST_P(RowsTest, Rope) {
  const struct {
    const char *depth, *rotated;
  } shapes[] = {{"128", "128"}, {"64", "64"}, {"96", "32"}, {"80", "80"}, {"6", "2"}};
  for (const bool interleaved : {false, true}) {
    for (const auto& [depth, rotated] : shapes) {
      for (const Type& type : kFloats) {
        oracle::Rope rope{type.dtype, std::stoi(rotated), interleaved};
        const Values values = {{"t", type.name},
                               {"tt", interleaved ? type.name : "f32"},
                               {"D", depth},
                               {"R", rotated},
                               {"style", interleaved ? "interleaved" : "half"}};
        // Tokens, heads, positions.
        CheckSizes("rope", values, oracle::CheckRope, &rope,
                   {{5, 32, 40}, {0, 8, 4}, {3, 1, 1}, {2, 17, 9}, {4, 0, 9}});
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(On, RowsTest, testing::ValuesIn(Present({"reference", "cpu", "cuda"})),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace families
