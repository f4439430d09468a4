// Generated inputs, guards, comparison, and samples of blocks.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <numeric>
#include <set>

#include "backends/reference/inputs.h"
#include "backends/reference/random.h"
#include "tests/unit/reference_testing.h"

namespace tl::reference {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kInits[] = R"(tl 1.0
kernel k(M: dim, N: dim) {
  in F: tensor<bf16>[M, N], U: tensor<f32>[M, N], G: tensor<f16>[M, N], C: tensor<i16>[M]
  in I: tensor<u8>[M, N], D: tensor<i32>[M, N], T: tensor<bool>[M, N]
  in ofs: tensor<i32>[3, N], perm: tensor<i32>[4, N], page: tensor<i64>[M, N]
  in s: f32, n: i32
  in St: tensor<f32>[2, 3] strides[?, 2]
  inout A: tensor<f32>[M]
  out O: tensor<f32>[M, N]
  workspace W: tensor<f32>[N]
  init U = uniform(2, 3)
  init G = normal(s, 0.5)
  init C = constant(-7)
  init I = uniform(250, 255)
  init ofs = offsets(M*10)
  init perm = permutation()
  init page = pages(M*N + 5)
  init s = constant(4)
  init n = uniform(-3, -2)
  launch m in 1 { x = alloc_shared<f32>[1] }
})";

Doubles ReadAll(const Module& m, const GeneratedInputs& in, const std::string& name) {
  for (size_t i = 0; i < m.operands.size(); ++i) {
    const Buffer& b = m.buffer(m.operands[i]);
    if (b.name != name) continue;
    Doubles v;
    for (int64_t at = 0; at < in.operands[i].bytes(); at += static_cast<int64_t>(SizeOf(b.dtype))) {
      v.push_back(LoadElement(b.dtype, static_cast<char*>(in.operands[i].data()) + at));
    }
    return v;
  }
  ADD_FAILURE() << name;
  return {};
}

TEST(MakeInputs, FollowsTheInitClauses) {
  StatusOr<Module> m = BindText(kInits);
  TL_ASSERT_OK(m.status());
  const int M = 40, N = 50;
  StatusOr<GeneratedInputs> in = MakeInputs(*m, {M, N}, {7}, std::nullopt, 1);
  TL_ASSERT_OK(in.status());
  const auto all = [&](const char* name) { return ReadAll(*m, *in, name); };
  const auto range = [&](const char* name) {
    const Doubles v = all(name);
    return std::pair(*std::min_element(v.begin(), v.end()), *std::max_element(v.begin(), v.end()));
  };
  EXPECT_LT(range("F").first, -0.98);
  EXPECT_GT(range("F").second, 0.98);
  EXPECT_GE(range("U").first, 2);
  EXPECT_LE(range("U").second, 3);
  EXPECT_THAT(all("C"), Each(-7.0));
  EXPECT_EQ(range("I"), std::pair(250.0, 255.0));
  EXPECT_EQ(range("D"), std::pair(0.0, 8.0));
  EXPECT_EQ(range("T"), std::pair(0.0, 1.0));
  const Doubles g = all("G");
  const double mean = std::accumulate(g.begin(), g.end(), 0.0) / (M * N);
  EXPECT_NEAR(mean, 4, 0.05);
  double variance = 0;
  for (double x : g) variance += (x - mean) * (x - mean) / (M * N);
  EXPECT_NEAR(std::sqrt(variance), 0.5, 0.05);
  EXPECT_EQ(in->arguments.scalars[0].f, 4);
  EXPECT_TRUE(in->arguments.scalars[1].i == -3 || in->arguments.scalars[1].i == -2);
  for (int r = 0; r < 3; ++r) {
    const Doubles off = all("ofs");
    EXPECT_EQ(off[r * N], 0);
    EXPECT_EQ(off[r * N + N - 1], M * 10);
    EXPECT_TRUE(std::is_sorted(off.begin() + r * N, off.begin() + (r + 1) * N));
  }
  Doubles perm = all("perm");
  EXPECT_FALSE(std::is_sorted(perm.begin(), perm.begin() + N));
  for (int r = 0; r < 4; ++r) {
    std::sort(perm.begin() + r * N, perm.begin() + (r + 1) * N);
    for (int i = 0; i < N; ++i) EXPECT_EQ(perm[r * N + i], i);
  }
  const Doubles page = all("page");
  EXPECT_EQ(std::set<double>(page.begin(), page.end()).size(), page.size());
  EXPECT_LT(range("page").second, M * N + 5);
  const Doubles strided = all("St");  // 2x3, rows 7 apart, columns 2 apart
  for (int i = 0; i < 12; ++i) {
    const bool used = i == 0 || i == 2 || i == 4 || i == 7 || i == 9 || i == 11;
    EXPECT_EQ(std::isnan(strided[i]), !used) << i;
  }
  for (double x : all("O")) EXPECT_TRUE(std::isnan(x));
  for (double x : all("A")) EXPECT_FALSE(std::isnan(x));
}

// Nothing to fill takes no time, whatever the other extent.
TEST(MakeInputs, RowsWithoutColumns) {
  StatusOr<Module> m = BindText(
      "tl 1.0\nkernel k(M: dim, N: dim) {\nin X: tensor<f32>[M, N] out Y: tensor<f32>[M, N]\n"
      "launch m in 1 { }\n}");
  TL_ASSERT_OK(m.status());
  TL_ASSERT_OK(MakeInputs(*m, {int64_t{1} << 50, 0}, {}, std::nullopt, 1).status());
}

// An element's value follows from its position alone, however many processors draw them; where
// elements share memory the last of them stays.
TEST(MakeInputs, ManyElements) {
  StatusOr<Module> m = BindText(
      "tl 1.0\nkernel k(M: dim, N: dim) {\n"
      "in X: tensor<f64>[M, N] strides[?, ?], V: tensor<f64>[M*N]\n"
      "out Y: tensor<f32>[M] launch m in 1 { }\n}");
  TL_ASSERT_OK(m.status());
  constexpr int64_t kSizes[][2] = {{1, 100003}, {100003, 1}, {251, 401}, {3, 70000}};
  for (const auto& [M, N] : kSizes) {
    const std::pair<int64_t, int64_t> strides[] = {{N, 1}, {N + 3, 1}, {1, M}, {0, 1}, {1, 0}};
    for (const auto& [down, right] : strides) {
      StatusOr<GeneratedInputs> in = MakeInputs(*m, {M, N}, {down, right}, std::nullopt, 7);
      TL_ASSERT_OK(in.status());
      const auto* x = static_cast<const double*>(in->operands[0].data());
      const auto* v = static_cast<const double*>(in->operands[1].data());
      int64_t wrong = 0;
      for (int64_t i = 0; i < M * N; ++i) {
        const int64_t row = down == 0 ? M - 1 : i / N, column = right == 0 ? N - 1 : i % N;
        const auto drawn = [&](uint64_t operand, int64_t at) {
          return -1 + 2 * RandomStream(7, operand).Unit(static_cast<uint64_t>(at));
        };
        wrong += x[i / N * down + i % N * right] == drawn(0, row * N + column) ? 0 : 1;
        wrong += v[i] == drawn(1, i) ? 0 : 1;
      }
      EXPECT_EQ(wrong, 0) << M << "x" << N << " strides " << down << ", " << right;
    }
  }
}

TEST(MakeInputs, SameSeedSameData) {
  StatusOr<Module> m = BindText(kInits);
  const auto data = [&](uint64_t seed) {
    StatusOr<GeneratedInputs> in = MakeInputs(*m, {4, 5}, {7}, std::nullopt, seed);
    const GuardedMemory& f = in->operands[0];
    return std::string(static_cast<char*>(f.data()), static_cast<size_t>(f.bytes()));
  };
  EXPECT_EQ(data(1), data(1));
  EXPECT_NE(data(1), data(2));
  EXPECT_EQ(RandomStream(1, 2).Bits(3), 15762792775298711209u);  // on any machine
}

TEST(MakeInputs, Errors) {
  StatusOr<Module> m = BindText(kInits);
  const auto message = [&](std::vector<int64_t> dims, std::vector<int64_t> strides) {
    return std::string(MakeInputs(*m, dims, strides, std::nullopt, 1).status().message());
  };
  EXPECT_THAT(message({4}, {7}), HasSubstr("1 dims and 1 strides given, 2 and 1 expected"));
  EXPECT_THAT(message({-4, 5}, {7}), HasSubstr("is negative"));
  StatusOr<Module> pages = BindText(R"(tl 1.0
kernel k(N: dim) {
  in X: tensor<i32>[N]
  init X = pages(3)
  launch m in 1 { x = alloc_shared<f32>[1] }
})");
  EXPECT_THAT(MakeInputs(*pages, {4}, {}, std::nullopt, 1).status(),
              FailsAt(4, "more than there are pages"));
  TL_ASSERT_OK(MakeInputs(*pages, {0}, {}, std::nullopt, 1).status());
}

TEST(Guards, TellWhichBufferWasOverrun) {
  StatusOr<Module> m = BindText(kInits);
  StatusOr<GeneratedInputs> in = MakeInputs(*m, {4, 5}, {7}, std::nullopt, 1);
  TL_ASSERT_OK(in.status());
  TL_ASSERT_OK(in->CheckGuards(*m));
  GuardedMemory& u = in->operands[1];
  EXPECT_EQ(reinterpret_cast<uintptr_t>(u.data()) % 256, 0u);
  char* end = static_cast<char*>(u.data()) + u.bytes();
  end[3] ^= 1;
  EXPECT_EQ(in->CheckGuards(*m).message(), "'U': byte 83 of 80 was written, outside the tensor");
  end[3] ^= 1;
  static_cast<char*>(in->workspaces[0].data())[-1] ^= 1;
  EXPECT_EQ(in->CheckGuards(*m).message(), "'W': byte -1 of 20 was written, outside the tensor");
}

TEST(Guards, FillingIsFast) {
  StatusOr<Module> m = BindText(R"(tl 1.0
kernel k(N: dim) {
  in X: tensor<bf16>[1024, N]
  launch m in 1 { x = alloc_shared<f32>[1] }
})");
  const auto start = std::chrono::steady_clock::now();
  TL_ASSERT_OK(MakeInputs(*m, {48 * 1024}, {}, std::nullopt, 1).status());  // 96 MiB
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  RecordProperty("seconds", std::to_string(took.count()));
  EXPECT_LT(took.count(), 60);  // sanitizers included
}

constexpr char kGemm[] = R"(tl 1.0
kernel gemm(M: dim, N: dim, K: dim; t: dtype = bf16) {
  in A: tensor<t>[M, K], B: tensor<t>[K, N]
  out C: tensor<t>[M, N]
  launch m in ceildiv(M, 64), n in ceildiv(N, 64) {
    a = alloc_shared<t>[64, 32]
    b = alloc_shared<t>[32, 64]
    c = alloc_acc<f32>[64, 64]
    clear c
    pipelined k in ceildiv(K, 32) stages=2 {
      copy A[m*64, k*32] -> a
      copy B[k*32, n*64] -> b
      gemm a, b -> c
    }
    copy c -> C[m*64, n*64]
  }
})";

TEST(Sample, StaysWithinTheBudgetAndAgrees) {
  StatusOr<Module> m = BindText(kGemm);
  TL_ASSERT_OK(m.status());
  StatusOr<GeneratedInputs> in = MakeInputs(*m, {1000, 700, 50}, {}, std::nullopt, 5);
  TL_ASSERT_OK(in.status());
  TL_ASSERT_OK(RunRounded(*m, in->arguments, 2));
  StatusOr<Outputs> part = RunExact(*m, in->arguments, {.work_budget = 3000000, .seed = 1});
  TL_ASSERT_OK(part.status());
  EXPECT_EQ(part->total_blocks, 16 * 11);
  EXPECT_LT(part->blocks, 15);
  EXPECT_GT(part->blocks, 5);
  const Comparison c = Compare(part->tensors[0], in->operands[2].data(), false);
  EXPECT_TRUE(c.ok()) << c.worst_ratio;
  EXPECT_GT(c.compared, 5 * 40 * 60);
  EXPECT_LT(c.compared, 16 * 64 * 64);
  EXPECT_TRUE(part->tensors[0].written(0));  // the corners are always there
  EXPECT_TRUE(part->tensors[0].written(1000 * 700 - 1));
  StatusOr<Outputs> again = RunExact(*m, in->arguments, {.work_budget = 3000000, .seed = 1});
  StatusOr<Outputs> other = RunExact(*m, in->arguments, {.work_budget = 3000000, .seed = 2});
  int same = 0, differs = 0;
  for (int64_t i = 0; i < 1000 * 700; i += 64) {
    same += part->tensors[0].written(i) == again->tensors[0].written(i);
    differs += part->tensors[0].written(i) != other->tensors[0].written(i);
  }
  EXPECT_EQ(same, 1000 * 700 / 64 + 1);
  EXPECT_GT(differs, 0);
}

TEST(Compare, FindsTheWorstElementAndNamesIt) {
  StatusOr<Module> m = BindText(kGemm, {{"t", "f32"}});
  StatusOr<GeneratedInputs> in = MakeInputs(*m, {70, 30, 10}, {}, std::nullopt, 5);
  TL_ASSERT_OK(in.status());
  StatusOr<Outputs> exact = RunExact(*m, in->arguments);
  TL_ASSERT_OK(exact.status());
  TL_ASSERT_OK(RunRounded(*m, in->arguments));
  float* c = static_cast<float*>(in->operands[2].data());
  EXPECT_TRUE(Compare(exact->tensors[0], c, true).ok());
  c[33 * 30 + 7] += 0.01f;
  c[5] = std::nanf("");
  const Comparison r = Compare(exact->tensors[0], c, true);
  EXPECT_EQ(r.mismatches, 2);
  EXPECT_EQ(r.worst_at, 5);
  EXPECT_EQ(ElementName(*m, m->operands[2], in->arguments.host(), 33 * 30 + 7), "C[33, 7]");
}

TEST(Compare, SeesStrayWrites) {
  Program p(R"(tl 1.0
kernel k() {
  out Y: tensor<f32>[4]
  launch m in 1 { parallel i in 2 { Y[i] = i } }
})");
  TL_ASSERT_OK(p.Run());
  float y[4];
  std::memset(y, 0xff, sizeof(y));
  y[0] = 0;
  y[1] = 1;
  EXPECT_TRUE(Compare(p.output("Y"), y, true).ok());
  y[3] = 0;
  EXPECT_EQ(Compare(p.output("Y"), y, true).strays, 1);
  EXPECT_TRUE(Compare(p.output("Y"), y, false).ok());
}

// The rounded form is an implementation like any other: within the bound, and not far below it.
TEST(Bounds, HoldForTheRoundedForm) {
  for (const char* t : {"e4m3", "e5m2", "f16", "bf16", "f32"}) {
    StatusOr<Module> m = BindText(kGemm, {{"t", t}});
    TL_ASSERT_OK(m.status());
    for (int k : {1, 33, 500}) {
      StatusOr<GeneratedInputs> in = MakeInputs(*m, {65, 33, k}, {}, std::nullopt, k);
      TL_ASSERT_OK(in.status());
      StatusOr<Outputs> exact = RunExact(*m, in->arguments);
      TL_ASSERT_OK(exact.status());
      TL_ASSERT_OK(RunRounded(*m, in->arguments));
      const Comparison c = Compare(exact->tensors[0], in->operands[2].data(), true);
      EXPECT_TRUE(c.ok()) << t << " K=" << k << ": " << c.worst_ratio;
      EXPECT_GT(c.worst_ratio, std::string(t) == "f32" ? 0.001 : 0.5) << t << " K=" << k;
      EXPECT_EQ(c.unbounded, 0);
    }
  }
}

// The quick encoding of the 16-bit floats is StoreElement's.
TEST(Halves, AreStoredLikeStoreElement) {
  for (const char* t : {"bf16", "f16"}) {
    const DType dtype = *ParseDType(t);
    StatusOr<Module> m = BindText(std::string("tl 1.0\nkernel k(N: dim) { in X: tensor<") + t +
                                  ">[N] launch m in 1 { x = alloc_shared<f32>[1] } }");
    TL_ASSERT_OK(m.status());
    const std::vector<int64_t> dims{1};
    StatusOr<Tensor> tensor = Tensor::Make(*m, m->operands[0], {dims, {}, {}});
    TL_ASSERT_OK(tensor.status());
    uint16_t got, want;
    tensor->SetMemory(&got);
    const RandomStream random(4, 4);
    for (uint64_t i = 0; i < 400000; ++i) {
      // Values of every magnitude, and ones next to a tie.
      double v = std::ldexp(random.Unit(i) - 0.5, static_cast<int>(random.Below(~i, 300)) - 150);
      if (i % 2) v = RoundTo(dtype, v) * (1 + 0.5 * Epsilon(dtype)) * (i % 3 ? 1 : 1 + 1e-16);
      tensor->Set(0, FloatOf(v));
      StoreElement(dtype, &want, v);
      ASSERT_EQ(got, want) << t << " " << v;
    }
  }
}

// What the case limit of the checks rests on.
TEST(Speed, TwentyMillionMultiplyAdds) {
  StatusOr<Module> m = BindText(kGemm);
  StatusOr<GeneratedInputs> in = MakeInputs(*m, {256, 256, 320}, {}, std::nullopt, 5);
  const auto start = std::chrono::steady_clock::now();
  StatusOr<Outputs> exact = RunExact(*m, in->arguments);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  TL_ASSERT_OK(exact.status());
  EXPECT_GT(exact->work, 20'000'000);
  RecordProperty("seconds", std::to_string(took.count()));
  EXPECT_LT(took.count(), 60);  // sanitizers included
}

}  // namespace
}  // namespace tl::reference
