// Loops that say `partition`: which conditions leave the steady iterations, which do not and why,
// and that all iterations run as before, wherever the cut lies.
#include <algorithm>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "backends/cuda/cuda_backend.h"
#include "backends/reference/reference.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/unparse.h"
#include "ir/visit.h"
#include "passes/pipeline.h"
#include "passes/simplify.h"
#include "tests/unit/cuda_programs.h"
#include "tests/unit/thread_eval.h"

namespace tl {
namespace {

using ::testing::ElementsAre;
using testing::FamilyText;
using ::testing::HasSubstr;
using testing::Values;

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();

Target Simt() {
  Target t;
  t.name = "simt";
  t.simt = true;
  t.default_threads = 4;
  return t;
}

// `v` tells which iterations ran which statements in which order.
Module Bound(std::string_view loop) {
  const std::string text = absl::StrCat(
      "tl 1.0\nkernel k(N: dim) {\n  in L: i64, S: i64, X: tensor<i32>[8]\n"
      "  out Y: tensor<i64>[4]\n  launch m in 1 {\n    v = alloc_var<i64>(1)\n",
      loop, "\n    parallel i in 4 { Y[i] = v }\n  }\n}\n");
  const StatusOr<syntax::Program> program = syntax::Parse(text);
  EXPECT_TRUE(program.ok()) << FormatSpan(DetailOf(program.status()).span) << program.status();
  StatusOr<Module> m = Bind(*program, {});
  EXPECT_TRUE(m.ok()) << FormatSpan(DetailOf(m.status()).span) << " " << m.status();
  return m.ok() ? *std::move(m) : Module();
}

Module Lowered(const Module& tile, const Target& target) {
  StatusOr<Module> m = Lower(tile, target);
  EXPECT_TRUE(m.ok()) << m.status();
  return m.ok() ? *std::move(m) : Module();
}

// How many of the conditions are left in each of the loops, in the order in which they run.
std::vector<int> ConditionsOfLoops(const Block& body) {
  std::vector<int> out;
  for (const StmtRef& s : body) {
    if (!As<For>(s)) continue;
    int conditions = 0;
    VisitStmts(As<For>(s)->body, [&](const StmtRef& inside) { conditions += !!As<If>(inside); });
    out.push_back(conditions);
  }
  return out;
}

struct Case {
  std::string_view loop;        // `for j in` its range and what stands behind
  std::vector<int> conditions;  // of its loops, upwards
};

const std::string_view kStep = " { v = v*3 + j } else { v = v*5 - j }";

// STEP stands for two branches that differ.
const std::vector<Case>& Cases() {
  static const std::vector<Case> cases = {
      // Every comparison, either way round; the index in several forms.
      {"N partition { if j < L STEP }", {0, 0}},
      {"N partition { if j <= L STEP }", {0, 0}},
      {"N partition { if j > L STEP }", {0, 0}},
      {"N partition { if j >= L STEP }", {0, 0}},
      {"N partition { if L < j STEP }", {0, 0}},
      {"N partition { if not (L <= j) STEP }", {0, 0}},
      {"N partition { if 5 - j > L STEP }", {0, 0}},
      {"N partition { if 3*j + 1 < L STEP }", {0, 0}},
      {"N partition { if 2 - 3*j <= L STEP }", {0, 0}},
      {"N partition { if j + L < 2*j + 3 STEP }", {0, 0}},
      {"S..N partition { if 2*j < 3*L STEP }", {0, 0}},
      {"S..N partition { if j - S >= L STEP }", {0, 0}},
      // Through values that the loop makes.
      {"N partition { r = L - j\n q = r*2 + 1\n if q > 0 STEP }", {0, 0}},
      {"N partition { c = j < L\n if c STEP }", {0, 0}},
      {"N partition { w = min(L, 3)\n if w <= j STEP }", {0, 0}},
      // A known number of iterations at an end.
      {"N partition { if j == 0 STEP }", {1, 0}},
      {"N partition { if j != 0 STEP }", {1, 0}},
      {"N partition { if j < 2 STEP }", {0, 0}},
      {"N partition { if j + 2 < N STEP }", {0, 0}},
      {"S..N partition { if j == S STEP }", {1, 0}},
      {"S..N partition { if j == N - 1 STEP }", {0, 1}},
      {"7 partition { if j < 3 STEP }", {0, 0}},
      {"N partition { if j >= 0 STEP }", {0}},
      {"N partition { if j >= N STEP }", {0}},
      // Several conditions: where they are as they are written, each is asked.
      {"N partition { if j < L STEP\n if j < S STEP }", {2, 0}},
      {"N partition { if j < L STEP\n if j == 0 STEP }", {2, 0}},
      {"N partition { if j < L STEP\n if j <= L - 1 STEP }", {0, 0}},
      {"N partition { if j < 1 STEP\n if j >= L STEP }", {1, 0, 1}},
      {"N partition { if j < 2 STEP\n if j >= N - 2 STEP }", {1, 0, 1}},
      {"N partition { if j < L { if j != 0 STEP\n v = v + 1 }\n v = v*7 }", {2, 0}},
      {"N partition { if j < L and j < S STEP }", {0, 0}},
      {"N partition { if j < L or j < S STEP }", {0, 0}},
      {"N partition { if not (j >= L and j >= S) STEP }", {0, 0}},
      {"N partition { if j < 1 or j >= L STEP }", {1, 0, 0}},
      {"N partition { if j >= L and j + 1 >= S STEP }", {0, 0}},
      {"N partition { if j >= 2 and L > 1 and j < L STEP }", {1, 0}},
      // Loops in loops; a bound that changes around the loop; a loop that changes its own end.
      {"N { for i in N partition { if i < j STEP } }", {0}},
      {"N partition { if j < L STEP\n for i in N partition { if i < S STEP } }", {0, 0}},
      {"N partition { for i in N partition { if i < j and j < L STEP } }", {1, 0}},
      {"min(v, 1)*N partition { v = v + 1\n if j < L STEP }", {0, 0}},
  };
  return cases;
}

std::string TextOf(const Case& c, bool down) {
  std::string loop = absl::StrReplaceAll(c.loop, {{"STEP", kStep}});
  if (down) loop = absl::StrReplaceAll(loop, {{"partition", "down partition"}});
  return absl::StrCat("    for j in ", loop);
}

struct Arguments {
  int64_t n, l, s;
};

// v as the reference has it and as the threads do.
std::pair<int64_t, int64_t> WantAndGet(const Module& tile, const Module& lowered,
                                       const Target& target, const Arguments& a) {
  std::vector<int32_t> x = {3, 1, 2, 0, 5, 4, 6, 7};
  std::vector<int64_t> want(4), got(4);
  const std::vector<ScalarValue> scalars = {ScalarValue(a.l), ScalarValue(a.s)};
  const Status s = reference::RunRounded(tile, {{x.data(), want.data()}, {}, {a.n}, {}, scalars});
  EXPECT_TRUE(s.ok()) << s;
  const testing::ThreadEvalArgs args{{x.data(), got.data()}, {}, {a.n}, {}, scalars};
  testing::ThreadEval eval(lowered, args, target.simt ? 4 : 0, 1);
  EXPECT_EQ(eval.Run(), "");
  return {want[0], got[3]};
}

TEST(PartitionLoops, ConditionsLeaveTheSteadyIterations) {
  for (const Case& c : Cases()) {
    for (bool down : {false, true}) {
      const Module tile = Bound(TextOf(c, down));
      const Module lowered = Lowered(tile, Simt());
      std::vector<int> conditions = c.conditions;
      if (down) std::reverse(conditions.begin(), conditions.end());
      EXPECT_EQ(ConditionsOfLoops(lowered.launches[0].body), conditions) << ToText(lowered);
    }
  }
}

TEST(PartitionLoops, IterationsRunAsBefore) {
  Target nested;
  nested.name = "nested";
  const std::vector<int64_t> bounds = {kLeast, -1, 0, 1, 3, 4, 9, kMost};
  for (const Case& c : Cases()) {
    // Sums of two numbers that may be anything are taken not to overflow.
    const std::string_view kAlone[] = {" < L STEP }", "j <= L STEP }", "j > L STEP }",
                                       "j >= L STEP }", "if L < j"};
    const bool alone = absl::c_any_of(
        kAlone, [&](std::string_view text) { return absl::StrContains(c.loop, text); });
    const bool of_s = absl::StrContains(absl::StrReplaceAll(c.loop, {{"STEP", ""}}), "S");
    const std::vector<int64_t> starts =
        of_s ? std::vector<int64_t>{-2, 0, 1, 4} : std::vector<int64_t>{0};
    for (bool down : {false, true}) {
      const Module tile = Bound(TextOf(c, down));
      for (const Target& target : {Simt(), nested}) {
        const Module lowered = Lowered(tile, target);
        for (int64_t n : {0, 1, 2, 5}) {
          for (int64_t l : bounds) {
            if (!alone && (l == kLeast || l == kMost)) continue;
            for (int64_t s : starts) {
              const auto [want, got] = WantAndGet(tile, lowered, target, {n, l, s});
              ASSERT_EQ(got, want) << "N " << n << ", L " << l << ", S " << s << "\n"
                                   << ToText(lowered);
            }
          }
        }
      }
    }
  }
}

// ---- What stays in one piece

struct Refused {
  std::string_view loop, why;
};

TEST(PartitionLoops, SaysWhyNot) {
  const std::string_view alone = "no condition in it is one on its index alone";
  const Refused kCases[] = {
      {"N partition { if j % 2 == 0 STEP }", "is not linear in the index"},
      {"N partition { if j*j < L STEP }", "is not linear in the index"},
      {"N partition { if min(j, 3) < L STEP }", "is not linear in the index"},
      {"N partition { n = n - 1\n if j < n STEP }", "takes 'n', which is made in the loop"},
      {"N partition { if j < n STEP\n n = n + j }", "takes 'n', which is made in the loop"},
      {"N partition { w = n*2\n n = w - 1\n if j < w STEP }",
       "takes 'w', which is made in the loop"},
      {"N partition { if j < X[0] STEP }", "reads an element"},
      {"N partition { if j == L STEP }", "may hold in any one iteration"},
      {"N partition { if j != L STEP }", "may hold in any one iteration"},
      {"N partition { if j < 9223372036854775807 STEP }", "has a number out of range"},
      {"N partition { for i in N { if i < L STEP } }", "takes 'i', which is made in the loop"},
      {"N partition { if L > 3 STEP }", alone},
      {"N partition { if f32(j) < 2.0 STEP }", alone},
      {"N partition { parallel i in 4 { if i + j < L { Y[i] = j } } }", alone},
      {"N partition { v = v + j }", alone},
  };
  for (const Refused& c : kCases) {
    const std::string loop = absl::StrReplaceAll(c.loop, {{"STEP", kStep}});
    const std::string with = absl::StrCat("    n = alloc_var<i64>(L)\n    for j in ", loop);
    const Module lowered = Lowered(Bound(with), Simt());
    EXPECT_THAT(lowered.notes,
                ElementsAre(::testing::AllOf(HasSubstr("loop at 8:5 is not partitioned: "),
                                             HasSubstr(c.why))))
        << loop;
    const Module without = Lowered(Bound(absl::StrReplaceAll(with, {{" partition", ""}})), Simt());
    EXPECT_EQ(ToText(lowered), ToText(without));
  }
}

TEST(PartitionLoops, SaysWhatLeft) {
  const Module lowered =
      Lowered(Bound("    for j in N partition {\n      if j < L { v = v + 1 }\n"
                    "      if j == 0 { v = v*2 }\n      if v > 3 { v = v - 1 }\n    }"),
              Simt());
  EXPECT_THAT(lowered.notes,
              ElementsAre("loop at 7:5: 2 loops, the steady one without the conditions at 8:7, "
                          "9:7"));
}

// ---- Attention

// The loop over keys: the last one that the launch runs with products in it before its results.
const For* LongestLoop(const Module& m) {
  const For* found = nullptr;
  for (const StmtRef& s : m.launches[0].body) {
    const For* loop = As<For>(s);
    int products = 0;
    if (loop) {
      VisitStmts(loop->body, [&](const StmtRef& p) { products += As<Mma>(p) || As<Wgmma>(p); });
    }
    if (products > 0 && As<VarRef>(loop->end)) found = loop;
  }
  return found;
}

// Its statements where nothing is masked and something was before.
class Steady : public StmtMapper {
 public:
  explicit Steady(const Module& m) : m_(m) {}
  Block MapBlock(const Block& b) override {
    Block out;
    for (const StmtRef& s : b) {
      const If* branch = As<If>(s);
      if (!branch || !OfIndex(branch->cond)) {
        out.push_back(MapStmt(s));
      } else if (!absl::StrContains(ToText(m_, branch->cond), "whole")) {
        out.insert(out.end(), branch->then_body.begin(), branch->then_body.end());
      }
    }
    return out;
  }

 private:
  bool OfIndex(const ExprRef& cond) const {
    return AnyNode(cond, [&](const ExprRef& e) {
      const VarRef* ref = As<VarRef>(e);
      return ref && (m_.var(ref->var).name == "it" || m_.var(ref->var).name == "j");
    });
  }
  const Module& m_;
};

std::string LoopText(Module m, For loop, const Target& target) {
  loop.begin = MakeInt(0);
  loop.end = MakeInt(9);
  m.launches[0].body = {MakeStmt(std::move(loop))};
  EXPECT_TRUE(Simplify(m, target).ok());
  return ToText(m);
}

TEST(PartitionLoops, SteadyIterationsAreOtherwiseTheSame) {
  const Target target = *FindCudaTarget("sm_90a");
  for (const char* causal : {"off", "on"}) {
    Values values = {{"causal", causal}, {"overlap", "on"}, {"partition", "off"}};
    const StatusOr<Module> tile = testing::BindText(FamilyText("attention"), values);
    ASSERT_TRUE(tile.ok()) << tile.status();
    values.back().second = "on";
    const StatusOr<Module> cut = testing::BindText(FamilyText("attention"), values);
    ASSERT_TRUE(cut.ok()) << cut.status();
    const Module off = Lowered(*tile, target), on = Lowered(*cut, target);
    const For *whole = LongestLoop(off), *steady = LongestLoop(on);
    ASSERT_TRUE(whole && steady);
    For expected = *whole;
    expected.body = Steady(off).MapBlock(whole->body);
    EXPECT_EQ(LoopText(on, *steady, target), LoopText(off, expected, target));
    EXPECT_NE(LoopText(on, *steady, target), LoopText(off, *whole, target));
    EXPECT_THAT(on.notes, ::testing::Contains(HasSubstr(": 2 loops, the steady one without")));
  }
}

}  // namespace
}  // namespace tl
