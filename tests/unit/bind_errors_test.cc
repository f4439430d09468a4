// One row for every mistake that the binder reports: where it points, what it says.
#include <functional>

#include "tests/unit/bind_testing.h"

namespace tl {
namespace {

// '@' stands where the error starts; without it the error has no place in the program.
struct Row {
  std::string text;
  std::string message;
  Values values = {};
};

void ExpectErrors(const std::vector<Row>& rows,
                  const std::function<std::string(const std::string&)>& wrap) {
  for (const Row& row : rows) {
    const Marked marked(wrap(row.text));
    const StatusOr<Module> module = BindText(marked.text, row.values);
    if (module.ok()) {
      ADD_FAILURE() << "no error: " << row.text << "\n" << ToText(*module);
      continue;
    }
    const ErrorDetail detail = DetailOf(module.status());
    const bool limit = detail.reason == Reason::kLimit;
    EXPECT_EQ(module.status().code(),
              limit ? absl::StatusCode::kResourceExhausted : absl::StatusCode::kInvalidArgument)
        << row.text;
    EXPECT_TRUE(limit || detail.reason == Reason::kSemantics) << row.text;
    EXPECT_NE(module.status().message().find(row.message), std::string::npos)
        << row.text << "\n  says " << Describe(module.status()) << "\n  not  " << row.message;
    EXPECT_EQ(absl::StrCat(detail.span.line, ":", detail.span.column),
              absl::StrCat(marked.line, ":", marked.column))
        << row.text << "\n  says " << module.status().message();
  }
}

TEST(BindErrors, Signature) {
  const auto wrap = [](const std::string& text) { return absl::StrCat("tl 1.0\nkernel k", text); };
  ExpectErrors(
      {
          {"() { launch { } }", "'k' has no parameter 'x'; it has ", {{"x", "1"}}},
          {"(M: dim) { launch { } }",
           "'M' is given twice, as '1' and as '2'",
           {{"M", "1"}, {"M", "2"}}},
          {"(M: dim) { tune b in {1, 2} tune b in {4} for cpu tune c in {1} launch { } }",
           "'k' has no parameter 'x'; it has M, b, c",
           {{"x", "1"}}},
          {"(M: dim; rows: int = 1) { launch { } }",
           "'k' has no parameter 'row'; did you mean 'rows'?; it has M, rows",
           {{"row", "1"}}},
          {"(@M: dim) { launch { } }", "dim 'M' must be between 0 and", {{"M", "-1"}}},
          {"(@M: dim) { launch { } }",
           "the value '1 +' of 'M': expected an expression",
           {{"M", "1 +"}}},
          {"(@M: dim) { launch { } }", "dim 'M' must be an int, found f32", {{"M", "1.5"}}},
          {"(@M: dim) { launch { } }", "unknown name 'many'", {{"M", "many"}}},
          {"(M: dim, @M: dim) { launch { } }", "'M' is already defined at 2:10"},
          {"(@f32: dim) { launch { } }", "'f32' is a dtype and cannot be defined"},
          {"(; @n: int) { launch { } }", "parameter 'n' has no default and must be given"},
          {"(; @n: int) { launch { } }", "the value '' of 'n'", {{"n", ""}}},
          {"(; @n: int) { launch { } }", "parameter 'n' must be an int, found bool", {{"n", "on"}}},
          {"(; @b: bool) { launch { } }",
           "parameter 'b' must be a bool known at compile time",
           {{"b", "1"}}},
          {"(; @t: dtype) { launch { } }", "'f31' is no dtype; there are bool i8", {{"t", "f31"}}},
          {"(; t: dtype = @3) { launch { } }", "parameter 't' is a dtype such as bf16"},
          {"(; @e: enum {x, y}) { launch { } }",
           "'z' is no value of parameter 'e'; there are x, y",
           {{"e", "z"}}},
          {"(M: dim; n: int = @M) { launch { } }",
           "parameter 'n' must be known at compile time, but 'M' depends on launch arguments; "
           "give the dim a value or use a parameter"},
          {"(M: dim; t: dtype = if @M > 1 then f32 else f16) { launch { } }",
           "parameter 't' must be a bool known at compile time, found 'M > 1'"},
          {"(; n: int = @1 / 0) { launch { } }", "division by zero"},
          {"@k() { }", "the kernel has no launch"},
      },
      [&](const std::string& text) {
        return text[0] == '@' ? "tl 1.0\nkernel " + text : wrap(text);
      });
}

TEST(BindErrors, Tuning) {
  const std::string tune = "tune x in {1, 2}, y in {3, 4}\n";
  ExpectErrors(
      {
          {tune + "where @x == y",
           "'where x == y' does not hold for any combination of the tune "
           "parameters"},
          // Most combinations fail at the first, the others at the second: that one is asked of
          // all.
          {tune + "where x == 1 and y == 3\nwhere @x > y",
           "'where x > y' does not hold for any combination"},
          {tune + "where @x > y",
           "'where x > y' does not hold for the values given: 2 > 3",
           {{"x", "2"}, {"y", "3"}}},
          {tune + "where @x * 4 + y <= (if y > 3 then 10 else 7)",
           "does not hold for the values given: 11 <= 7",
           {{"x", "2"}, {"y", "3"}}},
          {tune + "where @x", "where must be a bool known at compile time, found 'x'"},
          {tune + "where @x < M", "where must be a bool known at compile time, found 'x < M'"},
          {"tune x in {@1.5}", "candidates of 'x' must be ints or bools known at compile time"},
          {"tune x in {@M}", "candidates of 'x' must be ints or bools known at compile time"},
          {"tune @x in {3, 1+1}",
           "parameter 'x' is an int, tuned over 3, 2; found '0.5'",
           {{"x", "0.5"}}},
          {"tune @x in {1}", "parameter 'x' is an int, tuned over 1; found 'on'", {{"x", "on"}}},
          {"tune @x in {1}", "parameter 'x' is an int, tuned over 1; found 'y'", {{"x", "y"}}},
          {"tune @x in {off}", "parameter 'x' is a bool, on or off; found '17'", {{"x", "17"}}},
          {"tune @x in {M}", "candidates of 'x' must be ints or bools", {{"x", "0.5"}}},
          {"tune @x in {1}", "the value '(' of 'x': expected an expression", {{"x", "("}}},
          {"tune @M in {1}", "'M' is already defined"},
      },
      [](const std::string& text) { return InKernel(text + "\nlaunch { }", "M: dim"); });
  // A table of all the combinations there are would take forever.
  std::string many;
  for (int i = 0; i < 10; ++i) {
    absl::StrAppend(&many, "tune x", i, " in {0, 1, 2, 3, 4, 5, 6, 7}\n");
  }
  ExpectErrors({{many + "where @x0 < 0", "for the first 100000 combinations of tune parameters"}},
               [](const std::string& text) { return InKernel(text + "\nlaunch { }"); });
}

TEST(BindErrors, Declarations) {
  ExpectErrors(
      {
          {"in @M: f32",
           "'M' is already defined at 2:10; a name keeps its meaning, choose another"},
          {"in X: @f33", "'f33' is no dtype"},
          {"in X: tensor<f32>[@-1]", "an extent of 'X' is negative: -1"},
          {"in X: tensor<f32>[@1.5]", "an extent of 'X' must be an int, found f32"},
          {"in X: tensor<f32>[1 << 30, @1 << 30]", "tensor 'X' has more than 2^48 elements"},
          {"in X: tensor<f32>[1 << 40, M, @1 << 40]", "tensor 'X' has more than 2^48 elements"},
          {"in u: f32, X: tensor<f32>[@i32(u)]", "an extent of 'X' must be known at launch"},
          {"in X: tensor<f32>[4] if @M > 1",
           "the condition of an operand must be a bool known at compile time, found 'M > 1'"},
          {"in @X: tensor<f32>[4] prepacked[2, 2]", "prepacked tensors have at least 2 dims"},
          {"in X: tensor<f32>[4, 4] prepacked[2, @0]",
           "an extent of a packed tile must be between 1 and 4096, found 0"},
          {"in @X: tensor<f32>[4, 4] strides[?, 1] prepacked[2, 2]",
           "a prepacked tensor has no strides of its own"},
          {"in X: tensor<f32>[4] strides[@-1]", "a stride of 'X' is negative: -1"},
          {"in X: tensor<f32>[4] strides[@true]", "a stride of 'X' must be an int, found bool"},
          {"workspace @X: tensor<f32>[4] strides[?]", "workspace tensors are contiguous"},
          {"in X: f32  init X = @gauss(0)",
           "unknown init 'gauss'; there are uniform, normal, constant"},
          {"in X: f32  init X = @uniform(0)", "'uniform' takes 2 arguments, not 1"},
          {"in X: f32  init @Z = constant(0)", "unknown name 'Z'"},
          {"init @M = constant(0)", "'M' is no operand"},
          {"in X: f32  init X = constant(@X2)", "unknown name 'X2'"},
          {"in X: f32  init X = constant(0) if @X > 0", "the condition of init must be a bool"},
          {"in X: tensor<f32>[4]  y = @X[0]", "tensors are read inside a launch"},
          {"M2 = M  @M2 = 3", "'M2' is already defined"},
      },
      [](const std::string& text) { return InKernel(text + "\nlaunch { }", "M: dim"); });
}

TEST(BindErrors, Launches) {
  ExpectErrors(
      {
          {"launch m in @-1 { }", "axis 'm' has a negative extent: -1"},
          {"launch m in @1.5 { }", "the extent of axis 'm' must be an int, found f32"},
          {"launch m in M, @m in M { }", "'m' is already defined"},
          {"launch m in M, n in @m { }",
           "the extent of axis 'n' must be known at launch, but it contains 'm'; only dims, "
           "strides and int scalars are"},
          {"launch m in @L[0] { }", "the extent of axis 'm' must be known at launch"},
          {"launch groups=@0 { }", "groups must be between 1 and 16, found 0"},
          {"launch groups=@M { }", "groups must be known at compile time"},
          {"launch threads=@0 { }", "threads must be between 1 and 1024, found 0"},
          {"launch threads=@1025 { }", "threads must be between 1 and 1024, found 1025"},
          {"launch blocks=@0 { }", "blocks must be between 1 and 32, found 0"},
          {"@launch threads=512 groups=3 { }",
           "threads=512 for each of groups=3 makes 1536 threads in a block; at most 1024"},
          {"launch persistent=@M { }", "persistent must be a bool known at compile time"},
          {"launch owner=@other { }", "'other' is no value of owner; there are block, group"},
          {"@launch owner=group groups=2 { }",
           "groups that own tiles go on to further ones: owner=group takes a persistent launch"},
          {"launch persistent owner=group groups=2 { @on g in 2 { } }",
           "with owner=group each group runs the body for a tile of its own"},
          {"launch m in M order=longest(@x) { }", "order=longest(…) names an axis of this launch"},
          {"launch stores=@boxes { }",
           "'boxes' is no value of stores; there are auto, threads, bulk"},
          {"launch order=row(@0) { }", "the panel of order must be between 1 and 1024"},
          {"launch m in M order=@longest { }",
           "order is row, col, row(n), col(n) or longest(axis)"},
          {"@launch m in M cluster=[2, 2] { }",
           "cluster has more extents than the launch has axes"},
          {"launch m in M cluster=[@9] { }",
           "an extent of cluster must be between 1 and 8, found 9"},
          {"launch m in M, n in M cluster=[1, @0] { }", "an extent of cluster must be between 1"},
          {"launch m in M, n in M, k in M cluster=[2, 2, @4] { }",
           "a cluster has at most 8 blocks; with this extent it has 16"},
          {"launch segment (@b, i, j, p, w) in split(b in M: 1, 2), n in M { }",
           "'segment' must be the last axis of a launch"},
          {"launch segment (b, i, j, p, w) in split(b in M: 1, @0) { }",
           "a split needs at least 1 run, found 0"},
          {"launch segment (b, i, j, p, w) in split(b in @L[0]: 1, 2) { }",
           "the number of items must be known at launch"},
          {"launch segment (b, i, j, p, w) in split(b in M: 1, @L[0]) { }",
           "the number of runs must be known at launch"},
          {"launch segment (b, i, j, p, w) in split(b in M: @1.0, 2) { }",
           "the count of a split must be an int, found f32"},
          {"launch h in M, segment (b, i, j, p, w) in split(b in M: @h, 2) { }",
           "the count of a split depends on its item only, not on axis 'h'"},
          {"launch segment (b, @b, j, p, w) in split(b in M: 1, 2) { }", "'b' is already defined"},
          {"launch { serial p in @parts(0) { } }",
           "parts(…) names the pieces of a split axis of an earlier launch, and there is none"},
          {"launch segment (b, i, j, p, w) in split(b in M: 1, 2) { serial q in @parts(b) { } }",
           "of an earlier launch, and there is none"},
          {"launch segment (b, i, j, p, w) in split(b in M: 1, 2) { }\n"
           "launch { serial q in @parts(0, 1) { } }",
           "'parts' takes 1 argument, the item"},
          {"launch segment (b, i, j, p, w) in split(b in M: 1, 2) { }\n"
           "launch { serial q in parts(@1.0) { } }",
           "the item of parts must be an int, found f32"},
          {"launch segment (b, i, j, p, w) in split(b in M: 1, 2) { }\nlaunch { x = @parts(0) }",
           "parts(…) is allowed only as the range of a loop"},
      },
      [](const std::string& text) { return InKernel("in L: tensor<i32>[4]\n" + text, "M: dim"); });
}

TEST(BindErrors, Expressions) {
  ExpectErrors(
      {
          {"x = @coutn", "unknown name 'coutn'; did you mean 'count'?"},
          {"x = @t", "'t' is a dtype, not a value; use it as t(…) or compare it with =="},
          {"x = @act", "'act' is one of {none, relu}; compare it with =="},
          {"x = @bias[0]",
           "operand 'bias' is left out because its condition at 4:50 is false; guard this with the "
           "same if"},
          {"x = @bias", "operand 'bias' is left out because"},
          {"x = @X + 1", "'X' is a tensor or tile, not a number; name an element, as in X[…]"},
          {"x = @part", "'part' is a view, not a number"},
          {"x = @not 1", "'not' takes a bool, found int"},
          {"x = @-true", "'-' takes a number, found bool"},
          {"x = @1 and true", "'and' takes two bools, found int and bool"},
          {"x = @true + 1", "the two sides of '+' are bool and int; both must be bool or both num"},
          {"x = @true + false", "'+' takes two numbers, found bool"},
          {"x = @alpha % 2", "'%' takes two ints, found f32"},
          {"x = @n / 0", "division by zero"},
          {"x = @ceildiv(n, 0)", "division by zero"},
          {"x = if @n then 1 else 2", "a condition must be bool, found int; compare it"},
          {"x = @if n > 0 then 1 else true", "the two sides of 'if then else' are int and bool"},
          {"x = @f16(1, 2)", "'f16' takes 1 argument, not 2"},
          {"x = @bool(n)", "a number becomes a bool by comparing it, as in '… != 0'"},
          {"x = @min(1)", "'min' takes 2 arguments, not 1"},
          {"x = @ceildiv(1.5, alpha)", "'ceildiv' takes two ints, found f32"},
          {"x = @max(true, false)", "'max' takes two numbers, found bool"},
          {"x = @clamp(1, 2)", "'clamp' takes 3 arguments, not 2"},
          {"x = @clamp(true, false, true)", "'clamp' takes numbers, found bool"},
          {"x = @known(M, 1)", "'known' takes 1 argument, not 2"},
          {"x = @expp(1)", "unknown function 'expp'; there are abs, ceil"},
          {"x = @count(1)", "'count' is not a function"},
          {"x = @pow(1)", "'pow' takes 2 arguments, not 1"},
          {"x = @exp(true)", "expected f32, found bool; write 'if … then 1.0 else 0.0'"},
          {"x = act == @reul", "'reul' is no value of act; there are none, relu"},
          {"x = t == @3", "'t' is a dtype; compare it with one"},
          {"x = t == @f31", "'f31' is no dtype"},
          {"x = @c[0]", "channel 'c' is read by recv"},
          {"x = @acc[0, 0]", "'acc' is an alloc_acc tile; copy it to a fragment to read"},
          {"x = @f[0, 0]", "elements of fragment 'f' are spread over threads and can be read only"},
          {"parallel q in 16 { loc[0] = @r[q] }", "reducer 'r' is read before 'finish r'"},
          {"x = @X[0]", "'X' has 2 dims, but 1 are indexed"},
          {"x = @I[]", "'I' has 1 dim, but 0 are indexed"},
          {"x = X[@0:, 0]", "':' marks the dims of a window; an element has none"},
          {"x = X[@0.5, 0]", "an index must be an int, found f32"},
          {"x = @s[16, 0]", "index 16 is outside dim 0 of 's', which has 16 elements"},
          {"x = @s[-1, 0]", "index -1 is outside dim 0 of 's'"},
          {"x = @part[8, 0]", "index 8 is outside dim 0 of 'part', which has 8 elements"},
          {"x = @zz[0]", "unknown name 'zz'"},
          {"x = @n[0]", "'n' is no tensor or tile"},
          {"fill f, @true", "expected f32, found bool"},
          {"fill b, @1", "expected bool, found int; compare it, as in '… != 0'"},
          {"fill i, @alpha", "expected int, found f32; convert it with i32(…) or i64(…)"},
          {"fill i, @n > 0", "expected int, found bool; write 'if … then 1 else 0'"},
      },
      [](const std::string& text) { return InLaunch(text); });
}

TEST(BindErrors, ScalarsAndControl) {
  ExpectErrors(
      {
          {"x = 1  @x = 2", "'x' is already defined"},
          {"@x += 2", "unknown name 'x'"},
          {"x = 1  @x += 2", "'x' never changes; declare it with alloc_var to assign it"},
          {"count = @1.5", "expected int, found f32; convert it with i32(…)"},
          {"parallel q in 4 { @count = q }",
           "'count' is one value of the whole block; inside 'parallel' use a local array or a "
           "reduction"},
          {"@w = alloc_var<f31>(0)", "'f31' is no dtype"},
          {"w = alloc_var<i32>(@true)", "expected int, found bool"},
          {"parallel q in 4 { @copy s -> f }",
           "'copy' works on whole tiles and cannot stand inside 'parallel'"},
          {"parallel q in 4 { @parallel p in 4 { } }", "'parallel' works on whole tiles"},
          {"parallel q in 4 { @X[q, 0] = 1 }", "'X' is an input; declare it inout to write it"},
          {"parallel q in 4 { @c[q] = 1 }", "channels are written by send"},
          {"parallel q in 4 { @acc[q, 0] = 1 }", "'acc' is an alloc_acc tile: only gemm, clear"},
          {"@f[0, 0] = 1", "elements of 'f' are stored inside 'parallel'"},
          {"@Y[0, 0] = 1", "elements of 'Y' are stored inside 'parallel'"},
          {"parallel q in 16 { @r[q] = 1 }", "before 'finish r' a reducer is filled, reduced into"},
          {"parallel q in 16 { @b[q, 0] *= true }", "a bool element takes '=' only"},
          {"parallel q in 16 { v[q] = @true }", "expected f32, found bool"},
          {"parallel q in @0 { }", "an extent of 'parallel' must be between 1 and 16777216"},
          {"parallel q in @n { }", "an extent of 'parallel' must be known at compile time"},
          {"@parallel p, q in [65536, 65536] { }", "'parallel' has more than 16777216 iterations"},
          {"serial q in @1.5 { }", "the number of iterations must be an int, found f32"},
          {"serial q in @true..1 { }", "the start of a loop must be an int, found bool"},
          {"serial q in 0..@true { }", "the end of a loop must be an int, found bool"},
          {"pipelined q in 4 stages=@33 { }", "stages must be between 0 and 32, found 33"},
          {"pipelined q in 4 stages=@n { }", "stages must be known at compile time"},
          {"serial q in 4 down=@n { }", "down must be a bool known at compile time"},
          {"serial q in 4 partition=@n { }", "partition must be a bool known at compile time"},
          {"serial q in 4 { @q = 1 }", "'q' is already defined"},
          {"if @n { }", "a condition must be bool, found int; compare it, as in '… != 0'"},
          {"@on g in 3 { }", "'on g in 3' needs a launch with groups=3, and this one has 2"},
          {"on g in @0 { }", "the number of groups must be between 1 and 16"},
          {"on g in 2 { @on k in 2 { } }", "'on' cannot be nested"},
          {"@lag 1 { }", "'lag' replays an earlier iteration and stands directly inside a"},
          {"pipelined q in 4 { if n > 0 { @lag 1 { } } }", "'lag' replays an earlier iteration"},
          {"pipelined q in 4 { lag 1 { @lag 1 { } } }", "'lag' replays an earlier iteration"},
          {"pipelined q in 4 { lag @0 { } }", "the distance of lag must be between 1 and 16"},
          {"in_turn @n > 1 { }", "in_turn must be a bool known at compile time"},
          {"send @v -> c", "send and recv connect groups and stand inside 'on g in n'"},
          {"on g in 2 { send v -> @v }", "'v' is no channel; make one with alloc_chan"},
          {"on g in 2 { send @f -> c }", "channel 'c' carries [16], but 'f' has [16, 8]"},
          {"on g in 2 { send @r -> c }", "reducer 'r' is read by send before 'finish r'"},
          {"on g in 2 { recv c -> @r }", "before 'finish r' the reducer 'r' is filled"},
          {"on g in 2 { send @X[0, 0] -> c }", "expected a tile, found 'X[0, 0]'; copy tensors"},
      },
      [](const std::string& text) { return InLaunch(text); });
}

TEST(BindErrors, Tiles) {
  ExpectErrors(
      {
          {"@x = alloc_shared<f31>[4]", "'f31' is no dtype"},
          {"@x = alloc_reducer<bool, sum>[4]", "a reducer holds numbers, not bool"},
          {"x = alloc_shared<f32>[@0]", "an extent of 'x' must be between 1 and 1048576, found 0"},
          {"x = alloc_shared<f32>[@n]", "an extent of 'x' must be known at compile time, but 'n'"},
          {"@x = alloc_shared<f32>[65536, 512]", "tile 'x' has more than 16777216 elements"},
          {"x = alloc_chan<f32>[4] depth=@0", "depth must be between 1 and 64"},
          {"x = alloc_shared<f32>[4] boxes=@0", "boxes must be between 1"},
          {"on g in 2 { @x = alloc_chan<f32>[4] }",
           "a channel connects groups: allocate it outside"},
          {"x, @x = alloc_shared<f32>[4]", "'x' is already defined"},
          {"x = view @X[0, 0] [4, 4]", "a view names a window of a tile, and 'X' is none"},
          {"x = view @c[0] [4]", "a view names a window of a tile, and 'c' is none"},
          {"x = view s[0, 0] [@0, 4]", "an extent of a view must be between 1"},
          {"x = view @s[9, 0] [8, 8]",
           "a window of 8 at 9 does not fit into dim 0 of 's', which has 16 elements"},
          {"x = view @s[0, 1] [16, 8]", "a window of 8 at 1 does not fit into dim 1 of 's'"},
          {"x = view @s[9223372036854775807, 0] [16, 8]", "does not fit into dim 0"},
          {"x = view @part[1, 0] [8, 8]",
           "a window of 8 at 1 does not fit into dim 0 of 'part', which has 8 elements"},
          {"x = view @s[0] [8, 8]", "'s' has 2 dims, but 1 offsets are given"},
          {"x = view s[0, @0.5] [8, 8]", "an offset must be an int, found f32"},
          {"x = view @s[0, 0] [8, 8, 1]", "'s' has 2 dims, but the tile has 3 dims [8, 8, 1]"},
          {"x = view @s[0:, 0:] [8]", "2 dims of 's' are marked with ':', but the tile has 1 dim"},
          {"x = view @s[0, 0] [8]",
           "it is ambiguous along which dims of 's' the window runs (the tile has 1 dim [8]); mark "
           "them with ':' behind the offset, as in s[…, 0:]"},
          {"x = view @s[3, 5] [8]", "it is not evident along which dims of 's' the window runs"},
          {"copy @c -> v", "'c' is a channel; use send and recv"},
          {"copy @c[0] -> v", "'c' is a channel; use send and recv"},
          {"copy @n -> v", "'n' is no tensor or tile"},
          {"copy @bias[0] -> v", "operand 'bias' is left out because"},
          {"@copy X[0, 0] -> Y[0, 0]", "one side of copy must be a whole tile or a view"},
          {"@copy v -> d transpose", "a transposing copy takes tiles of rank 2"},
          {"@copy s -> f transpose", "'s' has extents [16, 8] and 'f' has [16, 8]"},
          {"@copy v -> f", "'v' has extents [16] and 'f' has [16, 8]"},
          {"copy f -> Y[0, 0] rows=@0.5", "rows must be an int, found f32"},
          {"copy f -> Y[0, 0] evict=@never",
           "'never' is no value of evict; there are normal, first, last"},
          {"copy f -> Y[0, 0] evict=@2", "'2' is no value of evict"},
          {"copy f -> Y[0, 0] evict=if @n > 2 then first else last",
           "evict must be a bool known at compile time"},
          {"copy f -> f @evict=first",
           "evict is about a tensor's elements in the L2 cache, and neither 'f' nor 'f' is a "
           "tensor; it goes with the copy from or to one"},
          {"copy s[0, 0] -> f @evict=normal", "neither 's[0, 0]' nor 'f' is a tensor"},
          {"copy f -> @X[0, 0]", "'X' is an input and cannot be written by copy; declare it inout"},
          {"copy @r -> v", "reducer 'r' is read by copy before 'finish r'"},
          {"copy v -> @r", "before 'finish r' the reducer 'r' is filled and reduced into, not"},
          {"@copy b -> f",
           "copy does not convert between bool and numbers; write it in 'parallel'"},
          {"clear @X", "expected a tile, found 'X'"},
          {"clear @X[0, 0]", "expected a tile, found 'X[0, 0]'; copy tensors to a tile first"},
          {"reduce_sum @acc -> v dim=1", "'acc' is an alloc_acc tile: only gemm, clear, fill and"},
      },
      [](const std::string& text) { return InLaunch(text); });
}

TEST(BindErrors, Gemm) {
  const std::string tiles =
      "p = alloc_shared<bf16>[16, 32] q = alloc_shared<bf16>[32, 16] e = alloc_shared<e4m3>[16, "
      "16] "
      "e2 = alloc_shared<e5m2>[16, 16] o = alloc_fragment<f32>[16, 16] k = alloc_shared<i8>[16, "
      "16] "
      "x3 = alloc_shared<f32>[1, 16, 16] w = alloc_shared<i32>[16, 16] dd = alloc_shared<f64>[16, "
      "16] "
      "ff = alloc_shared<f32>[16, 16] hh = alloc_shared<f16>[16, 16]\n";
  ExpectErrors(
      {
          {"@gemm p, p -> acc",
           "gemm multiplies 16x32 by 16x32 into 16x16; the inner extents differ"},
          {"@gemm p, q -> f", "gemm multiplies 16x32 by 32x16 into 16x8; the result has other"},
          {"@gemm q, p -> o transpose_a", "the inner extents differ"},
          {"@gemm x3, ff -> o", "gemm takes tiles of rank 2; name a window of a larger one"},
          {"@gemm p, ff -> o", "gemm multiplies 16x32 by 16x16"},
          {"@gemm hh, ff -> o", "gemm operands are f16 and f32; they must have one dtype"},
          {"@gemm e, e2 -> dd", "gemm of e4m3 operands accumulates in f32, but 'dd' is f64"},
          {"@gemm k, k -> o", "gemm of i8 operands accumulates in i32, but 'o' is f32"},
          {"@gemm w, w -> o", "gemm takes floats, i8 and u8, found i32"},
          {"@gemm dd, dd -> o", "gemm of f64 operands accumulates in f64, but 'o' is f32"},
          {"@gemm hh, hh -> w", "gemm of f16 operands accumulates in f32 or f16, but 'w' is i32"},
          {"@gemm hh, hh -> o precision=tf32", "precision=tf32 is for f32 operands, found f16"},
          {"@gemm hh, hh -> o precision=fast_accum",
           "precision=fast_accum is for 8-bit floats, found f16"},
          {"gemm hh, hh -> o precision=@half",
           "'half' is no value of precision; there are exact, tf32, fast_accum"},
          {"gemm ff, ff -> ff orientation=@left",
           "'left' is no value of orientation; there are auto, straight, swapped"},
          {"gemm ff, ff -> ff orientation=if @n > 2 then swapped else auto",
           "orientation must be a bool known at compile time"},
          {"@gemm ff, ff -> ff", "gemm's result may not be one of its operands"},
          {"gemm ff, ff -> o clear=@n", "clear must be a bool known at compile time"},
          {"gemm @X, ff -> o", "expected a tile, found 'X'"},
      },
      [&](const std::string& text) { return InLaunch(tiles + text); });
}

TEST(BindErrors, ReductionsAndAtomics) {
  ExpectErrors(
      {
          {"@reduce_sum f -> v", "'reduce_sum' of a tile of rank 2 needs dim=…"},
          {"reduce_sum f -> v dim=@2", "dim must be between -2 and 1, found 2"},
          {"@reduce_sum f -> v dim=0", "reducing dim 0 of [16, 8] gives [8], but 'v' has [16]"},
          {"@reduce_any f -> v dim=1", "reduce_any and reduce_all take bool tiles"},
          {"@reduce_sum b -> v dim=1", "'reduce_sum' takes tiles of numbers"},
          {"@reduce_sum f -> i dim=1", "'reduce_sum' does not convert f32 to i32"},
          {"@reduce_max f -> r dim=1", "'r' is a reducer of another operation than reduce_max"},
          {"@reduce_sum f -> r dim=1 clear", "a reducer accumulates; use 'clear' as a statement"},
          {"@argmax f -> i dim=0", "argmax over dim 0 of [16, 8] gives [8], but 'i' has [16]"},
          {"@argmax b -> i dim=1", "argmax takes a tile of numbers"},
          {"@argmax f -> v dim=1", "argmax gives indices: its result is an integer tile"},
          {"@cumsum f -> v dim=1", "cumsum keeps the extents: [16, 8] and [16]"},
          {"qa = alloc_acc<f32>[16, 8] cumsum f -> @qa dim=1",
           "'qa' is an alloc_acc tile: only gemm"},
          {"@cumsum f -> b dim=1", "cumsum does not convert f32 to bool"},
          {"finish @v", "'v' is no reducer"},
          {"finish @part", "'part' is no reducer"},
          {"atomic_add f -> @s[0, 0]", "atomics work on tensors in global memory"},
          {"atomic_add f -> @X[0, 0]", "'X' is an input; declare it inout"},
          {"atomic_add i -> @W[0]", "atomics work on i32 u32 i64 f16 bf16 f32 f64, not on u8"},
          {"@atomic_add v -> Z[0]", "'atomic_add' does not convert f32 to i32"},
          {"b1 = alloc_fragment<bool>[16] @atomic_max b1 -> Z[0]", "does not convert bool to i32"},
          {"parallel q in 4 { atomic_add @1.5 -> Z[q] }", "expected int, found f32"},
          {"atomic_add @1 -> Z[0]", "expected a tensor or tile, found '1'"},
      },
      [](const std::string& text) { return InLaunch(text); });
}

// What constants and views copy to every use is counted.
TEST(BindErrors, ExpansionHasLimits) {
  std::string doubling = "c0 = M";
  for (int i = 1; i < 60; ++i) absl::StrAppend(&doubling, "\nc", i, " = c", i - 1, " + c", i - 1);
  std::string chain = "c0 = M";
  for (int i = 1; i < 5000; ++i) absl::StrAppend(&chain, "\nc", i, " = c", i - 1, " + 1 - M");
  std::string views = "launch g in 4 {\nv0 = alloc_shared<f32>[64]";
  for (int i = 1; i < 5000; ++i)
    absl::StrAppend(&views, "\nv", i, " = view v", i - 1, "[g * M] [64]");
  for (const std::string& text : {doubling + "\nlaunch { }", chain + "\nlaunch { }", views + "}"}) {
    const StatusOr<Module> module = BindText(InKernel(text, "M: dim"));
    ASSERT_FALSE(module.ok());
    EXPECT_EQ(DetailOf(module.status()).reason, Reason::kLimit) << module.status();
    EXPECT_TRUE(DetailOf(module.status()).span.valid());
    EXPECT_NE(module.status().message().find("the constants and views named here make the"),
              std::string::npos)
        << module.status();
  }
}

TEST(BindErrors, Counts) {
  std::string statements, tiles;
  for (int i = 0; i < 4100; ++i) absl::StrAppend(&tiles, "t", i, " = alloc_local<f32>[1]\n");
  ExpectErrors({{tiles, "the program has more than 4096 tiles and tensors"}},
               [](const std::string& text) {
                 std::string marked = text;
                 marked.insert(marked.find("t4096 "), "@");
                 return InKernel("launch {\n" + marked + "}");
               });
}

}  // namespace
}  // namespace tl
