// Bulk copies of boxes, the mbarriers at which they arrive, and what the emulator notices about
// them.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "backends/emulate/client/tensor_map.h"
#include "tests/emulate/hopper_testing.h"

namespace tl {
namespace {

using emulate::MakeTensorMap;
using emulate::TensorMapBytes;
using testing::ForEachOrder;
using ::testing::HasSubstr;
using testing::HopperKernel;
using testing::HopperSource;

// ---- Boxes: ints of a tensor of every rank, to and fro.

constexpr int kGlobal = 16384;  // elements

struct Storage {
  Storage() : memory(kGlobal + 64) {
    data = memory.data();
    while (reinterpret_cast<uintptr_t>(data) % 128 != 0) ++data;
  }
  std::vector<int> memory;
  int* data;
};

struct BoxCase {
  absl::InlinedVector<int64_t, 5> dims, box;
  std::vector<int> at;
  int swizzle;
};

TensorMapRecipe RecipeOf(const BoxCase& c, const int* data) {
  TensorMapRecipe r = {.data = data,
                       .bytes = 4 * kGlobal,
                       .dtype = DType::kI32,
                       .dims = c.dims,
                       .strides = {},
                       .box = c.box,
                       .swizzle = c.swizzle};
  int64_t stride = (c.dims[0] * 4 + 15) / 16 * 16;
  for (size_t d = 1; d < c.dims.size(); ++d) {
    r.strides.push_back(stride);
    stride *= c.dims[d];
  }
  return r;
}

// The element of the tensor at a position of the box, or -1 outside.
int64_t ElementAt(const BoxCase& c, const TensorMapRecipe& r, int64_t position) {
  int64_t element = 0;
  for (size_t d = 0; d < c.dims.size(); ++d) {
    const int64_t at = c.at[d] + position % c.box[d];
    position /= c.box[d];
    if (at < 0 || at >= c.dims[d]) return -1;
    element += d == 0 ? at : at * r.strides[d - 1] / 4;
  }
  return element;
}

// Loads the box, hands its bytes out as they lie, and stores it elsewhere.
HopperKernel BoxKernel(const BoxCase& c, int64_t elements) {
  const std::string rank = absl::StrCat(c.dims.size());
  const std::string at = absl::StrCat("{", absl::StrJoin(c.at, ", "), "}");
  return {.parameters =
              "TL_GLOBAL(int) a0, const __grid_constant__ tl_tensor_map m0, const "
              "__grid_constant__ tl_tensor_map m1",
          .body = absl::StrCat(R"(TL_SHARED(int, s0, 0, 4096);
TL_SHARED(long long, s1, 32768, 1);
if (thread == 0) { tl_mbarrier_init(&s1[0], 1); tl_mbarrier_init_fence(); }
__syncthreads();
if (thread == 0) {
  tl_bulk_load<)",
                               rank, ">(&s0[0], m0, ", at, R"(, &s1[0]);
  tl_mbarrier_expect(&s1[0], )",
                               4 * elements, R"();
}
tl_mbarrier_wait(&s1[0], 0);
for (int i = thread; i < )",
                               elements, R"(; i += 128) a0[i] = s0[i];
if (thread == 0) {
  tl_bulk_store<)",
                               rank, ">(m1, ", at, R"(, &s0[0]);
  tl_bulk_commit();
  tl_bulk_wait_read<0>();
})")};
}

void ExpectBoxes(const std::vector<BoxCase>& cases) {
  std::vector<HopperKernel> kernels;
  for (const BoxCase& c : cases) {
    int64_t elements = 1;
    for (int64_t n : c.box) elements *= n;
    kernels.push_back(BoxKernel(c, elements));
  }
  auto program = EmulatedProgram::Build(HopperSource(kernels), TL_HOST_COMPILER);
  ASSERT_TRUE(program.ok()) << DetailOf(program.status()).log;
  Storage from, to, seen;
  for (int i = 0; i < kGlobal; ++i) from.data[i] = 1000 + i;
  for (size_t e = 0; e < cases.size(); ++e) {
    const BoxCase& c = cases[e];
    SCOPED_TRACE(absl::StrCat("case ", e));
    const TensorMapRecipe recipe = RecipeOf(c, from.data);
    auto load = MakeTensorMap(recipe), store = MakeTensorMap(RecipeOf(c, to.data));
    ASSERT_TRUE(load.ok() && store.ok()) << load.status();
    void* out = seen.data;
    void* params[] = {&out, &*load, &*store};
    ForEachOrder([&](const EmulateOptions& options) {
      std::fill_n(to.data, kGlobal, -1);
      const Status s = (*program)->Run(static_cast<int>(e), 1, params, options);
      ASSERT_TRUE(s.ok()) << s;
      int64_t elements = 1, inside = 0;
      for (int64_t n : c.box) elements *= n;
      for (int64_t p = 0; p < elements; ++p) {
        const int64_t element = ElementAt(c, recipe, p);
        const int expected = element < 0 ? 0 : from.data[element];
        // Chunks of a row of 128 bytes change places by the row of 128 bytes they are in.
        const int64_t row = p * 4 / 128;
        const int64_t chunk = c.swizzle == 0 ? 0 : row % (c.swizzle / 16);
        ASSERT_EQ(seen.data[p ^ chunk * 4], expected) << p;
        if (element < 0) continue;
        ++inside;
        ASSERT_EQ(to.data[element], expected) << p;
      }
      ASSERT_EQ(kGlobal - std::count(to.data, to.data + kGlobal, -1), inside);
    });
  }
}

TEST(BulkCopy, BoxesOfEveryRankInsideAndOutside) {
  ExpectBoxes({
      {{1000}, {128}, {100}, 0},
      {{1000}, {128}, {-20}, 0},
      {{64, 100}, {32, 64}, {32, 16}, 128},
      {{64, 100}, {16, 64}, {16, 80}, 64},
      {{64, 100}, {8, 64}, {60, -7}, 32},
      {{37, 100}, {32, 16}, {20, 3}, 128},
      {{37, 100}, {32, 16}, {40, 3}, 0},  // nothing of it
      {{32, 10, 20}, {32, 4, 5}, {0, 7, 16}, 128},
      {{8, 6, 5, 7}, {8, 2, 3, 4}, {0, 5, -1, 2}, 32},
      {{8, 6, 5, 7, 4}, {4, 2, 3, 4, 2}, {6, 1, 3, 2, -1}, 0},
  });
}

TEST(BulkCopy, MapsThatTheDriverRefuses) {
  alignas(16) static const float data[1024] = {};
  const TensorMapRecipe good = {.data = data,
                                .bytes = sizeof(data),
                                .dtype = DType::kF32,
                                .dims = {32, 32},
                                .strides = {128},
                                .box = {32, 8},
                                .swizzle = 128};
  EXPECT_TRUE(MakeTensorMap(good).ok());
  struct Bad {
    const char* message;
    void (*change)(TensorMapRecipe&);
  };
  const Bad cases[] = {
      {"1 to 5 dims", [](TensorMapRecipe& r) { r.dims = {}, r.box = {}; }},
      {"1 to 5 dims", [](TensorMapRecipe& r) { r.strides = {}; }},
      {"dim 1 has 0 elements", [](TensorMapRecipe& r) { r.dims[1] = 0; }},
      {"the box has 257 elements in dim 1", [](TensorMapRecipe& r) { r.box[1] = 257; }},
      {"the stride of dim 1 is 132 bytes", [](TensorMapRecipe& r) { r.strides[0] = 132; }},
      {"no multiple of 16", [](TensorMapRecipe& r) { r.box[0] = 31, r.swizzle = 0; }},
      {"not 16", [](TensorMapRecipe& r) { r.swizzle = 16; }},
      {"rows of the box have 128 bytes, the swizzle's 64",
       [](TensorMapRecipe& r) { r.swizzle = 64; }},
      {"address is no multiple of 16", [](TensorMapRecipe& r) { r.data = data + 1; }},
      {"reach to byte 4224 of a tensor of 4096 bytes", [](TensorMapRecipe& r) { r.dims[1] = 33; }},
  };
  for (const Bad& bad : cases) {
    TensorMapRecipe recipe = good;
    bad.change(recipe);
    EXPECT_THAT(std::string(MakeTensorMap(recipe).status().message()), HasSubstr(bad.message));
  }
}

// ---- Faults: boxes of 64 rows of 64 f16 in a tensor of 128 x 256.

// Which of two accesses comes first depends on the order.
constexpr std::string_view kAnyFault = "tl_kernel_";

struct Case {
  std::string body, message;  // of every order; "": none
  int threads, groups;
};

class BulkCases {
 public:
  void Add(std::string body, std::string_view message, int threads = 128, int groups = 1) {
    body = absl::StrCat(R"(TL_SHARED(tl_f16, s0, 0, 8192); TL_SHARED(tl_f16, s1, 16384, 8192);
TL_SHARED(long long, s2, 32768, 4); TL_SHARED(tl_f16, s3, 33792, 4096);
TL_LOCAL(float, l0, 32); const int group = thread / 128;
)",
                        body);
    cases_.push_back({std::move(body), std::string(message), threads, groups});
  }
  // What the last order left in a0, for each case.
  std::vector<std::vector<float>> Run() {
    std::vector<HopperKernel> kernels;
    for (const Case& c : cases_) {
      kernels.push_back(
          {"TL_GLOBAL(float) a0, const __grid_constant__ tl_tensor_map m0, const "
           "__grid_constant__ tl_tensor_map m1",
           c.body, c.threads, c.groups});
    }
    std::vector<std::vector<float>> results;
    auto program = EmulatedProgram::Build(HopperSource(kernels), TL_HOST_COMPILER);
    EXPECT_TRUE(program.ok()) << DetailOf(program.status()).log;
    if (!program.ok()) return results;
    Storage from, to;
    auto* in = reinterpret_cast<uint16_t*>(from.data);
    for (int i = 0; i < 2 * kGlobal; ++i) in[i] = 0x3c00;  // 1.0
    const auto map = [](const Storage& s) {
      return *MakeTensorMap({.data = s.data,
                             .bytes = 4 * kGlobal,
                             .dtype = DType::kF16,
                             .dims = {256, 128},
                             .strides = {512},
                             .box = {64, 64},
                             .swizzle = 128});
    };
    const TensorMapBytes load = map(from), store = map(to);
    for (size_t i = 0; i < cases_.size(); ++i) {
      std::vector<float>& sums = results.emplace_back(8192);
      void* data = sums.data();
      void* params[] = {&data, const_cast<TensorMapBytes*>(&load),
                        const_cast<TensorMapBytes*>(&store)};
      ForEachOrder([&](const EmulateOptions& options) {
        const Status s = (*program)->Run(static_cast<int>(i), 1, params, options,
                                         {{"a0", data, static_cast<int64_t>(4 * sums.size())}});
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

constexpr std::string_view kInit =
    "if (thread == 0) { tl_mbarrier_init(&s2[0], 1); tl_mbarrier_init_fence(); "
    "}\n__syncthreads();\n";
constexpr std::string_view kExpect = "if (thread == 0) tl_mbarrier_expect(&s2[0], 8192);\n";
constexpr std::string_view kLoad =
    "if (thread == 0) tl_bulk_load<2>(&s0[0], m0, {64, 0}, &s2[0]);\n";
constexpr std::string_view kWait = "tl_mbarrier_wait(&s2[0], 0);\n";
constexpr std::string_view kRead = "a0[thread] = tl_f32(s0[thread * 32]);\n";

TEST(BulkCopy, ArrivesAtItsMbarrier) {
  const auto text = [](std::initializer_list<std::string_view> parts) {
    return absl::StrJoin(parts, "");
  };
  BulkCases cases;
  cases.Add(text({kInit, kExpect, kLoad, kWait, kRead}), "");
  cases.Add(text({kInit, kLoad, kExpect, kWait, kRead}), "");
  cases.Add(text({kInit, kExpect, kLoad, "if (thread == 9) ", kWait, "__syncthreads();\n", kRead}),
            "");
  cases.Add(text({kInit, kLoad, "if (thread == 0) ", kRead, kExpect, kWait}),
            "an asynchronous copy by thread 0 (line ");
  cases.Add(text({kInit, kExpect, kLoad, "if (thread == 0) ", kWait, kRead}), kAnyFault);
  cases.Add(text({kInit, kExpect, kLoad, "if (thread < 64) ", kWait, "if (thread >= 64) ", kRead}),
            kAnyFault);
  // Bytes that are expected and do not come, that come and are not expected.
  cases.Add(text({kInit, "if (thread == 0) tl_mbarrier_expect(&s2[0], 8193);\n", kLoad, kWait}),
            "a phase of an mbarrier never ends; thread 0 waits for s2[0] in line ");
  cases.Add(text({kInit, "if (thread == 0) tl_mbarrier_expect(&s2[0], 8193);\n", kLoad, kWait}),
            "(1 of 1 arrivals, 1 bytes missing)");
  cases.Add(text({kInit, kLoad, kWait}), "(0 of 1 arrivals)");
  cases.Add(text({kInit, kLoad, "if (thread == 0) tl_mbarrier_expect(&s2[0], 4096);\n", kWait}),
            "bring more bytes than its phase expects");
  cases.Add(text({kInit, kLoad, "if (thread == 0) tl_mbarrier_arrive(&s2[0]);\n", kWait}),
            "bring more bytes than its phase expects");
  cases.Add(text({kInit, kExpect, "if (thread == 0) tl_mbarrier_arrive(&s2[0]);\n"}),
            "all arrivals of this phase of s2[0] are there");
  cases.Add(text({kInit, "if (thread == 0) tl_mbarrier_expect(&s2[0], 1 << 20);\n"}),
            "a phase takes 0 to 1048575");
  cases.Add(text({kInit, kExpect, kLoad}), "the block ends without having waited at s2[0]");
  // The barrier is there for the async proxy.
  const std::string_view init = "if (thread == 0) tl_mbarrier_init(&s2[0], 1);\n";
  cases.Add(text({init, "__syncthreads();\n", kExpect, kLoad, kWait}),
            "without a fence that tells the async proxy");
  cases.Add(text({init, "tl_proxy_fence();\n__syncthreads();\n", kExpect, kLoad, kWait}), "");
  cases.Run();
}

TEST(BulkCopy, WhereItWrites) {
  BulkCases cases;
  const auto load = [&](std::string_view place, std::string_view before = "") {
    return absl::StrCat(kInit, before, kExpect, "if (thread == 0) tl_bulk_load<2>(", place,
                        ", m0, {0, 0}, &s2[0]);\n", kWait);
  };
  cases.Add(load("&s0[4096]"), "");
  cases.Add(load("&s0[4160]"), "its 8192 bytes are not all in the tile");
  cases.Add(load("&s0[64]"), "it is not aligned to 1024 bytes");
  cases.Add(absl::StrReplaceAll(load("&s0[0]"), {{"<2>", "<3>"}, {"{0, 0}", "{0, 0, 0}"}}),
            "its map has 2 dims, not 3");
  // What threads wrote there comes first, what they read too.
  const std::string write = "s0[thread] = tl_to_f16(0.0f);\n";
  cases.Add(load("&s0[0]", write), kAnyFault);
  cases.Add(load("&s0[0]", absl::StrCat(write, "tl_proxy_fence();\n__syncthreads();\n")), "");
  cases.Add(load("&s0[0]", absl::StrCat(write, "__syncthreads();\n")), "no proxy fence");
  cases.Add(load("&s0[0]", absl::StrCat(write,
                                        "tl_proxy_fence();\n__syncthreads();\na0[thread] = "
                                        "tl_f32(s0[thread ^ 1]);\n")),
            "read there");
  cases.Add(absl::StrCat(load("&s0[0]"), write), "");
  cases.Add(absl::StrCat(kInit, kExpect, kLoad, kLoad, kWait), kAnyFault);
  cases.Add(absl::StrCat(kInit, kExpect, kLoad, "if (thread == 0) ", write, kWait), kAnyFault);
  cases.Run();
}

TEST(BulkCopy, StoresReadSharedMemoryUntilTheWait) {
  BulkCases cases;
  const std::string_view fill =
      "for (int i = thread; i < 4096; i += 128) s0[i] = tl_to_f16(3.0f);\n";
  const std::string_view ready = "tl_proxy_fence();\n__syncthreads();\n";
  const std::string_view store = "if (thread == 0) tl_bulk_store<2>(m1, {64, 64}, &s0[0]);\n";
  const std::string_view commit = "if (thread == 0) tl_bulk_commit();\n";
  const std::string_view wait = "if (thread == 0) tl_bulk_wait_read<0>();\n";
  const std::string_view again = "__syncthreads();\ns0[thread] = tl_to_f16(4.0f);\n";
  const auto add = [&](std::initializer_list<std::string_view> parts, std::string_view message) {
    cases.Add(absl::StrJoin(parts, ""), message);
  };
  const std::string_view fault = "has not been waited for by all its threads";
  add({fill, ready, store, commit, wait, again}, "");
  add({fill, ready, store, commit, "if (thread == 0) tl_bulk_wait<0>();\n", again}, "");
  add({fill, "__syncthreads();\n", store, commit, wait}, "no proxy fence");
  add({fill, "tl_proxy_fence();\n", store, commit, wait}, "no barrier lies between");
  add({fill, ready, store, commit, again, wait}, fault);
  add({fill, ready, store, wait, commit, again}, fault);
  add({fill, ready, store, commit, "if (thread == 0) tl_bulk_wait_read<1>();\n", again}, fault);
  add({fill, ready, store, commit, wait, "if (thread == 1) s0[0] = tl_to_f16(0.0f);\n"}, kAnyFault);
  const std::string_view elsewhere = "if (thread == 0) tl_bulk_store<2>(m1, {0, 0}, &s0[0]);\n";
  add({fill, ready, store, commit, elsewhere, commit, "if (thread == 0) tl_bulk_wait_read<1>();\n"},
      "ends without having waited for its bulk copy");
  // To the same place: the same elements, or in an order.
  add({fill, ready, store, store, commit, wait}, "");
  add({fill, ready, store, commit, wait, again, ready, store, commit, wait},
      "whose end it has not waited for");
  add({fill, ready, store, commit, "if (thread == 0) tl_bulk_wait<0>();\n", again, ready, store,
       commit, wait},
      "");
  // Only the thread that stores can wait for it.
  add({fill, ready, store, commit, "if (thread == 1) tl_bulk_wait_read<0>();\n", again}, fault);
  cases.Run();
}

// ---- A ring of two slots: one warp loads, a warpgroup multiplies, results leave by a bulk store.

struct Ring {
  std::string_view wait_empty = "if (k >= 2) tl_mbarrier_wait(&s2[2 + k % 2], k / 2 + 1 & 1);\n";
  std::string_view expect = "tl_mbarrier_expect(&s2[k % 2], 16384);\n";
  std::string_view wait_full = "tl_mbarrier_wait(&s2[k % 2], k / 2 & 1);\n";
  std::string_view wait_product = "tl_wgmma_wait<0>();\n";
  std::string_view arrive = "if (lane == 0) tl_mbarrier_arrive(&s2[2 + k % 2]);\n";
  std::string_view fence = "tl_proxy_fence();\n";
  std::string_view barrier = "tl_group_barrier(0, 128);\n";
};

std::string RingKernel(const Ring& r) {
  return absl::StrCat(R"(if (thread == 0) {
  tl_mbarrier_init(&s2[0], 1); tl_mbarrier_init(&s2[1], 1);
  tl_mbarrier_init(&s2[2], 4); tl_mbarrier_init(&s2[3], 4);
  tl_mbarrier_init_fence();
}
__syncthreads();
if (group == 1) {
  if (thread == 128) for (int k = 0; k < 4; ++k) {
    )",
                      r.wait_empty, r.expect, R"(
    tl_bulk_load<2>(&s0[k % 2 * 4096], m0, {k * 64, 0}, &s2[k % 2]);
    tl_bulk_load<2>(&s1[k % 2 * 4096], m0, {k * 64, 64}, &s2[k % 2]);
  }
} else {
  for (int i = 0; i < 32; ++i) l0[i] = 0;
  for (int k = 0; k < 4; ++k) {
    )",
                      r.wait_full, R"(
    tl_wgmma_fence();
    tl_wgmma<tl_f16, tl_f16, float, 64, 4, false, false>(&l0[0],
        tl_descriptor(&s0[k % 2 * 4096], 16, 1024, 128), 32,
        tl_descriptor(&s1[k % 2 * 4096], 16, 1024, 128), 32, true);
    tl_wgmma_commit();
    )",
                      r.wait_product, r.arrive, R"(
  }
  for (int i = 0; i < 32; ++i)
    s3[(16 * warp + lane / 4 + i / 2 % 2 * 8) * 64 + i / 4 * 8 + lane % 4 * 2 + i % 2] = tl_to_f16(l0[i]);
  )",
                      r.fence, r.barrier, R"(
  if (thread == 0) { tl_bulk_store<2>(m1, {0, 0}, &s3[0]); tl_bulk_commit(); tl_bulk_wait_read<0>(); }
  for (int i = 0; i < 32; ++i) a0[thread * 32 + i] = l0[i];
})");
}

TEST(BulkCopy, RingOfProductsAndItsFaults) {
  BulkCases cases;
  const auto add = [&](const Ring& ring, std::string_view message) {
    cases.Add(RingKernel(ring), message, 256, 2);
  };
  add({}, "");
  add({.wait_empty = ""}, kAnyFault);
  add({.expect = "tl_mbarrier_expect(&s2[k % 2], 8192);\n"}, kAnyFault);
  add({.expect = ""}, "never ends");
  add({.wait_full = ""}, kAnyFault);
  add({.wait_product = ""}, kAnyFault);
  add({.arrive = ""}, "never ends");
  add({.arrive = "if (thread == 0) tl_mbarrier_arrive(&s2[2 + k % 2]);\n"}, "never ends");
  add({.fence = ""}, "no proxy fence");
  add({.barrier = ""}, "no barrier lies between");
  const auto sums = cases.Run();
  ASSERT_FALSE(sums.empty());
  for (int i = 0; i < 4096; ++i) ASSERT_EQ(sums[0][i], 256);
}

}  // namespace
}  // namespace tl
