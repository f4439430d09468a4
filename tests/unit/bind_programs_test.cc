// Whole programs of tests/programs and the builtin families: they print back identically, bind, and
// what is printed of the bound program binds to the same again.
#include <fstream>
#include <iterator>

#include "service/families.h"
#include "tests/unit/bind_testing.h"

namespace tl {
namespace {

std::string ReadProgram(std::string_view name) {
  std::ifstream file(absl::StrCat(TL_SOURCE_DIR, "/tests/programs/", name));
  EXPECT_TRUE(file) << name;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

void ExpectRoundTrips(std::string_view text, const std::vector<Values>& all_values) {
  const StatusOr<syntax::Program> program = syntax::Parse(text);
  ASSERT_TRUE(program.ok()) << Describe(program.status());
  const std::string printed = syntax::Print(*program);
  const StatusOr<syntax::Program> again = syntax::Parse(printed);
  ASSERT_TRUE(again.ok()) << Describe(again.status());
  EXPECT_EQ(syntax::Print(*again), printed);
  for (const Values& values : all_values) {
    for (std::string_view target : {"", "cpu", "cuda"}) {
      const StatusOr<Module> module = BindText(text, values, target);
      ASSERT_TRUE(module.ok()) << Describe(module.status());
      ExpectStable(*module);
      // The printed program means what the program as written means.
      const StatusOr<Module> reprinted = BindText(printed, values, target);
      ASSERT_TRUE(reprinted.ok()) << Describe(reprinted.status());
      EXPECT_EQ(CanonicalText(*reprinted), CanonicalText(*module));
    }
  }
}

TEST(BindPrograms, Attention) {
  ExpectRoundTrips(ReadProgram("attention.tl"),
                   {{},
                    {{"causal", "on"}, {"turns", "on"}, {"stages", "2"}, {"bm", "192"}},
                    {{"t", "f32"}, {"D", "16"}, {"Dv", "8"}, {"bm", "64"}, {"bn", "8"}},
                    {{"B", "1"}, {"H", "8"}, {"Hkv", "2"}, {"Sq", "4096"}, {"Sk", "4096"}}});
}

TEST(BindPrograms, MlaDecode) {
  ExpectRoundTrips(ReadProgram("mla_decode.tl"),
                   {{}, {{"t", "f32"}, {"Dv", "32"}, {"Dr", "16"}}, {{"B", "3"}, {"P", "132"}}});
}

TEST(BindPrograms, EveryConstruct) {
  std::ifstream file(absl::StrCat(TL_SOURCE_DIR, "/docs/tile-ir.md"));
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const size_t begin = text.find("tl 1.0\n"), end = text.find("```", begin);
  ASSERT_LT(end, text.size());
  ExpectRoundTrips(text.substr(begin, end - begin), {{}, {{"t", "bf16"}, {"M", "7"}}});
}

TEST(BindPrograms, Families) {
  for (const FamilySource& family : BuiltinFamilies()) {
    SCOPED_TRACE(family.name);
    ExpectRoundTrips(family.text, {{}});
  }
}

}  // namespace
}  // namespace tl
