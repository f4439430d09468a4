// The text front end: what is printed for what is written, where everything stands, and one row for
// every mistake an author can make.
#include <pthread.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/edit_distance.h"
#include "gtest/gtest.h"
#include "ir/ops.h"
#include "ir/syntax.h"

namespace tl::syntax {
namespace {

std::string Describe(const Status& status) {
  const Span span = DetailOf(status).span;
  return absl::StrCat(span.line, ":", span.column, "-", span.end_line, ":", span.end_column, ": ",
                      status.message());
}

std::string InLaunch(std::string_view body) {
  return absl::StrCat("tl 1.0\nkernel k() {\nlaunch {\n", body, "\n}\n}\n");
}

std::string InKernel(std::string_view body) {
  return absl::StrCat("tl 1.0\nkernel k() {\n", body, "\n}\n");
}

// Printed text of the statements of a launch, or the error.
std::string PrintStatements(std::string_view body) {
  const StatusOr<Program> program = Parse(InLaunch(body));
  if (!program.ok()) return Describe(program.status());
  std::vector<std::string> lines = absl::StrSplit(Print(*program), '\n');
  std::string text;
  for (size_t i = 3; i + 3 < lines.size(); ++i) absl::StrAppend(&text, lines[i].substr(4), "\n");
  return text;
}

std::string PrintedExpr(std::string_view text) {
  const StatusOr<ExprRef> expr = ParseExpr(text);
  return expr.ok() ? Print(*expr) : Describe(expr.status());
}

std::string ReadCorpus(std::string_view name) {
  std::ifstream file(absl::StrCat(TL_SOURCE_DIR, "/tests/fuzz/corpus/parse/", name));
  EXPECT_TRUE(file) << name;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

struct Row {
  std::string text;
  std::string result;
};

// -- Printing
// --------------------------------------------------------------------------------------

TEST(PrintTest, Expressions) {
  const Row rows[] = {
      // literals
      {"0", "0"},
      {"007", "7"},
      {"0x1F", "31"},
      {"9223372036854775807", "9223372036854775807"},
      {"0x7fffffffffffffff", "9223372036854775807"},
      {"1.5", "1.5"},
      {"2.", "2.0"},
      {"1e3", "1000.0"},
      {"1.e3", "1000.0"},
      {"1E-3", "0.001"},
      {"0.1", "0.1"},
      {"1e300", "1e+300"},
      {"5e-324", "5e-324"},
      {"0.30000000000000004", "0.30000000000000004"},
      {"inf", "inf"},
      {"nan", "nan"},
      {"-inf", "-inf"},
      {"on", "true"},
      {"off", "false"},
      {"true and false", "true and false"},
      // precedence, loosest to tightest
      {"a or b and c", "a or b and c"},
      {"(a or b) and c", "(a or b) and c"},
      {"not a and b", "not a and b"},
      {"not (a and b)", "not (a and b)"},
      {"(not a) and b", "not a and b"},
      {"not a == b", "not a == b"},
      {"not (a == b)", "not a == b"},
      {"(not a) == b", "(not a) == b"},
      {"a == (not b)", "a == (not b)"},
      {"not not a", "not not a"},
      {"(a < b) == c", "(a < b) == c"},
      {"a < (b == c)", "a < (b == c)"},
      {"a & b < c | d", "a & b < c | d"},
      {"a & (b < c)", "a & (b < c)"},
      {"a & b ^ c | d", "a & b ^ c | d"},
      {"a & (b ^ c)", "a & (b ^ c)"},
      {"a << 1 + 2", "a << 1 + 2"},
      {"(a << 1) + 2", "(a << 1) + 2"},
      {"a & b << c", "a & b << c"},
      {"a - b - c", "a - b - c"},
      {"(a - b) - c", "a - b - c"},
      {"a - (b - c)", "a - (b - c)"},
      {"a + (b * c)", "a + b * c"},
      {"(a + b) * c", "(a + b) * c"},
      {"a / b * c % d", "a / b * c % d"},
      {"a / (b * c)", "a / (b * c)"},
      {"-a * b", "-a * b"},
      {"-(a * b)", "-(a * b)"},
      {"a*-b", "a * -b"},
      {"a - -b", "a - -b"},
      {"- - a", "--a"},
      {"-x[0]", "-x[0]"},
      {"((((a))))", "a"},
      // if
      {"if a then b else c", "if a then b else c"},
      {"(if a then b else c) / 2", "(if a then b else c) / 2"},
      {"if a then b else (c / 2)", "if a then b else c / 2"},
      {"if a then b else (if c then d else e)", "if a then b else if c then d else e"},
      {"if (if a then b else c) then d else e", "if if a then b else c then d else e"},
      {"2 + (if a then b else c)", "2 + (if a then b else c)"},
      // calls and elements
      {"f ( a,b , c )", "f(a, b, c)"},
      {"f()", "f()"},
      {"f\n(x)", "f(x)"},
      {"X[b, m * bm :, h, 0:]", "X[b, m*bm:, h, 0:]"},
      {"X[(a + b) * c, a and b]", "X[(a+b)*c, a and b]"},
      {"X[]", "X[]"},
      {"X[len[b]]", "X[len[b]]"},
      {"bf16(x)", "bf16(x)"},
      {"a # comment\n + b", "a + b"},
      {"a\r\n\t+ b", "a + b"},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(PrintedExpr(row.text), row.result) << row.text;
    EXPECT_EQ(PrintedExpr(row.result), row.result) << row.text;
  }
}

TEST(PrintTest, Statements) {
  const Row rows[] = {
      {"x = a + b", "x = a + b\n"},
      {"x=1 y=2;z=3;;", "x = 1\ny = 2\nz = 3\n"},
      {"x +=1 x-=1 x*=-1 x/=1", "x += 1\nx -= 1\nx *= -1\nx /= 1\n"},
      {"x[i,j] *= c[i]", "x[i, j] *= c[i]\n"},
      {"a, b = alloc_fragment<f32>[4]", "a, b = alloc_fragment<f32>[4]\n"},
      {"v = alloc_var<f32>(-inf)", "v = alloc_var<f32>(-inf)\n"},
      {"x = view y[0, 256] [64, 256]", "x = view y[0, 256] [64, 256]\n"},
      {"copy mx -> m0  reduce_max s -> mx dim=1", "copy mx -> m0\nreduce_max s -> mx dim=1\n"},
      {"clear o, l  fill mx, -inf", "clear o, l\nfill mx, -inf\n"},
      {"c[r] = exp2(x)  l[r] *= c[r]", "c[r] = exp2(x)\nl[r] *= c[r]\n"},
      {"fill o, 0  l[r] *= 2", "fill o, 0\nl[r] *= 2\n"},
      // attributes: on the last line of their statement, in canonical order
      {"gemm a, b -> c clear", "gemm a, b -> c clear\n"},
      {"gemm a, b -> c\nclear d", "gemm a, b -> c\nclear d\n"},
      {"gemm a, b -> c policy=full_row clear transpose_a",  //
       "gemm a, b -> c transpose_a clear policy=full_row\n"},
      {"gemm a, b\n -> c clear=x", "gemm a, b -> c clear=x\n"},
      {"gemm a, b -> c orientation=if s then swapped else auto precision=tf32",
       "gemm a, b -> c precision=tf32 orientation=if s then swapped else auto\n"},
      {"copy a -> b rows=\nn + 1 transpose", "copy a -> b rows=n+1 transpose\n"},
      {"copy a -> b evict=first transpose rows=3", "copy a -> b rows=3 transpose evict=first\n"},
      {"copy a -> b evict=if x > 1 then last else way",
       "copy a -> b evict=if x>1 then last else way\n"},
      {"copy a -> b\nrows = 3", "copy a -> b\nrows = 3\n"},
      {"copy a -> b  x = 3", "copy a -> b\nx = 3\n"},
      {"copy a -> b  for i in 2 { }", "copy a -> b\nserial i in 2 {\n}\n"},
      {"copy a -> b; x = 3", "copy a -> b\nx = 3\n"},
      {"reduce_sum a -> b clear dim=-1", "reduce_sum a -> b dim=-1 clear\n"},
      {"pipelined j in n\n  stages=2\n  down { }", "pipelined j in n down stages=2 {\n}\n"},
      {"pipelined j in n partition=on stages=2 { }",
       "pipelined j in n stages=2 partition=true {\n}\n"},
      {"for j in n partition { }", "serial j in n partition {\n}\n"},
      {"serial i in a + 1 .. b { }", "serial i in a+1..b {\n}\n"},
      {"serial i in 0..2 { }", "serial i in 0..2 {\n}\n"},
      {"parallel i in [4] { }", "parallel i in 4 {\n}\n"},
      {"parallel i,j in [4,5] { }", "parallel i, j in [4, 5] {\n}\n"},
      {"on g in 2 { x = on }", "on g in 2 {\n  x = true\n}\n"},
      {"if a { x = 1 } else { if b { } }", "if a {\n  x = 1\n} else if b {\n}\n"},
      {"if a { } else { if b { } x = 1 }", "if a {\n} else {\n  if b {\n  }\n  x = 1\n}\n"},
      {"x = a if b { }", "x = a\nif b {\n}\n"},
      {"x = a\n-b", "x = a - b\n"},
      {"atomic_add x + 1 -> T[i]", "atomic_add x + 1 -> T[i]\n"},
      // words of the language that serve as names
      {"rows = 1 stages = 2 turns = 3 down = 4", "rows = 1\nstages = 2\nturns = 3\ndown = 4\n"},
      {"clear = 1  x = clear", "clear = 1\nx = clear\n"},
      {"copy[0] = 1", "copy[0] = 1\n"},
      {"view = 1\nx = view\ny = 2", "view = 1\nx = view\ny = 2\n"},
      {"lag = 2 lag lag { }", "lag = 2\nlag lag {\n}\n"},
      {"for = 1 for for in for { }", "for = 1\nserial for in for {\n}\n"},
      {"clear clear", "clear clear\n"},
      {"launch = 1", "launch = 1\n"},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(PrintStatements(row.text), row.result) << row.text;
    EXPECT_EQ(PrintStatements(row.result), row.result) << row.text;
  }
}

// Every operation and attribute of the table is understood and printed back.
TEST(PrintTest, EveryRowOfTheTable) {
  for (const OpSpec& op : Ops()) {
    if (op.form != Form::kMove && op.form != Form::kList) continue;
    for (size_t i = 0; i <= op.attrs.size(); ++i) {
      std::string text = absl::StrCat(op.name, " a");
      for (int operand = 1; operand < op.count; ++operand) absl::StrAppend(&text, ", b");
      if (op.form == Form::kMove) absl::StrAppend(&text, " -> c");
      for (const AttrSpec& attr : op.attrs.subspan(0, i)) {
        absl::StrAppend(&text, " ", attr.name);
        if (attr.kind == AttrKind::kValue) absl::StrAppend(&text, "=n");
        if (attr.kind == AttrKind::kChoice) absl::StrAppend(&text, "=", attr.choices[0]);
      }
      absl::StrAppend(&text, "\n");
      EXPECT_EQ(PrintStatements(text), text);
    }
  }
}

// Nodes that no text makes, but programs do.
TEST(PrintTest, SignedLiterals) {
  const auto literal = [](ExprKind kind, int64_t i, double f) {
    Expr expr{kind, {}};
    expr.int_value = i;
    expr.float_value = f;
    return std::make_shared<const Expr>(expr);
  };
  const auto product = [](ExprRef a, ExprRef b) {
    Expr expr{ExprKind::kBinary, {}};
    expr.text = "*";
    expr.args = {std::move(a), std::move(b)};
    return std::make_shared<const Expr>(expr);
  };
  const ExprRef least = literal(ExprKind::kInt, std::numeric_limits<int64_t>::min(), 0);
  const ExprRef minus = literal(ExprKind::kInt, -3, 0);
  const ExprRef zero = literal(ExprKind::kFloat, 0, -0.0);
  EXPECT_EQ(Print(least), "-9223372036854775807 - 1");
  EXPECT_EQ(Print(product(least, minus)), "(-9223372036854775807 - 1) * -3");
  EXPECT_EQ(Print(product(minus, zero)), "-3 * -0.0");
}

TEST(PrintTest, WholePrograms) {
  for (const std::string name : {"attention", "every_construct", "scale_rows"}) {
    const std::string printed = ReadCorpus(name + "_printed.tl");
    const StatusOr<Program> program = Parse(ReadCorpus(name + ".tl"));
    ASSERT_TRUE(program.ok()) << name << ":" << Describe(program.status());
    EXPECT_EQ(Print(*program), printed);
    const StatusOr<Program> again = Parse(printed);
    ASSERT_TRUE(again.ok()) << name << ":" << Describe(again.status());
    EXPECT_EQ(Print(*again), printed);
  }
}

TEST(PrintTest, SmallestProgram) {
  const StatusOr<Program> program = Parse("tl 1.0 kernel k(){}");
  ASSERT_TRUE(program.ok());
  EXPECT_EQ(Print(*program), "tl 1.0\nkernel k() {\n}\n");
}

// -- The tree
// --------------------------------------------------------------------------------------

// What a span covers, if it is on one line.
std::string Covered(std::string_view text, Span span) {
  const std::vector<std::string> lines = absl::StrSplit(text, '\n');
  if (span.line != span.end_line) {
    return absl::StrCat(lines[span.line - 1].substr(span.column - 1), "|",
                        lines[span.end_line - 1].substr(0, span.end_column - 1));
  }
  return lines[span.line - 1].substr(span.column - 1, span.end_column - span.column);
}

void Cover(std::string_view text, const ExprRef& expr, std::vector<std::string>* out) {
  out->push_back(Covered(text, expr->span));
  for (const ExprRef& arg : expr->args) Cover(text, arg, out);
}

TEST(SpanTest, Expressions) {
  const Row rows[] = {
      {"12", "12"},
      {" a + b*c ", "a + b*c;a;b*c;b;c"},
      {"(a + b) * c", "(a + b) * c;a + b;a;b;c"},
      {"( a )", "a"},
      {"f( x , 1 )", "f( x , 1 );x;1"},
      {"X[i: , j]", "X[i: , j];i;j"},
      {"not -a", "not -a;-a;a"},
      {"if a then b else c", "if a then b else c;a;b;c"},
      {"a\n + b", "a| + b;a;b"},
      {"# c\n  inf", "inf"},
  };
  for (const Row& row : rows) {
    const StatusOr<ExprRef> expr = ParseExpr(row.text);
    ASSERT_TRUE(expr.ok()) << row.text;
    std::vector<std::string> covered;
    Cover(row.text, *expr, &covered);
    EXPECT_EQ(absl::StrJoin(covered, ";"), row.result) << row.text;
  }
}

TEST(SpanTest, Statements) {
  const std::string text = InLaunch(
      "a, b = alloc_reducer<f32, sum>[4]  copy a -> X[0]  rows=n  transpose ; x[1] = 2\n"
      "pipelined j in n stages=2 { }\n"
      "if a { } else if b { }");
  const StatusOr<Program> program = Parse(text);
  ASSERT_TRUE(program.ok()) << program.status();
  const std::vector<Stmt>& body = program->launches[0].body;
  ASSERT_EQ(body.size(), 5u);
  EXPECT_EQ(Covered(text, body[0].span), "a, b = alloc_reducer<f32, sum>[4]");
  EXPECT_EQ(Covered(text, body[0].names[1].span), "b");
  EXPECT_EQ(Covered(text, body[0].type_spans[0]), "f32");
  EXPECT_EQ(Covered(text, body[0].type_spans[1]), "sum");
  EXPECT_EQ(Covered(text, body[1].span), "copy a -> X[0]  rows=n  transpose");
  EXPECT_EQ(Covered(text, body[1].attrs[0].span), "rows=n");
  EXPECT_EQ(Covered(text, body[1].attrs[1].span), "transpose");
  EXPECT_EQ(Covered(text, body[1].targets[0]->span), "X[0]");
  EXPECT_EQ(Covered(text, body[2].span), "x[1] = 2");
  EXPECT_EQ(Covered(text, body[3].span), "pipelined j in n stages=2");
  EXPECT_EQ(Covered(text, body[4].span), "if a");
  EXPECT_EQ(Covered(text, body[4].else_body[0].span), "if b");
  EXPECT_EQ(Covered(text, program->launches[0].span), "launch");
}

TEST(SpanTest, Declarations) {
  const std::string text =
      "tl 1.0\nkernel kk(M: dim; t: dtype = f32, e: enum{p, q}) {\n"
      "in X: tensor<t>[M] strides[?] const, s: f32 if M > 1 out Y: tensor<t>[M]\n"
      "tune bm in {1, 2} for cpu where bm > 1\n"
      "init X = uniform(0, 1) if M > 2 c = 1\n"
      "launch m in M / bm, segment (b, i, j, part, whole) in split(q in M: q + 1, 3) order=row(8) "
      "cluster=[2, 1] { }\n}";
  const StatusOr<Program> program = Parse(text);
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(Covered(text, program->name.span), "kk");
  EXPECT_EQ(Covered(text, program->dims[0].span), "M");
  EXPECT_EQ(Covered(text, program->params[1].name.span), "e");
  EXPECT_EQ(Covered(text, program->params[1].choices[1].span), "q");
  std::vector<std::string> decls;
  for (const Decl& decl : program->decls) decls.push_back(Covered(text, decl.span));
  EXPECT_EQ(decls,
            (std::vector<std::string>{"in X: tensor<t>[M] strides[?] const, s: f32 if M > 1",
                                      "out Y: tensor<t>[M]", "tune bm in {1, 2} for cpu",
                                      "where bm > 1", "init X = uniform(0, 1) if M > 2", "c = 1"}));
  const Operand& x = program->decls[0].operands[0];
  EXPECT_EQ(Covered(text, x.dtype_span), "t");
  EXPECT_EQ(Covered(text, x.strides[0]->span), "?");
  EXPECT_TRUE(x.is_const);
  const Launch& launch = program->launches[0];
  EXPECT_EQ(Covered(text, launch.span),
            "launch m in M / bm, segment (b, i, j, part, whole) in split(q in M: q + 1, 3) "
            "order=row(8) cluster=[2, 1]");
  EXPECT_EQ(Covered(text, launch.axes[1].segment[3].span), "part");
  EXPECT_EQ(Covered(text, launch.axes[1].count->span), "q + 1");
  EXPECT_EQ(Covered(text, launch.attrs[0].value->span), "row(8)");
  EXPECT_EQ(launch.attrs.size(), 1u);
  EXPECT_EQ(launch.cluster.size(), 2u);
}

TEST(TreeTest, MarksBelongToTheirIndex) {
  const StatusOr<ExprRef> expr = ParseExpr("X[a, b:, c]");
  ASSERT_TRUE(expr.ok());
  EXPECT_EQ((*expr)->kind, ExprKind::kIndex);
  EXPECT_EQ((*expr)->marks, (std::vector<bool>{false, true, false}));
}

// -- Mistakes
// --------------------------------------------------------------------------------------

// "line:column" of the byte in front of which `before` ends.
std::string Place(std::string_view before) {
  const auto lines = std::count(before.begin(), before.end(), '\n');
  return absl::StrCat(lines + 1, ":", before.size() - (before.rfind('\n') + 1) + 1);
}

// The error is expected at the text between two @; one @ stands for a place.
void ExpectError(std::string_view marked, std::string_view message,
                 std::string (*wrap)(std::string_view)) {
  const std::string text = wrap(marked);
  const std::vector<std::string> parts = absl::StrSplit(text, '@');
  ASSERT_GE(parts.size(), 2u) << text;
  const std::string end = parts.size() > 2 ? parts[0] + parts[1] : parts[0];
  const std::string program = absl::StrJoin(parts, "");
  const StatusOr<Program> result = Parse(program);
  ASSERT_FALSE(result.ok()) << program;
  EXPECT_EQ(Describe(result.status()),
            absl::StrCat(Place(parts[0]), "-", Place(end), ": ", message))
      << program;
  EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(DetailOf(result.status()).reason, Reason::kSyntax);
}

std::string AsIs(std::string_view text) { return std::string(text); }

TEST(ErrorTest, Text) {
  const Row rows[] = {
      {"@", "expected 'tl' and the version at the start of the program, found the end of the text"},
      {"@kernel@ k() {}",
       "expected 'tl' and the version at the start of the program, found 'kernel'"},
      {"tl @kernel@ k() {}", "expected a version such as 1.0 after 'tl', found 'kernel'"},
      {"tl @1@ kernel k() {}", "expected a version such as 1.0 after 'tl', found '1'"},
      {"tl @1.1@ kernel k() {}", "the program is written in tl 1.1; this library reads tl 1.0"},
      {"tl @2.0@ kernel k() {}", "the program is written in tl 2.0; this library reads tl 1.0"},
      {"tl @1e0@ kernel k() {}", "'1e0' is no version"},
      {"tl @1.@ kernel k() {}", "'1.' is no version"},
      {"tl @99999999999.0@ kernel k() {}", "'99999999999.0' is no version"},
      {"tl 1.0 @k@() {}", "expected 'kernel' after the version, found 'k'"},
      {"tl 1.0 kernel @(@) {}", "expected the name of the kernel, found '('"},
      {"tl 1.0 kernel @if@() {}",
       "expected the name of the kernel, found 'if', a word of the language"},
      {"tl 1.0 kernel k @{@}", "expected '(' after the name of kernel 'k', found '{'"},
      {"tl 1.0 kernel k() @launch@ {}",
       "expected '{' before the body of kernel 'k', found 'launch'"},
      {"tl 1.0 kernel k() {@", "expected '}' to close the '{' at 1:19, found the end of the text"},
      {"tl 1.0 kernel k() {} @}@", "expected the end of the text after the kernel, found '}'"},
      {"tl 1.0 kernel k() {} @kernel@",
       "expected the end of the text after the kernel, found 'kernel'"},
      {"tl 1.0 kernel k() {} @$@", "unexpected character '$'"},
      {"tl 1.0 kernel k() {}\n # fine \xC3\xA9\n@\xC3\xA9@", "unexpected character U+00E9"},
      {"tl 1.0 kernel k() {} @\x01@", "unexpected character U+0001"},
      {"@\xEF\xBB\xBF@tl 1.0 kernel k() {}", "unexpected character U+FEFF"},
      // the first mistake in the text is reported, be it of grammar or of letters
      {"tl 1.0 kernel k() @x@ {}\n $", "expected '{' before the body of kernel 'k', found 'x'"},
      // not text at all
      {std::string("tl 1.0\n kernel@\0@", 17), "the program contains a NUL byte"},
      {"tl 1.0 # @\x80@", "the program is not UTF-8: byte 0x80"},
      {"tl 1.0\n# @\xC0@\x80", "the program is not UTF-8: byte 0xC0"},
      {"tl 1.0 # @\xC3@", "the program is not UTF-8: byte 0xC3"},
      {"tl 1.0 # @\xE0@\x80\x80", "the program is not UTF-8: byte 0xE0"},
      {"tl 1.0 # @\xED@\xA0\x80", "the program is not UTF-8: byte 0xED"},
      {"tl 1.0 # @\xF4@\x90\x80\x80", "the program is not UTF-8: byte 0xF4"},
      {"tl 1.0 # @\xFF@", "the program is not UTF-8: byte 0xFF"},
  };
  for (const Row& row : rows) ExpectError(row.text, row.result, AsIs);
}

TEST(ErrorTest, Declarations) {
  const Row rows[] = {
      {"@X@: f32", "unknown declaration 'X'"},
      {"@inn@ X: f32", "unknown declaration 'inn'; did you mean 'in'?"},
      {"@lauch@ m in 3 { }", "unknown declaration 'lauch'; did you mean 'launch'?"},
      {"@3@", "expected a declaration or 'launch', found '3'"},
      {"@copy@ a -> b", "'copy' must stand inside a launch"},
      {"@for@ i in 3 { }", "'for' must stand inside a launch"},
      {"@a = alloc_shared<f32>[4]@", "outside a launch a name can only be given a value: 'x = e'"},
      {"@a += 1@", "outside a launch a name can only be given a value: 'x = e'"},
      {"launch { }\n@x@ = 1",
       "expected 'launch' or '}' after a launch (declarations stand before the first), found 'x'"},
      {"in @3@", "expected the name of an operand, found '3'"},
      {"in X @f32@", "expected ':' and the type after 'X', found 'f32'"},
      {"in X: @[@4]", "expected a type, found '['"},
      {"in X: tensor@[@4]", "expected '<' and the element type after 'tensor', found '['"},
      {"in X: tensor<f32 @[@4]", "expected '>' after the element type, found '['"},
      {"in X: tensor<f32>@,@", "expected '[' and the shape of 'X', found ','"},
      {"in X: tensor<f32>[4@}@", "expected ']' in the shape, found '}'"},
      {"in X: tensor<f32>[4] @strides@[1, 2]", "'X' has 1 dims but 2 strides"},
      {"in X: tensor<f32>[@?@]", "expected an expression after '[', found '?'"},
      {"in X: tensor<f32>[4] @prepacked@[1]",
       "'prepacked' needs the rows and columns of a tile: 'prepacked[r, c]'"},
      {"out Y: @f32@", "'out' operands are tensors: write 'tensor<f32>[...]'"},
      {"workspace w: @t@", "'workspace' operands are tensors: write 'tensor<t>[...]'"},
      {"tune bm @=@ 3", "expected 'in' after 'bm', found '='"},
      {"tune bm in @[@1]", "expected '{' before the candidates of 'bm', found '['"},
      {"tune bm in {@}@", "expected an expression after '{', found '}'"},
      {"tune bm in {1} for @metal@",
       "expected 'cpu', 'cuda', 'hip' or a target such as 'sm_90a' after 'for', found 'metal'"},
      {"init X = @3@", "expected 'uniform', 'normal', 'constant' ..., found '3'"},
      {"init X = uniform @0@, 1", "expected '(' after 'uniform', found '0'"},
      {"launch m @{@ }", "expected 'in' after the axis 'm', found '{'"},
      {"launch m in @{@ }", "expected an expression after 'in', found '{'"},
      {"launch m in 3 @presistent@ { }",
       "'presistent' is no attribute of launch; it has persistent, groups, threads, blocks, order, "
       "producer, stores, owner, cluster; did you mean 'persistent'?"},
      {"launch persistent @persistent@ { }", "'persistent' is given twice to launch"},
      {"launch groups @{@ }", "expected '=' and a value after 'groups', found '{'"},
      {"launch order=@rows@(8) { }",
       "'rows' is no value of order; it is one of row, col, longest; did you mean 'row'?"},
      {"launch order=@8@ { }", "expected one of 'row', 'col', 'longest' for 'order', found '8'"},
      {"launch order=row(8 @{@ }", "expected ')' after the argument of 'row', found '{'"},
      {"launch cluster=@2@ { }", "expected '[' after '=' of 'cluster', found '2'"},
      {"launch cluster=[1] @cluster@=[1] { }", "'cluster' is given twice"},
      {"launch @segment@ (b, i) in split(b in B: 1, 2) { }",
       "'segment' has 2 names; it needs (item, begin, end, part, whole)"},
      {"launch segment (b, i, j, p, w) in @cut@(b in B: 1, 2) { }",
       "expected 'split' after 'in' of 'segment', found 'cut'"},
      {"launch segment (b, i, j, p, w) in split(b in B@,@ 1, 2) { }",
       "expected ':' and the count after the items of 'split', found ','"},
      {"launch m in 3 @m@ { }",
       "'m' is no attribute of launch; it has persistent, groups, threads, blocks, order, "
       "producer, stores, owner, cluster"},
  };
  for (const Row& row : rows) ExpectError(row.text, row.result, InKernel);
}

TEST(ErrorTest, Signatures) {
  const Row rows[] = {
      {"tl 1.0 kernel k(M: @int@) {}",
       "expected 'dim' (parameters stand behind a ';'), found 'int'"},
      {"tl 1.0 kernel k(M@)@ {}", "expected ':' after 'M', found ')'"},
      {"tl 1.0 kernel k(M: @size@) {}", "expected 'dim' after ':', found 'size'"},
      {"tl 1.0 kernel k(; D: @dim@) {}",
       "expected a parameter's type (dims stand before the ';'), found 'dim'"},
      {"tl 1.0 kernel k(; D: @f32@) {}",
       "expected 'int', 'bool', 'dtype' or 'enum' as the type of 'D', found 'f32'"},
      {"tl 1.0 kernel k(; D: enum @=@ a) {}", "expected '{' after 'enum', found '='"},
      {"tl 1.0 kernel k(; D: enum{@}@) {}", "expected a value of the enum, found '}'"},
      {"tl 1.0 kernel k(; D: int = @)@ {}", "expected an expression after '=', found ')'"},
      {"tl 1.0 kernel k(; D: int @E@: int) {}",
       "expected ')' after the parameters of kernel 'k', found 'E'"},
      {"tl 1.0 kernel k(@,@ M: dim) {}", "expected the name of a dim, found ','"},
  };
  for (const Row& row : rows) ExpectError(row.text, row.result, AsIs);
}

TEST(ErrorTest, Expressions) {
  const Row rows[] = {
      {"x = min(a, b @{@", "expected ')' after the arguments of 'min', found '{'"},
      {"x = min(a@;@ b)", "expected ')' after the arguments of 'min', found ';'"},
      {"x = y[1, 2@)@", "expected ']' after the indices of 'y', found ')'"},
      {"x = (a + b@]@", "expected ')' to close the parenthesis, found ']'"},
      {"x = a + @*@ b", "expected an expression after '+', found '*'"},
      {"x = @}@", "expected an expression after '=', found '}'"},
      {"x = a < b @<@ c", "comparisons do not chain: write 'a < b and b < c'"},
      {"x = a == b @!=@ c", "comparisons do not chain: write 'a < b and b < c'"},
      {"x = 1 + @if@ a then b else c", "'if ... then ... else ...' needs parentheses here"},
      {"x = a == @not@ b", "'not ...' needs parentheses here"},
      {"x = -@not@ b", "'not ...' needs parentheses here"},
      {"x = if a @{@ }", "expected 'then' after the condition of 'if', found '{'"},
      {"x = if a then b @}@",
       "expected 'else' in 'if ... then ...': an expression needs both sides, found '}'"},
      {"x = f(1)@[@0]", "only a name can be indexed"},
      {"x = (y)@[@0]", "only a name can be indexed"},
      {"x = @then@", "expected an expression after '=', found 'then'"},
      {"x = f(@,@)", "expected an expression after '(', found ','"},
      {"x = @9223372036854775808@", "the number is out of range: integers go up to 2^63-1"},
      {"x = @0x8000000000000000@", "the number is out of range: integers go up to 2^63-1"},
      {"x = @99999999999999999999999999@", "the number is out of range: integers go up to 2^63-1"},
      {"x = @1e400@", "the number is out of range of f64"},
      {"x = @1e-400@", "the number is out of range of f64"},
      {"x = @1.5f@", "'1.5f' is no number"},
      {"x = @12abc@", "'12abc' is no number"},
      {"x = @0x@", "'0x' is no number"},
      {"x = @0xfg@", "'0xfg' is no number"},
      {"x = @1e@ + 2", "'1e' is no number"},
      {"x = @1e+@ ", "'1e+' is no number"},
      {"x = @1_000@", "'1_000' is no number"},
      {"x = @.@5", "unexpected '.'; numbers start with a digit"},
      {"x = a @&&@ b", "unexpected '&&'; write 'and'"},
      {"x = a @||@ b", "unexpected '||'; write 'or'"},
      {"x = @!@a", "unexpected '!'; write 'not'"},
      {"x = a @**@ b", "unexpected '**'; write 'pow(x, y)'"},
      {"x = a @//@ b", "unexpected '//'; comments start with '#'"},
      {"x = a@.@b", "unexpected '.'; numbers start with a digit"},
      {"x = @\"@a\"", "unexpected character '\"'"},
  };
  for (const Row& row : rows) ExpectError(row.text, row.result, InLaunch);
}

TEST(ErrorTest, Statements) {
  const std::string gemm_attrs =
      "is no attribute of gemm; it has transpose_a, transpose_b, clear, policy, precision, "
      "orientation";
  const Row rows[] = {
      {"@cpy@ a -> b", "unknown operation 'cpy'; did you mean 'copy'?"},
      {"@paralel@ i in 4 { }", "unknown operation 'paralel'; did you mean 'parallel'?"},
      {"@reduce@ a -> b", "unknown operation 'reduce'"},
      {"@zig@(x)", "unknown operation 'zig'"},
      {"@let@ x = 1", "values need no word in front: write 'x = ...'"},
      {"@else@ { }", "unknown operation 'else'"},
      {"@alloc_shared@<f32>[4]", "'alloc_shared' makes a tile: write 'x = alloc_shared ...'"},
      {"@view@ y", "'view' makes a tile: write 'x = view ...'"},
      {"x @==@ 3", "expected '=' after 'x', found '=='"},
      {"x @->@ y", "expected '=' after 'x', found '->'"},
      {"@3@", "expected a statement, found '3'"},
      {"@(@x)", "expected a statement, found '('"},
      {"@{@ }", "expected a statement, found '{'"},
      {"x[0] @->@ y", "expected '=' after the element of 'x', found '->'"},
      {"x, y @->@ z", "expected '=' after 'y', found '->'"},
      {"x, @y@ = 3", "only 'alloc_...' may define several names at once"},
      {"@true@ = 3", "expected a name, found 'true', a word of the language"},
      {"@in@ = 3", "expected a name, found 'in', a word of the language"},
      {"x += @alloc_shared@<f32>[4]", "'alloc_shared' needs '=', not '+='"},
      {"x = @alloc_sharde@<f32>[4]",
       "unknown operation 'alloc_sharde'; did you mean 'alloc_shared'?"},
      {"x = alloc_shared@[@4]", "expected '<' and the type after 'alloc_shared', found '['"},
      {"x = alloc_shared<@>@[4]", "expected a type, found '>'"},
      {"x = alloc_shared<f32@,@ sum>[4]",
       "expected '>' after the type of 'alloc_shared', found ','"},
      {"x = alloc_shared<f32>@(@4)",
       "expected '[' and the extents after the type of 'alloc_shared', found '('"},
      {"x = alloc_shared<f32>[@]@", "expected an expression after '[', found ']'"},
      {"x = alloc_reducer<f32@>@[4]",
       "expected ',' and 'sum', 'max' or 'min' after the type of 'alloc_reducer', found '>'"},
      {"x = alloc_reducer<f32, @prod@>[4]",
       "expected 'sum', 'max' or 'min' after ',', found 'prod'"},
      {"x = alloc_var<f32>@[@4]",
       "expected '(' and the first value after the type of 'alloc_var', found '['"},
      {"x = alloc_chan<f32>[4] @dept@=2",
       "'dept' is no attribute of alloc_chan; it has depth; did you mean 'depth'?"},
      {"x = view y @z@", "expected '[' and the offsets after the tile of 'view', found 'z'"},
      {"x = view y[0] @z@", "expected '[' and the extents after the offsets of 'view', found 'z'"},
      {"copy a @+@ b -> c", "expected '->' and the target after the operands of 'copy', found '+'"},
      {"copy @3@ -> c", "expected a tile or tensor, found '3'"},
      {"copy a -> @3@", "expected a tile or tensor, found '3'"},
      {"gemm a @->@ c", "expected ',' and the second operand of 'gemm', found '->'"},
      {"fill a @0@", "expected ',' and the value after the tile of 'fill', found '0'"},
      {"clear @3@", "expected a tile or tensor, found '3'"},
      // attributes
      {"gemm a, b -> c @transposeb@",
       "'transposeb' " + gemm_attrs + "; did you mean 'transpose_b'?"},
      {"gemm a, b -> c @polcy@=full_row", "'polcy' " + gemm_attrs + "; did you mean 'policy'?"},
      {"gemm a, b -> c @dim@=1", "'dim' " + gemm_attrs},
      {"gemm a, b -> c @zzz@", "'zzz' " + gemm_attrs},
      {"gemm a, b -> c policy=@fullrow@",
       "'fullrow' is no value of policy; it is one of square, full_row, full_col; did you mean "
       "'full_row'?"},
      {"gemm a, b -> c policy=@1@",
       "expected one of 'square', 'full_row', 'full_col' for 'policy', found '1'"},
      {"gemm a, b -> c clear @clear@", "'clear' is given twice to gemm"},
      {"gemm a, b -> c @clear@ d",
       "'clear' on the line of another statement is its attribute: start a new line"},
      {"gemm a, b -> c @clear@ d, e",
       "'clear' on the line of another statement is its attribute: start a new line"},
      {"reduce_sum a -> b dim\n@x@ = 3", "expected '=' and a value after 'dim', found 'x'"},
      {"finish r @dim@=1", "'dim' is no attribute of finish; it has none"},
      {"copy a -> b @dim@=1", "'dim' is no attribute of copy; it has rows, transpose, evict"},
      {"copy a -> b @evit@=first",
       "'evit' is no attribute of copy; it has rows, transpose, evict; did you mean 'evict'?"},
      {"copy a -> b evict\n@x@ = 3", "expected '=' and a value after 'evict', found 'x'"},
      {"gemm a, b -> c @evict@=first", "'evict' " + gemm_attrs},
      {"fill a, 0 @evict@=first", "'evict' is no attribute of fill; it has none"},
      {"atomic_add a -> T[0] @evict@=last", "'evict' is no attribute of atomic_add; it has none"},
      {"copy a -> b @cpy@ c -> d", "unknown operation 'cpy'; did you mean 'copy'?"},
      {"atomic_add a -> T[0] @zig@", "unknown operation 'zig'"},
      {"unrolled i in 4 @partition@ { }", "'partition' is no attribute of unrolled; it has down"},
      {"serial i in 4 @stages@=2 { }",
       "'stages' is no attribute of serial; it has down, partition"},
      {"on g in 2 @down@ { }", "expected '{' before the body of 'on', found 'down'"},
      // bodies
      {"serial @3@ in 4 { }", "expected the name of the index, found '3'"},
      {"serial i @=@ 4 { }", "expected 'in' after the index of 'serial', found '='"},
      {"for i @=@ 4 { }", "expected 'in' after the index of 'serial', found '='"},
      {"serial i in 0@:@4 { }", "expected '{' before the body of 'serial', found ':'"},
      {"serial i in 4\n@x@ = 1", "'x' is no attribute of serial; it has down, partition"},
      {"parallel @i@, j in 4 { }", "'parallel' has 2 indices but 1 extents"},
      {"parallel @i@ in [4, 5] { }", "'parallel' has 1 indices but 2 extents"},
      {"if a @then@ b", "expected '{' before the body of 'if', found 'then'"},
      {"if a { } else @x@ = 1", "expected '{' before the body of 'else', found 'x'"},
      {"on @{@ }", "expected the name of the group, found '{'"},
      {"on g @=@ 2", "expected 'in' after the group of 'on', found '='"},
      {"lag @{@ }", "expected an expression after 'lag', found '{'"},
  };
  for (const Row& row : rows) ExpectError(row.text, row.result, InLaunch);
  ExpectError("tl 1.0 kernel k() { launch {\n x = 1 @",
              "expected '}' to close the '{' at 1:28, found the end of the text", AsIs);
}

// -- Limits
// ----------------------------------------------------------------------------------------

std::string Repeat(std::string_view s, int n) {
  std::string text;
  for (int i = 0; i < n; ++i) absl::StrAppend(&text, s);
  return text;
}

std::string List(std::string_view item, int n) {
  std::vector<std::string> items;
  for (int i = 0; i < n; ++i) items.push_back(absl::StrReplaceAll(item, {{"$", absl::StrCat(i)}}));
  return absl::StrJoin(items, ", ");
}

void ExpectLimit(const std::string& text, std::string_view message) {
  const StatusOr<Program> program = Parse(text);
  ASSERT_FALSE(program.ok()) << message;
  EXPECT_EQ(program.status().message(), message);
  EXPECT_EQ(program.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(DetailOf(program.status()).reason, Reason::kLimit);
}

std::string NestedExpr(std::string_view open, std::string_view close, int n) {
  return InLaunch(absl::StrCat("x = ", Repeat(open, n), "1", Repeat(close, n)));
}

std::string NestedStmt(std::string_view open, int n) {
  return InLaunch(absl::StrCat(Repeat(open, n), Repeat(" }", n)));
}

// "1 or 1 and ...": one frame for each level of precedence.
constexpr char kEveryLevel[] = "1 or 1 and not 1 < 1 & 1 << 1 + 1 * -(";

TEST(LimitTest, Nesting) {
  const std::string deep = "nested more than 200 deep";
  const std::string tall = "the expression is more than 200 operations deep: name a part of it";
  for (const int n : {250, 1000, 100000}) {
    ExpectLimit(NestedExpr("(", ")", n), deep);
    ExpectLimit(NestedExpr("-", "", n), deep);
    ExpectLimit(NestedExpr("not ", "", n), deep);
    ExpectLimit(NestedExpr("f(", ")", n), deep);
    ExpectLimit(NestedExpr("x[", "]", n), deep);
    ExpectLimit(NestedExpr("if a then 1 else ", "", std::min(n, 50000)), deep);
    ExpectLimit(NestedExpr("if ", "", n), deep);
    ExpectLimit(NestedExpr("", "+1", n), tall);
    ExpectLimit(NestedExpr("1*", "", n), tall);
    ExpectLimit(NestedExpr("1 or ", "", n), tall);
    ExpectLimit(NestedExpr(kEveryLevel, ")", std::min(n, 20000)), deep);
    ExpectLimit(NestedStmt("lag 1 {", n), deep);
    ExpectLimit(NestedStmt("if a { } else {", std::min(n, 50000)), deep);
    ExpectLimit(InLaunch("if a { }" + Repeat("else if a { }", std::min(n, 50000))), deep);
  }
  EXPECT_TRUE(Parse(NestedExpr("(", ")", 190)).ok());
  EXPECT_TRUE(Parse(NestedExpr("", "+1", 190)).ok());
  EXPECT_TRUE(Parse(NestedStmt("lag 1 {", 190)).ok());
  EXPECT_TRUE(Parse(InLaunch("if a { }" + Repeat("else if a { }", 190))).ok());
}

// Frames are several times as large under the sanitizers.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#elif defined(__has_feature)
constexpr bool kSanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
constexpr bool kSanitized = false;
#endif

void* ParseAndPrint(void* text) {
  std::string& program_text = *static_cast<std::string*>(text);
  const StatusOr<Program> program = Parse(program_text);
  program_text = program.ok() ? Print(*program) : Describe(program.status());
  return nullptr;
}

// In a thread with a stack much smaller than usual.
std::string ParseAndPrintOnSmallStack(std::string text) {
  constexpr size_t kStack = kSanitized ? 4 << 20 : 512 << 10;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStack);
  pthread_t thread;
  EXPECT_EQ(pthread_create(&thread, &attributes, ParseAndPrint, &text), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  return text;
}

// The deepest program that is accepted, printing and freeing included, and the deepest expression
// that is looked at before it is refused.
TEST(LimitTest, NestingFitsASmallStack) {
  const std::string accepted =
      InLaunch(absl::StrCat(Repeat("if a { } else if b {", 40), "x = ", Repeat(kEveryLevel, 21),
                            Repeat("(", 50), "1", Repeat(")", 71), Repeat("}", 40)));
  EXPECT_EQ(ParseAndPrintOnSmallStack(accepted).substr(0, 6), "tl 1.0");
  const std::string refused = InLaunch("x = " + Repeat(kEveryLevel, 1000));
  EXPECT_EQ(ParseAndPrintOnSmallStack(refused), "4:2524-4:2527: nested more than 200 deep");
}

TEST(LimitTest, Counts) {
  ExpectLimit(std::string((1 << 20) + 1, ' '),
              "the program has 1048577 bytes; the limit is 1048576");
  ExpectLimit(absl::StrCat("tl 1.0 kernel k(", List("d$: dim", 65), ") {}"), "more than 64 dims");
  ExpectLimit(absl::StrCat("tl 1.0 kernel k(; ", List("p$: int", 65), ") {}"),
              "more than 64 parameters");
  ExpectLimit(absl::StrCat("tl 1.0 kernel k(; ", List("p$: int", 63), ") { tune ",
                           List("t$ in {1}", 2), "}"),
              "more than 64 parameters");
  ExpectLimit(InKernel(absl::StrCat("in ", List("x$: f32", 65))), "more than 64 operands");
  ExpectLimit(InKernel(absl::StrCat("workspace ", List("w$: tensor<f32>[1]", 33))),
              "more than 32 workspaces");
  ExpectLimit(InKernel(Repeat("launch { }", 17)), "more than 16 launches");
  ExpectLimit(InKernel(absl::StrCat("launch ", List("a$ in 2", 9), " { }")), "more than 8 axes");
  ExpectLimit(InKernel("in X: tensor<f32>[1,2,3,4,5,6,7,8,9]"), "more than 8 values in the shape");
  ExpectLimit(InLaunch("x = alloc_shared<f32>[1,2,3,4,5,6,7,8,9]"),
              "more than 8 values in the extents");
  ExpectLimit(InLaunch("x = X[1,2,3,4,5,6,7,8,9]"), "'X' has 9 indices; the highest rank is 8");
  ExpectLimit(InLaunch(Repeat("x=1 ", 100001)), "more than 100000 statements");
  ExpectLimit(InKernel(Repeat("x=1 ", 100001)), "more than 100000 statements");
  EXPECT_TRUE(Parse(InLaunch(Repeat("x=1 ", 100000))).ok());
  // A tune parameter may have a clause per class of targets.
  EXPECT_TRUE(Parse(InKernel(Repeat("tune t in {1} for cpu\n", 100))).ok());
}

// -- Near words
// ------------------------------------------------------------------------------------

TEST(EditDistanceTest, CountsEdits) {
  EXPECT_EQ(EditDistance("copy", "copy", 3), 0);
  EXPECT_EQ(EditDistance("cpy", "copy", 3), 1);
  EXPECT_EQ(EditDistance("cpoy", "copy", 3), 1);
  EXPECT_EQ(EditDistance("gem", "gemm", 3), 1);
  EXPECT_EQ(EditDistance("transposeb", "transpose_b", 3), 1);
  EXPECT_EQ(EditDistance("kitten", "sitting", 3), 3);
  EXPECT_EQ(EditDistance("kitten", "sitting", 2), 3);
  EXPECT_EQ(EditDistance("", "abc", 5), 3);
  EXPECT_EQ(EditDistance(std::string(100000, 'a'), "abc", 2), 3);
}

TEST(EditDistanceTest, NearestWord) {
  const std::vector<std::string_view> words = {"row", "col", "longest"};
  EXPECT_EQ(NearestWord("rows", words), "row");
  EXPECT_EQ(NearestWord("longst", words), "longest");
  EXPECT_EQ(NearestWord("x", words), "");
  EXPECT_EQ(NearestWord("diagonal", words), "");
  EXPECT_EQ(DidYouMean("colu", words), "; did you mean 'col'?");
  EXPECT_EQ(DidYouMean("zzz", words), "");
}

}  // namespace
}  // namespace tl::syntax
