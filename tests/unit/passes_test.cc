// The passes one by one: what each leaves, what it refuses, and the verifier between them.
#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/bind.h"
#include "ir/unparse.h"
#include "ir/verify.h"
#include "ir/visit.h"
#include "passes/expand_lag.h"
#include "passes/expand_split.h"
#include "passes/interval.h"
#include "passes/pipeline.h"
#include "passes/simplify.h"

namespace tl {
namespace {

using ::testing::HasSubstr;

Target Flat(int64_t max_shared = 0) {
  Target t;
  t.name = "flat";
  t.simt = true;
  t.default_threads = 128;
  t.max_shared_bytes = max_shared;
  return t;
}

Target Nested() {
  Target t;
  t.name = "nested";
  return t;
}

Module BindText(std::string_view body,
                std::string_view decls = "in X: tensor<f32>[N, N] out Y: tensor<f32>[N, N]") {
  const std::string text = absl::StrCat("tl 1.0\nkernel k(N: dim) {\n", decls, "\n", body, "\n}\n");
  const StatusOr<syntax::Program> program = syntax::Parse(text);
  EXPECT_TRUE(program.ok()) << program.status();
  StatusOr<Module> m = Bind(*program, {});
  EXPECT_TRUE(m.ok()) << FormatSpan(DetailOf(m.status()).span) << " " << m.status();
  return m.ok() ? *std::move(m) : Module();
}

template <typename T>
int Count(const Block& block) {
  int n = 0;
  VisitStmts(block, [&](const StmtRef& s) { n += As<T>(s) != nullptr; });
  return n;
}

const Buffer& Named(const Module& m, std::string_view name) {
  for (const Buffer& b : m.buffers) {
    if (b.name == name) return b;
  }
  ADD_FAILURE() << "no buffer " << name;
  return m.buffers[0];
}

// ---- Pipeline

TEST(Pipeline, EveryPassSaysWhyItStandsThere) {
  for (const Pass& pass : Passes()) EXPECT_GT(pass.why.size(), 10u) << pass.name;
}

TEST(Pipeline, LeavesOnlyScalarStatements) {
  const Module m = BindText(R"(launch m in ceildiv(N, 4) {
    x = alloc_shared<f32>[4, 4]
    copy X[m*4, 0] -> x
    copy x -> Y[m*4, 0]
  })");
  for (const Target& target : {Flat(), Nested()}) {
    const StatusOr<Module> lowered = Lower(m, target);
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    EXPECT_EQ(lowered->level, Level::kThread);
    EXPECT_EQ(Named(*lowered, "x").scope, Scope::kShared);
    EXPECT_EQ(Count<Barrier>(lowered->launches[0].body), 0);
    EXPECT_EQ(Count<Alloc>(lowered->launches[0].body), 0);
  }
}

TEST(Pipeline, FixedShapesNeedNoBoundsChecks) {
  const Module m =
      BindText(R"(launch m in 2 {
    x = alloc_shared<f32>[4, 8]
    for n in ceildiv(N, 8) { copy X[m*4, n*8] -> x }
    for n in 4 { copy Z[m*4, n*8] -> x }
    copy x -> Y[m*4, 0]
  })",
               "in X: tensor<f32>[8, N], Z: tensor<f32>[8, 32] out Y: tensor<f32>[8, 8]");
  const StatusOr<Module> lowered = Lower(m, Flat());
  ASSERT_TRUE(lowered.ok()) << lowered.status();
  const std::string text = ToText(*lowered);
  EXPECT_EQ(Count<If>(lowered->launches[0].body), 0) << text;
  int selects = 0;
  VisitAllExprs(lowered->launches[0].body,
                [&](const ExprRef& e) { selects += As<Select>(e) != nullptr; });
  EXPECT_EQ(selects, 1) << text;  // only the dynamic N is tested
}

TEST(Pipeline, NestedCopiesTestOncePerRow) {
  const Module m = BindText(R"(launch m in ceildiv(N, 4) {
    x = alloc_shared<f32>[4, 64]
    copy X[m*4, 0] -> x
    copy x -> Y[m*4, 0]
  })");
  const StatusOr<Module> lowered = Lower(m, Nested());
  ASSERT_TRUE(lowered.ok()) << lowered.status();
  VisitStmts(lowered->launches[0].body, [&](const StmtRef& s) {
    const ThreadFor* loop = As<ThreadFor>(s);
    if (!loop) return;
    EXPECT_EQ(Count<If>(loop->body), 0) << ToText(*lowered);
    VisitAllExprs(loop->body,
                  [&](const ExprRef& e) { EXPECT_EQ(As<Select>(e), nullptr) << ToText(*lowered); });
  });
}

TEST(Pipeline, ChannelsNeedATargetThatHasThem) {
  const Module m = BindText(R"(launch m in 1 groups=2 {
    c = alloc_chan<f32>[4]
    on g in 2 {
      x = alloc_fragment<f32>[4]
      if g == 0 { copy X[0, 0:] -> x  send x -> c } else { recv c -> x  copy x -> Y[0, 0:] }
    }
  })");
  for (const Target& target : {Flat(), Nested()}) {
    const Status status = Lower(m, target).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
    EXPECT_EQ(DetailOf(status).reason, Reason::kUnsupported);
    EXPECT_EQ(DetailOf(status).span.line, 8);
    EXPECT_THAT(status.message(), HasSubstr("reference"));
  }
  Target with = Flat();
  with.channels = true;
  EXPECT_TRUE(Lower(m, with).ok());
}

// A program of many statements, deeply nested: each pass must walk it a few times, not once a
// level.
TEST(Pipeline, TimeGrowsWithTheProgram) {
  const auto seconds = [](int statements) {
    std::string body = "launch m in 1 {\nx = alloc_shared<f32>[64, 8192]\ncopy X[0, 0] -> x\n";
    for (int i = 0; i < 50; ++i) absl::StrAppend(&body, "for q_", i, " in N {\n");
    for (int i = 0; i < statements; ++i) {
      absl::StrAppend(&body, "parallel r, c in [64, 8192] { x[r, c] = x[r, 8191 - c] + ", i,
                      " }\n");
    }
    for (int i = 0; i < 50; ++i) body += "}\n";
    const Module m = BindText(body + "}");
    const auto start = std::chrono::steady_clock::now();
    EXPECT_TRUE(Lower(m, Flat()).ok());
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  const double small = std::max(seconds(100), 0.002);
  EXPECT_LT(seconds(800), 8 * small * 4);
}

// ---- Arena

TEST(PlanArena, TilesThatDoNotMeetShareMemory) {
  const Module m = BindText(R"(launch m in 1 {
    a = alloc_shared<f32>[64, 64]
    b = alloc_shared<f32>[64, 64]
    c = alloc_shared<f32>[64, 64]
    copy X[0, 0] -> a
    copy a -> b
    copy b -> c
    copy c -> Y[0, 0]
  })");
  const StatusOr<Module> lowered = Lower(m, Flat());
  ASSERT_TRUE(lowered.ok()) << lowered.status();
  EXPECT_EQ(lowered->launches[0].arena_bytes, 2 * 64 * 64 * 4);
  EXPECT_EQ(Named(*lowered, "a").arena_offset, Named(*lowered, "c").arena_offset);
  EXPECT_NE(Named(*lowered, "a").arena_offset, Named(*lowered, "b").arena_offset);
}

TEST(PlanArena, ALoopKeepsWhatItReadsAgain) {
  const Module m = BindText(R"(launch m in 1 {
    a = alloc_shared<f32>[32]
    copy X[0, 0:] -> a
    for i in N {
      b = alloc_shared<f32>[32]
      c = alloc_shared<f32>[32]
      copy a -> b
      copy b -> Y[i, 0:]
      copy X[i, 0:] -> c
      copy c -> Y[i, 0:]
    }
  })");
  const StatusOr<Module> lowered = Lower(m, Flat());
  ASSERT_TRUE(lowered.ok()) << lowered.status();
  EXPECT_EQ(Named(*lowered, "b").arena_offset, Named(*lowered, "c").arena_offset);
  EXPECT_NE(Named(*lowered, "a").arena_offset, Named(*lowered, "b").arena_offset);
  EXPECT_EQ(lowered->launches[0].arena_bytes, 256);
}

TEST(PlanArena, GroupsHaveFragmentsOfTheirOwn) {
  const Module m = BindText(R"(launch m in 1 groups=3 {
    on g in 3 {
      x = alloc_fragment<f32>[8]
      s = alloc_shared<f32>[8]
      copy X[g, 0:] -> x
      if g == 0 { copy x -> s }
      copy x -> Y[g, 0:]
    }
  })");
  const StatusOr<Module> lowered = Lower(m, Flat());
  ASSERT_TRUE(lowered.ok()) << lowered.status();
  EXPECT_EQ(Named(*lowered, "x").extents, (std::vector<int64_t>{3, 8}));
  EXPECT_EQ(Named(*lowered, "s").extents, (std::vector<int64_t>{8}));
  EXPECT_EQ(lowered->launches[0].arena_bytes, 3 * 32 + 32);
  const StatusOr<Module> alone = Lower(m, Nested());
  ASSERT_TRUE(alone.ok()) << alone.status();
  EXPECT_EQ(Named(*alone, "x").extents, (std::vector<int64_t>{8}));
}

TEST(PlanArena, TooMuchIsRefusedWithBothNumbers) {
  const Module m = BindText(R"(launch m in 1 {
    big = alloc_shared<f32>[288, 288]
    copy X[0, 0] -> big
    copy big -> Y[0, 0]
  })");
  for (const auto& [limit, budget] : {std::pair<int64_t, int64_t>{232448, 0}, {400000, 232448}}) {
    const Status status = Lower(m, Flat(limit), budget).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(DetailOf(status).reason, Reason::kLimit);
    EXPECT_TRUE(DetailOf(status).span.valid());
    EXPECT_THAT(status.message(), HasSubstr("331776"));
    EXPECT_THAT(status.message(), HasSubstr("232448"));
    EXPECT_THAT(status.message(), HasSubstr("big f32[288, 288]"));
  }
  EXPECT_TRUE(Lower(m, Flat(331776)).ok());
}

// ---- Barriers

TEST(InsertBarriers, NoneWhereEveryThreadKeepsToItsElements) {
  const Module m = BindText(R"(launch m in 1 {
    a = alloc_fragment<f32>[4, 32]
    copy X[0, 0] -> a
    parallel i, j in [4, 32] { a[i, j] = a[i, j] * 2 + i }
    for q in N { parallel i, j in [4, 32] { a[i, j] += q } }
    copy a -> Y[0, 0]
  })");
  const StatusOr<Module> lowered = Lower(m, Flat());
  ASSERT_TRUE(lowered.ok()) << lowered.status();
  EXPECT_EQ(Count<Barrier>(lowered->launches[0].body), 0) << ToText(*lowered);
}

TEST(InsertBarriers, NoneBetweenStatementsThatShareNothing) {
  const Module m = BindText(R"(launch m in 1 {
    a = alloc_shared<f32>[32]
    b = alloc_shared<f32>[32]
    c = alloc_shared<f32>[32]
    copy X[0, 0:] -> a
    copy X[1, 0:] -> b
    parallel i in 32 { c[i] = a[31 - i] + b[i] }
    copy a -> Y[0, 0:]
    copy c -> Y[1, 0:]
  })");
  const StatusOr<Module> lowered = Lower(m, Flat());
  ASSERT_TRUE(lowered.ok()) << lowered.status();
  // Before the parallel loop, and before c is read or Y written twice.
  EXPECT_EQ(Count<Barrier>(lowered->launches[0].body), 2) << ToText(*lowered);
}

// Of a tensor that the launch writes each thread might read something else, and some would miss the
// barriers behind the condition: one thread reads for all. Others are read by every thread.
TEST(InsertBarriers, BlocksAgreeOnWhatOtherBlocksMayWrite) {
  const auto lower = [](std::string_view steered_by) {
    const Module m = BindText(
        absl::StrCat(R"(launch m in N {
      x = alloc_shared<f32>[32]
      copy X[m, 0:] -> x
      v = )",
                     steered_by, R"([m, 0]
      if v > 0 { parallel i in 32 { if i < 16 { x[i] = x[31 - i] } } }
      for q in i32()",
                     steered_by, R"([m, 1]) { parallel i in 32 { if i < 16 { x[i + 16] = x[i] } } }
      copy x -> Y[m, 0:]
    })"),
        "in X: tensor<f32>[N, N] inout Y: tensor<f32>[N, N]");
    StatusOr<Module> lowered = Lower(m, Flat());
    EXPECT_TRUE(lowered.ok()) << lowered.status();
    return *std::move(lowered);
  };
  const Module own = lower("Y"), input = lower("X");
  EXPECT_EQ(Count<OnFirstThread>(own.launches[0].body), 2) << ToText(own);
  EXPECT_EQ(Count<OnFirstThread>(input.launches[0].body), 0) << ToText(input);
  // Where all threads evaluate something, it reads no such tensor.
  for (const StmtRef& s : own.launches[0].body) {
    if (As<OnFirstThread>(s)) continue;
    VisitStmtExprs(*s, [&](const ExprRef& e) {
      EXPECT_FALSE(AnyNode(e, [&](const ExprRef& node) {
        const Load* load = As<Load>(node);
        return load && own.buffer(load->buffer).name == "Y";
      })) << ToText(own);
    });
  }
}

// ---- Split and lag as trees

TEST(ExpandSplit, GridGetsOneMoreAxis) {
  Module m = BindText(
      R"(launch h in 2, segment(b, i0, i1, p, whole) in split(b in N: X[b], P) {
    parallel i in 1 { W[p] = i1 - i0 }
  }
  launch b in N { for p in parts(b) { parallel i in 1 { Y[b] = W[p] } } })",
      "in X: tensor<i32>[N], P: i32 out Y: tensor<i32>[N] workspace W: tensor<i32>[N + P]");
  ASSERT_TRUE(ExpandSplit(m, Flat()).ok());
  EXPECT_TRUE(Verify(m, Level::kTile).ok()) << Verify(m, Level::kTile);
  EXPECT_FALSE(m.launches[0].split.has_value());
  EXPECT_EQ(m.launches[0].axes.size(), 2u);
  VisitAllExprs(m.launches[1].body,
                [](const ExprRef& e) { EXPECT_EQ(As<PartsBound>(e), nullptr); });
}

TEST(ExpandLag, RingsHaveOneSlotPerIterationOfDelay) {
  Module m = BindText(R"(launch m in 1 {
    a = alloc_shared<f32>[32]
    z = alloc_fragment<f32>[32]
    clear z
    pipelined i in N stages=2 {
      copy X[i, 0:] -> a
      lag 3 { parallel q in 32 { z[q] += a[q] } }
    }
    copy z -> Y[0, 0:]
  })");
  ASSERT_TRUE(ExpandLag(m, Flat()).ok());
  EXPECT_TRUE(Verify(m, Level::kTile).ok()) << Verify(m, Level::kTile);
  EXPECT_EQ(Count<Lag>(m.launches[0].body), 0);
  EXPECT_EQ(Named(m, "a_lag").extents, (std::vector<int64_t>{3, 32}));
}

// ---- Simplify

TEST(Simplify, DropsWhatNothingReads) {
  Module m = BindText(R"(launch m in 1 {
    a = N * 2
    b = a + 1
    c = N * 3
    parallel i in 1 { Y[c, i] = 0.0 }
    for i in 0 { parallel j in 1 { Y[i, j] = 1.0 } }
    if N > 3 { d = N * 2 }
  })");
  ASSERT_TRUE(Simplify(m, Flat()).ok());
  EXPECT_EQ(Count<Let>(m.launches[0].body), 1) << ToText(m);
  EXPECT_EQ(Count<For>(m.launches[0].body), 0) << ToText(m);
  EXPECT_EQ(Count<If>(m.launches[0].body), 0) << ToText(m);
}

TEST(Simplify, DropsWhatNothingReadsInUnrolledLoops) {
  Module m = BindText("launch m in 1 { parallel i in 1 { Y[0, i] = 0.0 } }");
  const auto var = [&](VarRole role) { return m.AddVar("v", ScalarType::kInt, role); };
  const VarId s = var(VarRole::kLoop), used = var(VarRole::kLet), unused = var(VarRole::kLet);
  const ExprRef slot = MakeVar(s, ScalarType::kInt);
  const auto plus = [&](int64_t n) { return MakeBinary(BinaryOp::kAdd, slot, MakeInt(n)); };
  const ExprRef at = MakeVar(used, ScalarType::kInt);
  const Store store{m.operands[1], {at}, StoreOp::kSet, MakeFloat(0, ScalarType::kF32)};
  const StmtRef dead = MakeStmt(Let{unused, plus(2)});
  m.launches[0].body = {
      MakeStmt(SlotFor{s, 4, {MakeStmt(Let{used, plus(1)}), dead, MakeStmt(store)}}),
      MakeStmt(SlotFor{s, 4, {dead}})};
  ASSERT_TRUE(Simplify(m, Flat()).ok());
  EXPECT_EQ(Count<SlotFor>(m.launches[0].body), 1) << ToText(m);
  EXPECT_EQ(Count<Let>(m.launches[0].body), 1) << ToText(m);
}

// ---- Intervals

TEST(Intervals, OfIndexArithmetic) {
  Module m;
  const VarId n = m.AddVar("n", ScalarType::kInt, VarRole::kDim);
  const VarId i = m.AddVar("i", ScalarType::kInt, VarRole::kLoop);
  const VarId s = m.AddVar("s", ScalarType::kInt, VarRole::kScalar);
  m.vars[s].dtype = DType::kI16;
  Intervals known;
  known.SetLoop(m, i, MakeInt(2), MakeInt(10));
  const auto v = [&](VarId x) { return MakeVar(x, ScalarType::kInt); };
  const auto op = [](BinaryOp o, ExprRef a, int64_t b) { return MakeBinary(o, a, MakeInt(b)); };
  const auto expect = [&](const ExprRef& e, int64_t lo, int64_t hi) {
    const Interval got = known.Of(m, e);
    EXPECT_EQ(got.lo, lo);
    EXPECT_EQ(got.hi, hi);
  };
  expect(v(n), 0, Interval::kMax);
  expect(v(i), 2, 9);
  expect(op(BinaryOp::kMul, v(i), 64), 128, 576);
  expect(op(BinaryOp::kSub, v(i), 5), -3, 4);
  expect(op(BinaryOp::kMul, op(BinaryOp::kSub, v(i), 5), -2), -8, 6);
  expect(op(BinaryOp::kDiv, op(BinaryOp::kSub, v(i), 5), 2), -2, 2);
  expect(op(BinaryOp::kMod, v(n), 7), 0, 6);
  expect(op(BinaryOp::kMod, v(i), 100), 0, 9);
  expect(op(BinaryOp::kDiv, v(n), 7), 0, Interval::kMax);
  expect(op(BinaryOp::kSub, v(n), 1), -1, Interval::kMax);
  expect(op(BinaryOp::kMin, v(n), 7), 0, 7);
  expect(v(s), -32768, 32767);
  expect(MakeCast(DType::kI32, v(i)), 2, 9);  // what fits stays
  expect(MakeCast(DType::kU8, op(BinaryOp::kSub, v(i), 5)), 0, 255);
  expect(MakeCast(DType::kI16, v(n)), -32768, 32767);
  expect(op(BinaryOp::kShl, v(n), 3), Interval::kMin, Interval::kMax);
}

// ---- Verifier: each row breaks one rule

struct Fault {
  std::string_view what;  // part of the message
  std::function<void(Module&)> plant;
};

void AddStmt(Module& m, StmtRef s) { m.launches[0].body.push_back(std::move(s)); }

TEST(Verify, FindsPlantedFaults) {
  const ExprRef one = MakeInt(1);
  const Fault faults[] = {
      {"variable id out of range", [&](Module& m) { AddStmt(m, MakeStmt(Let{999, one})); }},
      {"buffer id out of range", [&](Module& m) { AddStmt(m, MakeStmt(Alloc{-1})); }},
      {"belongs to level Thread", [&](Module& m) { AddStmt(m, MakeStmt(Barrier{Team::kBlock})); }},
      {"is not defined here",
       [&](Module& m) {
         const VarId v = m.AddVar("v", ScalarType::kInt, VarRole::kLet);
         const VarId w = m.AddVar("w", ScalarType::kInt, VarRole::kLet);
         AddStmt(m,
                 MakeStmt(If{MakeBinary(BinaryOp::kLt, MakeVar(m.dims[0], ScalarType::kInt), one),
                             {MakeStmt(Let{v, one})},
                             {}}));
         AddStmt(m, MakeStmt(Let{w, MakeVar(v, ScalarType::kInt)}));
       }},
      {"is defined twice",
       [&](Module& m) {
         const VarId v = m.AddVar("v", ScalarType::kInt, VarRole::kLet);
         AddStmt(m, MakeStmt(Let{v, one}));
         AddStmt(m, MakeStmt(Let{v, one}));
       }},
      {"value of a let is f32, not int",
       [&](Module& m) {
         const VarId v = m.AddVar("v", ScalarType::kInt, VarRole::kLet);
         AddStmt(m, MakeStmt(Let{v, MakeFloat(1, ScalarType::kF32)}));
       }},
      {"sides of '+' differ in type",
       [&](Module& m) {
         const VarId v = m.AddVar("v", ScalarType::kInt, VarRole::kLet);
         const ExprRef n = MakeVar(m.dims[0], ScalarType::kInt);
         const auto sum = std::make_shared<Expr>(
             Expr{Binary{BinaryOp::kAdd, n, MakeFloat(1, ScalarType::kF32)}, ScalarType::kInt, {}});
         AddStmt(m, MakeStmt(Let{v, sum}));
       }},
      {"takes 2 indices",
       [&](Module& m) {
         const VarId v = m.AddVar("v", ScalarType::kF32, VarRole::kLet);
         AddStmt(m, MakeStmt(Let{v, MakeLoad(m.operands[0], DType::kF32, {one})}));
       }},
      {"is not allocated here",
       [&](Module& m) {
         Buffer b;
         b.name = "t";
         b.scope = Scope::kShared;
         b.extents = {4};
         const BufferId id = m.AddBuffer(b);
         AddStmt(m, MakeStmt(Fill{Region{id, {MakeInt(0)}, {0}, {4}, {}},
                                  MakeFloat(0, ScalarType::kF32)}));
       }},
      {"only mutable variables are assigned",
       [&](Module& m) { AddStmt(m, MakeStmt(Assign{m.dims[0], one})); }},
      {"condition is int, not bool", [&](Module& m) { AddStmt(m, MakeStmt(If{one, {}, {}})); }},
      {"order of dims",
       [&](Module& m) {
         const Region r{m.operands[0], {one, one}, {1, 0}, {2, 2}, {}};
         AddStmt(m, MakeStmt(Copy{r, r, nullptr, false}));
       }},
      {"extents of source and destination differ",
       [&](Module& m) {
         const Region a{m.operands[0], {one, one}, {0, 1}, {2, 3}, {}};
         const Region b{m.operands[1], {one, one}, {0, 1}, {3, 2}, {}};
         AddStmt(m, MakeStmt(Copy{a, b, nullptr, false}));
       }},
      {"an expression is missing", [&](Module& m) { AddStmt(m, MakeStmt(If{nullptr, {}, {}})); }},
  };
  for (const Fault& fault : faults) {
    Module m = BindText("launch m in 1 { parallel i in 1 { Y[0, i] = 0.0 } }");
    ASSERT_TRUE(Verify(m, Level::kTile).ok());
    fault.plant(m);
    const Status status = Verify(m, Level::kTile);
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << fault.what;
    EXPECT_THAT(status.message(), HasSubstr(fault.what));
    EXPECT_THAT(status.message(), HasSubstr("launch 0, statement"));
  }
}

TEST(Verify, LowerNamesThePass) {
  Module m = BindText("launch m in 1 { parallel i in 1 { Y[0, i] = 0.0 } }");
  AddStmt(m, MakeStmt(Barrier{Team::kBlock}));
  const Status status = Lower(m, Flat()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(status.message(), HasSubstr("before all passes: launch 0"));
}

}  // namespace
}  // namespace tl
