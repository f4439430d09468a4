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

void ExpectBinds(const std::string& family, const Values& values) {
  for (const char* target_class : {"", "cpu", "cuda", "hip"}) {
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
}

}  // namespace
}  // namespace tl
