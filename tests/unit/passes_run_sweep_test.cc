// Lowered programs against the reference interpreter: every statement of the language, both shapes
// of code, teams of several sizes, threads in random order with races reported.
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "backends/reference/reference.h"
#include "gtest/gtest.h"
#include "ir/bind.h"
#include "ir/unparse.h"
#include "ir/visit.h"
#include "passes/pipeline.h"
#include "tests/unit/thread_eval.h"

namespace tl {
namespace {

using Values = std::vector<std::pair<std::string, std::string>>;

struct Program {
  std::string_view name;
  std::string_view text;  // declarations and launches
  Values values;          // dims that are fixed, parameters
  std::vector<int64_t> dims;
  double tolerance = 0;
};

struct Shape {
  std::string_view name;
  bool simt, channels;
  int threads;  // per group; 0: one for the whole block
  bool registers = false, async_copies = false;
};
constexpr Shape kShapes[] = {
    {"nested", false, false, 0},
    {"nested groups", false, true, 1},
    {"flat 1", true, true, 1},
    {"flat 8", true, true, 8},
    {"flat 5", true, true, 5},
    {"registers", true, true, 64, true, true},
    {"staged", true, true, 32, true, false},
};

Target TargetOf(const Shape& shape) {
  Target t;
  t.name = std::string(shape.name);
  t.simt = shape.simt;
  t.channels = shape.channels;
  t.default_threads = std::max(shape.threads, 1);
  if (!shape.registers) return t;
  t.warp_size = 32;
  t.register_fragments = true;
  t.async_copies = shape.async_copies;
  t.matrix_loads = true;
  t.matrix_stores = true;
  t.matrix_atoms = {
      {"f16", AtomForm::kMma, DType::kF16, DType::kF16, DType::kF32, 16, 8, 16},
      {"bf16", AtomForm::kMma, DType::kBF16, DType::kBF16, DType::kF32, 16, 8, 16},
      {"i8", AtomForm::kMma, DType::kI8, DType::kI8, DType::kI32, 16, 8, 32},
      {"f64", AtomForm::kDmma, DType::kF64, DType::kF64, DType::kF64, 8, 8, 4},
  };
  return t;
}

// Operands and workspaces of a call.
struct Memory {
  std::vector<std::vector<char>> operands, workspaces;
};

// Whole numbers, so that sums are the same in every order.
void FillRandom(const Buffer& b, std::vector<char>& bytes, std::mt19937& rng) {
  const size_t size = SizeOf(b.dtype);
  const bool sorted = b.name == "len";
  for (size_t i = 0; i < bytes.size() / size; ++i) {
    const int lo = IsFloat(b.dtype) || b.dtype == DType::kI8 || b.dtype == DType::kI16 ? -4 : 0;
    const int hi = b.dtype == DType::kBool ? 1 : sorted ? 6 : 4;
    StoreElement(b.dtype, &bytes[i * size], std::uniform_int_distribution<int>(lo, hi)(rng));
  }
}

StatusOr<Memory> MakeMemory(const Module& m, const HostArgs& args, uint64_t seed) {
  std::mt19937 rng(seed);
  Memory mem;
  for (const auto& [list, out] :
       {std::pair(&m.operands, &mem.operands), std::pair(&m.workspaces, &mem.workspaces)}) {
    for (BufferId id : *list) {
      TL_ASSIGN_OR_RETURN(const int64_t n, EvalHost(m, StorageSize(m, id), args));
      out->emplace_back(n * SizeOf(m.buffer(id).dtype), '\x55');
      const BufferRole role = m.buffer(id).role;
      if (role == BufferRole::kIn || role == BufferRole::kInOut) {
        FillRandom(m.buffer(id), out->back(), rng);
      }
    }
  }
  return mem;
}

std::vector<void*> Pointers(std::vector<std::vector<char>>& list) {
  std::vector<void*> out;
  for (std::vector<char>& v : list) out.push_back(v.data());
  return out;
}

// Empty if equal.
std::string Compare(const Module& m, const Memory& want, const Memory& got, double tolerance) {
  for (size_t i = 0; i < m.operands.size(); ++i) {
    const Buffer& b = m.buffer(m.operands[i]);
    const size_t size = SizeOf(b.dtype);
    for (size_t e = 0; e < want.operands[i].size() / size; ++e) {
      const double x = LoadElement(b.dtype, &want.operands[i][e * size]);
      const double y = LoadElement(b.dtype, &got.operands[i][e * size]);
      const bool same = x == y || (std::isnan(x) && std::isnan(y)) ||
                        std::fabs(x - y) <= tolerance * (1 + std::fabs(x));
      if (!same) return absl::StrCat(b.name, "[", e, "] is ", y, ", should be ", x);
    }
  }
  return "";
}

StatusOr<Module> BindText(std::string_view text, const Values& values) {
  TL_ASSIGN_OR_RETURN(const syntax::Program program, syntax::Parse(text));
  return Bind(program, {.values = values});
}

std::string RunLowered(const Module& m, const Shape& shape, const testing::ThreadEvalArgs& args,
                       uint64_t seed) {
  const Target target = TargetOf(shape);
  const StatusOr<Module> lowered = Lower(m, target);
  if (!lowered.ok()) return std::string(lowered.status().message());
  testing::ThreadEval eval(*lowered, args, shape.threads, seed, target.matrix_atoms);
  const std::string error = eval.Run();
  return error;
}

bool UsesChannels(const Module& m) {
  for (const Buffer& b : m.buffers) {
    if (b.scope == Scope::kChannel) return true;
  }
  return false;
}

void CheckProgram(const Program& p) {
  SCOPED_TRACE(absl::StrCat(p.name, " ", absl::StrJoin(p.values, " ", absl::PairFormatter("=")),
                            " dims ", absl::StrJoin(p.dims, ",")));
  const StatusOr<Module> m = BindText(absl::StrCat("tl 1.0\n", p.text), p.values);
  ASSERT_TRUE(m.ok()) << FormatSpan(DetailOf(m.status()).span) << " " << m.status();
  testing::ThreadEvalArgs args;
  args.dims = p.dims;
  for (VarId v : m->scalars) {
    args.scalars.push_back(IsFloat(m->var(v).type) ? ScalarValue(2.0) : ScalarValue(int64_t{3}));
  }
  for (size_t i = 0; i < m->strides.size(); ++i) args.strides.push_back(40);
  const HostArgs host{args.dims, args.strides, args.scalars};
  StatusOr<Memory> want = MakeMemory(*m, host, 1);
  ASSERT_TRUE(want.ok()) << want.status();
  const reference::Arguments reference_args{Pointers(want->operands), Pointers(want->workspaces),
                                            args.dims, args.strides, args.scalars};
  const Status run = reference::RunRounded(*m, reference_args);
  ASSERT_TRUE(run.ok()) << FormatSpan(DetailOf(run).span) << " " << run;
  for (const Shape& shape : kShapes) {
    if (UsesChannels(*m) && !shape.channels) continue;
    for (uint64_t seed : {1, 2}) {
      if (shape.registers && seed > 1) break;  // many threads
      Memory got = *MakeMemory(*m, host, 1);
      args.operands = Pointers(got.operands);
      args.workspaces = Pointers(got.workspaces);
      std::string error = RunLowered(*m, shape, args, seed);
      if (error.empty()) error = Compare(*m, *want, got, p.tolerance);
      if (!error.empty()) {
        ADD_FAILURE() << shape.name << ": " << error;
        return;
      }
    }
  }
}

void CheckAll(const std::vector<Program>& programs) {
  for (const Program& p : programs) CheckProgram(p);
}

TEST(PassesRun, CopiesWithBounds) {
  constexpr std::string_view kText = R"(
kernel k(M: dim, N: dim) {
  in X: tensor<f32>[M, N]
  out Y: tensor<f32>[M, N], Z: tensor<f16>[N, M], W: tensor<f32>[M, N]
  launch m in ceildiv(M, 4), n in ceildiv(N, 6) {
    x = alloc_fragment<f32>[4, 6]
    copy X[m*4, n*6] -> x
    copy x -> Y[m*4, n*6]
    copy x -> Z[n*6, m*4] transpose
    copy x -> W[m*4, n*6]
  }
})";
  for (const auto& [m, n] : {std::pair(8, 12), {1, 1}, {5, 7}, {0, 3}, {3, 0}, {9, 13}}) {
    CheckProgram({"dynamic", kText, {}, {m, n}});
    CheckProgram({"fixed", kText, {{"M", absl::StrCat(m)}, {"N", absl::StrCat(n)}}, {}});
  }
}

TEST(PassesRun, CopiesOutsideOnBothSides) {
  CheckAll({
      {"shifted",
       R"(
kernel k(N: dim) {
  in X: tensor<f32>[N, N] out Y: tensor<f32>[N, 12] inout Z: tensor<f32>[N, N]
  launch m in N {
    x = alloc_shared<f32>[1, 12]
    copy X[m - 2:, 0:] -> x
    copy x -> Y[m, 0]
    fill x, 7
    copy x -> Z[m:, 3:]
  }
})",
       {},
       {7}},
      {"negative columns",
       R"(
kernel k(N: dim) {
  in X: tensor<f32>[N, N] out Y: tensor<f32>[N, 12]
  launch m in N {
    x = alloc_shared<f32>[12]
    copy X[m, 2 - m:] -> x
    copy x -> Y[m, 0]
  }
})",
       {},
       {9}},
      {"rows",
       R"(
kernel k(N: dim) {
  in X: tensor<f32>[N, N], r: i32 out Y: tensor<f32>[8, 8], Z: tensor<f32>[8, 8]
  inout W: tensor<f32>[8, 8]
  launch m in 1 {
    x = alloc_shared<f32>[8, 8]
    copy X[0:, 0:] -> x rows=r
    copy x -> Y[0, 0]
    copy X[0:, 0:] -> x rows=r+1 transpose
    copy x -> Z[0, 0]
    copy x -> W[0, 0] rows=r-1
  }
})",
       {},
       {6}},
      {"transposed in",
       R"(
kernel k(M: dim, N: dim) {
  in X: tensor<bf16>[M, N] out Y: tensor<f32>[N, M]
  launch m in ceildiv(M, 4), n in ceildiv(N, 8) {
    x = alloc_shared<f32>[8, 4]
    copy X[m*4, n*8] -> x transpose
    copy x -> Y[n*8, m*4]
  }
})",
       {},
       {9, 13}},
  });
}

// Windows and row counts that leave nothing of a tile, known when the code is made: the parts of
// the loops must not become negative.
TEST(PassesRun, CopiesWhollyOutside) {
  constexpr std::string_view kText = R"(
kernel k(N: dim; at: int, r: int) {
  in X: tensor<f32>[6, 6], P: tensor<f32>[6]
  out Y: tensor<f32>[3, 4], Z: tensor<f32>[4]
  inout V: tensor<f32>[6], W: tensor<f32>[6, 6]
  launch m in N {
    x = alloc_shared<f32>[3, 4]
    y = alloc_shared<f32>[4]
    copy X[0:, at:] -> x
    copy x -> Y[0, 0]
    copy X[at:, 0:] -> x rows=r transpose
    copy x -> W[at:, 2:] rows=r
    copy x -> W[2:, at:]
    copy P[at:] -> y rows=r
    copy y -> Z[0]
    copy y -> V[0] rows=r
    atomic_add y -> V[at:]
  }
})";
  for (int off : {-9, -4, -3, 0, 6, 7, 11}) {
    for (int r : {-5, -1, 0, 1, 9}) {
      CheckProgram({"outside", kText, {{"at", absl::StrCat(off)}, {"r", absl::StrCat(r)}}, {1}});
    }
  }
}

TEST(PassesRun, Conversions) {
  for (const char* from : {"i8", "u8", "i32", "f16", "bf16", "f32", "f64", "e4m3"}) {
    for (const char* to : {"i8", "u8", "i32", "i64", "f16", "bf16", "f32", "f64", "e5m2"}) {
      CheckProgram({"convert",
                    R"(
kernel k(; s: dtype, t: dtype) {
  in X: tensor<s>[13] out Y: tensor<t>[13]
  launch m in 2 {
    x = alloc_shared<t>[8]
    copy X[m*8] -> x
    copy x -> Y[m*8]
  }
})",
                    {{"s", from}, {"t", to}},
                    {}});
    }
  }
}

TEST(PassesRun, CopiesOfOtherKinds) {
  CheckAll({
      {"gather",
       R"(
kernel k(N: dim) {
  in X: tensor<f32>[16, N], P: tensor<i32>[N] out Y: tensor<f32>[N, 8]
  launch m in N {
    x = alloc_shared<f32>[8]
    i = alloc_shared<i32>[4]
    copy P[m:] -> i
    copy X[i[0] + i[1], 0:] -> x
    copy x -> Y[m, 0]
  }
})",
       {},
       {7}},
      {"views and tiles",
       R"(
kernel k() {
  in X: tensor<f32>[8, 8] out Y: tensor<f32>[8, 8], Z: tensor<f32>[8, 8]
  launch m in 1 {
    x = alloc_shared<f32>[8, 8]
    y = alloc_fragment<f32>[8, 8]
    copy X[0, 0] -> x
    v = view x[2, 3] [4, 4]
    w = view y[4, 0] [4, 4]
    clear y
    copy v -> w
    copy y -> Y[0, 0]
    u = view x[3, 3] [4, 4]
    copy v -> u
    copy x -> x transpose
    copy x -> Z[0, 0]
  }
})",
       {},
       {}},
      {"strides",
       R"(
kernel k(M: dim, N: dim) {
  in X: tensor<f32>[M, N] strides[?, 1] out Y: tensor<f32>[M, N] strides[1, ?]
  launch m in M {
    x = alloc_shared<f32>[1, 8]
    for n in ceildiv(N, 8) {
      copy X[m, n*8] -> x
      copy x -> Y[m, n*8]
    }
  }
})",
       {},
       {6, 21}},
      {"prepacked",
       R"(
kernel k(M: dim, N: dim) {
  in X: tensor<f16>[2, M, N] prepacked[4, 8] out Y: tensor<f16>[2, M, N]
  launch m in ceildiv(M, 4), n in ceildiv(N, 8), b in 2 {
    x = alloc_shared<f16>[4, 8]
    copy X[b, m*4, n*8] -> x
    copy x -> Y[b, m*4, n*8]
  }
})",
       {},
       {9, 19}},
      {"rank 3",
       R"(
kernel k(A: dim, B: dim, C: dim) {
  in X: tensor<f32>[A, B, C] out Y: tensor<f32>[A, B, C]
  launch a in ceildiv(A, 2), c in ceildiv(C, 4) {
    x = alloc_shared<f32>[2, 3, 4]
    for b in ceildiv(B, 3) {
      copy X[a*2:, b*3:, c*4:] -> x
      parallel i, j, l in [2, 3, 4] { x[i, j, l] = x[i, j, l] * 2 + i - j }
      copy x -> Y[a*2:, b*3:, c*4:]
    }
  }
})",
       {},
       {3, 5, 6}},
  });
}

TEST(PassesRun, Parallel) {
  CheckAll({
      {"element operations",
       R"(
kernel k(M: dim, N: dim) {
  in X: tensor<f32>[M, N], s: f32, c: i32 out Y: tensor<f32>[M, N]
  launch m in ceildiv(M, 4) {
    x = alloc_fragment<f32>[4, 16]
    y = alloc_fragment<f32>[4]
    v = alloc_var<f32>(s)
    v *= 2
    copy X[m*4, 0] -> x
    parallel i in 4 { y[i] = i * v  y[i] += c  y[i] *= 2  y[i] -= 1  y[i] /= 4 }
    parallel i, j in [4, 16] {
      a = alloc_local<f32>[3]
      a[0] = x[i, j]
      a[1] = a[0] * a[0]
      a[2] = 0
      for q in 0..2 { a[2] += a[q] }
      t = a[2] + y[i]
      if j % 2 == 0 and t > 0 { x[i, j] = t } else { if j > c { x[i, j] = -t } }
    }
    copy x -> Y[m*4, 0]
    parallel i, j in [4, 2] { if m*4 + i < M and j < N { Y[m*4 + i, j] = x[i, j] + y[3 - i] } }
  }
})",
       {},
       {10, 11}},
      {"uniform reads of tiles",
       R"(
kernel k(N: dim) {
  in X: tensor<i32>[N] out Y: tensor<i32>[N]
  launch m in ceildiv(N, 8) {
    x = alloc_shared<i32>[8]
    n = alloc_var<i32>(0)
    copy X[m*8] -> x
    for i in x[0] + 1 {
      n += x[i]
      u = x[1]
      fill x, u + 1
      parallel j in 8 { x[j] += j }
      if x[2] > 3 { parallel j in 8 { x[j] = x[j] - 2 } }
    }
    l = alloc_local<i32>[2]
    l[0] = n
    l[1] = l[0] + 1
    parallel j in 8 { x[j] += l[1] }
    copy x -> Y[m*8]
  }
})",
       {},
       {19}},
      {"order within loops",
       R"(
kernel k(N: dim) {
  in X: tensor<f32>[N] out Y: tensor<f32>[N]
  launch m in 1 {
    a = alloc_shared<f32>[16]
    b = alloc_shared<f32>[16]
    copy X[0:] -> a
    for i in 3 {
      parallel j in 16 { b[j] = a[15 - j] + i }
      for q in i { parallel j in 16 { a[j] = b[15 - j] * 2 }  parallel j in 16 { b[j] = a[(j + 1) % 16] } }
      parallel j in 16 { a[j] = b[(j + 3) % 16] }
    }
    copy a -> Y[0:]
  }
})",
       {},
       {16}},
      {"atomics",
       R"(
kernel k(N: dim) {
  in X: tensor<f32>[N] inout Y: tensor<f32>[6], Z: tensor<i32>[4], W: tensor<i32>[4]
  launch m in ceildiv(N, 8) {
    x = alloc_shared<f32>[8]
    copy X[m*8] -> x
    atomic_add x -> Y[0:]
    atomic_max x -> Y[1:]
    parallel i in 8 { atomic_add i -> Z[i % 4]  atomic_min i -> W[i / 2] }
  }
})",
       {},
       {19}},
  });
}

TEST(PassesRun, Gemm) {
  constexpr std::string_view kText = R"(
kernel k(M: dim, N: dim, K: dim; ta: bool, tb: bool, t: dtype, c: dtype, bm: int, bn: int, bk: int) {
  in A: tensor<t>[if ta then K else M, if ta then M else K], B: tensor<t>[if tb then N else K, if tb then K else N]
  out C: tensor<c>[M, N]
  launch m in ceildiv(M, bm), n in ceildiv(N, bn) {
    a = alloc_shared<t>[if ta then bk else bm, if ta then bm else bk]
    b = alloc_shared<t>[if tb then bn else bk, if tb then bk else bn]
    acc = alloc_acc<c>[bm, bn]
    clear acc
    pipelined q in ceildiv(K, bk) stages=2 {
      if ta { copy A[q*bk, m*bm] -> a } else { copy A[m*bm, q*bk] -> a }
      if tb { copy B[n*bn, q*bk] -> b } else { copy B[q*bk, n*bn] -> b }
      if ta { if tb { gemm a, b -> acc transpose_a transpose_b } else { gemm a, b -> acc transpose_a } }
      else { if tb { gemm a, b -> acc transpose_b } else { gemm a, b -> acc } }
    }
    copy acc -> C[m*bm, n*bn]
  }
})";
  const auto check = [&](Values values, std::vector<int64_t> dims) {
    CheckProgram({"gemm", kText, std::move(values), std::move(dims)});
  };
  for (const char* ta : {"false", "true"}) {
    for (const char* tb : {"false", "true"}) {
      for (const auto& [t, c] :
           {std::pair("bf16", "f32"), {"f32", "f32"}, {"i8", "i32"}, {"f64", "f64"}}) {
        check({{"ta", ta}, {"tb", tb}, {"t", t}, {"c", c}, {"bm", "8"}, {"bn", "12"}, {"bk", "5"}},
              {11, 14, 13});
      }
    }
  }
  const Values plain{{"ta", "false"}, {"tb", "true"}, {"t", "f16"}, {"c", "f32"}};
  for (const auto& [bm, bn, bk] :
       {std::tuple("1", "1", "1"), {"5", "7", "3"}, {"16", "16", "16"}}) {
    Values v = plain;
    v.insert(v.end(), {{"bm", bm}, {"bn", bn}, {"bk", bk}});
    for (const auto& [m, n, k] : {std::tuple(1, 1, 1), {5, 9, 0}, {0, 4, 4}, {7, 17, 9}}) {
      check(v, {m, n, k});
    }
  }
}

// Results that are rounded to 16 bits go to a tile by matrices, as they are and transposed.
TEST(PassesRun, MatrixStores) {
  constexpr std::string_view kText = R"(
kernel k(M: dim, N: dim; bm: int, bn: int, t: dtype) {
  in A: tensor<t>[M, 16], B: tensor<t>[N, 16]
  out C: tensor<t>[M, N], D: tensor<t>[N, M]
  launch m in ceildiv(M, bm), n in ceildiv(N, bn) stores=bulk {
    a = alloc_shared<t>[bm, 16]  b = alloc_shared<t>[bn, 16]
    c = alloc_fragment<f32>[bm, bn]
    c_s = alloc_shared<t>[bm, bn]  d_s = alloc_shared<t>[bn, bm]
    copy A[m*bm, 0] -> a
    copy B[n*bn, 0] -> b
    gemm a, b -> c transpose_b clear
    copy c -> c_s
    copy c -> d_s transpose
    copy c_s -> C[m*bm, n*bn]
    copy d_s -> D[n*bn, m*bm]
  }
})";
  for (const char* t : {"f16", "bf16"}) {
    for (const auto& [bm, bn] : {std::pair("16", "8"), {"32", "16"}, {"32", "64"}, {"64", "24"}}) {
      CheckProgram({"matrix stores", kText, {{"t", t}, {"bm", bm}, {"bn", bn}}, {70, 67}});
    }
  }
}

TEST(PassesRun, GemmOfViews) {
  CheckAll({{"views",
             R"(
kernel k() {
  in X: tensor<f32>[8, 8] out Y: tensor<f32>[4, 4], Z: tensor<f32>[8, 8]
  launch m in 1 {
    x = alloc_shared<f32>[8, 8]
    c = alloc_fragment<f32>[4, 4]
    copy X[0, 0] -> x
    a = view x[0, 4] [4, 3]
    b = view x[5, 2] [3, 4]
    fill c, 3
    gemm a, b -> c
    gemm a, b -> c precision=tf32
    copy c -> Y[0, 0]
    d = view x[4, 4] [4, 4]
    fill d, 5
    copy x -> Z[0, 0]
  }
})",
             {},
             {}}});
}

TEST(PassesRun, Reduce) {
  for (const char* op : {"sum", "max", "min", "absmax", "prod"}) {
    for (const char* dim : {"0", "1", "2"}) {
      for (const char* clear : {"clear", ""}) {
        for (const char* t : {"f32", "f16", "i32"}) {
          const std::string rest = dim[0] == '0' ? "5, 3" : dim[0] == '1' ? "4, 3" : "4, 5";
          const std::string text = absl::StrReplaceAll(R"(
kernel k() {
  in X: tensor<T>[4, 5, 3] inout Y: tensor<T>[REST]
  launch m in 1 {
    x = alloc_fragment<T>[4, 5, 3]
    y = alloc_fragment<T>[REST]
    copy X[0, 0, 0] -> x
    copy Y[0, 0] -> y
    reduce_OP x -> y dim=DIM CLEAR
    copy y -> Y[0, 0]
  }
})",
                                                       {{"OP", op},
                                                        {"DIM", dim},
                                                        {"CLEAR", clear},
                                                        {"REST", rest},
                                                        {"<T>", absl::StrCat("<", t, ">")}});
          CheckProgram({op, text, {}, {}});
        }
      }
    }
  }
}

TEST(PassesRun, LongReductions) {
  for (const char* n : {"1", "31", "32", "160", "229"}) {
    CheckAll({
        {"whole line",
         R"(
kernel k(; n: int) {
  in X: tensor<f32>[n] out Y: tensor<f32>[4], I: tensor<i32>[1], A: tensor<bool>[2]
  launch m in 1 {
    x = alloc_fragment<f32>[n]
    s = alloc_fragment<f32>[1]
    i = alloc_fragment<i32>[1]
    p = alloc_fragment<bool>[n]
    q = alloc_fragment<bool>[1]
    copy X[0] -> x
    reduce_sum x -> s clear
    copy s -> Y[0:]
    reduce_max x -> s clear
    copy s -> Y[1:]
    fill s, 100
    reduce_min x -> s
    copy s -> Y[2:]
    reduce_absmax x -> s
    copy s -> Y[3:]
    argmax x -> i
    copy i -> I[0]
    parallel j in n { p[j] = x[j] > 3 }
    reduce_any p -> q clear
    copy q -> A[0:]
    reduce_all p -> q clear
    copy q -> A[1:]
  }
})",
         {{"n", n}},
         {}},
        {"rows",
         R"(
kernel k(; n: int) {
  in X: tensor<bf16>[3, n] out Y: tensor<f32>[3], Z: tensor<f32>[3, n], W: tensor<f32>[n]
  launch m in 1 {
    x = alloc_fragment<f32>[3, n]
    s = alloc_reducer<f32, sum>[3]
    c = alloc_fragment<f32>[n]
    copy X[0, 0] -> x
    reduce_sum x -> s dim=1
    parallel i in 3 { s[i] *= 2 }
    reduce_sum x -> s dim=-1
    finish s
    parallel i, j in [3, n] { x[i, j] = x[i, j] + s[i] }
    copy x -> Z[0, 0]
    reduce_sum x -> c dim=0 clear
    copy c -> W[0]
    parallel i in 3 { Y[i] = s[i] }
  }
})",
         {{"n", n}},
         {}},
    });
  }
}

TEST(PassesRun, Scans) {
  for (const char* flags : {"", "reverse"}) {
    for (const char* dim : {"0", "1"}) {
      CheckProgram({"cumsum",
                    absl::StrReplaceAll(R"(
kernel k() {
  in X: tensor<f32>[5, 9] out Y: tensor<f32>[5, 9], Z: tensor<i32>[9], W: tensor<f32>[9]
  launch m in 1 {
    x = alloc_fragment<f32>[5, 9]
    y = alloc_fragment<f32>[5, 9]
    w = alloc_fragment<f32>[9]
    i = alloc_fragment<i32>[9]
    copy X[0, 0] -> x
    argmax x -> i dim=0
    copy i -> Z[0]
    cumsum x -> y dim=DIM FLAGS
    cumsum y -> y dim=DIM FLAGS
    copy y -> Y[0, 0]
    copy X[0, 0:] -> w
    cumsum w -> w dim=0 FLAGS
    copy w -> W[0]
  }
})",
                                        {{"DIM", dim}, {"FLAGS", flags}}),
                    {},
                    {}});
    }
  }
}

TEST(PassesRun, Lag) {
  constexpr std::string_view kText = R"(
kernel k(N: dim; k1: int, k2: int, down: bool) {
  in X: tensor<f32>[N, 4], Y: tensor<f32>[N, 4] out Z: tensor<f32>[3, 4], O: tensor<f32>[N, 4], P: tensor<f32>[N, 4]
  launch m in 1 {
    z = alloc_fragment<f32>[4]
    c = alloc_fragment<f32>[4]
    n = alloc_var<i32>(0)
    clear z
    clear c
    x = alloc_shared<f32>[4]
    pipelined j in N stages=2 FLAG {
      y = alloc_shared<f32>[4]
      copy X[j, 0:] -> x
      copy Y[j, 0:] -> y
      d = j * 2 + n
      n += 1
      in_turn true {
        lag k1 {
          e = d + n
          parallel i in 4 { z[i] = z[i] * 0.5 + x[i] + c[i] + e }
          copy x -> O[j, 0]
        }
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
    parallel i in 4 { z[i] = if N > 0 then x[i] + n else n }
    copy z -> Z[2, 0:]
  }
})";
  for (const char* flag : {"", "down"}) {
    const std::string text = absl::StrReplaceAll(kText, {{"FLAG", flag}});
    for (const auto& [k1, k2] : {std::pair("1", "2"), {"2", "1"}, {"3", "3"}}) {
      for (int64_t n : {0, 1, 2, 3, 7}) {
        // Without a trip, x is never written and may not be read at all.
        if (n == 0) continue;
        CheckProgram({"lag", text, {{"k1", k1}, {"k2", k2}, {"down", "false"}}, {n}});
      }
    }
  }
}

// -1 is the largest u32.
TEST(PassesRun, AtomicsCombineElements) {
  CheckAll({{"negative and unsigned",
             R"(
kernel k() {
  in X: tensor<i32>[4]
  inout A: tensor<u32>[4], B: tensor<u32>[4]
  launch m in 2 {
    x = alloc_shared<i32>[4]
    copy X[0] -> x
    parallel i in 4 { x[i] = x[i] - 3 }
    atomic_min x -> A[0]
    parallel i in 4 { atomic_max x[i] -> B[i] }
  }
})",
             {},
             {}}});
}

// The last lags run behind the loop, and see there what its last iteration left.
TEST(PassesRun, LagUsesWhatTheLoopMakes) {
  constexpr std::string_view kText = R"(
kernel k(N: dim; k: int) {
  in X: tensor<f32>[N, 4] out Z: tensor<f32>[N, 4]
  launch m in 1 {
    n = alloc_var<i32>(0)
    pipelined j in N stages=2 {
      x = alloc_shared<f32>[4]
      copy X[j, 0:] -> x
      y = alloc_fragment<f32>[4]
      parallel i in 4 { y[i] = x[i] * 2 }
      a = alloc_local<i32>[1]
      a[0] = j
      w = alloc_var<f32>(j + 1)
      n += 1
      r = alloc_reducer<f32, max>[1]
      reduce_max x -> r
      finish r
      lag k {
        t = alloc_fragment<f32>[4]
        parallel i in 4 { t[i] = x[i] + 10 * y[i] + 100 * a[0] + 1000 * w + 10000 * n + r[0] }
        copy t -> Z[j, 0:]
      }
    }
  }
})";
  for (const char* k : {"1", "3"}) {
    for (int64_t n : {0, 1, 2, 5}) CheckProgram({"lag", kText, {{"k", k}}, {n}});
  }
}

TEST(PassesRun, LagInNestedLoops) {
  CheckAll({{"nested",
             R"(
kernel k(N: dim) {
  in X: tensor<f32>[N, 4], Y: tensor<f32>[N, 4] out Z: tensor<f32>[N, 4]
  launch m in 1 {
    z = alloc_fragment<f32>[4]
    x = alloc_shared<f32>[4]
    y = alloc_shared<f32>[4]
    clear z
    pipelined i in N stages=2 {
      copy X[i, 0:] -> x
      pipelined j in i stages=3 down {
        copy Y[j, 0:] -> y
        lag 2 { parallel q in 4 { z[q] = z[q] * 0.5 + y[q] * x[q] + j } }
      }
      lag 1 {
        parallel q in 4 { z[q] += x[q] }
        copy z -> Z[i, 0]
      }
    }
  }
})",
             {},
             {5}}});
}

TEST(PassesRun, Groups) {
  CheckAll({
      {"private fragments",
       R"(
kernel k(N: dim) {
  in X: tensor<f32>[N] out Y: tensor<f32>[N], Z: tensor<f32>[N]
  launch m in ceildiv(N, 16) groups=2 {
    x = alloc_shared<f32>[16]
    y = alloc_fragment<f32>[16]
    copy X[m*16] -> x
    on g in 2 {
      a = alloc_fragment<f32>[8]
      r = alloc_reducer<f32, sum>[1]
      parallel i in 8 { a[i] = x[g*8 + i] * (g + 1) }
      reduce_sum a -> r
      finish r
      b = alloc_fragment<f32>[8]
      parallel i in 8 { b[i] = a[7 - i] + r[0] }
      parallel i in 8 { x[g*8 + i] = b[i] }
      copy b -> Z[m*16 + g*8:]
    }
    parallel i in 16 { y[i] = x[15 - i] }
    copy y -> Y[m*16]
  }
})",
       {},
       {40}},
      {"channels",
       R"(
kernel k(N: dim) {
  in X: tensor<f32>[N, 8] out Y: tensor<f32>[N, 8], S: tensor<f32>[8]
  launch m in 1 groups=2 {
    c = alloc_chan<f32>[8] depth=2
    d = alloc_chan<f16>[8]
    on g in 2 {
      if g == 0 {
        x = alloc_fragment<f32>[8]
        t = alloc_fragment<f32>[8]
        clear t
        for i in N {
          copy X[i, 0] -> x
          send x -> c
          if i % 2 == 1 {
            b = alloc_fragment<f32>[8]
            recv d -> b
            parallel j in 8 { t[j] += b[j] }
          }
        }
        copy t -> S[0]
      } else {
        y = alloc_fragment<f32>[8]
        for i in N {
          recv c -> y
          parallel j in 8 { y[j] = y[j] * 2 + j }
          copy y -> Y[i, 0]
          if i % 2 == 1 { send y -> d }
        }
      }
    }
  }
})",
       {},
       {9}},
  });
}

TEST(PassesRun, Split) {
  constexpr std::string_view kText = R"(
kernel k(B: dim, P: dim) {
  in len: tensor<i32>[B], X: tensor<f32>[B, 16]
  out Y: tensor<f32>[B], C: tensor<i32>[B, 3], W: tensor<i32>[B]
  workspace part: tensor<f32>[B + P], mark: tensor<i32>[B + P, 2]
  init len = uniform(0, 6)
  launch segment(b, i0, i1, p, whole) in split(b in B: len[b], P) {
    s = alloc_var<f32>(0)
    for i in i0..i1 { s += X[b, i] }
    parallel i in 1 { part[p] = s  mark[p, 0] = i1 - i0  mark[p, 1] = if whole then 1 else 0 }
  }
  launch b in B {
    s = alloc_var<f32>(0)
    n = alloc_var<i32>(0)
    u = alloc_var<i32>(0)
    w = alloc_var<i32>(0)
    for p in parts(b) { s += part[p]  n += 1  u += mark[p, 0]  w += mark[p, 1] }
    parallel i in 1 { Y[b] = s  C[b, 0] = n  C[b, 1] = u  C[b, 2] = len[b]  W[b] = w }
  }
})";
  // The last has more items than a block looks at in one round.
  for (const auto& [b, p] : {std::pair(1, 1), {5, 3}, {4, 7}, {3, 29}, {6, 1}, {140, 9}}) {
    CheckProgram({"split", kText, {}, {b, p}});
  }
}

// Loops over the same parts behind each other and in each other's branches, of groups that ask for
// different items, and of each iteration for itself.
TEST(PassesRun, PartsInAllPlaces) {
  constexpr std::string_view kText = R"(
kernel k(B: dim, P: dim) {
  in len: tensor<i32>[B]
  out S: tensor<i32>[B, 4], G: tensor<i32>[B, 2], I: tensor<i32>[4]
  workspace size: tensor<i32>[B + P]
  init len = uniform(0, 3)
  launch segment(b, i0, i1, p, whole) in split(b in B: len[b], P) {
    parallel i in 1 { size[p] = i1 - i0 }
  }
  launch b in B {
    n = alloc_var<i32>(0)
    u = alloc_var<i32>(0)
    first = alloc_var<i32>(0)
    if b % 2 == 0 { for p in parts(b) { n += 1 } }
    for p in parts(b) { u += size[p] }
    for p in parts(b) down { first = size[p] }
    v = alloc_var<i32>(0)
    other = alloc_var<i32>(0)
    for i in 2 {
      for p in parts(other) { v += size[p] * (i + 1) }
      other = b
    }
    parallel i in 1 { S[b, 0] = n  S[b, 1] = u  S[b, 2] = first  S[b, 3] = v }
  }
  launch b in B groups=2 {
    on g in 2 {
      n = alloc_fragment<i32>[1]
      clear n
      for p in parts((b + g) % B) { parallel i in 1 { n[i] += size[p] } }
      copy n -> G[b, g:]
    }
  }
  launch {
    parallel j in 4 {
      n = alloc_local<i32>[1]
      n[0] = 0
      if j < B { for p in parts(j) { n[0] += size[p] * 10 + 1 } }
      I[j] = n[0]
    }
  }
})";
  for (const auto& [b, p] : {std::pair(1, 1), {5, 3}, {4, 7}, {3, 29}}) {
    CheckProgram({"parts", kText, {}, {b, p}});
  }
}

// A pipelined loop over parts is one: its copies are asynchronous and its lags replay.
TEST(PassesRun, PipelinedParts) {
  constexpr std::string_view kText = R"(
kernel k(B: dim, P: dim; distance: int) {
  in len: tensor<i32>[B], X: tensor<f32>[B + P, 8]
  out Y: tensor<f32>[B, 8], Z: tensor<f32>[B, 8]
  init len = uniform(0, 3)
  launch segment(b, i0, i1, p, whole) in split(b in B: len[b], P) { }
  launch b in B {
    x = alloc_shared<f32>[8]
    y, z = alloc_fragment<f32>[8]
    clear y, z
    pipelined p in parts(b) stages=2 {
      copy X[p, 0:] -> x
      parallel i in 8 { y[i] += x[i] }
      lag distance { parallel i in 8 { z[i] = z[i] * 2.0 + x[i] * (p + 1) } }
    }
    copy y -> Y[b, 0:]
    copy z -> Z[b, 0:]
  }
})";
  for (const auto& [b, p] : {std::pair(1, 1), {5, 3}, {4, 7}, {3, 29}, {1, 6}}) {
    for (const char* distance : {"1", "3"}) {
      CheckProgram({"pipelined parts", kText, {{"distance", distance}}, {b, p}});
    }
  }
}

TEST(PassesRun, Attention) {
  constexpr std::string_view kText = R"(
kernel attention(Sq: dim, Sk: dim; causal: bool) {
  in Q: tensor<f16>[Sq, 8], K: tensor<f16>[Sk, 8], V: tensor<f16>[Sk, 6], sc: f32
  out O: tensor<f32>[Sq, 6]
  launch m in ceildiv(Sq, 4) groups=2 {
    q_s = alloc_shared<f16>[4, 8]
    k_s = alloc_shared<f16>[5, 8]
    v_s = alloc_shared<f16>[5, 6]
    s = alloc_fragment<f32>[4, 5]
    o = alloc_fragment<f32>[4, 6]
    p = alloc_fragment<f16>[4, 5]
    mx = alloc_fragment<f32>[4]
    m0 = alloc_fragment<f32>[4]
    c = alloc_fragment<f32>[4]
    l = alloc_reducer<f32, sum>[4]
    d = Sk - Sq
    end = if causal then clamp((m+1)*4+d, 0, Sk) else Sk
    copy Q[m*4, 0] -> q_s
    clear o, l
    fill mx, -inf
    pipelined j in ceildiv(end, 5) down stages=2 {
      copy K[j*5, 0] -> k_s
      copy V[j*5, 0] -> v_s
      in_turn on {
        gemm q_s, k_s -> s transpose_b clear policy=full_row
        lag 1 { gemm p, v_s -> o policy=full_row }
      }
      parallel r, x in [4, 5] { if j*5+x >= Sk or causal and j*5+x > m*4+r+d { s[r,x] = -inf } }
      copy mx -> m0
      reduce_max s -> mx dim=1
      parallel r in 4 { c[r] = exp2((m0[r]-fin(mx[r]))*sc)  l[r] *= c[r] }
      parallel r, x in [4, 5] { s[r,x] = exp2(s[r,x]*sc - fin(mx[r])*sc) }
      reduce_sum s -> l dim=1
      parallel r, x in [4, 6] { o[r,x] *= c[r] }
      copy s -> p
    }
    finish l
    parallel r, x in [4, 6] { o[r,x] = if l[r] == 0 then 0 else o[r,x]/l[r] }
    copy o -> O[m*4, 0]
  }
})";
  for (const char* causal : {"false", "true"}) {
    for (const auto& [sq, sk] : {std::pair(4, 5), {9, 13}, {7, 3}, {3, 0}}) {
      CheckProgram({"attention", kText, {{"causal", causal}}, {sq, sk}, 1e-4});
    }
  }
}

// ---- Every barrier is needed

// Leaves out barrier number `which`, counted in program order.
class WithoutBarrier : public StmtMapper {
 public:
  explicit WithoutBarrier(int which) : left_(which) {}

  Block MapBlock(const Block& b) override {
    Block out;
    for (const StmtRef& s : b) {
      const bool drop = As<Barrier>(s) && left_-- == 0;
      if (!drop) out.push_back(MapStmt(s));
    }
    return out;
  }

 private:
  int left_;
};

int CountBarriers(const Module& m) {
  int n = 0;
  for (const Launch& launch : m.launches) {
    VisitStmts(launch.body, [&](const StmtRef& s) { n += As<Barrier>(s) != nullptr; });
  }
  return n;
}

TEST(PassesRun, LeavingOutABarrierIsARace) {
  const Program programs[] = {
      {"gemm",
       R"(
kernel k(M: dim, N: dim, K: dim) {
  in A: tensor<f32>[M, K], B: tensor<f32>[K, N] out C: tensor<f32>[M, N]
  launch m in 1 {
    a = alloc_shared<f32>[8, 4]
    b = alloc_shared<f32>[4, 8]
    c = alloc_fragment<f32>[8, 8]
    clear c
    for q in ceildiv(K, 4) {
      copy A[0:, q*4:] -> a
      copy B[q*4:, 0:] -> b
      gemm a, b -> c
    }
    copy c -> C[0, 0]
  }
})",
       {},
       {8, 8, 12}},
      {"softmax",
       R"(
kernel k(M: dim, N: dim) {
  in X: tensor<f32>[M, N] out Y: tensor<f32>[M, N]
  launch m in 1 {
    x = alloc_fragment<f32>[3, 40]
    mx = alloc_fragment<f32>[3]
    l = alloc_fragment<f32>[3]
    copy X[0:, 0:] -> x
    reduce_max x -> mx dim=1 clear
    parallel r, c in [3, 40] { x[r, c] = exp2(x[r, c] - mx[r]) }
    reduce_sum x -> l dim=1 clear
    parallel r, c in [3, 40] { x[r, c] = x[r, c] / l[r] }
    copy x -> Y[0, 0]
  }
})",
       {},
       {3, 40}},
      {"groups",
       R"(
kernel k(N: dim) {
  in X: tensor<f32>[N] out Y: tensor<f32>[N]
  launch m in 1 groups=2 {
    x = alloc_shared<f32>[16]
    copy X[0] -> x
    on g in 2 {
      a = alloc_fragment<f32>[8]
      parallel i in 8 { a[i] = x[g*8 + 7 - i] }
      parallel i in 8 { x[g*8 + i] = a[7 - i] }
    }
    parallel i in 16 { Y[i] = x[15 - i] }
  }
})",
       {},
       {16}},
  };
  for (const Program& p : programs) {
    SCOPED_TRACE(p.name);
    const StatusOr<Module> m = BindText(absl::StrCat("tl 1.0\n", p.text), p.values);
    ASSERT_TRUE(m.ok()) << m.status();
    const StatusOr<Module> lowered = Lower(*m, TargetOf(kShapes[3]));
    ASSERT_TRUE(lowered.ok()) << lowered.status();
    testing::ThreadEvalArgs args;
    args.dims = p.dims;
    int unneeded = 0;
    const int barriers = CountBarriers(*lowered);
    EXPECT_GT(barriers, 1);
    for (int i = 0; i < barriers; ++i) {
      Module broken = *lowered;
      broken.launches[0].body = WithoutBarrier(i).MapBlock(broken.launches[0].body);
      Memory memory = *MakeMemory(*m, {args.dims, {}, {}}, 1);
      args.operands = Pointers(memory.operands);
      const std::string error = testing::ThreadEval(broken, args, kShapes[3].threads, 1).Run();
      if (error.empty()) ++unneeded;
    }
    EXPECT_EQ(unneeded, 0) << "of " << barriers << "\n" << ToText(*lowered);
  }
}

}  // namespace
}  // namespace tl
