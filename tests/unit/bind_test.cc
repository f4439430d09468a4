// What programs mean once they are bound, as printed text.
#include <regex>

#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "ir/visit.h"
#include "tests/unit/bind_testing.h"

namespace tl {
namespace {

struct Row {
  std::string text;
  std::string bound;
  Values values = {};
};

// The statements of the launch of `text`, without indentation, those of kTiles, and the numbers of
// names.
std::string BoundStatements(const std::string& text, const Values& values) {
  const StatusOr<Module> module = BindText(InLaunch("mark = n\n" + text), values);
  if (!module.ok()) return Describe(module.status());
  ExpectStable(*module);
  std::string out;
  bool seen = false;
  for (std::string_view line : absl::StrSplit(ToText(*module), '\n')) {
    while (!line.empty() && line[0] == ' ') line.remove_prefix(1);
    if (seen) absl::StrAppend(&out, line, "\n");
    seen = seen || line.substr(0, 5) == "mark_";
  }
  out = std::regex_replace(out, std::regex("_[0-9]+\\b"), "");
  return out.substr(0, out.size() - std::string_view("}\n}\n\n").size());
}

void ExpectBound(const std::vector<Row>& rows) {
  for (const Row& row : rows)
    EXPECT_EQ(BoundStatements(row.text, row.values), row.bound) << row.text;
}

TEST(Bind, Literals) {
  ExpectBound({
      // Literals and what they make are values of the compiler.
      {"x = 2 + 3*4  y = x - n", "y = 14 - n\n"},
      {"x = 7 / -2  y = 7 % -2  z = n + x + y", "z = n + -4 + -1\n"},
      {"x = if a == 4 then n else alpha", "x = n\n"},
      {"x = a  y = n*x + 0*n", "y = n * 4\n"},
      {"x = 9223372036854775807 + 1  y = n + x", "y = n + (-9223372036854775807 - 1)\n"},
      {"x = 1 << 3 ^ 5  y = n + x", "y = n + 13\n"},
      // A float literal takes the type of the other side, f32 alone.
      {"x = 0.1  y = x + alpha", "y = f32(0.10000000149011612) + alpha\n"},
      {"parallel q in 16 { v[q] = d[q]*0.1 > 0 }",
       "15:27: expected f32, found bool; write 'if … then "
       "1.0 else 0.0'"},
      {"parallel q in 16 { d[q] = d[q]*0.1 }", "parallel q in 16 {\nd[q] = d[q] * f64(0.1)\n}\n"},
      {"x = 0.1 + 0.2  parallel q in 16 { d[q] = d[q]*x }",
       "parallel q in 16 {\nd[q] = d[q] * f64(0.30000000000000004)\n}\n"},
      // A cast pins the type of a literal, also through a name.
      {"x = f64(0.5)  y = x*alpha", "y = f64(0.5) * f64(alpha)\n"},
      {"x = f32(0.1)  parallel q in 16 { d[q] = x }",
       "parallel q in 16 {\nd[q] = f64(0.10000000149011612)\n}\n"},
      {"x = bf16(0.1)  y = x*alpha", "y = f32(0.10009765625) * alpha\n"},
      {"x = -inf  y = max(x, alpha)", "y = max(f32(-inf), alpha)\n"},
  });
}

TEST(Bind, Conversions) {
  ExpectBound({
      {"x = n*alpha", "x = f32(n) * alpha\n"},
      {"x = i8(n) + u8(n)", "x = i8(n) + u8(n)\n"},
      {"x = i8(i8(n))", "x = i8(n)\n"},
      {"x = f16(f16(alpha))", "x = f16(alpha)\n"},
      {"x = f32(alpha)", "x = alpha\n"},
      {"x = exp(n)", "x = exp(f32(n))\n"},
      {"x = abs(n) + abs(-3)", "x = abs(n) + abs(-3)\n"},
      {"x = pow(alpha, 2)", "x = pow(alpha, f32(2.0))\n"},
      {"x = clamp(n, 0, 9)", "x = min(max(n, 0), 9)\n"},
      {"x = alpha == 1 and not (n < 2)", "x = alpha == f32(1.0) and not n < 2\n"},
      {"x = t(alpha)", "x = f16(alpha)\n", {{"t", "f16"}}},
  });
}

// The table above prints numbers that conversions fold: they are spelled as the printer does.
TEST(Bind, CompileTimeConditions) {
  const std::string use = "parallel q in 16 { v[q] = (if flag then bias[q] else 0) + alpha }";
  ExpectBound({
      {"if flag { copy bias[0] -> v } else { clear v }", "fill v, f32(0.0)\n"},
      {"if act == relu { clear v } else if t == f32 { clear i }", "fill i, 0\n"},
      {"if act != none { clear v }", "fill v, f32(0.0)\n", {{"act", "relu"}}},
      {"if flag and bias[0] > 0 { clear v }", ""},
      {"if not flag or bias[0] > 0 { clear i }", "fill i, 0\n"},
      {"in_turn off { clear i }", "fill i, 0\n"},
      {"in_turn { clear i }", "in_turn true {\nfill i, 0\n}\n"},
      {"in_turn on { clear i }", "in_turn true {\nfill i, 0\n}\n"},
  });
  const StatusOr<Module> without = BindText(InLaunch(use));
  ASSERT_TRUE(without.ok()) << Describe(without.status());
  EXPECT_EQ(ToText(*without).find("bias"), std::string::npos);
  const StatusOr<Module> with = BindText(InLaunch(use), {{"flag", "on"}});
  ASSERT_TRUE(with.ok()) << Describe(with.status());
  EXPECT_NE(ToText(*with).find("in bias: tensor<f32>[N]"), std::string::npos);
  ExpectStable(*with);
}

TEST(Bind, Statements) {
  ExpectBound({
      {"count += n", "count = i32(count + n)\n"},
      {"w = alloc_var<f64>(1)  w /= 3", "w = alloc_var<f64>(f64(1.0))\nw = w / f64(3.0)\n"},
      {"w = alloc_var<bool>(n > 0)  w = n < 0", "w = alloc_var<bool>(n > 0)\nw = n < 0\n"},
      {"w = alloc_var<bf16>(0.1)", "w = alloc_var<bf16>(f32(0.10009765625))\n"},
      {"clear v, i  fill b, true", "fill v, f32(0.0)\nfill i, 0\nfill b, true\n"},
      {"for q in 4 down { clear v }", "serial q in 4 down {\nfill v, f32(0.0)\n}\n"},
      {"unrolled q in n..even { }", "unrolled q in n..M/2 {\n}\n"},
      {"pipelined q in n stages=2 { lag 1 { clear v } }",
       "pipelined q in n stages=2 {\nlag 1 {\nfill v, f32(0.0)\n}\n}\n"},
      {"reduce_sum f -> v dim=-1  argmax f -> i dim=1  cumsum s -> f dim=0 reverse",
       "reduce_sum f -> v dim=1\nargmax f -> i dim=1\ncumsum s -> f dim=0 reverse\n"},
      {"copy X[m*16, n*8] -> s rows=n", "copy X[m*16, n*8] -> s rows=n\n"},
      {"on g in 2 { send v -> c  recv c -> v }", "on g in 2 {\nsend v -> c\nrecv c -> v\n}\n"},
      {"atomic_max i -> Z[n]  parallel q in 4 { atomic_add q -> Z[q] }",
       "atomic_max i -> Z[n]\nparallel q in 4 {\natomic_add q -> Z[q]\n}\n"},
      {"finish r  copy r -> v", "finish r\ncopy r -> v\n"},
  });
}

TEST(Bind, Views) {
  ExpectBound({
      {"x = view s[4, 2] [8, 4]  fill x, 1", "w1 = view s[4, 2] [8, 4]\nfill w1, f32(1.0)\n"},
      // a view of a view of a view
      {"x = view part[2, 1] [4, 4]  y = view x[1, n:] [2]  fill y, 1",
       "w1 = view s[7, 1+n:] [2]\nfill w1, f32(1.0)\n"},
      {"x = view s[3, 0:] [8]  parallel q in 8 { x[q] = part[q, 1] }",
       "parallel q in 8 {\ns[3, q] = s[4+q, 1]\n}\n"},
      {"x = view s[n*8, 0] [8, 8]  copy x -> part",
       "w1 = view s[4, 0] [8, 8]\ncopy s[n*8, 0] -> w1\n"},
      // a window stays where it was when it was named
      {"x = view s[count, 0] [8, 8]  count = 1  fill x, 1",
       "x_offset = count\ncount = 1\nw1 = view s[x_offset, 0] [8, 8]\nfill w1, "
       "f32(1.0)\n"},
      {"x = view s[I[0], 0] [8, 8]", "x_offset = I[0]\n"},
  });
}

// Along which dims a window runs that has fewer of them than its buffer.
TEST(Bind, WindowDims) {
  const std::string head =
      "in T: tensor<f32>[B, S, H, E]\nout O: tensor<f32>[B, S, H, E]\n"
      "launch m in S, h in H, b in B {\n"
      "x = alloc_shared<f32>[bm, E]  y = alloc_shared<f32>[bm]  one = alloc_shared<f32>[1]\n"
      "sq = alloc_shared<f32>[bm, bm]  e = alloc_shared<f32>[E]\n";
  const std::string signature = "B: dim, S: dim, H: dim; bm: int = 32, E: int = 64";
  struct Case {
    std::string window, dims;
  };
  const Case cases[] = {
      {"copy T[b, m*bm, h, 0] -> x", "b_5, m_3*32:, h_4, 0:"},
      {"copy T[b, bm*m, h, 0] -> x", "b_5, 32*m_3:, h_4, 0:"},
      {"copy T[b, 2*m*bm + bm, h, 0] -> x", "b_5, 2*m_3*32+32:, h_4, 0:"},
      {"copy T[b, m*bm - bm, h, E*h] -> x", "b_5, m_3*32-32:, h_4, 64*h_4:"},
      {"copy T[b, m + 1:, h, 0:] -> x", "b_5, m_3+1:, h_4, 0:"},
      {"copy T[b:, m, h:, 0] -> x", "b_5:, m_3, h_4:, 0"},
      {"copy T[b, m*bm, h, 3] -> y", "b_5, m_3*32:, h_4, 3"},
      {"copy T[b, m, h, 0] -> e", "b_5, m_3, h_4, 0:"},
      {"copy T[b, m, h, h] -> one", "b_5, m_3, h_4, h_4:"},
      {"copy T[b, m*bm, h, bm*h] -> sq", "b_5, m_3*32:, h_4, 32*h_4:"},
  };
  for (const Case& c : cases) {
    const StatusOr<Module> module = BindText(InKernel(head + c.window + "\n}", signature));
    ASSERT_TRUE(module.ok()) << c.window << ": " << Describe(module.status());
    EXPECT_NE(ToText(*module).find("copy T[" + c.dims + "]"), std::string::npos) << c.window << "\n"
                                                                                 << ToText(*module);
    ExpectStable(*module);
  }
  // What is not evident is refused whatever the parameters are, and the marks asked for help.
  const Case unclear[] = {
      {"copy T[b, m*bm, 0, 0] -> y", "it is ambiguous"},
      {"copy T[b, m*32, h, 0] -> x", "it is not evident"},
      {"copy T[b, m, h, h] -> e", "it is not evident"},
      {"copy T[0, m*bm, h, 0] -> x", "it is ambiguous"},
      {"copy sq -> O[b, 0, 0, 0]", "it is ambiguous"},
  };
  for (const Case& c : unclear) {
    for (const Values& values : {Values{}, Values{{"bm", "64"}}, Values{{"bm", "1"}, {"E", "1"}}}) {
      const StatusOr<Module> module =
          BindText(InKernel(head + c.window + "\n}", signature), values);
      if (!values.empty() && values[0].second == "1" && module.ok()) continue;  // extents of 1
      ASSERT_FALSE(module.ok()) << c.window;
      EXPECT_NE(module.status().message().find(c.dims), std::string::npos) << module.status();
      EXPECT_NE(module.status().message().find("mark them with ':'"), std::string::npos);
    }
    const std::string marked =
        absl::StrReplaceAll(c.window, {{"m*bm,", "m*bm:,"},
                                       {"m*32,", "m*32:,"},
                                       {"0] -> x", "0:] -> x"},
                                       {"h] -> e", "h:] -> e"},
                                       {"O[b, 0, 0, 0]", "O[b, 0:, 0, 0:]"}});
    const StatusOr<Module> helped = BindText(InKernel(head + marked + "\n}", signature));
    EXPECT_TRUE(helped.ok()) << marked << ": " << Describe(helped.status());
  }
}

std::string TuneChoice(std::string_view decls, const Values& values, std::string_view target) {
  const StatusOr<Module> module =
      BindText(InKernel(absl::StrCat(decls, "\nlaunch { }"), "M: dim; k: int = 1, t: dtype = f16"),
               values, target);
  if (!module.ok()) return std::string(module.status().message());
  std::string text;
  for (const BoundParam& p : module->params) {
    if (p.tuned) absl::StrAppend(&text, text.empty() ? "" : " ", p.name, "=", p.value);
  }
  return text;
}

TEST(Bind, TuneChoice) {
  const std::string two = "tune x in {1, 2, 3}, y in {on, off}\n";
  const std::string targets =
      "tune x in {64, 128} tune x in {8, 16} for cpu tune z in {1} for cuda";
  EXPECT_EQ(TuneChoice(two, {}, ""), "x=1 y=true");
  EXPECT_EQ(TuneChoice(two + "where x > 1 and not y", {}, ""), "x=2 y=false");
  EXPECT_EQ(TuneChoice(two + "where x > 1 where k + x == 4 where t == f16", {}, ""), "x=3 y=true");
  EXPECT_EQ(TuneChoice(two + "where x*k <= 4", {{"k", "2"}, {"x", "2"}}, ""), "x=2 y=true");
  EXPECT_EQ(TuneChoice(two, {{"x", "7"}}, ""), "x=7 y=true");  // the caller may know better
  EXPECT_EQ(TuneChoice(two + "where M % x == 0 and x > 1", {{"M", "9"}}, ""), "x=3 y=true");
  EXPECT_EQ(TuneChoice("tune x in {k*2, k*4} where x > 2", {}, ""), "x=4");
  const std::string known = "tune x in {if known(M) then 2*M else 8} where known(k) and known(1.5)";
  EXPECT_EQ(TuneChoice(known, {}, ""), "x=8");
  EXPECT_EQ(TuneChoice(known, {{"M", "9"}}, ""), "x=18");
  EXPECT_EQ(TuneChoice(targets, {}, ""), "x=64");
  EXPECT_EQ(TuneChoice(targets, {}, "cpu"), "x=8");
  EXPECT_EQ(TuneChoice(targets, {}, "cuda"), "x=64 z=1");
  EXPECT_EQ(TuneChoice(targets, {{"x", "4"}}, "cpu"), "x=4");
  const StatusOr<syntax::Program> program = syntax::Parse(InKernel(targets + "\nlaunch { }"));
  ASSERT_TRUE(program.ok());
  EXPECT_EQ(TuneNames(*program, "cpu"), (std::vector<std::string_view>{"x"}));
  EXPECT_EQ(TuneNames(*program, "cuda"), (std::vector<std::string_view>{"x", "z"}));
}

// Every combination that holds, in order: "1,true 1,false".
std::string SpaceText(const std::string& clauses, const BindOptions& options) {
  const StatusOr<syntax::Program> program = syntax::Parse(InKernel(clauses + "\nlaunch { }"));
  if (!program.ok()) return program.status().ToString();
  const StatusOr<TuneSpace> space = TuneSpaceOf(*program, options);
  if (!space.ok()) return std::string(space.status().message());
  std::vector<std::string> texts;
  for (const auto& values : space->combinations) texts.push_back(absl::StrJoin(values, ","));
  return absl::StrJoin(texts, " ");
}

TEST(Bind, TuneSpace) {
  const std::string two = "tune x in {1, 2, 3}, y in {on, off} ";
  const struct {
    std::string clauses;
    BindOptions options;
    std::string space;
  } rows[] = {
      {two, {}, "1,true 1,false 2,true 2,false 3,true 3,false"},
      {two + "where x > 1 and y", {}, "2,true 3,true"},
      {two + "where x % 2 == 1 where not y", {}, "1,false 3,false"},
      {two, {.values = {{"x", "2"}}}, "2,true 2,false"},
      {two, {.choices = {{"x", {"3", "7", "3"}}, {"y", {"off"}}}}, "3,false 7,false"},
      {"tune x in {2, 1+1, 4}", {}, "2 4"},
      {"tune x in {1} tune x in {5, 6} for cpu", {.target_class = "cpu"}, "5 6"},
      {"where true", {}, ""},
      {two + "where x > 3",
       {},
       "'where x > 3' does not hold for any combination of the tune parameters"},
      {two + "where x != 2",
       {.values = {{"x", "2"}, {"y", "on"}}},
       "'where x != 2' does not hold for the values given"},
      {two, {.choices = {{"z", {"1"}}}}, "'k' has no parameter 'z'"},
      {two,
       {.choices = {{"x", {"1.5"}}}},
       "parameter 'x' is an int, tuned over 1, 2, 3; found '1.5'"},
      {two, {.choices = {{"y", {"on", "2"}}}}, "parameter 'y' is a bool, on or off; found '2'"},
  };
  for (const auto& row : rows) {
    const std::string got = SpaceText(row.clauses, row.options);
    if (row.space.empty()) {
      EXPECT_EQ(got, "") << row.clauses;
    } else {
      EXPECT_NE(got.find(row.space), std::string::npos) << row.clauses << ": " << got;
    }
  }
}

TEST(Bind, DimsFixedAndDynamic) {
  const std::string text = InKernel(
      "in X: tensor<t>[M, 2*N] strides[?, 1], s: i32  out Y: tensor<f32>[s, M*N]\nlaunch m in M { "
      "}",
      "M: dim, N: dim; t: dtype = bf16");
  const StatusOr<Module> dynamic = BindText(text);
  ASSERT_TRUE(dynamic.ok()) << Describe(dynamic.status());
  EXPECT_EQ(dynamic->dims.size(), 2u);
  EXPECT_EQ(dynamic->strides.size(), 1u);
  EXPECT_NE(ToText(*dynamic).find("in X: tensor<bf16>[M, 2 * N] strides[?, 1]"), std::string::npos)
      << ToText(*dynamic);
  ExpectStable(*dynamic);
  const StatusOr<Module> fixed = BindText(text, {{"N", "24"}, {"t", "f16"}});
  ASSERT_TRUE(fixed.ok()) << Describe(fixed.status());
  EXPECT_EQ(fixed->dims.size(), 1u);
  EXPECT_NE(ToText(*fixed).find("in X: tensor<f16>[M, 48] strides[?, 1]"), std::string::npos)
      << ToText(*fixed);
  EXPECT_NE(ToText(*fixed).find("out Y: tensor<f32>[s, M * 24]"), std::string::npos);
  ExpectStable(*fixed);
}

// Names are numbered where they might meet others, also where the author wrote such numbers.
// Launches that have no blocks, whatever the dims that stay dynamic; the last stays alone.
TEST(Bind, LaunchesWithoutBlocksAreLeftOut) {
  const std::string text = InKernel(
      R"(out Y: tensor<i32>[M], Z: tensor<i32>[B]  workspace W: tensor<i32>[B + 3]
  launch m in if N <= 8 then M else 0 { a = alloc_fragment<i32>[8] fill a, 1 copy a -> Y[m*8] }
  launch m in if N > 8 then M else 0 { b = alloc_fragment<i32>[4] fill b, 2 copy b -> Y[m*4] }
  launch segment (b, i0, i1, p, whole) in split(b in B: 2, 3) { parallel i in 1 { W[p] = i1 - i0 } }
  launch m in if N > 8 then 0 else B { for p in parts(m) { parallel i in 1 { Z[m] = W[p] } } })",
      "M: dim, N: dim, B: dim");
  struct Case {
    Values values;
    size_t launches;
    int split;  // which of them
  };
  const Case cases[] = {{{}, 4, 2},
                        {{{"N", "8"}}, 3, 1},
                        {{{"N", "9"}}, 2, 1},
                        {{{"N", "8"}, {"M", "0"}}, 2, 0},
                        {{{"N", "9"}, {"M", "0"}, {"B", "0"}}, 1, 0}};
  for (const Case& c : cases) {
    const StatusOr<Module> m = BindText(text, c.values);
    ASSERT_TRUE(m.ok()) << m.status();
    EXPECT_EQ(m->launches.size(), c.launches) << ToText(*m);
    EXPECT_TRUE(m->launches[c.split].split.has_value()) << ToText(*m);
    VisitAllExprs(m->launches.back().body, [&](const ExprRef& e) {
      const PartsBound* parts = As<PartsBound>(e);
      EXPECT_TRUE(!parts || parts->launch == c.split) << ToText(*m);
    });
  }
  const std::string twice =
      InKernel("out Y: tensor<i32>[M] launch m in M { } launch n in M { }", "M: dim");
  EXPECT_EQ(BindText(twice, {{"M", "0"}})->launches.size(), 1u);
}

TEST(Bind, PrintedNamesDoNotMeet) {
  const StatusOr<Module> module = BindText(
      InKernel("in x_2: tensor<f32>[M], w1: tensor<f32>[M], v0: f32, b0: f32\nlaunch m in M {\n"
               "if true { x = m + 1  y = alloc_shared<f32>[8] fill y, x }\n"
               "if true { x = alloc_shared<f32>[8]  y = m + 2 z = view x[1] [2] fill z, y }\n"
               "x = m x_3 = x_2[0] copy x_2[0] -> w1_\n}",
               "M: dim"));
  ASSERT_FALSE(module.ok());  // w1_ is unknown
  const StatusOr<Module> good = BindText(
      InKernel("in x_2: tensor<f32>[M], w1: tensor<f32>[M], v0: f32, b0: f32\nlaunch m in M {\n"
               "if true { x = m + 1  y = alloc_shared<f32>[8] fill y, x }\n"
               "if true { x = alloc_shared<f32>[8]  y = m + 2 z = view x[1] [2] fill z, y }\n"
               "x = m x_3 = x_2[0]\n}",
               "M: dim"));
  ASSERT_TRUE(good.ok()) << Describe(good.status());
  ExpectStable(*good);
}

// The way in which tiles leave for tensors may be a word, a parameter, or depend on a condition.
TEST(Bind, Stores) {
  const auto stores = [](const std::string& attr, const Values& values = {}) {
    const StatusOr<Module> module =
        BindText(InKernel("launch" + attr + " { a = alloc_shared<f16>[16, 16]  fill a, 1 }",
                          "; boxes: bool = off, way: enum {threads, bulk} = threads"),
                 values);
    EXPECT_TRUE(module.ok()) << Describe(module.status());
    if (!module.ok()) return Stores::kAuto;
    ExpectStable(*module);
    return module->launches[0].stores;
  };
  const std::string chosen = " stores=if boxes then bulk else auto";
  EXPECT_EQ(stores(""), Stores::kAuto);
  EXPECT_EQ(stores(" stores=auto"), Stores::kAuto);
  EXPECT_EQ(stores(" stores=bulk"), Stores::kBulk);
  EXPECT_EQ(stores(" stores=way"), Stores::kThreads);
  EXPECT_EQ(stores(" stores=way", {{"way", "bulk"}}), Stores::kBulk);
  EXPECT_EQ(stores(chosen), Stores::kAuto);
  EXPECT_EQ(stores(chosen, {{"boxes", "on"}}), Stores::kBulk);
}

// The orientation of a gemm may be a word, a parameter, or depend on a condition.
TEST(Bind, Orientation) {
  const auto orientation = [](const std::string& attr, const Values& values = {}) {
    const StatusOr<Module> module = BindText(
        InKernel("launch {\na, b = alloc_shared<f16>[16, 16]  c = alloc_fragment<f32>[16, 16]\n"
                 "fill a, 1  fill b, 1\ngemm a, b -> c clear" +
                     attr + "\n}",
                 "; swap: bool = off, way: enum {straight, swapped} = straight"),
        values);
    EXPECT_TRUE(module.ok()) << Describe(module.status());
    if (!module.ok()) return GemmOrientation::kAuto;
    ExpectStable(*module);
    return As<Gemm>(module->launches[0].body.back())->orientation;
  };
  const std::string chosen = " orientation=if swap then swapped else way";
  EXPECT_EQ(orientation(""), GemmOrientation::kAuto);
  EXPECT_EQ(orientation(" orientation=auto"), GemmOrientation::kAuto);
  EXPECT_EQ(orientation(" orientation=swapped"), GemmOrientation::kSwapped);
  EXPECT_EQ(orientation(" orientation=way"), GemmOrientation::kStraight);
  EXPECT_EQ(orientation(" orientation=way", {{"way", "swapped"}}), GemmOrientation::kSwapped);
  EXPECT_EQ(orientation(chosen), GemmOrientation::kStraight);
  EXPECT_EQ(orientation(chosen, {{"swap", "on"}}), GemmOrientation::kSwapped);
}

// So may the hint of a copy.
TEST(Bind, Eviction) {
  const auto eviction = [](const std::string& attr, const Values& values = {}) {
    const StatusOr<Module> module =
        BindText(InKernel("in X: tensor<f16>[64] out Y: tensor<f16>[64]\nlaunch {\n"
                          "x = alloc_shared<f16>[64]\ncopy X[0] -> x\ncopy x -> Y[0]" +
                              attr + "\n}",
                          "; once: bool = off, way: enum {last, first} = last"),
                 values);
    EXPECT_TRUE(module.ok()) << Describe(module.status());
    if (!module.ok()) return Eviction::kNormal;
    ExpectStable(*module);
    return As<Copy>(module->launches[0].body.back())->evict;
  };
  const std::string chosen = " evict=if once then first else normal";
  EXPECT_EQ(eviction(""), Eviction::kNormal);
  EXPECT_EQ(eviction(" evict=normal"), Eviction::kNormal);
  EXPECT_EQ(eviction(" evict=first"), Eviction::kFirst);
  EXPECT_EQ(eviction(" evict=last rows=3"), Eviction::kLast);
  EXPECT_EQ(eviction(" evict=way"), Eviction::kLast);
  EXPECT_EQ(eviction(" evict=way", {{"way", "first"}}), Eviction::kFirst);
  EXPECT_EQ(eviction(chosen), Eviction::kNormal);
  EXPECT_EQ(eviction(chosen, {{"once", "on"}}), Eviction::kFirst);
}

// What differs in words only has one key; what differs in meaning has another.
TEST(Bind, CanonicalTextForgetsWords) {
  const auto canonical = [](const std::string& text, const Values& values = {}) {
    const StatusOr<Module> module = BindText(text, values);
    EXPECT_TRUE(module.ok()) << Describe(module.status());
    return module.ok() ? CanonicalText(*module) : "";
  };
  const std::string plain = canonical(
      "tl 1.0 kernel scale(M: dim; bm: int = 8) { in X: tensor<f32>[M], s: f32 out Y: "
      "tensor<f32>[M] launch m in ceildiv(M, bm) { x = alloc_fragment<f32>[bm] copy X[m*bm] -> x "
      "parallel i in bm { x[i] *= s } copy x -> Y[m*bm] } }");
  const std::string other = canonical(
      "tl 1.0 # a comment\nkernel mul(Rows: dim; tile: int, unused: bool = on) {\n"
      "  in In: tensor<f32>[Rows], by: f32\n  out Out: tensor<f32>[Rows]\n  init In = normal(0, "
      "1)\n"
      "  launch block in ceildiv(Rows, tile) {\n    t = alloc_fragment<f32>[tile]\n"
      "    n = 8  copy In[block*n] -> t\n    parallel lane in tile { t[lane] = t[lane]*by }\n"
      "    copy t -> Out[block*8]\n  }\n}\n",
      {{"tile", "8"}});
  EXPECT_NE(plain, other);  // `x *= s` is another statement than `x = x*s`
  const std::string same = canonical(
      "tl 1.0 # a comment\nkernel mul(Rows: dim; tile: int, unused: bool = on) {\n"
      "  in In: tensor<f32>[Rows], by: f32\n  out Out: tensor<f32>[Rows]\n  init In = normal(0, "
      "1)\n"
      "  launch block in ceildiv(Rows, tile) {\n    t = alloc_fragment<f32>[tile]\n"
      "    n = 8  copy In[block*n] -> t\n    parallel lane in tile { t[lane] *= by }\n"
      "    if unused { copy t -> Out[block*8] }\n  }\n}\n",
      {{"tile", "8"}});
  EXPECT_EQ(plain, same);
}

}  // namespace
}  // namespace tl
