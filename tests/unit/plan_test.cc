// Plans: what they say, and what is said of those that are wrong.
#include "service/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace tl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr char kPlan[] = R"(plan = 1
targets = ["sm_90a", "cpu"]

[[kernel]]
family = "gemm"
[kernel.params]
t = ["bf16", "f16"]
N = [4096, 8192]
relu = true

[[kernel]]
file = "my.tl"
targets = ["H100"]
shared_budget = 65536
params = [{ M = 1 }, { M = [2, 3], t = "f32" }]
dims = { K = [5, 6], L = 7 }

[[kernel]]
source = "tl 1.0"
)";

TEST(PlanTest, ReadsAndMultipliesOut) {
  const StatusOr<Plan> plan = ParsePlan(kPlan);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->targets, ElementsAre("sm_90a", "cpu"));
  ASSERT_EQ(plan->entries.size(), 3u);
  const PlanEntry& gemm = plan->entries[0];
  EXPECT_EQ(gemm.family, "gemm");
  EXPECT_THAT(gemm.targets, IsEmpty());
  EXPECT_EQ(gemm.span.line, 4);
  std::vector<std::string> sets;
  for (const ParamSet& set : gemm.params) {
    EXPECT_EQ(set.size(), 3u);
    sets.push_back(absl::StrCat(set[0].first, "=", set[0].second, " ", set[1].first, "=",
                                set[1].second, " ", set[2].first, "=", set[2].second));
  }
  EXPECT_THAT(sets, ElementsAre("N=4096 relu=true t=bf16", "N=4096 relu=true t=f16",
                                "N=8192 relu=true t=bf16", "N=8192 relu=true t=f16"));
  const PlanEntry& file = plan->entries[1];
  EXPECT_EQ(file.file, "my.tl");
  EXPECT_THAT(file.targets, ElementsAre("H100"));
  EXPECT_EQ(file.shared_budget, 65536);
  EXPECT_THAT(file.params, ElementsAre(ElementsAre(Pair("M", "1")),
                                       ElementsAre(Pair("M", "2"), Pair("t", "f32")),
                                       ElementsAre(Pair("M", "3"), Pair("t", "f32"))));
  EXPECT_THAT(file.dims, ElementsAre(ElementsAre(Pair("K", "5"), Pair("L", "7")),
                                     ElementsAre(Pair("K", "6"), Pair("L", "7"))));
  EXPECT_EQ(file.span.line, 11);
  EXPECT_THAT(gemm.dims, ElementsAre(IsEmpty()));
  EXPECT_THAT(plan->entries[2].params, ElementsAre(IsEmpty()));
}

struct Mistake {
  const char* text;
  const char* message;
  int line;
};

TEST(PlanTest, SaysWhatIsWrongAndWhere) {
  const Mistake mistakes[] = {
      {"plan = ", "the plan is no TOML", 1},
      {"plan = 1\n[[kernel]\n", "the plan is no TOML", 2},
      {"plan = 1\n# caf\xc3\xa9", "a plan is ASCII text", 2},
      {"plan = 1\n[# x]\n", "expected bare key starting character", 2},
      {"", "a plan begins with its version, plan = 1", 1},
      {"plan = 2", "plans of version 2 are not known here", 1},
      {"plan = \"1\"", "'plan' is a string; expected the version", 1},
      {"plan = 1", "the plan has no [[kernel]]", 1},
      {"plan = 1\nkernel = 3", "'kernel' is an integer; expected tables named [[kernel]]", 2},
      {"plan = 1\n[kernel]\nfamily = \"gemm\"", "'kernel' is a table; expected tables named", 2},
      {"plan = 1\nkernel = [1]", "'kernel' is an integer; expected tables", 2},
      {"plan = 1\ntarget = []",
       "no key 'target'; it has plan, targets, kernel; did you mean "
       "'targets'?",
       2},
      {"plan = 1\ntargets = \"cpu\"", "'targets' is a string; expected a list like", 2},
      {"plan = 1\ntargets = []", "'targets' is a list; expected a list like", 2},
      {"plan = 1\ntargets = [7]", "'targets' is an integer; expected names of targets", 2},
      {"plan = 1\n[[kernel]]", "names exactly one of family, file and source", 2},
      {"plan = 1\n[[kernel]]\nfamily = \"a\"\nfile = \"b\"", "exactly one of family", 2},
      {"plan = 1\n[[kernel]]\nfamily = \"\"", "'family' is empty", 3},
      {"plan = 1\n[[kernel]]\nfamily = 1", "'family' is an integer; expected a string", 3},
      {"plan = 1\n[[kernel]]\nfamly = \"gemm\"", "did you mean 'family'?", 3},
      {"plan = 1\n[[kernel]]\nsource = \"a\\u0000\"", "'source' contains a NUL", 3},
      {"plan = 1\n[[kernel]]\nfile = \"a\"\nshared_budget = -1", "expected bytes, from 0 up", 4},
      {"plan = 1\n[[kernel]]\nfile = \"a\"\nparams = 1", "expected a table of values", 4},
      {"plan = 1\n[[kernel]]\nfile = \"a\"\nparams = []", "expected a table of values", 4},
      {"plan = 1\n[[kernel]]\nfile = \"a\"\nparams = [[1]]", "expected a table of values", 4},
      {"plan = 1\n[[kernel]]\nfile = \"a\"\nparams = { x = 1.5 }", "'x' is a float; expected", 4},
      {"plan = 1\n[[kernel]]\nfile = \"a\"\nparams = { x = [] }", "'x' is an empty list", 4},
      {"plan = 1\n[[kernel]]\nfile = \"a\"\nparams = { x = [[1]] }", "'x' is a list; expected", 4},
      {"plan = 1\n[[kernel]]\nfile = \"a\"\nparams = { x = \"\" }", "'x' is empty", 4},
      {"plan = 1\n[[kernel]]\nfile = \"a\"\nparams = { x = 1979-05-27 }", "'x' is a date", 4},
      {"plan = 1\n[[kernel]]\nfile = \"a\"\ndims = 1", "'dims' is an integer; expected a table", 4},
      {"plan = 1\n[[kernel]]\nfile = \"a\"\ndims = { M = \"f32\" }",
       "the dim 'M' is 'f32'; a dim is a number from 0 up", 4},
      {"plan = 1\n[[kernel]]\nfile = \"a\"\ndims = { M = -1 }", "the dim 'M' is '-1'", 4},
  };
  for (const Mistake& m : mistakes) {
    SCOPED_TRACE(m.text);
    const StatusOr<Plan> plan = ParsePlan(m.text);
    ASSERT_FALSE(plan.ok());
    EXPECT_TRUE(absl::IsInvalidArgument(plan.status())) << plan.status();
    EXPECT_THAT(std::string(plan.status().message()), HasSubstr(m.message));
    EXPECT_EQ(DetailOf(plan.status()).span.line, m.line) << plan.status().message();
  }
}

TEST(PlanTest, HasLimits) {
  // Six lists of ten make a million.
  std::string list = "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]";
  std::string plan = "plan = 1\n[[kernel]]\nfamily = \"gemm\"\n[kernel.params]\n";
  for (char name = 'a'; name < 'g'; ++name)
    absl::StrAppend(&plan, std::string(1, name), " = ", list, "\n");
  Status status = ParsePlan(plan).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("more than 100000 parameter sets"));
  // Entries count together.
  plan = "plan = 1\n";
  for (int i = 0; i < 11; ++i) {
    absl::StrAppend(&plan, "[[kernel]]\nfamily = \"gemm\"\nparams = {a = ", list, ", b = ", list,
                    ", c = ", list, ", d = ", list, "}\n");
  }
  EXPECT_TRUE(absl::IsResourceExhausted(ParsePlan(plan).status()));
  // So does each with every set of dims.
  plan = "plan = 1\n[[kernel]]\nfamily = \"gemm\"\nparams = {a = " + list + ", b = " + list +
         ", c = " + list + "}\ndims = {d = " + list + ", e = " + list + ", f = [1, 2]}\n";
  EXPECT_TRUE(absl::IsResourceExhausted(ParsePlan(plan).status()));
  status = ParsePlan(std::string(kMaxPlanBytes + 1, '#')).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("the limit is 4194304"));
  // Depth is the reader's to limit.
  EXPECT_FALSE(ParsePlan("plan = 1\nx = " + std::string(100'000, '[')).ok());
}

// What a sealed context writes into its error is a plan for just that.
TEST(PlanTest, WritesWhatItReads) {
  const char* const kTexts[] = {
      "tl 1.0\nkernel k(N: dim) {\n  # \"quotes\", 'more', \\ and \t\n}\n",
      "'''",
      "\"\"\"\n'''",
      "\n\n# lines",
      "one\r\ntwo",
      "tl 1.0 \x01\x7f \xc3\xa4"};
  for (const char* text : kTexts) {
    CompileRequest request;
    request.source = text;
    request.params = {{"N", "4096"}, {"a b", "x\"y"}};
    request.shared_budget = 4711;
    const std::string written = PlanFor(request, "sm_90a");
    const StatusOr<Plan> plan = ParsePlan(written);
    ASSERT_TRUE(plan.ok()) << plan.status() << "\n" << written;
    ASSERT_EQ(plan->entries.size(), 1u);
    const PlanEntry& entry = plan->entries[0];
    EXPECT_EQ(entry.source, text) << written;
    EXPECT_THAT(entry.targets, ElementsAre("sm_90a"));
    EXPECT_EQ(entry.shared_budget, 4711);
    EXPECT_THAT(entry.params, ElementsAre(ElementsAre(Pair("N", "4096"), Pair("a b", "x\"y"))));
  }
  CompileRequest request;
  request.family = "gemm";
  const StatusOr<Plan> plan = ParsePlan(PlanFor(request, "cpu"));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->entries[0].family, "gemm");
  EXPECT_THAT(plan->entries[0].params, ElementsAre(IsEmpty()));
}

}  // namespace
}  // namespace tl
