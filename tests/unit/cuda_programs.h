// Programs for the tests that run generated CUDA source, on a GPU or on the host: small ones that
// together use what the emitter knows, and the families with a few of their parameters.
#ifndef TILEJIT_TESTS_UNIT_CUDA_PROGRAMS_H_
#define TILEJIT_TESTS_UNIT_CUDA_PROGRAMS_H_

#include <string>
#include <string_view>
#include <vector>

#include "service/families.h"
#include "tests/unit/cuda_testing.h"

namespace tl::testing {

// The embedded text, so that a test needs no file beside it.
inline std::string FamilyText(std::string_view name) {
  for (const FamilySource& f : BuiltinFamilies()) {
    if (f.name == name) return std::string(f.text);
  }
  return "";
}

inline std::vector<CudaCase> FamilyPrograms() {
  const std::string add = FamilyText("vector_add");
  const std::string gemm = FamilyText("gemm");
  const std::string softmax = FamilyText("softmax");
  return {
      {"add_f32", add, {{"block", "512"}}, {{1000}, {1}, {512}, {0}}},
      {"add_bf16", add, {{"t", "bf16"}, {"block", "1024"}}, {{1500}}},
      {"add_e4m3", add, {{"t", "e4m3"}, {"block", "512"}}, {{700}}},
      {"add_e5m2", add, {{"t", "e5m2"}, {"block", "512"}}, {{700}}},
      {"add_i32", add, {{"t", "i32"}, {"block", "512"}}, {{700}}},
      {"gemm_bf16_nt", gemm, {{"bm", "16"}, {"bn", "32"}}, {{33, 20, 50}, {1, 1, 1}, {16, 32, 0}}},
      {"gemm_f16_tn",
       gemm,
       {{"t", "f16"},
        {"ta", "true"},
        {"tb", "false"},
        {"bm", "16"},
        {"bn", "32"},
        {"bias", "true"},
        {"act", "gelu"}},
       {{33, 20, 50}}},
      {"gemm_f64",
       gemm,
       {{"t", "f64"}, {"bm", "16"}, {"bn", "32"}, {"act", "gelu_tanh"}},
       {{17, 9, 40}}},
      {"gemm_i8", gemm, {{"t", "i8"}, {"bm", "16"}, {"bn", "32"}, {"act", "relu"}}, {{17, 40, 33}}},
      {"gemm_e4m3",
       gemm,
       {{"t", "e4m3"}, {"tc", "bf16"}, {"bm", "16"}, {"bn", "32"}, {"act", "silu"}},
       {{17, 9, 40}}},
      {"softmax_bf16", softmax, {{"bm", "4"}, {"bn", "128"}}, {{9, 300}, {1, 1}, {4, 128}}},
      {"softmax_f64", softmax, {{"t", "f64"}, {"bm", "1"}, {"bn", "128"}}, {{3, 229}}},
  };
}

inline std::vector<CudaCase> SmallPrograms() {
  return {
      {"maths",
       R"(tl 1.0
kernel k(N: dim; t: dtype) {
  in X: tensor<t>[N], s: f32, c: i32 out Y: tensor<t>[N, 20]
  launch m in ceildiv(N, 32) {
    x = alloc_shared<t>[32]
    copy X[m*32] -> x
    parallel i in 32 {
      if m*32 + i < N {
        v = x[i]  r = m*32 + i
        Y[r, 0] = exp(v)  Y[r, 1] = exp2(v)  Y[r, 2] = log(abs(v) + 0.5)
        Y[r, 3] = log2(abs(v) + 0.5)  Y[r, 4] = sqrt(abs(v))  Y[r, 5] = rsqrt(abs(v) + 0.25)
        Y[r, 6] = tanh(v)  Y[r, 7] = erf(v)  Y[r, 8] = sigmoid(v)  Y[r, 9] = sin(v)
        Y[r, 10] = cos(v)  Y[r, 11] = pow(abs(v) + 0.5, 1.5)  Y[r, 12] = floor(v * 4)
        Y[r, 13] = ceil(v * 4)  Y[r, 14] = round(v * 4)  Y[r, 15] = fin(v / 0.0)
        Y[r, 16] = max(min(v, nan), -inf)  Y[r, 17] = i32(v * 1e10) / 3
        Y[r, 18] = if v < 0 or not (v < 0.5) then s * c else bf16(v)  Y[r, 19] = i64(v * 9) % -4
      }
    }
  }
})",
       {{"t", "f32"}},
       {{70}}},
      {"ints",
       R"(tl 1.0
kernel k(N: dim) {
  in X: tensor<i32>[N], P: tensor<i64>[N], U: tensor<u8>[N], c: i32
  out Y: tensor<i64>[N, 14]
  init X = uniform(-20, 20)  init P = uniform(-1000000000000, 1000000000000)  init c = uniform(1, 5)
  launch m in N {
    x = X[m]  p = P[m]  u = U[m]
    parallel i in 1 {
      Y[m, 0] = x / 3  Y[m, 1] = x % 3  Y[m, 2] = ceildiv(x, 4)  Y[m, 3] = p * p
      Y[m, 4] = p / (0 - c)  Y[m, 5] = p % c  Y[m, 6] = (p << 40) ^ x  Y[m, 7] = p >> 7
      Y[m, 8] = u & x | 64  Y[m, 9] = abs(x) - u  Y[m, 10] = i8(p) + u16(p) + u32(p)
      Y[m, 11] = max(x, p) - min(x, u)  Y[m, 12] = if x == u then -x else -p
      Y[m, 13] = x << u
    }
  }
})",
       {},
       {{50}}},
      {"conversions",
       R"(tl 1.0
kernel k(N: dim) {
  in X: tensor<f64>[N], I: tensor<i64>[N]
  out A: tensor<f16>[N, 2], B: tensor<bf16>[N, 2], C: tensor<e4m3>[N, 2], D: tensor<e5m2>[N, 2],
      E: tensor<i8>[N, 2], F: tensor<u8>[N, 2], G: tensor<i16>[N, 2], H: tensor<u16>[N, 2],
      J: tensor<i32>[N, 2], K: tensor<u32>[N, 2], L: tensor<i64>[N, 2], M: tensor<bool>[N, 2],
      O: tensor<f32>[N, 2]
  init X = normal(0, 300)  init I = uniform(-3000000000, 3000000000)
  launch m in N {
    x = X[m]  i = I[m]
    parallel q in 1 {
      A[m, 0] = f16(x)  B[m, 0] = bf16(x)  C[m, 0] = e4m3(x)  D[m, 0] = e5m2(x)
      E[m, 0] = i8(x)  F[m, 0] = u8(x)  G[m, 0] = i16(x * 100)  H[m, 0] = u16(x * 100)
      J[m, 0] = i32(x * 1e7)  K[m, 0] = u32(x * 1e7)  L[m, 0] = i64(x * 1e17)  M[m, 0] = x > 1
      O[m, 0] = f32(x)
      A[m, 1] = f16(f32(x))  B[m, 1] = bf16(i)  C[m, 1] = e4m3(f32(x))  D[m, 1] = e5m2(f32(x))
      E[m, 1] = i8(i)  F[m, 1] = u8(i)  G[m, 1] = i16(i)  H[m, 1] = u16(i)
      J[m, 1] = i32(i)  K[m, 1] = u32(i)  L[m, 1] = i64(f32(x) * 1e16)  M[m, 1] = i > 0
      O[m, 1] = f32(i)
    }
  }
})",
       {},
       {{200}}},
      {"reductions",
       R"(tl 1.0
kernel k(; n: int, t: dtype) {
  in X: tensor<t>[3, n] out Y: tensor<f32>[3], Z: tensor<t>[3, n], I: tensor<i32>[3], B: tensor<bool>[3]
  launch m in 1 {
    x = alloc_fragment<t>[3, n]  f = alloc_fragment<f32>[3, n]  p = alloc_fragment<bool>[3, n]
    s = alloc_reducer<f32, sum>[3]  i = alloc_fragment<i32>[3]  q = alloc_fragment<bool>[3]
    copy X[0, 0] -> x
    copy x -> f
    reduce_sum f -> s dim=1
    finish s
    parallel r in 3 { Y[r] = s[r] }
    argmax x -> i dim=1
    copy i -> I[0]
    parallel r, c in [3, n] { p[r, c] = x[r, c] > 3 }
    reduce_any p -> q dim=1 clear
    copy q -> B[0]
    cumsum f -> f dim=1 reverse
    copy f -> Z[0, 0]
  }
})",
       {{"n", "229"}, {"t", "f16"}},
       {{}}},
      {"atomics",
       R"(tl 1.0
kernel k(N: dim; t: dtype) {
  in X: tensor<f32>[N] inout Y: tensor<t>[6], Z: tensor<i32>[4], W: tensor<i32>[4], V: tensor<t>[6]
  init X = uniform(0, 1)
  launch m in ceildiv(N, 8) {
    x = alloc_shared<f32>[8]
    copy X[m*8] -> x
    atomic_add x -> Y[0:]
    atomic_max x -> V[1:]
    parallel i in 8 { atomic_add i -> Z[i % 4]  atomic_min i -> W[i / 2] }
  }
})",
       {{"t", "f32"}},
       {{19}}},
      {"narrow_atomics",
       R"(tl 1.0
kernel k(N: dim) {
  in X: tensor<f32>[N] inout A: tensor<f16>[6], B: tensor<bf16>[6], D: tensor<f64>[6],
     E: tensor<i64>[6], F: tensor<u32>[6]
  init X = uniform(0, 1)
  launch m in ceildiv(N, 8) {
    parallel i in 8 {
      if m*8 + i < N {
        atomic_max X[m*8 + i] -> A[i % 3]  atomic_min X[m*8 + i] -> B[i % 5]
        atomic_min f64(X[m*8 + i]) -> D[i % 2]
        atomic_max m*8 + i -> E[i % 2]  atomic_add 3 -> F[i % 2]
      }
    }
  }
})",
       {},
       {{29}}},
      {"groups",
       R"(tl 1.0
kernel k(N: dim) {
  in X: tensor<f32>[N, 64] out Y: tensor<f32>[N, 64]
  launch m in ceildiv(N, 8) groups=2 threads=128 {
    on g in 2 {
      x = alloc_fragment<f32>[4, 64]  t = alloc_fragment<f32>[4]
      copy X[m*8 + g*4:, 0:] -> x
      reduce_sum x -> t dim=1 clear
      parallel r, c in [4, 64] { x[r, c] = x[r, c] + t[r] }
      copy x -> Y[m*8 + g*4:, 0:]
    }
  }
})",
       {},
       {{21}}},
      {"mutables",
       R"(tl 1.0
kernel k(N: dim) {
  in X: tensor<i32>[N] out Y: tensor<i32>[N], Z: tensor<f32>[N]
  launch m in ceildiv(N, 8) {
    x = alloc_shared<i32>[8]  z = alloc_shared<f32>[8]
    n = alloc_var<i32>(0)  h = alloc_var<f16>(1.0)
    copy X[m*8] -> x
    for i in x[0] + 1 { n += x[i % 8]  h = h * 1.1 }
    for i in 6 down { n = n * 3 + i }
    parallel j in 8 {
      l = alloc_local<i32>[4]
      for q in 4 { l[q] = j * q }
      x[j] += n + l[3]
      z[j] = h
    }
    copy x -> Y[m*8]
    copy z -> Z[m*8]
  }
})",
       {},
       {{21}}},
      {"strides",
       R"(tl 1.0
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
       {{6, 21}},
       {40, 40}},
      {"two_launches",
       R"(tl 1.0
kernel k(N: dim) {
  in X: tensor<f32>[N] out Y: tensor<f32>[1] workspace W: tensor<f32>[ceildiv(N, 64)]
  launch m in ceildiv(N, 64) {
    x = alloc_shared<f32>[64]  s = alloc_fragment<f32>[1]
    copy X[m*64] -> x
    reduce_sum x -> s clear
    copy s -> W[m:]
  }
  launch m in 1 {
    s = alloc_var<f32>(0)
    for i in ceildiv(N, 64) { s += W[i] }
    parallel i in 1 { Y[i] = s }
  }
})",
       {},
       {{1000}}},
      {"split",
       R"(tl 1.0
kernel k(B: dim) {
  in X: tensor<f32>[B, 40], len: tensor<i32>[B] out Y: tensor<f32>[B]
  workspace W: tensor<f32>[B + 5]
  init len = uniform(0, 5)
  launch segment (b, i0, i1, part, whole) in split(b in B: len[b], 5) {
    s = alloc_var<f32>(0)
    for i in i0..i1 { for j in 8 { s += X[b, i*8 + j] } }
    parallel q in 1 { W[part] = s }
  }
  launch b in B {
    s = alloc_var<f32>(0)
    serial p in parts(b) { s += W[p] }
    parallel q in 1 { Y[b] = s }
  }
})",
       {},
       {{7}}},
  };
}

}  // namespace tl::testing

#endif  // TILEJIT_TESTS_UNIT_CUDA_PROGRAMS_H_
