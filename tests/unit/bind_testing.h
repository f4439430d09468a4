// What the tests of the binder share: programs around a piece of text, and errors as one line.
#ifndef TILEJIT_TESTS_UNIT_BIND_TESTING_H_
#define TILEJIT_TESTS_UNIT_BIND_TESTING_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ir/bind.h"
#include "ir/syntax.h"
#include "ir/unparse.h"
#include "ir/verify.h"

namespace tl {

using Values = std::vector<std::pair<std::string, std::string>>;

inline StatusOr<Module> BindText(std::string_view text, const Values& values = {},
                                 std::string_view target_class = "") {
  TL_ASSIGN_OR_RETURN(const syntax::Program program, syntax::Parse(text, syntax::kPrintedLimits));
  TL_ASSIGN_OR_RETURN(Module module,
                      Bind(program, {.values = values, .target_class = std::string(target_class)}));
  TL_RETURN_IF_ERROR(Verify(module, Level::kTile));
  return module;
}

inline std::string InKernel(std::string_view body, std::string_view signature = "") {
  return absl::StrCat("tl 1.0\nkernel k(", signature, ") {\n", body, "\n}\n");
}

// One of everything that statements work on.
inline constexpr std::string_view kDeclarations = R"(
  in X: tensor<f32>[M, N], H: tensor<f16>[M, N], I: tensor<i32>[M], D: tensor<f64>[M]
  in alpha: f32, n: i32, bias: tensor<f32>[N] if flag
  out Y: tensor<f32>[M, N]
  inout Z: tensor<i32>[M], W: tensor<u8>[M]
  even = M / 2
)";
inline constexpr std::string_view kTiles = R"(
    s = alloc_shared<f32>[16, 8]  f = alloc_fragment<f32>[16, 8]  v = alloc_fragment<f32>[16]
    h = alloc_fragment<f16>[16, 8]  i = alloc_fragment<i32>[16]  b = alloc_fragment<bool>[16, 8]
    d = alloc_fragment<f64>[16]  r = alloc_reducer<f32, sum>[16]  acc = alloc_acc<f32>[16, 16]
    loc = alloc_local<f32>[4]  c = alloc_chan<f32>[16]  count = alloc_var<i32>(0)
    part = view s[4, 0] [8, 8]
)";
inline std::string InLaunch(std::string_view body, std::string_view head = "m in M groups=2") {
  return absl::StrCat(
      "tl 1.0\n"
      "kernel k(M: dim, N: dim; t: dtype = f32, a: int = 4, flag: bool = false, act: enum {none, "
      "relu} = none) {",
      kDeclarations, "  launch ", head, " {", kTiles, body, "\n  }\n}\n");
}

// `text` with the mark '@' where an error is expected to start, taken out.
struct Marked {
  explicit Marked(std::string text_with_mark) : text(std::move(text_with_mark)) {
    const size_t at = text.find('@');
    if (at == std::string::npos) return;
    text.erase(at, 1);
    line = 1;
    column = 1;
    for (size_t i = 0; i < at; ++i) {
      ++column;
      if (text[i] != '\n') continue;
      ++line;
      column = 1;
    }
  }
  std::string text;
  int line = 0, column = 0;  // 0: the error has no place
};

inline std::string Describe(const Status& status) {
  const Span span = DetailOf(status).span;
  return absl::StrCat(span.line, ":", span.column, ": ", status.message());
}

// The text binds to the same module again, and so does what is printed of that.
inline void ExpectStable(const Module& module) {
  const std::string text = ToText(module);
  const StatusOr<Module> again = BindText(text);
  ASSERT_TRUE(again.ok()) << Describe(again.status()) << "\n" << text;
  EXPECT_EQ(CanonicalText(*again), CanonicalText(module)) << text;
  const std::string canonical = CanonicalText(module);
  const StatusOr<Module> third = BindText(canonical);
  ASSERT_TRUE(third.ok()) << Describe(third.status()) << "\n" << canonical;
  EXPECT_EQ(CanonicalText(*third), canonical);
}

}  // namespace tl

#endif  // TILEJIT_TESTS_UNIT_BIND_TESTING_H_
