// Matrix products of warpgroups: what they compute, and what the emulator notices about them.
#include <array>
#include <cstdint>
#include <cstring>

#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/dtype.h"
#include "tests/emulate/hopper_testing.h"

namespace tl {
namespace {

using testing::ForEachOrder;
using ::testing::HasSubstr;
using testing::HopperKernel;
using testing::HopperSource;

// ---- Products of whole matrices: small integers, so that every format is exact.

constexpr int kRows = 64;

struct Operand {
  const char* type = "tl_f16";
  DType dtype = DType::kF16;
  int swizzle = 128;
  bool mn_major = false;
};
struct Form {
  Operand a, b;
  const char* c = "float";
  int n = 64;
  bool registers = false;  // A
};

int Per(const Operand& o) { return 16 / static_cast<int>(SizeOf(o.dtype)); }
// Two steps: 64 bytes of depth.
int Depth(const Operand& o) { return 4 * Per(o); }

// Where an operand of `extent` rows (columns) lies: pieces as wide as the swizzle's row.
struct Laid {
  int leading = 16, stride = 16, step = 0;
};
Laid LayoutOf(const Operand& o, int extent) {
  const int row = o.swizzle;
  if (!o.mn_major && row == 0) return {extent * 16, 128, 2 * extent * 16};
  if (!o.mn_major) return {16, 8 * row, row == 32 ? extent * 32 : 32};
  if (row == 0) return {extent * 16, 128, 2 * extent * 16};
  return {Depth(o) * row, 8 * row, 16 * row};
}
// The byte of element (i, k), as the written-out patterns have it.
int ByteOf(const Operand& o, int extent, int i, int k) {
  const int size = static_cast<int>(SizeOf(o.dtype)), per = Per(o), row = o.swizzle;
  if (row == 0) {
    if (o.mn_major) return k / 8 * extent * 16 + i / 8 * 128 + k % 8 * 16 + i % 8 * 2;
    return k / per * extent * 16 + i * 16 + k % per * size;
  }
  const int width = row / size;  // elements
  const int line = o.mn_major ? k : i, along = o.mn_major ? i : k;
  const int lines = o.mn_major ? Depth(o) : extent;
  const int piece = along / width * lines * row, chunk = along % width / per;
  const int mix = row == 128 ? line % 8 : row == 64 ? line / 2 % 4 : line / 4 % 2;
  return piece + line * row + (chunk ^ mix) * 16 + along % per * size;
}

double Value(const Operand& o, int which, int i, int k) {
  const int v = (which * 5 + i * 3 + k * 7) % 9;
  return o.dtype == DType::kU8 ? v : v - 2;
}

std::vector<uint8_t> Image(const Operand& o, int which, int extent) {
  std::vector<uint8_t> bytes(16384, 0xff);
  for (int i = 0; i < extent; ++i) {
    for (int k = 0; k < Depth(o); ++k) {
      StoreElement(o.dtype, &bytes[ByteOf(o, extent, i, k)], Value(o, which, i, k));
    }
  }
  return bytes;
}

// c = 1 everywhere, then c += a b.
HopperKernel ProductKernel(const Form& f) {
  const Laid a = LayoutOf(f.a, kRows), b = LayoutOf(f.b, f.n);
  const std::string c_value = f.c == std::string_view("tl_f16") ? "tl_f32" : "(float)";
  const std::string one = f.c == std::string_view("tl_f16") ? "tl_to_f16(1.0f)" : "1";
  const auto descriptor = [](std::string_view tile, const Laid& l, const Operand& o) {
    return absl::StrCat("tl_descriptor(&", tile, "[0], ", l.leading, ", ", l.stride, ", ",
                        o.swizzle, ")");
  };
  const auto yes = [](bool x) { return x ? "true" : "false"; };
  std::string call;
  if (f.registers) {
    // a0 holds what each thread's registers get, in order.
    call = absl::StrCat("tl_wgmma<", f.a.type, ", ", f.b.type, ", ", f.c, ", ", f.n, ", 2, ",
                        yes(f.b.mn_major), ">(&l0[0], &l1[0], ", descriptor("s1", b, f.b), ", ",
                        b.step, ", true);");
  } else {
    call = absl::StrCat("tl_wgmma<", f.a.type, ", ", f.b.type, ", ", f.c, ", ", f.n, ", 2, ",
                        yes(f.a.mn_major), ", ", yes(f.b.mn_major), ">(&l0[0], ",
                        descriptor("s0", a, f.a), ", ", a.step, ", ", descriptor("s1", b, f.b),
                        ", ", b.step, ", true);");
  }
  return {
      .parameters = "TL_GLOBAL(float) a0, TL_GLOBAL(int) a1, TL_GLOBAL(int) a2",
      .body = absl::StrCat("TL_SHARED(", f.a.type, ", s0, 0, ", 16384 / SizeOf(f.a.dtype), R"();
TL_SHARED(int, s0i, 0, 4096);
TL_SHARED()",
                           f.b.type, ", s1, 16384, ", 16384 / SizeOf(f.b.dtype), R"();
TL_SHARED(int, s1i, 16384, 4096);
TL_LOCAL()",
                           f.c, ", l0, ", f.n / 2, R"();
TL_LOCAL()",
                           f.a.type, ", l1, ", 2 * Per(f.a), R"();
for (int i = thread; i < 4096; i += 128) { s0i[i] = a1[i]; s1i[i] = a2[i]; }
for (int i = 0; i < 2; ++i) tl_move<16>(&l1[i * )",
                           Per(f.a), R"(], &a1[(thread * 2 + i) * 4]);
for (int i = 0; i < )",
                           f.n / 2, "; ++i) l0[i] = ", one, R"(;
tl_proxy_fence();
__syncthreads();
tl_wgmma_fence();
)",
                           call, R"(
tl_wgmma_commit();
tl_wgmma_wait<0>();
for (int i = 0; i < )",
                           f.n / 2, R"(; ++i)
  a0[(16 * warp + lane / 4 + i / 2 % 2 * 8) * )",
                           f.n, " + i / 4 * 8 + lane % 4 * 2 + i % 2] = ", c_value, "(l0[i]);")};
}

// A in the order of the threads' registers: two steps of four registers each.
std::vector<uint8_t> RegisterImage(const Operand& o) {
  std::vector<uint8_t> bytes(16384, 0xff);
  const int per = Per(o) / 4, size = static_cast<int>(SizeOf(o.dtype));
  for (int row = 0; row < kRows; ++row) {
    for (int k = 0; k < Depth(o); ++k) {
      // Quarters of a step's depth go round the four lanes of a row; then rows 8 on, then depth.
      const int step = k / (2 * Per(o)), in = k % (2 * Per(o));
      const int thread = row / 16 * 32 + row % 8 * 4 + in % Per(o) / per;
      const int reg = in / Per(o) * 2 + row % 16 / 8;
      StoreElement(o.dtype, &bytes[((thread * 2 + step) * 4 + reg) * 4 + in % per * size],
                   Value(o, 0, row, k));
    }
  }
  return bytes;
}

void ExpectProducts(const std::vector<Form>& forms) {
  std::vector<HopperKernel> kernels;
  for (const Form& f : forms) kernels.push_back(ProductKernel(f));
  auto program = EmulatedProgram::Build(HopperSource(kernels), TL_HOST_COMPILER);
  ASSERT_TRUE(program.ok()) << DetailOf(program.status()).log;
  for (size_t e = 0; e < forms.size(); ++e) {
    const Form& f = forms[e];
    SCOPED_TRACE(absl::StrCat(f.a.type, " ", f.a.swizzle, f.a.mn_major ? " mn" : " k", " x ",
                              f.b.type, " ", f.b.swizzle, f.b.mn_major ? " mn" : " k", " n ", f.n));
    const std::vector<uint8_t> a = f.registers ? RegisterImage(f.a) : Image(f.a, 0, kRows);
    const std::vector<uint8_t> b = Image(f.b, 1, f.n);
    std::vector<float> c(static_cast<size_t>(kRows * f.n));
    void *pc = c.data(), *params[] = {&pc, nullptr, nullptr};
    const void *pa = a.data(), *pb = b.data();
    params[1] = &pa, params[2] = &pb;
    for (Arrival arrival : {Arrival::kRandom, Arrival::kEager, Arrival::kLazy}) {
      std::fill(c.begin(), c.end(), -1.0f);
      const Status s = (*program)->Run(static_cast<int>(e), 1, params, {.arrival = arrival});
      ASSERT_TRUE(s.ok()) << s;
      for (int i = 0; i < kRows; ++i) {
        for (int j = 0; j < f.n; ++j) {
          double sum = 1;
          for (int k = 0; k < Depth(f.a); ++k) sum += Value(f.a, 0, i, k) * Value(f.b, 1, j, k);
          ASSERT_EQ(c[i * f.n + j], sum) << i << " " << j;
        }
      }
    }
  }
}

TEST(Wgmma, Types) {
  const Operand f16, bf16{"tl_bf16", DType::kBF16}, tf32{"float", DType::kF32};
  const Operand e4m3{"tl_e4m3", DType::kE4M3}, e5m2{"tl_e5m2", DType::kE5M2};
  const Operand i8{"signed char", DType::kI8}, u8{"unsigned char", DType::kU8};
  std::vector<Form> forms = {
      {f16, f16, "float"},   {f16, f16, "tl_f16"},   {bf16, bf16, "float"}, {tf32, tf32, "float"},
      {e4m3, e5m2, "float"}, {e5m2, e4m3, "tl_f16"}, {i8, u8, "int"},       {u8, i8, "int"},
  };
  for (size_t i = 0, n = forms.size(); i < n; ++i) {
    forms.push_back(forms[i]);
    forms.back().registers = true;
  }
  ExpectProducts(forms);
}

TEST(Wgmma, LayoutsOfSharedMemory) {
  std::vector<Form> forms;
  for (int swizzle : {0, 32, 64, 128}) {
    for (bool mn_a : {false, true}) {
      for (bool mn_b : {false, true}) {
        const int other = swizzle == 0 ? 128 : swizzle == 128 ? 0 : 96 - swizzle;
        forms.push_back({{.swizzle = swizzle, .mn_major = mn_a},
                         {.swizzle = other, .mn_major = mn_b},
                         "float",
                         128});
      }
    }
  }
  forms.push_back({{.swizzle = 32}, {.swizzle = 32}, "float", 8});
  forms.push_back({{}, {.swizzle = 64, .mn_major = true}, "float", 96});
  forms.push_back({{}, {.swizzle = 64}, "float", 256});
  ExpectProducts(forms);
}

// ---- Faults

// B of 64 columns, A of 64 rows, depth 64: s0, s1 with ones; sums in l0, A in l1. Statements that a
// test replaces carry a number.
std::string Usual() {
  return R"(TL_SHARED(tl_f16, s0, 0, 4096); TL_SHARED(tl_f16, s1, 8192, 4096);
TL_SHARED(tl_f16, s2, 16384, 4096); TL_SHARED(long long, s3, 24576, 4);
TL_LOCAL(float, l0, 32); TL_LOCAL(tl_f16, l1, 32); TL_LOCAL(float, l2, 32);
const unsigned long long a = tl_descriptor(&s0[0], 16, 1024, 128);
const unsigned long long b = tl_descriptor(&s1[0], 16, 1024, 128);
)";
}
constexpr std::string_view kFill =
    "for (int i = thread; i < 4096; i += 128) { s0[i] = tl_to_f16(1.0f); s1[i] = tl_to_f16(1.0f); "
    "}\n";
constexpr std::string_view kReady = "tl_proxy_fence(); __syncthreads();\n";
constexpr std::string_view kZero = "for (int i = 0; i < 32; ++i) l0[i] = 0;\n";
constexpr std::string_view kFence = "{ tl_settle<32>(&l0[0]); tl_wgmma_fence(); }\n";
constexpr std::string_view kMultiply =
    "tl_wgmma<tl_f16, tl_f16, float, 64, 4, false, false>(&l0[0], a, 32, b, 32, true);\n";
constexpr std::string_view kMultiplyRegisters =
    "tl_wgmma<tl_f16, tl_f16, float, 64, 4, false>(&l0[0], &l1[0], b, 32, true);\n";
constexpr std::string_view kCommit = "tl_wgmma_commit();\n", kWait = "tl_wgmma_wait<0>();\n";
constexpr std::string_view kStore = "for (int i = 0; i < 32; ++i) a0[thread * 32 + i] = l0[i];\n";

struct Case {
  std::string body;
  std::string message;  // of every order; "": none
  int threads = 128, groups = 1;
};

class WgmmaCases {
 public:
  void Add(std::initializer_list<std::string_view> parts, std::string_view message,
           int threads = 128, int groups = 1) {
    std::string body = Usual();
    for (std::string_view part : parts) absl::StrAppend(&body, part);
    cases_.push_back({std::move(body), std::string(message), threads, groups});
  }
  // The sums that the last order left, for each case.
  std::vector<std::vector<float>> Run() {
    std::vector<HopperKernel> kernels;
    for (const Case& c : cases_) {
      kernels.push_back({"TL_GLOBAL(float) a0", c.body, c.threads, c.groups});
    }
    auto program = EmulatedProgram::Build(HopperSource(kernels), TL_HOST_COMPILER);
    EXPECT_TRUE(program.ok()) << DetailOf(program.status()).log;
    std::vector<std::vector<float>> results;
    if (!program.ok()) return results;
    for (size_t i = 0; i < cases_.size(); ++i) {
      std::vector<float>& sums = results.emplace_back(static_cast<size_t>(cases_[i].threads) * 32);
      void *data = sums.data(), *params[] = {&data};
      const auto bytes = static_cast<int64_t>(4 * sums.size());
      ForEachOrder([&](const EmulateOptions& options) {
        const Status s =
            (*program)->Run(static_cast<int>(i), 1, params, options, {{"a0", data, bytes}});
        if (cases_[i].message.empty()) {
          EXPECT_TRUE(s.ok()) << s << "\n" << cases_[i].body;
        } else {
          EXPECT_THAT(std::string(s.message()), HasSubstr(cases_[i].message)) << cases_[i].body;
        }
      });
    }
    return results;
  }

 private:
  std::vector<Case> cases_;
};

TEST(Wgmma, WholeWarpgroups) {
  WgmmaCases cases;
  cases.Add({kFill, kReady, kZero, kFence, "if (thread < 96) ", kMultiply},
            "wgmma is not reached by all threads of its warpgroup");
  cases.Add({kFill, kReady, kZero, kFence, kMultiply}, "a warpgroup of fewer than 128 threads",
            160);
  cases.Add({kFill, kReady, kZero, kFence, "if (thread < 64) {\n", kMultiply, "} else {\n",
             kMultiply, "}"},
            "threads of one warpgroup meet in different products");
  cases.Add(
      {kFill, kReady, kZero, kFence,
       "tl_wgmma<tl_f16, tl_f16, float, 64, 1, false, false>(&l0[0], a + (thread < 32), 32, b, "
       "32, true);"},
      "with different descriptors");
  cases.Add({"if (thread % 2) ", kFence}, "not reached by all of its lanes");
  cases.Run();
}

TEST(Wgmma, SumsAreThereAfterTheWait) {
  WgmmaCases cases;
  const std::string_view products[] = {kFill, kReady, kZero, kFence, kMultiply, kCommit};
  const std::string start = absl::StrJoin(products, "");
  cases.Add({start, kWait, kStore}, "");                                        // 64
  cases.Add({start, "l2[0] = l0[5];\n", kWait, "l0[0] = l2[0];", kStore}, "");  // NaN
  cases.Add({start, "tl_wgmma_wait<1>();", kStore, kWait}, "");                 // NaN
  cases.Add({kFill, kReady, kZero, kFence, kMultiply, kWait, kStore}, "");      // NaN: no commit
  cases.Add({start, kMultiply, kCommit, kWait, kStore}, "");                    // 128: in a row
  cases.Add({start, kMultiply, kCommit, "tl_wgmma_wait<1>();\n", kMultiply, kCommit, kWait, kStore},
            "");  // 192
  cases.Add({start, "l0[3] = 7;\n", kWait}, "the registers of a sum were written");
  cases.Add(
      {start, "tl_wgmma<tl_f16, tl_f16, float, 32, 4, false, false>(&l0[0], a, 32, b, 32, true);"},
      "partly those of another product under way");
  const auto sums = cases.Run();
  ASSERT_EQ(sums.size(), 8);
  for (int i : {0, 77, 4095}) {
    EXPECT_EQ(sums[0][i], 64);
    EXPECT_NE(sums[2][i], sums[2][i]);
    EXPECT_NE(sums[3][i], sums[3][i]);
    EXPECT_EQ(sums[4][i], 128);
    EXPECT_EQ(sums[5][i], 192);
  }
  EXPECT_NE(sums[1][0], sums[1][0]);
  EXPECT_EQ(sums[1][1], 64);
}

// Where a loop's sum stays with the instructions, what the thread's array holds does not count.
TEST(Wgmma, SumsApartGoInAndComeOut) {
  WgmmaCases cases;
  const std::string multiply =
      "tl_wgmma<tl_f16, tl_f16, float, 64, 4, false, false, 0>(c0, a, 32, b, 32, true);\n"
      "tl_wgmma_commit();\n";
  const std::string_view parts[] = {"TL_SUMS(float, 0, 32);\n", kFill, kReady, kZero};
  const std::string start = absl::StrJoin(parts, "");
  const std::string in = "tl_sums_in(c0, &l0[0]);\n", out = "tl_sums_out(c0, &l0[0]);\n";
  cases.Add({start, in, kFence, multiply, kWait, out, kStore}, "");            // 64
  cases.Add({start, in, kFence, multiply, multiply, kWait, out, kStore}, "");  // 128
  cases.Add({start, kFence, multiply, kWait, out, kStore}, "");                // NaN
  cases.Add({start, in, kFence, multiply, kWait, kStore}, "");                 // 0
  cases.Add({start, in, kFence, multiply, out, kWait, kStore}, "");            // NaN
  const auto sums = cases.Run();
  ASSERT_EQ(sums.size(), 5);
  for (int i : {0, 77, 4095}) {
    EXPECT_EQ(sums[0][i], 64);
    EXPECT_EQ(sums[1][i], 128);
    EXPECT_NE(sums[2][i], sums[2][i]);
    EXPECT_EQ(sums[3][i], 0);
    EXPECT_NE(sums[4][i], 64);
  }
}

TEST(Wgmma, RegistersNeedAFence) {
  const std::string factors = "for (int i = 0; i < 32; ++i) l1[i] = tl_to_f16(2.0f);\n";
  const std::string_view fault = "wgmma.fence";
  WgmmaCases cases;
  cases.Add({kFill, kReady, kZero, kMultiply}, fault);
  cases.Add({kFill, kReady, kZero, kFence, kMultiply, kCommit, kWait, kMultiply}, fault);
  cases.Add(
      {kFill, kReady, kZero, kFence, kMultiply, kCommit, kWait, kFence, "l0[1] = 4;\n", kMultiply},
      fault);
  cases.Add({kFill, kReady, kZero, kFence, kMultiply, kCommit, kWait, "l0[1] = 4;\n", kFence,
             kMultiply, kCommit, kWait},
            "");
  cases.Add({kFill, kReady, kZero, factors, kFence, kMultiplyRegisters, kCommit, kWait, kStore},
            "");
  cases.Add({kFill, kReady, kZero, factors, kFence, kMultiplyRegisters, kCommit, kWait, factors,
             "l1[3] = tl_to_f16(1.0f);\n", kMultiplyRegisters},
            fault);
  cases.Add({kFill, kReady, kZero, factors, kFence, kMultiplyRegisters, kCommit,
             "l1[3] = tl_to_f16(1.0f);\n", kWait},
            "the registers of A were written before");
  cases.Add({kFill, kReady, kZero, factors, kFence, kMultiplyRegisters, kCommit, kWait,
             "l1[3] = tl_to_f16(1.0f);\n", kFence, kMultiplyRegisters, kCommit, kWait},
            "");
  const auto sums = cases.Run();
  ASSERT_EQ(sums.size(), 8);
  EXPECT_EQ(sums[4][100], 128);
}

TEST(Wgmma, WritesNeedAProxyFenceAndABarrier) {
  const std::string rest = absl::StrCat(kZero, kFence, kMultiply, kCommit, kWait);
  WgmmaCases cases;
  cases.Add({kFill, "__syncthreads();\n", rest}, "and no proxy fence of its own lies between");
  cases.Add({"tl_proxy_fence();\n", kFill, "__syncthreads();\n", rest}, "no proxy fence");
  cases.Add({kFill, "if (thread != 77) tl_proxy_fence();\n__syncthreads();\n", rest},
            "thread 77 wrote there");
  cases.Add({kFill, "tl_proxy_fence();\n", rest}, "no barrier lies between");
  // A fence after the barrier tells nobody.
  cases.Add({kFill, "__syncthreads();\ntl_proxy_fence();\n", rest}, "no proxy fence");
  cases.Add({kFill, "__syncthreads();\ntl_proxy_fence();\n__syncthreads();\n", rest}, "");
  cases.Add({"for (int i = 0; i < 4; ++i) { tl_move<16>(&s0[(i * 128 + thread) * 8], &l1[0]); "
             "tl_move<16>(&s1[(i * 128 + thread) * 8], &l1[0]); }\n__syncthreads();\n",
             rest},
            "no proxy fence");
  // Asynchronous copies too: what they wrote is the waiting thread's.
  const std::string copy =
      "for (int i = 0; i < 4; ++i) { tl_async_move<16>(&s0[(i * 128 + thread) * 8], &a0[thread * "
      "4], "
      "true); tl_async_move<16>(&s1[(i * 128 + thread) * 8], &a0[thread * 4], true); }\n"
      "tl_async_commit();\n";
  const std::string wait = "tl_async_wait<0>();\n";
  cases.Add({copy, wait, kReady, rest}, "");
  cases.Add({copy, wait, "__syncthreads();\n", rest}, "no proxy fence");
  cases.Add({copy, "tl_proxy_fence();\n", wait, "__syncthreads();\n", rest}, "no proxy fence");
  cases.Add({copy, kReady, rest}, "may be under way");
  cases.Run();
}

TEST(Wgmma, WhatIsReadStays) {
  const std::string start = absl::StrCat(kFill, kReady, kZero, kFence, kMultiply, kCommit);
  const std::string_view fault = "has not been waited for by all its threads";
  WgmmaCases cases;
  const std::string_view overwrite = "s0[thread * 32] = tl_to_f16(0.0f);\n";
  cases.Add({start, overwrite, kWait}, fault);
  cases.Add({start, kWait, overwrite}, fault);
  cases.Add({start, "__syncthreads();\n", overwrite, kWait}, fault);
  cases.Add({start, kWait, "__syncthreads();\n", overwrite}, "");
  cases.Add({start, "tl_wgmma_wait<1>();\n__syncthreads();\n", overwrite}, fault);
  cases.Add({start, "tl_async_move<16>(&s1[thread * 8], &a0[0], true);\n", kWait}, fault);
  // Only what the products read.
  cases.Add({start, "s2[thread] = tl_to_f16(0.0f);\n", kWait}, "");
  // By an mbarrier where every warp arrives for itself.
  const std::string mbarriers = absl::StrCat(
      "const int group = thread / 128;\n"
      "if (thread == 0) tl_mbarrier_init(&s3[0], 4);\n__syncthreads();\n",
      "for (int i = thread; i < 4096; i += 256) { s0[i] = tl_to_f16(1.0f); s1[i] = s0[i]; }\n",
      kReady, "if (group == 0) {\n", kZero, kFence, kMultiply, kCommit);
  const std::string producer =
      "} else { tl_mbarrier_wait(&s3[0], 0); s0[(thread - 128) * 32] = tl_to_f16(0.0f); }";
  cases.Add({mbarriers, kWait, "if (lane == 0) tl_mbarrier_arrive(&s3[0]);\n", producer}, "", 256,
            2);
  cases.Add({mbarriers, "if (lane == 0) tl_mbarrier_arrive(&s3[0]);\n", kWait, producer}, fault,
            256, 2);
  cases.Add({absl::StrReplaceAll(mbarriers, {{"[0], 4", "[0], 1"}}), kWait,
             "if (thread == 0) tl_mbarrier_arrive(&s3[0]);\n", producer},
            fault, 256, 2);
  cases.Run();
}

TEST(Wgmma, MatricesInTheirTiles) {
  const std::string start = absl::StrCat(kFill, kReady, kZero, kFence);
  const auto multiply = [&](std::string_view a, int step) {
    return absl::StrCat(start, "tl_wgmma<tl_f16, tl_f16, float, 64, 4, false, false>(&l0[0], ", a,
                        ", ", step, ", b, 32, true);\n", kCommit, kWait);
  };
  WgmmaCases cases;
  cases.Add({multiply("a", 64)}, "is outside of its 8192 bytes (step ");
  cases.Add({multiply("tl_descriptor(&s0[512], 16, 1024, 128)", 32)},
            "is outside of its 8192 bytes");
  cases.Add({multiply("tl_descriptor(&s0[0], 16, 2048, 128)", 32)}, "wgmma reads A from s0: byte");
  cases.Add({multiply("a + (1ull << 13)", 32)}, "is outside of its 65536 bytes");
  cases.Add({multiply("tl_descriptor(&s0[4], 16, 1024, 128)", 32)}, "no multiple of 16 bytes");
  cases.Add({multiply("tl_descriptor(&s0[0], 16, 1032, 128)", 32)}, "an offset of 1032 bytes");
  cases.Add({multiply("tl_descriptor(&s0[0], 16, 1024, 16)", 32)}, "not 16");
  cases.Run();
}

}  // namespace
}  // namespace tl
