// Clusters of blocks: boxes that one block loads for several, arrivals at other blocks' mbarriers,
// barriers of the cluster, and what the emulator notices about them.
#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_replace.h"
#include "backends/emulate/client/tensor_map.h"
#include "tests/emulate/hopper_testing.h"

namespace tl {
namespace {

using testing::ForEachOrder;
using ::testing::HasSubstr;
using testing::HopperKernel;
using testing::HopperSource;

// Kernels of 128 threads a block: `a0` gets 64 ints a block, `m0` describes 64 rows of 32 ints that
// count from 0. `message` "" means that all is well; kAnyFault, that something is wrong.
constexpr std::string_view kAnyFault = "any";
constexpr int kClusters = 3, kOfBlock = 64;

struct Case {
  int cluster;
  std::string body;
  std::string_view message;
};

class Cases {
 public:
  void Add(int cluster, std::string body, std::string_view message) {
    cases_.push_back({cluster, std::move(body), message});
  }
  // What each case's blocks have written.
  std::vector<std::vector<int>> Run() {
    std::vector<HopperKernel> kernels;
    for (const Case& c : cases_) {
      kernels.push_back(
          {.parameters = "TL_GLOBAL(int) a0, const __grid_constant__ tl_tensor_map m0",
           .body = absl::StrCat("TL_SHARED(int, s0, 0, 2048);\nTL_SHARED(long long, s1, 8192, 4);\n"
                                "const int block = (int)blockIdx.x, rank = tl_cluster_rank();\n",
                                c.body)});
    }
    Generated source = HopperSource(kernels);
    for (size_t i = 0; i < cases_.size(); ++i) source.entries[i].cluster = cases_[i].cluster;
    auto program = EmulatedProgram::Build(source, TL_HOST_COMPILER);
    EXPECT_TRUE(program.ok()) << DetailOf(program.status()).log;
    std::vector<std::vector<int>> results;
    for (size_t i = 0; program.ok() && i < cases_.size(); ++i) {
      results.push_back(RunOne(**program, static_cast<int>(i)));
    }
    return results;
  }

 private:
  std::vector<int> RunOne(EmulatedProgram& program, int entry) {
    const Case& c = cases_[static_cast<size_t>(entry)];
    SCOPED_TRACE(absl::StrCat("case ", entry, "\n", c.body));
    alignas(128) static int tensor[64 * 32];
    for (int i = 0; i < 64 * 32; ++i) tensor[i] = i;
    const auto map = emulate::MakeTensorMap({.data = tensor,
                                             .bytes = sizeof(tensor),
                                             .dtype = DType::kI32,
                                             .dims = {32, 64},
                                             .strides = {128},
                                             .box = {32, 8},
                                             .swizzle = 0});
    EXPECT_TRUE(map.ok()) << map.status();
    std::vector<int> out(static_cast<size_t>(kClusters * c.cluster * kOfBlock));
    void* data = out.data();
    auto described = *map;
    void* params[] = {&data, &described};
    ForEachOrder([&](const EmulateOptions& options) {
      const Status s = program.Run(entry, kClusters * c.cluster, params, options);
      if (c.message.empty()) {
        EXPECT_TRUE(s.ok()) << s;
      } else {
        EXPECT_FALSE(s.ok());
        const bool any = c.message == kAnyFault;
        EXPECT_THAT(std::string(s.message()), HasSubstr(any ? "" : c.message));
      }
    });
    return out;
  }

  std::vector<Case> cases_;
};

TEST(Cluster, RanksFollowTheNumbersOfBlocks) {
  Cases cases;
  for (int cluster : {1, 2, 3, 4, 8}) cases.Add(cluster, "a0[block * 64] = rank;", "");
  const auto results = cases.Run();
  ASSERT_EQ(results.size(), 5u);
  for (size_t i = 0; i < results.size(); ++i) {
    const int cluster = std::vector{1, 2, 3, 4, 8}[i];
    for (int b = 0; b < kClusters * cluster; ++b) EXPECT_EQ(results[i][b * kOfBlock], b % cluster);
  }
}

// Each block's memory is its own, and its threads'.
TEST(Cluster, MemoryIsTheBlocksOwn) {
  Cases cases;
  const std::string body = R"(s0[thread] = block * 1000 + thread;
__syncthreads();
if (thread < 64) a0[block * 64 + thread] = s0[thread ^ 1];)";
  cases.Add(2, body, "");
  cases.Add(2, absl::StrReplaceAll(body, {{"__syncthreads();", ""}}), "no barrier lies between");
  cases.Add(2, absl::StrReplaceAll(body, {{"__syncthreads();", "tl_cluster_barrier();"}}), "");
  const auto results = cases.Run();
  ASSERT_EQ(results.size(), 3u);
  for (int b = 0; b < 2 * kClusters; ++b) {
    for (int i = 0; i < kOfBlock; ++i) EXPECT_EQ(results[0][b * kOfBlock + i], b * 1000 + (i ^ 1));
  }
}

TEST(Cluster, BarriersOfTheClusterWaitForAllThatHaveNotEnded) {
  Cases cases;
  cases.Add(2, "tl_cluster_barrier();\ntl_cluster_barrier();", "");
  cases.Add(2, "if (rank == 0) tl_cluster_barrier();", "");
  cases.Add(2, "if (thread < 32) return;\ntl_cluster_barrier();", "");
  cases.Add(2,
            "if (rank == 0) tl_cluster_barrier(); else { tl_cluster_barrier();\n"
            "tl_cluster_barrier(); }",
            "");
  // Those of one block wait for the others, who wait for those.
  cases.Add(2, "if (rank == 0 && thread < 64) tl_cluster_barrier(); else __syncthreads();",
            "waits at the barrier of");
  cases.Run();
}

// ---- A box for all blocks of the cluster, each loading its share.

struct Shared {
  std::string_view init = "tl_mbarrier_init(&s1[0], 1);";
  std::string_view fence = "tl_mbarrier_init_fence();";
  std::string_view start = "tl_cluster_barrier();";
  std::string_view expect = "tl_mbarrier_expect(&s1[0], 2048);";
  std::string_view blocks = "3";
  std::string_view wait = "tl_mbarrier_wait(&s1[0], 0);";
};
std::string SharedKernel(const Shared& s) {
  return absl::StrCat("if (thread == 0) { ", s.init, " ", s.fence, " }\n", s.start,
                      "\nif (thread == 0) {\n  ", s.expect,
                      "\n  tl_bulk_load_to<2>(&s0[rank * 256], m0, {0, rank * 8}, &s1[0], ",
                      s.blocks, ");\n}\n", s.wait,
                      "\nif (thread < 64) a0[block * 64 + thread] = s0[thread * 8 + block % 8];");
}

TEST(Cluster, SharesOfABoxComeFromEveryBlock) {
  Cases cases;
  const auto add = [&](const Shared& s, std::string_view message) {
    cases.Add(2, SharedKernel(s), message);
  };
  add({}, "");
  // As long as another block's data may be on the way, nobody may end or look.
  add({.fence = ""}, "without a fence that tells the async proxy");
  add({.fence = "tl_proxy_fence();"}, "without a fence that tells the async proxy");
  add({.start = "__syncthreads();"}, kAnyFault);
  add({.start = ""}, kAnyFault);
  add({.expect = ""}, "never ends");
  add({.expect = "tl_mbarrier_expect(&s1[0], 1024);"}, kAnyFault);
  add({.expect = "tl_mbarrier_expect(&s1[0], 4096);"}, "never ends");
  add({.blocks = "1"}, kAnyFault);
  add({.blocks = "1 << rank"}, "1024 bytes missing");
  add({.blocks = "7"}, "at block 2 of a cluster of 2");
  add({.blocks = "0"}, "to no block");
  add({.wait = ""}, kAnyFault);
  add({.wait = "if (rank == 0) tl_mbarrier_wait(&s1[0], 0);"}, kAnyFault);
  const auto results = cases.Run();
  ASSERT_FALSE(results.empty());
  for (int b = 0; b < 2 * kClusters; ++b) {
    for (int i = 0; i < kOfBlock; ++i) EXPECT_EQ(results[0][b * kOfBlock + i], i * 8 + b % 8);
  }
}

// ---- A slot that two blocks fill for each other, three times over.

struct Slot {
  std::string_view arrivals = "8";
  std::string_view acquire = "tl_mbarrier_wait(&s1[1], k & 1 ^ 1);";
  std::string_view await = "tl_mbarrier_wait(&s1[0], k & 1);";
  std::string_view release =
      "__syncthreads();\nif (lane < 2 && thread >= 0) tl_mbarrier_arrive_at(&s1[1], lane);";
  std::string_view end = "tl_cluster_barrier();";
};
std::string SlotKernel(const Slot& s) {
  return absl::StrCat(R"(if (thread == 0) {
  tl_mbarrier_init(&s1[0], 1); tl_mbarrier_init(&s1[1], )",
                      s.arrivals, R"();
  tl_mbarrier_init_fence();
}
tl_cluster_barrier();
int sum = 0;
for (int k = 0; k < 3; ++k) {
  if (thread == 0) {
    )",
                      s.acquire, R"(
    tl_mbarrier_expect(&s1[0], 2048);
    tl_bulk_load_to<2>(&s0[rank * 256], m0, {0, k * 16 + rank * 8}, &s1[0], 3);
  }
  )",
                      s.await, "\n  sum += s0[thread];\n  ", s.release, "\n}\n", s.end,
                      "\nif (thread < 64) a0[block * 64 + thread] = sum;");
}

TEST(Cluster, SlotsAreHandedBackToEveryBlock) {
  Cases cases;
  const auto add = [&](const Slot& s, std::string_view message) {
    cases.Add(2, SlotKernel(s), message);
  };
  add({}, "");
  add({.arrivals = "4"}, kAnyFault);
  add({.arrivals = "9"}, "of 9 arrivals");
  add({.acquire = ""}, kAnyFault);
  add({.await = ""}, kAnyFault);
  add({.release = ""}, "never ends");
  add({.release = "__syncthreads();\nif (lane == 0) tl_mbarrier_arrive_at(&s1[1], rank);"},
      "of block");
  add({.release = "if (lane < 2) tl_mbarrier_arrive_at(&s1[1], lane);"}, kAnyFault);
  add({.release = "__syncthreads();\nif (lane < 2) tl_mbarrier_arrive_at(&s1[1], lane + 1);"},
      "at block 2 of a cluster of 2");
  add({.end = ""}, kAnyFault);
  add({.end = "__syncthreads();"}, kAnyFault);
  const auto results = cases.Run();
  ASSERT_FALSE(results.empty());
  for (int b = 0; b < 2 * kClusters; ++b) {
    for (int i = 0; i < kOfBlock; ++i) {
      EXPECT_EQ(results[0][b * kOfBlock + i], 3 * i + 512 * (0 + 1 + 2));
    }
  }
}

// Whether the other block has ended is luck; that it might have is seen each time.
TEST(Cluster, ArrivalsAtBlocksThatEnd) {
  Cases cases;
  const std::string_view init =
      "if (thread == 0) tl_mbarrier_init(&s1[0], 1);\ntl_cluster_barrier();\n";
  const auto add = [&](std::string_view behind, std::string_view message) {
    cases.Add(2, absl::StrCat(init, behind), message);
  };
  const std::string_view arrive = "if (thread == 0) tl_mbarrier_arrive_at(&s1[0], 1 - rank);\n";
  add(absl::StrCat(arrive, "tl_cluster_barrier();"), "");
  add(arrive, kAnyFault);
  add(absl::StrCat(arrive, "__syncthreads();"), kAnyFault);
  // Whoever has waited for it knows.
  add(absl::StrCat(arrive, "tl_mbarrier_wait(&s1[0], 0);"), "");
  add("if (rank == 0 && thread == 0) tl_mbarrier_arrive_at(&s1[0], 1);\n"
      "if (rank == 1 && thread == 7) tl_mbarrier_wait(&s1[0], 0);",
      "");
  // To itself is no matter.
  add("if (thread == 0) tl_mbarrier_arrive_at(&s1[0], rank);", "");
  cases.Run();
}

TEST(Cluster, ArrivesOnlyAtWhatHasBeenMade) {
  Cases cases;
  const std::string body =
      "if (thread == 0) tl_mbarrier_init(&s1[0], 2);\ntl_cluster_barrier();\n"
      "if (thread < 2) tl_mbarrier_arrive_at(&s1[0], thread);\ntl_cluster_barrier();";
  cases.Add(2, body, "");
  cases.Add(2, absl::StrReplaceAll(body, {{"2);\ntl_cluster_barrier();", "2);\n__syncthreads();"}}),
            kAnyFault);
  cases.Add(2, absl::StrReplaceAll(body, {{"&s1[0], thread", "&s1[1], thread"}}),
            "has not been made an mbarrier");
  cases.Run();
}

TEST(Cluster, LaunchesAreWholeClusters) {
  Generated source = HopperSource({{.parameters = "", .body = ""}});
  source.entries[0].cluster = 2;
  auto program = EmulatedProgram::Build(source, TL_HOST_COMPILER);
  ASSERT_TRUE(program.ok()) << DetailOf(program.status()).log;
  EXPECT_TRUE((*program)->Run(0, 4, nullptr, 1).ok());
  EXPECT_THAT(std::string((*program)->Run(0, 3, nullptr, 1).message()),
              HasSubstr("not whole clusters of 2"));
}

}  // namespace
}  // namespace tl
