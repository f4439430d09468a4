// Tile programs compiled for this machine against the reference interpreter and its error bounds:
// every statement of the language, groups and channels included.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "backends/reference/compare.h"
#include "backends/reference/inputs.h"
#include "backends/reference/reference.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/bind.h"
#include "ir/host_eval.h"
#include "ir/syntax.h"
#include "passes/pipeline.h"
#include "tests/unit/cpu_testing.h"
#include "tests/unit/launch_params.h"

namespace tl {
namespace {

using Values = std::vector<std::pair<std::string, std::string>>;

StatusOr<Module> BindText(std::string_view text, const Values& values) {
  TL_ASSIGN_OR_RETURN(const syntax::Program program, syntax::Parse(absl::StrCat("tl 1.0\n", text)));
  return Bind(program, {.values = values, .target_class = "cpu"});
}

struct Runnable {
  Module lowered;
  std::unique_ptr<LoadedKernel> kernel;
};

StatusOr<Runnable> Prepare(const Module& module) {
  TL_ASSIGN_OR_RETURN(const Target target, testing::Cpu().FindTarget("cpu"));
  Runnable r;
  TL_ASSIGN_OR_RETURN(r.lowered, Lower(module, target));
  TL_ASSIGN_OR_RETURN(r.kernel, testing::CompileAndLoad(r.lowered));
  return r;
}

// Runs all launches on the memory of `inputs`.
Status RunCpu(const Module& module, const Runnable& runnable,
              const reference::GeneratedInputs& inputs) {
  const auto& [lowered, kernel] = runnable;
  const HostArgs args = inputs.arguments.host();
  testing::Params params(lowered, testing::PointersOf(inputs.arguments), args);
  for (int i = 0; i < static_cast<int>(lowered.launches.size()); ++i) {
    TL_ASSIGN_OR_RETURN(const int64_t blocks,
                        testing::NumBlocks(lowered, lowered.launches[i], args));
    if (blocks == 0) continue;
    TL_RETURN_IF_ERROR(kernel->Launch(i, blocks, {params.data(), params.size(), nullptr}));
  }
  return inputs.CheckGuards(module);
}

struct Sizes {
  std::vector<int64_t> dims, strides;
};

// The program on random inputs of all sizes, by the reference and here, compiled once.
void CheckSizes(const Module& module, const Runnable& runnable, const Sizes& sizes);

void Check(std::string_view text, const Values& values, const std::vector<Sizes>& all) {
  std::string trace(text.substr(0, text.find('{')));
  for (const auto& [name, value] : values) absl::StrAppend(&trace, " ", name, "=", value);
  SCOPED_TRACE(trace);
  const StatusOr<Module> module = BindText(text, values);
  ASSERT_TRUE(module.ok()) << FormatSpan(DetailOf(module.status()).span) << " " << module.status();
  const auto runnable = Prepare(*module);
  ASSERT_TRUE(runnable.ok()) << runnable.status();
  for (const Sizes& sizes : all) CheckSizes(*module, *runnable, sizes);
}

void CheckSizes(const Module& module, const Runnable& runnable, const Sizes& sizes) {
  SCOPED_TRACE(absl::StrJoin(sizes.dims, " "));
  const auto inputs = reference::MakeInputs(module, sizes.dims, sizes.strides, std::nullopt, 1);
  ASSERT_TRUE(inputs.ok()) << inputs.status();
  const auto exact = reference::RunExact(module, inputs->arguments);
  ASSERT_TRUE(exact.ok()) << FormatSpan(DetailOf(exact.status()).span) << " " << exact.status();
  const Status run = RunCpu(module, runnable, *inputs);
  ASSERT_TRUE(run.ok()) << run;
  for (const reference::Output& out : exact->tensors) {
    for (size_t i = 0; i < module.operands.size(); ++i) {
      if (module.operands[i] != out.id()) continue;
      const bool poisoned = module.buffer(out.id()).role == BufferRole::kOut;
      const auto c = reference::Compare(out, inputs->operands[i].data(), poisoned);
      EXPECT_TRUE(c.ok()) << module.buffer(out.id()).name << "+" << c.worst_at << ": " << c.actual
                          << ", expected " << c.expected << " ± " << c.bound << "; " << c.mismatches
                          << " mismatches, " << c.strays << " strays";
    }
  }
}

constexpr std::string_view kGemm = R"(
kernel gemm(M: dim, N: dim, K: dim; ta: bool = false, tb: bool = false, t: dtype = bf16,
            c: dtype = f32, o: dtype = t, bm: int = 32, bn: int = 48, bk: int = 20) {
  in A: tensor<t>[if ta then K else M, if ta then M else K],
     B: tensor<t>[if tb then N else K, if tb then K else N]
  out C: tensor<o>[M, N]
  launch m in ceildiv(M, bm), n in ceildiv(N, bn) {
    a = alloc_shared<t>[if ta then bk else bm, if ta then bm else bk]
    b = alloc_shared<t>[if tb then bn else bk, if tb then bk else bn]
    acc = alloc_acc<c>[bm, bn]
    clear acc
    pipelined q in ceildiv(K, bk) stages=2 {
      if ta { copy A[q*bk, m*bm] -> a } else { copy A[m*bm, q*bk] -> a }
      if tb { copy B[n*bn, q*bk] -> b } else { copy B[q*bk, n*bn] -> b }
      gemm a, b -> acc transpose_a=ta transpose_b=tb
    }
    copy acc -> C[m*bm, n*bn]
  }
})";

TEST(CpuPrograms, Gemm) {
  for (const char* ta : {"false", "true"}) {
    for (const char* tb : {"false", "true"}) {
      for (const auto& [t, c] : {std::pair("bf16", "f32"),
                                 {"f16", "f32"},
                                 {"f32", "f32"},
                                 {"f64", "f64"},
                                 {"e4m3", "f32"},
                                 {"e5m2", "f32"}}) {
        Check(kGemm, {{"ta", ta}, {"tb", tb}, {"t", t}, {"c", c}}, {{{100, 77, 33}}});
      }
    }
  }
  Check(kGemm, {{"t", "i8"}, {"c", "i32"}, {"o", "i32"}}, {{{65, 50, 41}}});
}

TEST(CpuPrograms, GemmSizes) {
  std::vector<Sizes> sizes;
  for (int64_t m : {0, 1, 7, 64, 129}) {
    for (int64_t k : {0, 1, 40}) sizes.push_back({{m, 72, k}});
  }
  for (int64_t m = 1; m <= 100; ++m) sizes.push_back({{m, 72, 40}});
  Check(kGemm, {}, sizes);
  Check(kGemm, {{"bm", "1"}, {"bn", "1"}, {"bk", "1"}}, {{{3, 5, 4}}});
}

TEST(CpuPrograms, Copies) {
  constexpr std::string_view kText = R"(
kernel copies(M: dim, N: dim; s: dtype, t: dtype) {
  in X: tensor<s>[M, N], P: tensor<s>[2, M, N] prepacked[4, 8], S: tensor<s>[M, N] strides[?, 1]
  in r: i32, at: tensor<i32>[M]
  init r = constant(3)
  init at = permutation()
  out Y: tensor<t>[M, N], T: tensor<t>[N, M], R: tensor<t>[8, 12], Q: tensor<t>[2, M, N]
  out U: tensor<t>[M, N] strides[1, ?], G: tensor<t>[M, N]
  launch m in ceildiv(M, 8), n in ceildiv(N, 12) {
    x = alloc_fragment<t>[8, 12]
    y = alloc_shared<t>[12, 8]
    copy X[m*8, n*12] -> x
    copy x -> Y[m*8, n*12]
    copy x -> T[n*12, m*8] transpose
    copy S[m*8, n*12] -> y transpose
    copy y -> U[m*8, n*12] transpose
    for b in 2 { copy P[b, m*8, n*12] -> x  copy x -> Q[b, m*8, n*12] }
    if m == 0 and n == 0 {
      copy X[-1:, -2:] -> x rows=r
      v = view x[2, 1] [5, 6]
      w = view x[3, 2] [5, 6]
      copy v -> w
      copy x -> R[0, 0]
    }
  }
  launch m in M {
    z = alloc_shared<t>[64]
    copy X[at[m], 0:] -> z
    copy z -> G[m, 0]
  }
})";
  for (const auto& [s, t] : {std::pair("f32", "f32"),
                             {"bf16", "bf16"},
                             {"f16", "f32"},
                             {"f32", "e4m3"},
                             {"i8", "i32"},
                             {"i32", "u8"},
                             {"f64", "f16"}}) {
    Check(kText, {{"s", s}, {"t", t}},
          {{{8, 12}, {40, 24}}, {{1, 1}, {40, 24}}, {{19, 35}, {40, 24}}});
  }
}

TEST(CpuPrograms, Reductions) {
  constexpr std::string_view kText = R"(
kernel reductions(M: dim; n: int, t: dtype) {
  in X: tensor<t>[M, n]
  out S: tensor<f32>[M], C: tensor<f32>[6, n], I: tensor<i32>[M], J: tensor<i32>[n], A: tensor<bool>[2, M]
  out Z: tensor<f32>[4, n], D: tensor<f32>[M]
  launch m in ceildiv(M, 4) {
    x = alloc_fragment<f32>[4, n]
    y = alloc_fragment<f32>[4, n]
    s, l = alloc_fragment<f32>[4]
    i = alloc_fragment<i32>[4]
    p = alloc_fragment<bool>[4, n]
    q = alloc_fragment<bool>[4]
    r = alloc_reducer<f32, sum>[4]
    copy X[m*4, 0] -> x
    reduce_max x -> s dim=1 clear
    reduce_min x -> s dim=1
    reduce_absmax x -> s dim=1
    parallel a, b in [4, n] { y[a, b] = exp2(x[a, b] - s[a]) }
    reduce_sum y -> l dim=1 clear
    reduce_sum y -> r dim=1
    parallel a in 4 { r[a] *= 0.5 }
    reduce_sum x -> r dim=1
    finish r
    parallel a in 4 { l[a] += r[a] }
    copy l -> S[m*4]
    argmax x -> i dim=1
    copy i -> I[m*4]
    parallel a, b in [4, n] { p[a, b] = x[a, b] > 0.5 }
    reduce_any p -> q dim=1 clear
    copy q -> A[0, m*4:]
    reduce_all p -> q dim=1 clear
    copy q -> A[1, m*4:]
    reduce_prod x -> s dim=1 clear
    copy s -> D[m*4]
    if m == 0 {
      c = alloc_fragment<f32>[n]
      j = alloc_fragment<i32>[n]
      fill c, 0.25
      reduce_sum x -> c dim=0
      copy c -> C[0, 0:]
      reduce_max x -> c dim=0 clear
      copy c -> C[1, 0:]
      reduce_min x -> c dim=0 clear
      copy c -> C[2, 0:]
      reduce_absmax x -> c dim=0 clear
      copy c -> C[3, 0:]
      reduce_prod x -> c dim=0 clear
      copy c -> C[4, 0:]
      cumsum c -> c dim=0
      copy c -> C[5, 0:]
      argmax x -> j dim=0
      copy j -> J[0]
      cumsum x -> y dim=1 reverse
      cumsum y -> y dim=0
      copy y -> Z[0, 0]
    }
  }
})";
  for (const char* n : {"1", "3", "31", "32", "160", "229"}) {
    Check(kText, {{"n", n}, {"t", "f32"}}, {{{10}}});
  }
  Check(kText, {{"n", "40"}, {"t", "f16"}}, {{{4}}});
}

TEST(CpuPrograms, ParallelLoops) {
  constexpr std::string_view kText = R"(
kernel elements(M: dim, N: dim; t: dtype) {
  in X: tensor<t>[M, N], s: f32, c: i32, h: f16, k: bool
  init c = constant(3)
  out Y: tensor<t>[M, N], Z: tensor<i32>[M]
  launch m in ceildiv(M, 4) {
    x = alloc_fragment<f32>[4, 16]
    y = alloc_fragment<f32>[4]
    v = alloc_var<f32>(s)
    n = alloc_var<i8>(100)
    v *= 2
    n += 100
    copy X[m*4, 0] -> x
    parallel i in 4 { y[i] = i * v  y[i] += c  y[i] *= 2  y[i] -= h  y[i] /= 4 }
    for d in 3 down { v = v * 0.5 + d }
    parallel i, j in [4, 16] {
      a = alloc_local<f32>[3]
      a[0] = x[i, j]
      a[1] = a[0] * a[0] + v
      a[2] = 0
      for q in 0..2 { a[2] += a[q] }
      t0 = sigmoid(a[2]) + tanh(y[i]) + erf(x[i, j]) + exp(-x[i, j])
      if j % 2 == 0 and (t0 > 0 or k) { x[i, j] = t0 } else { if j > c { x[i, j] = -t0 } }
    }
    copy x -> Y[m*4, 0]
    parallel i, j in [4, 2] { if m*4 + i < M and j < N { Y[m*4 + i, j] = x[i, j] + y[3 - i] } }
    parallel i in 4 { if m*4 + i < M { Z[m*4 + i] = (n + i) / 3 * 100 + (n - i) % 7 } }
  }
})";
  for (const char* t : {"f32", "bf16", "f16", "f64"}) Check(kText, {{"t", t}}, {{{10, 11}}});
}

// Each tensor takes one kind of update: sums and maxima of one element would depend on their order.
TEST(CpuPrograms, Atomics) {
  Check(R"(
kernel atomics(N: dim) {
  in X: tensor<i32>[N]
  inout Y: tensor<i32>[6], T: tensor<i32>[6], Z: tensor<i32>[4], W: tensor<u32>[4], F: tensor<f32>[8]
  launch m in ceildiv(N, 8) {
    x = alloc_shared<i32>[8]
    copy X[m*8] -> x
    atomic_add x -> Y[0:]
    atomic_max x -> T[1:]
    parallel i in 8 { atomic_add i -> Z[i % 4]  atomic_min i -> W[i / 2]  atomic_add 1.0 -> F[i] }
  }
})",
        {}, {{{500}}});
}

TEST(CpuPrograms, Lag) {
  constexpr std::string_view kText = R"(
kernel lag(N: dim; k1: int, k2: int) {
  in X: tensor<f32>[N, 4], Y: tensor<f32>[N, 4]
  out Z: tensor<f32>[2, 4], O: tensor<f32>[N, 4], P: tensor<f32>[N, 4]
  launch m in 1 {
    z, c = alloc_fragment<f32>[4]
    n = alloc_var<i32>(0)
    clear z, c
    x = alloc_shared<f32>[4]
    pipelined j in N stages=2 FLAG {
      y = alloc_shared<f32>[4]
      copy X[j, 0:] -> x
      copy Y[j, 0:] -> y
      d = j * 2 + n
      n += 1
      lag k1 {
        parallel i in 4 { z[i] = z[i] * 0.5 + x[i] + c[i] + d }
        copy x -> O[j, 0]
      }
      parallel i in 4 { c[i] = c[i] + x[i] }
      lag k2 {
        t = alloc_fragment<f32>[4]
        parallel i in 4 { t[i] = x[i] + 2 * y[i] + d - n }
        copy t -> P[j, 0]
      }
    }
    copy z -> Z[0, 0:]
    copy c -> Z[1, 0:]
  }
})";
  for (const char* flag : {"", "down"}) {
    const std::string text = absl::StrReplaceAll(kText, {{"FLAG", flag}});
    Check(text, {{"k1", "1"}, {"k2", "2"}}, {{{1}}, {{2}}, {{3}}, {{7}}});
  }
}

// Both loops enter the channel that the one did.
TEST(CpuPrograms, PartitionedLoopWithChannels) {
  constexpr std::string_view kText = R"(
kernel k(N: dim, L: dim) {
  in X: tensor<f32>[N, 8] out Y: tensor<f32>[N, 8]
  launch m in 1 groups=2 {
    serial j in N partition {
      c = alloc_chan<f32>[8] depth=2
      on g in 2 {
        x = alloc_fragment<f32>[8]
        if g == 0 {
          copy X[j, 0] -> x
          if j < L { parallel i in 8 { x[i] = x[i] * 2 } }
          send x -> c
        } else {
          recv c -> x
          if j + 1 >= L { parallel i in 8 { x[i] = x[i] + 1 } }
          copy x -> Y[j, 0]
        }
      }
    }
  }
})";
  Check(kText, {}, {{{0, 0}}, {{1, 1}}, {{5, 0}}, {{5, 2}}, {{5, 9}}});
}

TEST(CpuPrograms, Split) {
  constexpr std::string_view kText = R"(
kernel split(B: dim, P: dim) {
  in len: tensor<i32>[B], X: tensor<f32>[B, 16]
  out Y: tensor<f32>[B], C: tensor<i32>[B, 2]
  workspace part: tensor<f32>[B + P], mark: tensor<i32>[B + P]
  init len = uniform(0, 6)
  launch segment(b, i0, i1, p, whole) in split(b in B: len[b], P) {
    s = alloc_var<f32>(0)
    for i in i0..i1 { s += X[b, i] }
    parallel i in 1 { part[p] = s  mark[p] = if whole then i1 - i0 else i0 - i1 }
  }
  launch b in B {
    s = alloc_var<f32>(0)
    n = alloc_var<i32>(0)
    u = alloc_var<i32>(0)
    for p in parts(b) { s += part[p]  n += 1  u += mark[p] }
    parallel i in 1 { Y[b] = s  C[b, 0] = n  C[b, 1] = u }
  }
})";
  Check(kText, {}, {{{1, 1}}, {{5, 3}}, {{4, 7}}, {{3, 29}}, {{6, 1}}});
}

TEST(CpuPrograms, Attention) {
  constexpr std::string_view kText = R"(
kernel attention(H: dim, Sq: dim, Sk: dim; causal: bool, groups_: int) {
  in Q: tensor<f16>[Sq, H, 24], K: tensor<f16>[Sk, 24], V: tensor<f16>[Sk, 20], sc: f32
  init sc = constant(0.3)
  out O: tensor<f32>[Sq, H, 20]
  launch m in ceildiv(Sq, 16), h in H persistent groups=groups_ order=longest(m) {
    q_s = alloc_shared<f16>[16, 24]
    k_s = alloc_shared<f16>[12, 24]
    v_s = alloc_shared<f16>[12, 20]
    s = alloc_fragment<f32>[16, 12]
    o = alloc_fragment<f32>[16, 20]
    p = alloc_fragment<f16>[16, 12]
    mx, m0, c = alloc_fragment<f32>[16]
    l = alloc_reducer<f32, sum>[16]
    d = Sk - Sq
    end = if causal then clamp((m+1)*16+d, 0, Sk) else Sk
    copy Q[m*16:, h, 0:] -> q_s
    clear o, l
    fill mx, -inf
    pipelined j in ceildiv(end, 12) down stages=2 {
      copy K[j*12, 0] -> k_s
      copy V[j*12, 0] -> v_s
      in_turn on {
        gemm q_s, k_s -> s transpose_b clear policy=full_row
        lag 1 { gemm p, v_s -> o policy=full_row }
      }
      parallel r, x in [16, 12] { if j*12+x >= Sk or causal and j*12+x > m*16+r+d { s[r,x] = -inf } }
      copy mx -> m0
      reduce_max s -> mx dim=1
      parallel r in 16 { c[r] = exp2((m0[r]-fin(mx[r]))*sc)  l[r] *= c[r] }
      parallel r, x in [16, 12] { s[r,x] = exp2(s[r,x]*sc - fin(mx[r])*sc) }
      reduce_sum s -> l dim=1
      parallel r, x in [16, 20] { o[r,x] *= c[r] }
      copy s -> p
    }
    finish l
    parallel r, x in [16, 20] { o[r,x] = if l[r] == 0 then 0 else o[r,x]/l[r] }
    copy o -> O[m*16:, h, 0:]
  }
})";
  for (const char* causal : {"false", "true"}) {
    for (const char* groups : {"1", "2"}) {
      Check(kText, {{"causal", causal}, {"groups_", groups}},
            {{{2, 16, 12}}, {{2, 33, 50}}, {{2, 20, 7}}, {{2, 3, 0}}});
    }
  }
}

// ---- Groups

TEST(CpuGroups, PrivateFragmentsAndSharedTiles) {
  constexpr std::string_view kText = R"(
kernel groups(N: dim; n: int) {
  in X: tensor<f32>[N] out Y: tensor<f32>[N], Z: tensor<f32>[N]
  launch m in ceildiv(N, 8*n) groups=n {
    x = alloc_shared<f32>[8*n]
    y = alloc_fragment<f32>[8*n]
    copy X[m*8*n:] -> x
    on g in n {
      a, b = alloc_fragment<f32>[8]
      r = alloc_reducer<f32, sum>[1]
      parallel i in 8 { a[i] = x[g*8 + i] * (g + 1) }
      reduce_sum a -> r
      finish r
      parallel i in 8 { b[i] = a[7 - i] + r[0] }
      parallel i in 8 { x[g*8 + i] = b[i] }
      copy b -> Z[m*8*n + g*8:]
    }
    parallel i in 8*n { y[i] = x[8*n - 1 - i] }
    copy y -> Y[m*8*n:]
  }
})";
  for (const char* n : {"2", "3", "5"}) Check(kText, {{"n", n}}, {{{500}}});
}

TEST(CpuGroups, ChannelsCarryTilesInOrder) {
  constexpr std::string_view kText = R"(
kernel channels(N: dim; deep: int) {
  in X: tensor<f32>[3, N, 8] out Y: tensor<f32>[3, N, 8], S: tensor<f32>[3, 8]
  launch m in 3 groups=2 {
    c = alloc_chan<f32>[8] depth=deep
    d = alloc_chan<f16>[8]
    on g in 2 {
      if g == 0 {
        x, t = alloc_fragment<f32>[8]
        clear t
        for i in N {
          copy X[m, i, 0:] -> x
          send x -> c
          if i % 2 == 1 {
            b = alloc_fragment<f32>[8]
            recv d -> b
            parallel j in 8 { t[j] += b[j] }
          }
        }
        copy t -> S[m, 0:]
      } else {
        y = alloc_fragment<f32>[8]
        for i in N {
          recv c -> y
          parallel j in 8 { y[j] = y[j] * 2 + j }
          copy y -> Y[m, i, 0:]
          if i % 2 == 1 { send y -> d }
        }
      }
    }
  }
})";
  for (const char* deep : {"1", "3"}) {
    Check(kText, {{"deep", deep}}, {{{1}}, {{2}}, {{9}}, {{64}}});
  }
}

std::string TwoGroups(std::string_view first, std::string_view second) {
  return absl::StrCat(R"(
kernel k(n: dim) {
  out Y: tensor<f32>[8, 2]
  launch m in 8 groups=2 {
    a = alloc_chan<f32>[2] depth=2
    b = alloc_chan<f32>[2]
    on g in 2 {
      f = alloc_fragment<f32>[2]
      fill f, g
      if g == 0 { )",
                      first, " } else { ", second, R"( }
    }
    parallel i in 2 { Y[m, i] = 1 }
  }
})");
}

Status RunTwoGroups(std::string_view first, std::string_view second) {
  TL_ASSIGN_OR_RETURN(const Module module, BindText(TwoGroups(first, second), {}));
  TL_ASSIGN_OR_RETURN(const Runnable runnable, Prepare(module));
  TL_ASSIGN_OR_RETURN(const auto inputs, reference::MakeInputs(module, {4}, {}, std::nullopt, 1));
  return RunCpu(module, runnable, inputs);
}

TEST(CpuGroups, DeadlockIsAStatus) {
  const auto is_deadlock = ::testing::HasSubstr("deadlock");
  // Both wait for a message, for a slot, or for one who has left.
  for (const auto& [first, second] :
       {std::pair("recv b -> f  send f -> a", "recv a -> f  send f -> b"),
        {"for i in n { send f -> a }", "for i in n { send f -> b }"},
        {"recv b -> f", "fill f, 2"},
        {"for i in n { send f -> a }", "recv a -> f"}}) {
    const Status s = RunTwoGroups(first, second);
    EXPECT_EQ(s.code(), absl::StatusCode::kFailedPrecondition) << first << " | " << second;
    EXPECT_THAT(std::string(s.message()), is_deadlock);
  }
  // Enough room: the same sends go through.
  const Status fine = RunTwoGroups("for i in 2 { send f -> a }", "recv a -> f  recv a -> f");
  EXPECT_TRUE(fine.ok()) << fine;
}

}  // namespace
}  // namespace tl
