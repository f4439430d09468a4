// Every builtin family parses, binds for many parameters and means the same when printed and read
// again.
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ir/bind.h"
#include "ir/unparse.h"

namespace tl {
namespace {

using Values = std::vector<std::pair<std::string, std::string>>;

std::string ReadFamily(const std::string& name) {
  std::ifstream file(absl::StrCat(TL_SOURCE_DIR, "/kernels/", name, ".tl"));
  EXPECT_TRUE(file) << name;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

StatusOr<Module> BindFamily(const std::string& name, const Values& values,
                            const std::string& target_class = "") {
  TL_ASSIGN_OR_RETURN(const syntax::Program program, syntax::Parse(ReadFamily(name)));
  return Bind(program, {.values = values, .target_class = target_class});
}

std::string Show(const Values& values) {
  std::string text;
  for (const auto& [name, value] : values) absl::StrAppend(&text, name, "=", value, " ");
  return text;
}

// The text of a bound module, read and bound again, is the same module.
void ExpectRoundTrip(const Module& module) {
  const std::string text = ToText(module);
  const StatusOr<syntax::Program> program = syntax::Parse(text);
  ASSERT_TRUE(program.ok()) << program.status() << "\n" << text;
  const StatusOr<Module> again = Bind(*program, {});
  ASSERT_TRUE(again.ok()) << again.status() << "\n" << text;
  EXPECT_EQ(CanonicalText(module), CanonicalText(*again));
}

const std::vector<const char*> kNvidiaAndCpu = {"", "cpu", "cuda"};
const std::vector<const char*> kEveryClass = {"", "cpu", "cuda", "hip", "hip gfx1100"};

void ExpectBinds(const std::string& family, const Values& values,
                 const std::vector<const char*>& classes = kEveryClass) {
  for (const char* target_class : classes) {
    SCOPED_TRACE(absl::StrCat(family, " ", Show(values), "for ", target_class));
    const StatusOr<Module> module = BindFamily(family, values, target_class);
    ASSERT_TRUE(module.ok()) << FormatSpan(DetailOf(module.status()).span) << " "
                             << module.status();
    ExpectRoundTrip(*module);
  }
}

TEST(FamiliesTest, VectorAdd) {
  for (const char* t : {"i8", "u8", "i16", "u16", "i32", "u32", "i64", "e4m3", "e5m2", "f16",
                        "bf16", "f32", "f64"}) {
    ExpectBinds("vector_add", {{"t", t}});
    ExpectBinds("vector_add", {{"t", t}, {"N", "0"}});
    ExpectBinds("vector_add", {{"t", t}, {"N", "4097"}, {"block", "512"}});
  }
}

TEST(FamiliesTest, Softmax) {
  for (const char* t : {"f16", "bf16", "f32"}) {
    ExpectBinds("softmax", {{"t", t}});
    ExpectBinds("softmax", {{"t", t}, {"M", "3"}});
    ExpectBinds("softmax", {{"t", t}, {"M", "0"}, {"N", "1"}});
    ExpectBinds("softmax", {{"t", t}, {"N", "4097"}, {"bm", "1"}, {"bn", "1024"}});
  }
}

TEST(FamiliesTest, Gemm) {
  for (const char* t : {"e4m3", "e5m2", "f16", "bf16", "f32", "f64", "i8"}) {
    for (const char* ta : {"false", "true"}) {
      for (const char* tb : {"false", "true"}) {
        ExpectBinds("gemm", {{"t", t}, {"ta", ta}, {"tb", tb}});
        ExpectBinds("gemm", {{"t", t}, {"ta", ta}, {"tb", tb}, {"bias", "on"}, {"act", "relu"}});
      }
    }
    ExpectBinds("gemm", {{"t", t}, {"M", "0"}, {"N", "1"}, {"K", "0"}});
    ExpectBinds("gemm", {{"t", t}, {"N", "8192"}, {"K", "77"}, {"tc", "f32"}});
  }
  for (const char* act : {"none", "relu", "gelu", "gelu_tanh", "silu"}) {
    ExpectBinds("gemm", {{"act", act}});
    ExpectBinds("gemm", {{"act", act}, {"t", "f64"}, {"bias", "true"}});
    ExpectBinds("gemm", {{"act", act}, {"t", "e4m3"}, {"tc", "bf16"}});
  }
}

// Every value of every bool, enum and dtype parameter binds, with the others at their defaults.
TEST(FamiliesTest, Rows) {
  for (const char* op : {"cast", "neg", "abs", "relu", "square", "sqrt", "rsqrt", "exp", "log",
                         "sigmoid", "tanh", "silu", "gelu", "gelu_tanh"}) {
    ExpectBinds("elementwise", {{"op", op}});
    ExpectBinds("elementwise", {{"op", op}, {"t", "f64"}, {"M", "1"}, {"N", "0"}});
  }
  for (const char* op : {"add", "sub", "mul", "div", "max", "min"}) {
    for (const char* with : {"whole", "row", "col", "scalar"}) {
      ExpectBinds("elementwise", {{"op", op}, {"with", with}, {"t", "f16"}, {"ty", "f32"}});
    }
  }
  for (const char* t : {"f16", "bf16", "f32"}) {
    for (const char* flag : {"false", "true"}) {
      ExpectBinds("rms_norm", {{"t", t}, {"residual", flag}, {"silu", flag}, {"tw", "f32"}});
      ExpectBinds("rms_norm", {{"t", t}, {"weight", flag}, {"C", "160"}});
      ExpectBinds("layer_norm", {{"t", t}, {"weight", flag}});
      ExpectBinds("layer_norm", {{"t", t}, {"bias", flag}, {"C", "4096"}});
    }
    for (const char* act : {"silu", "gelu", "gelu_tanh", "relu", "sigmoid"}) {
      ExpectBinds("silu_and_mul", {{"t", t}, {"act", act}});
    }
    for (const char* style : {"half", "interleaved"}) {
      ExpectBinds("rope", {{"t", t}, {"style", style}});
      ExpectBinds("rope", {{"t", t}, {"style", style}, {"D", "96"}, {"R", "32"}, {"tt", t}});
    }
  }
}

TEST(FamiliesTest, Attention) {
  for (const char* t : {"f16", "bf16", "f32"}) {
    for (const char* flag : {"false", "true"}) {
      for (const char* depth : {"64", "96", "128", "192", "256"}) {
        const Values values = {{"t", t}, {"D", depth}, {"causal", flag}, {"lse", flag}};
        // Rows of 1 KiB: a wave's queries and one step of keys and values take all that AMD has.
        const bool too_large = t == std::string("f32") && depth == std::string("256");
        ExpectBinds("attention", values, too_large ? kNvidiaAndCpu : kEveryClass);
        ExpectBinds("attention_decode", {{"t", t}, {"D", depth}, {"paged", flag}, {"lse", flag}});
      }
      ExpectBinds("attention_decode", {{"t", t}, {"page", "16"}, {"lse", flag}});
      ExpectBinds("mla_decode", {{"t", t}, {"lse", flag}});
      ExpectBinds("moe_topk", {{"t", t}, {"bias", flag}, {"renormalize", flag}});
      ExpectBinds("moe_topk", {{"t", t}, {"score", "sigmoid"}, {"E", "7"}, {"k", "7"}});
    }
  }
}

TEST(FamiliesTest, OtherProducts) {
  for (const char* t : {"e4m3", "e5m2", "f16", "bf16", "f32", "f64", "i8"}) {
    for (const char* flag : {"false", "true"}) {
      ExpectBinds("gemm", {{"t", t}, {"residual", "on"}, {"bias", flag}});
      ExpectBinds("gemm_batched", {{"t", t}, {"ta", flag}, {"tb", flag}});
      ExpectBinds("gemm_split_k", {{"t", t}, {"ta", flag}, {"tb", flag}, {"bias", flag}});
    }
  }
  for (const char* act : {"none", "relu", "gelu", "gelu_tanh", "silu"}) {
    ExpectBinds("gemm_split_k", {{"act", act}, {"residual", "on"}});
  }
}

TEST(FamiliesTest, GemmChoosesItsTypes) {
  const auto types = [](const Values& values) {
    const StatusOr<Module> m = BindFamily("gemm", values);
    EXPECT_TRUE(m.ok()) << m.status();
    std::string text;
    for (const BoundParam& p : m->params) {
      if (p.name == "t" || p.name == "tc" || p.name == "acc") absl::StrAppend(&text, p.value, " ");
    }
    return text;
  };
  EXPECT_EQ(types({}), "bf16 bf16 f32 ");
  EXPECT_EQ(types({{"t", "f64"}}), "f64 f64 f64 ");
  EXPECT_EQ(types({{"t", "i8"}}), "i8 i32 i32 ");
  EXPECT_EQ(types({{"t", "e4m3"}, {"tc", "bf16"}}), "e4m3 bf16 f32 ");
}

TEST(FamiliesTest, WhatMakesNoSenseIsRefused) {
  EXPECT_FALSE(BindFamily("gemm", {{"t", "i8"}, {"act", "gelu"}}).ok());
  EXPECT_FALSE(BindFamily("gemm", {{"act", "swish"}}).ok());
  EXPECT_FALSE(BindFamily("gemm", {{"t", "f64"}, {"bm", "128"}, {"bn", "128"}}).ok());
  EXPECT_FALSE(BindFamily("softmax", {{"N", "-1"}}).ok());
  EXPECT_FALSE(BindFamily("elementwise", {{"op", "exp"}, {"t", "i32"}}).ok());
  EXPECT_FALSE(BindFamily("elementwise", {{"op", "add"}, {"with", "diagonal"}}).ok());
  EXPECT_FALSE(BindFamily("rope", {{"R", "7"}}).ok());
  EXPECT_FALSE(BindFamily("rope", {{"D", "64"}, {"R", "128"}}).ok());
  EXPECT_FALSE(BindFamily("moe_topk", {{"E", "4"}, {"k", "5"}}).ok());
  EXPECT_FALSE(BindFamily("mla_decode", {{"page", "48"}, {"bn", "32"}}).ok());
  EXPECT_FALSE(BindFamily("attention_decode", {{"page", "24"}, {"bn", "64"}}).ok());
}

}  // namespace
}  // namespace tl
