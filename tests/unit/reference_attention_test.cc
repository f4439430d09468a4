// Whole kernels with everything in them, against the plain formula in float64.
#include <chrono>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "tests/unit/reference_testing.h"

namespace tl::reference {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

constexpr char kAttention[] = R"(tl 1.0
kernel attention(B: dim, H: dim, Hkv: dim, Sq: dim, Sk: dim; D: int = 16, Dv: int = D, t: dtype = bf16, causal: bool = false) {
  in Q: tensor<t>[B,Sq,H,D], K: tensor<t>[B,Sk,Hkv,D], V: tensor<t>[B,Sk,Hkv,Dv], sc: f32   out O: tensor<t>[B,Sq,H,Dv]
  tune bm in {16,32}, bn in {8,16}, stages in {1,2}, turns in {off,on}
  launch m in ceildiv(Sq,bm), h in H, b in B persistent groups=bm/16 order=longest(m) {
    q_s = alloc_shared<t>[bm,D]  k_s = alloc_shared<t>[bn,D]  v_s = alloc_shared<t>[bn,Dv]  o_s = alloc_shared<t>[bm,Dv]
    s = alloc_fragment<f32>[bm,bn]  o = alloc_fragment<f32>[bm,Dv]  p = alloc_fragment<t>[bm,bn]
    mx, m0, c = alloc_fragment<f32>[bm]  l = alloc_reducer<f32,sum>[bm]
    d = Sk - Sq  end = if causal then clamp((m+1)*bm+d, 0, Sk) else Sk
    whole = (if causal then clamp(m*bm+d+1, 0, Sk) else Sk) / bn
    copy Q[b, m*bm:, h, 0:] -> q_s
    clear o, l  fill mx, -inf
    pipelined j in ceildiv(end,bn) down stages=stages {
      copy K[b, j*bn:, h*Hkv/H, 0:] -> k_s
      copy V[b, j*bn:, h*Hkv/H, 0:] -> v_s
      in_turn turns {
        gemm q_s, k_s -> s transpose_b clear policy=full_row
        lag 1 { gemm p, v_s -> o policy=full_row }
      }
      if j >= whole { parallel r,x in [bm,bn] { if j*bn+x >= Sk or causal and j*bn+x > m*bm+r+d { s[r,x] = -inf } } }
      copy mx -> m0  reduce_max s -> mx dim=1
      parallel r in bm { c[r] = exp2((m0[r]-fin(mx[r]))*sc)  l[r] *= c[r] }
      parallel r,x in [bm,bn] { s[r,x] = exp2(s[r,x]*sc - fin(mx[r])*sc) }
      reduce_sum s -> l dim=1
      parallel r,x in [bm,Dv] { o[r,x] *= c[r] }
      copy s -> p
    }
    finish l
    parallel r,x in [bm,Dv] { o[r,x] = if l[r]==0 then 0 else o[r,x]/l[r] }
    copy o -> o_s  copy o_s -> O[b, m*bm:, h, 0:]
  }
}
)";

struct Shape {
  int B, H, Hkv, Sq, Sk;
};

// softmax(scale · q·k) · v of one row over the keys below `end`; zeros without any.
template <typename Key, typename Val>
Doubles AttendRow(int keys, int dv, double sc, Key score, Val value) {
  double max = -kInf, sum = 0;
  for (int j = 0; j < keys; ++j) max = std::max(max, score(j) * sc);
  Doubles o(dv, 0.0);
  for (int j = 0; j < keys; ++j) {
    const double w = std::exp2(score(j) * sc - max);
    sum += w;
    for (int x = 0; x < dv; ++x) o[x] += w * value(j, x);
  }
  if (sum != 0) {
    for (double& v : o) v /= sum;
  }
  return o;
}

Doubles Attention(const Shape& s, int D, int Dv, double sc, bool causal, const Doubles& q,
                  const Doubles& k, const Doubles& v) {
  Doubles out;
  for (int b = 0; b < s.B; ++b) {
    for (int i = 0; i < s.Sq; ++i) {
      for (int h = 0; h < s.H; ++h) {
        const int g = h * s.Hkv / s.H;
        const int keys = causal ? std::clamp(i + s.Sk - s.Sq + 1, 0, s.Sk) : s.Sk;
        const auto score = [&](int j) {
          double dot = 0;
          for (int x = 0; x < D; ++x) {
            dot += q[((b * s.Sq + i) * s.H + h) * D + x] * k[((b * s.Sk + j) * s.Hkv + g) * D + x];
          }
          return dot;
        };
        const auto value = [&](int j, int x) { return v[((b * s.Sk + j) * s.Hkv + g) * Dv + x]; };
        const Doubles row = AttendRow(keys, Dv, sc, score, value);
        out.insert(out.end(), row.begin(), row.end());
      }
    }
  }
  return out;
}

void ExpectNear(const Doubles& got, const Doubles& want, double tolerance,
                const std::string& what) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(got[i], want[i], tolerance) << what << " at " << i;
  }
}

TEST(Attention, EqualsTheFormula) {
  const Shape shapes[] = {
      {1, 1, 1, 16, 16}, {2, 4, 2, 19, 37}, {1, 2, 1, 5, 0}, {1, 2, 2, 21, 9}, {1, 1, 1, 1, 70}};
  const Values configs[] = {{}, {{"bm", "32"}, {"bn", "16"}, {"stages", "2"}, {"turns", "on"}}};
  for (const char* type : {"bf16", "f32"}) {
    for (const char* causal : {"false", "true"}) {
      for (const Values& config : configs) {
        Values values = config;
        values.push_back({"t", type});
        values.push_back({"causal", causal});
        values.push_back({"Dv", "8"});
        Program p(kAttention, values);
        TL_ASSERT_OK(p.status());
        for (const Shape& s : shapes) {
          const Doubles q = Ramp(s.B * s.Sq * s.H * 16, 1), k = Ramp(s.B * s.Sk * s.Hkv * 16, 2),
                        v = Ramp(s.B * s.Sk * s.Hkv * 8, 3);
          p.Dim("B", s.B).Dim("H", s.H).Dim("Hkv", s.Hkv).Dim("Sq", s.Sq).Dim("Sk", s.Sk);
          p.Scalar("sc", 0.375).Set("Q", q).Set("K", k).Set("V", v);
          TL_ASSERT_OK(p.Run(2));
          const Doubles want = Attention(s, 16, 8, 0.375, std::string(causal) == "true", q, k, v);
          const std::string what = absl::StrCat(type, " causal ", causal, " Sk ", s.Sk);
          ExpectNear(p.Exact("O"), want, 1e-12, what);
          for (double bound : p.Bounds("O")) {
            ASSERT_LT(bound, std::string(type) == "f32" ? 1e-3 : 0.05) << what;
          }
        }
      }
    }
  }
}

// 2·10^7 multiply-adds and the elementwise work between them.
TEST(Attention, IsInterpretedQuickly) {
  StatusOr<Module> m = BindText(
      kAttention, {{"bm", "32"}, {"bn", "16"}, {"D", "64"}, {"stages", "1"}, {"turns", "off"}});
  TL_ASSERT_OK(m.status());
  StatusOr<GeneratedInputs> in =
      MakeInputs(*m, {1, 1, 1, 400, 400}, {}, std::vector<ScalarValue>{ScalarValue(0.1)}, 3);
  TL_ASSERT_OK(in.status());
  const auto start = std::chrono::steady_clock::now();
  StatusOr<Outputs> exact = RunExact(*m, in->arguments);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  TL_ASSERT_OK(exact.status());
  RecordProperty("seconds", std::to_string(took.count()));
  EXPECT_LT(took.count(), 60);  // sanitizers included
}

// Paged multi-head latent attention for decoding: keys are [latent | rope], values the latent part;
// group 0 computes the weights, both groups own half of the output's columns.
constexpr char kMla[] = R"(tl 1.0
kernel mla(B: dim, H: dim, L: dim, NP: dim, P: dim; t: dtype = bf16, bh: int = 16, bn: int = 8, Dv: int = 16, Dr: int = 8) {
  in Q: tensor<t>[B, H, Dv + Dr], KV: tensor<t>[NP, bn, Dv + Dr]
  in table: tensor<i32>[B, ceildiv(L, bn)], len: tensor<i32>[B], sc: f32
  out O: tensor<t>[B, H, Dv]
  workspace Ow: tensor<f32>[B + P, H, Dv], Lw: tensor<f32>[B + P, H]
  init len = uniform(0, L)
  init table = pages(NP)
  init sc = constant(0.5)
  launch hb in ceildiv(H, bh), segment (b, i0, i1, part, whole) in split(b in B: ceildiv(len[b], bn), P) groups=2 producer=self {
    q_s = alloc_shared<t>[bh, Dv + Dr]
    k_s = alloc_shared<t>[bn, Dv + Dr] boxes=8
    scale_c = alloc_chan<f32>[bh]
    p_c = alloc_chan<t>[bh, bn]
    l_c = alloc_chan<f32>[2, bh]
    free_c = alloc_chan<i32>[1]
    copy Q[b, hb*bh:, 0:] -> q_s
    on g in 2 {
      o = alloc_fragment<f32>[bh, Dv/2]
      p = alloc_fragment<t>[bh, bn]
      c = alloc_fragment<f32>[bh]
      fin_l = alloc_fragment<f32>[2, bh]
      token = alloc_fragment<i32>[1]
      v_s = view k_s[0, g*(Dv/2)] [bn, Dv/2]
      clear o, token
      if g == 0 {
        s = alloc_fragment<f32>[bh, bn]
        mx, m0 = alloc_fragment<f32>[bh]
        l = alloc_reducer<f32, sum>[bh]
        fill mx, -inf
        serial i in i0..i1 {
          if i > i0 { recv free_c -> token }
          copy KV[table[b, i], 0:, 0:] -> k_s
          gemm q_s, k_s -> s transpose_b clear
          parallel r, x in [bh, bn] { if i*bn + x >= len[b] { s[r, x] = -inf } }
          copy mx -> m0
          reduce_max s -> mx dim=1
          parallel r in bh { c[r] = exp2((m0[r] - mx[r])*sc)  l[r] *= c[r] }
          send c -> scale_c
          parallel r, x in [bh, bn] { s[r, x] = exp2((s[r, x] - mx[r])*sc) }
          reduce_sum s -> l dim=1
          copy s -> p
          send p -> p_c
          parallel r, x in [bh, Dv/2] { o[r, x] *= c[r] }
          gemm p, v_s -> o
        }
        finish l
        parallel r in bh { fin_l[0, r] = l[r]  fin_l[1, r] = mx[r] }
        send fin_l -> l_c
        recv free_c -> token
      } else {
        serial i in i0..i1 {
          recv scale_c -> c
          parallel r, x in [bh, Dv/2] { o[r, x] *= c[r] }
          recv p_c -> p
          gemm p, v_s -> o
          send token -> free_c
        }
        recv l_c -> fin_l
      }
      parallel r, x in [bh, Dv/2] { o[r, x] /= fin_l[0, r] }
      if whole {
        copy o -> O[b, hb*bh:, g*(Dv/2):]
      } else {
        copy o -> Ow[part, hb*bh:, g*(Dv/2):]
        if g == 0 {
          lse = alloc_fragment<f32>[bh]
          parallel r in bh { lse[r] = log2(fin_l[0, r]) + fin_l[1, r]*sc }
          copy lse -> Lw[part, hb*bh:]
        }
      }
    }
  }
  launch h in H, b in B {
    n = alloc_var<i32>(0)
    m = alloc_var<f32>(-inf)
    w = alloc_var<f32>(0)
    o, x = alloc_fragment<f32>[Dv]
    clear o
    serial p in parts(b) { n += 1 }
    if n != 1 {
      serial p in parts(b) { m = max(m, Lw[p, h]) }
      serial p in parts(b) {
        f = exp2(Lw[p, h] - m)
        w += f
        copy Ow[p, h, 0:] -> x
        parallel c in Dv { o[c] += f*x[c] }
      }
      parallel c in Dv { o[c] = if w == 0 then 0 else o[c]/w }
      copy o -> O[b, h, 0:]
    }
  }
}
)";

Doubles ReadAll(DType t, const GuardedMemory& m) {
  Doubles v;
  for (int64_t i = 0; i < m.bytes(); i += static_cast<int64_t>(SizeOf(t))) {
    v.push_back(LoadElement(t, static_cast<char*>(m.data()) + i));
  }
  return v;
}

TEST(Mla, EqualsTheFormulaForAnySplit) {
  for (const char* type : {"bf16", "f32"}) {
    StatusOr<Module> module = BindText(kMla, {{"t", type}});
    TL_ASSERT_OK(module.status());
    const DType t = *ParseDType(type);
    for (int parts : {1, 3, 7, 40}) {
      const int B = 4, H = 18, L = 61, pages = 40, D = 24, Dv = 16, bn = 8;
      StatusOr<GeneratedInputs> in =
          MakeInputs(*module, {B, H, L, pages, parts}, {}, std::nullopt, parts);
      TL_ASSERT_OK(in.status());
      const Doubles q = ReadAll(t, in->operands[0]), kv = ReadAll(t, in->operands[1]),
                    table = ReadAll(DType::kI32, in->operands[2]);
      int32_t* len = static_cast<int32_t*>(in->operands[3].data());
      len[1] = 0;
      len[2] = 1;
      StatusOr<Outputs> exact = RunExact(*module, in->arguments, {.threads = 2});
      TL_ASSERT_OK(exact.status());
      TL_ASSERT_OK(RunRounded(*module, in->arguments, 2));
      TL_ASSERT_OK(in->CheckGuards(*module));
      const Comparison c = Compare(exact->tensors[0], in->operands[4].data(), true);
      EXPECT_TRUE(c.ok()) << c.worst_ratio;
      EXPECT_EQ(c.compared, B * H * Dv);
      EXPECT_EQ(c.unbounded, 0);
      for (int b = 0; b < B; ++b) {
        const auto key = [&](int j, int x) {
          const int page = static_cast<int>(table[b * ((L + bn - 1) / bn) + j / bn]);
          return kv[(page * bn + j % bn) * D + x];
        };
        for (int h = 0; h < H; ++h) {
          const auto score = [&](int j) {
            double dot = 0;
            for (int x = 0; x < D; ++x) dot += q[(b * H + h) * D + x] * key(j, x);
            return dot;
          };
          const Doubles want = AttendRow(len[b], Dv, 0.5, score, key);
          for (int x = 0; x < Dv; ++x) {
            ASSERT_NEAR(exact->tensors[0].value((b * H + h) * Dv + x), want[x], 1e-12)
                << type << " b " << b << " of length " << len[b] << " parts " << parts;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace tl::reference
