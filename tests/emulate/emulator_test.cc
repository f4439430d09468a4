// The emulator notices what it is there for. Small kernels by hand, one fault each.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "backends/c_family/prelude.h"
#include "backends/emulate/emulate.h"
#include "backends/emulate/mma.h"
#include "base/dtype.h"

namespace tl {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr int kThreads = 64, kElements = 1024;

// A kernel of 64 threads in two groups over a tile s0 and a tensor a0, of 1024 ints each. The body
// begins in line 9 of the source.
Generated Kernel(std::string_view body) {
  Generated g;
  g.source = absl::StrCat("// a prelude\n", kProgramMark,
                          "extern \"C\" __global__ void tl_kernel_0(TL_GLOBAL(int) a0) {\n"
                          "  extern __shared__ __align__(1024) unsigned char arena[];\n"
                          "  TL_SHARED(int, s0, 0, 1024);\n"
                          "  const int thread = (int)threadIdx.x;\n"
                          "  const int group = thread / 32;\n"
                          "  TL_LOCAL(int, l0, 8);\n",
                          body, "\n}\n");
  g.entries = {
      {.symbol = "tl_kernel_0", .threads = kThreads, .groups = 2, .shared_bytes = 8 * kElements}};
  return g;
}

class EmulatorTest : public ::testing::Test {
 protected:
  EmulatorTest() : data_(kElements + 8) {
    first_ = data_.data();
    while (reinterpret_cast<uintptr_t>(first_) % 16 != 0) ++first_;
    for (int i = 0; i < kElements; ++i) first_[i] = i;
  }

  Status Run(std::string_view body, const EmulateOptions& options = {}) {
    auto program = EmulatedProgram::Build(Kernel(body), TL_HOST_COMPILER);
    if (!program.ok()) return absl::InternalError(DetailOf(program.status()).log);
    void* params[] = {&first_};
    return (*program)->Run(0, 1, params, options, {{"a0", first_, 4 * kElements}}, &stats_);
  }
  // The message of every order of threads.
  void ExpectFault(std::string_view body, std::string_view message) {
    auto program = EmulatedProgram::Build(Kernel(body), TL_HOST_COMPILER);
    ASSERT_TRUE(program.ok()) << DetailOf(program.status()).log;
    void* params[] = {&first_};
    for (Arrival arrival : {Arrival::kRandom, Arrival::kEager, Arrival::kLazy}) {
      for (uint64_t seed = 1; seed <= 4; ++seed) {
        const Status s = (*program)->Run(0, 1, params, {.seed = seed, .arrival = arrival},
                                         {{"a0", first_, 4 * kElements}});
        EXPECT_THAT(std::string(s.message()), HasSubstr(message)) << body;
        EXPECT_THAT(std::string(s.message()), HasSubstr("tl_kernel_0, line "));
      }
    }
  }
  void ExpectRuns(std::string_view body) {
    auto program = EmulatedProgram::Build(Kernel(body), TL_HOST_COMPILER);
    ASSERT_TRUE(program.ok()) << DetailOf(program.status()).log;
    void* params[] = {&first_};
    for (Arrival arrival : {Arrival::kRandom, Arrival::kEager, Arrival::kLazy}) {
      for (uint64_t seed = 1; seed <= 4; ++seed) {
        const Status s =
            (*program)->Run(0, 1, params, {.seed = seed, .arrival = arrival, .switch_every = 3},
                            {{"a0", first_, 4 * kElements}});
        EXPECT_TRUE(s.ok()) << s << body;
      }
    }
  }

  std::vector<int> data_;
  int* first_;
  EmulateStats stats_;
};

TEST_F(EmulatorTest, BarriersMakeOrder) {
  ExpectRuns("s0[thread] = thread; __syncthreads(); a0[thread] = s0[63 - thread];");
  for (int i = 0; i < kThreads; ++i) EXPECT_EQ(first_[i], 63 - i);
  ExpectRuns(
      "s0[thread] = thread; tl_group_barrier(group, 32); a0[thread] = s0[thread ^ 31];\n"
      "tl_group_barrier(group, 32); s0[thread ^ 1] = 0; __syncthreads(); a0[thread] += s0[thread ^ "
      "33];");
}

TEST_F(EmulatorTest, RacesNameBothPlaces) {
  ExpectFault("s0[thread] = thread;\na0[thread] = s0[63 - thread];", "no barrier lies between");
  // Reads before a write.
  ExpectFault("s0[thread] = 1; __syncthreads(); a0[thread] = s0[63 - thread]; s0[thread] = 2;",
              "no barrier lies between");
  ExpectFault("s0[thread / 2] = thread;", "no barrier lies between");
  // A group's barrier orders that group only.
  ExpectFault("s0[thread] = 1; tl_group_barrier(group, 32); a0[thread] = s0[63 - thread];",
              "no barrier lies between");
  ExpectFault("a0[thread] = s0[5]; tl_group_barrier(group, 32); if (thread == 0) s0[5] = 1;",
              "no barrier lies between");
  const Status s = Run("if (thread == 0) s0[7] = thread;\nif (thread == 40) a0[0] = s0[7];",
                       {.switch_every = 0});
  EXPECT_THAT(
      std::string(s.message()),
      AnyOf(HasSubstr("tl_kernel_0, line 10, block 0, thread 40: reading 4 bytes from s0[7] "
                      "on: thread 0 wrote there (line 9) and no barrier lies between"),
            HasSubstr("tl_kernel_0, line 9, block 0, thread 0: writing 4 bytes from s0[7] "
                      "on: thread 40 read there (line 10) and no barrier lies between")));
}

TEST_F(EmulatorTest, ReplicasMayStoreTheSame) {
  ExpectRuns("s0[thread / 2] = thread / 2;");
  ExpectFault("if (thread == 1) s0[0] = 0;\nif (thread == 0) s0[0] = 0;", "no barrier");
}

TEST_F(EmulatorTest, BytesBesideEachOtherAreNoRace) {
  ExpectRuns("TL_SHARED(unsigned char, s1, 0, 4096); s1[thread] = thread;");
}

TEST_F(EmulatorTest, BarriersThatNotAllReach) {
  ExpectFault("if (thread < 16) __syncthreads();", "barrier is not reached by all");
  ExpectFault("if (thread % 2) {\n__syncthreads();\n} else {\n__syncthreads();\n}",
              "different barriers");
}

TEST_F(EmulatorTest, GroupsThatTheHardwareHasNoBarriersFor) {
  for (const auto& [groups, threads] : {std::pair(4, 16), {16, 32}}) {
    Generated g = Kernel(absl::StrCat("tl_group_barrier(thread / ", threads, ", ", threads, ");"));
    g.entries[0].groups = groups;
    g.entries[0].threads = groups * threads;
    auto program = EmulatedProgram::Build(g, TL_HOST_COMPILER);
    ASSERT_TRUE(program.ok()) << DetailOf(program.status()).log;
    void* params[] = {&first_};
    const Status s = (*program)->Run(0, 1, params, {}, {{"a0", first_, 4 * kElements}});
    EXPECT_THAT(std::string(s.message()), HasSubstr("an illegal instruction: hardware barrier"));
  }
}

// Group 0 hands a tile over to group 1, twice through one slot.
std::string HandOver(std::string_view before_arrival, std::string_view before_reading,
                     std::string_view before_refill) {
  return absl::StrCat(R"(
    TL_SHARED(long long, s1, 4096, 2);
    if (thread == 0) { tl_mbarrier_init(&s1[0], 1); tl_mbarrier_init(&s1[1], 1); }
    __syncthreads();
    for (int i = 0; i < 2; ++i) {
      if (group == 0) {
        )",
                      before_refill, R"(
        s0[thread] = 100 * i + thread;
        )",
                      before_arrival, R"(
        if (thread == 0) tl_mbarrier_arrive(&s1[0]);
      } else {
        )",
                      before_reading, R"(
        a0[100 * i + thread] = s0[63 - thread];
        tl_group_barrier(group, 32);
        if (thread == 32) tl_mbarrier_arrive(&s1[1]);
      }
    })");
}

TEST_F(EmulatorTest, MbarriersHandOver) {
  const std::string_view meet = "tl_group_barrier(group, 32);";
  const std::string_view full = "tl_mbarrier_wait(&s1[0], i & 1);";
  const std::string_view free = "tl_mbarrier_wait(&s1[1], i & 1 ^ 1);";
  ExpectRuns(HandOver(meet, full, free));
  for (int i = 32; i < 64; ++i) EXPECT_EQ(first_[100 + i], 100 + 63 - i);
  ExpectFault(HandOver("", full, free), "no barrier lies between");
  ExpectFault(HandOver(meet, "", free), "no barrier lies between");
  ExpectFault(HandOver(meet, full, ""), "no barrier lies between");
  // One thread's wait tells the others nothing until they meet.
  ExpectFault(HandOver(meet, absl::StrCat("if (thread == 32) ", full), free),
              "no barrier lies between");
  ExpectRuns(HandOver(meet, absl::StrCat("if (thread == 32) ", full, meet), free));
}

TEST_F(EmulatorTest, MbarriersUsedWrongly) {
  const std::string tile = "TL_SHARED(long long, s1, 4096, 2);\n";
  const std::string init = "if (thread == 0) tl_mbarrier_init(&s1[0], 2);\n";
  ExpectFault(tile + "tl_mbarrier_arrive(&s1[0]);", "s1[0] has not been made an mbarrier");
  ExpectFault(tile + init + "__syncthreads(); if (thread == 5) tl_mbarrier_init(&s1[0], 1);",
              "s1[0] is made twice");
  ExpectFault(tile + "tl_mbarrier_init(&s1[2], 1);", "outside of its 2 elements");
  ExpectFault(tile + init + "__syncthreads();\nif (thread < 32) tl_mbarrier_wait(&s1[0], 0);",
              "a phase of an mbarrier never ends; thread 0 waits for s1[0] in line 12");
  // Who uses it has to know that it is there.
  ExpectFault(tile + init + "tl_group_barrier(group, 32); tl_mbarrier_wait(&s1[0], 1);", "");
}

TEST_F(EmulatorTest, OutOfBounds) {
  ExpectFault("s0[thread + 961] = 1;", "outside of its 1024 elements");
  ExpectFault("a0[0] = s0[-1 - thread];", "outside of its 1024 elements");
  ExpectFault("a0[thread + 961] = 1;", "element 1024 of a0 on are outside of the tensor");
  ExpectFault("l0[0] = a0[-1];", "outside of the tensor");
  ExpectFault("l0[thread] = 1;", "array of 8 registers");
  ExpectFault("tl_move<16>(&a0[1022], &l0[0]);", "16 bytes from element 1022 of a0");
  ExpectFault("tl_move<16>(&s0[1024], &l0[0]);", "16 bytes from s0[1024]");
  ExpectFault("tl_load_matrix<4, false>(&l0[0], &s0[1020 + 4 * thread]);", "outside of the tile");
}

TEST_F(EmulatorTest, Misaligned) {
  ExpectFault("tl_move<16>(&l0[0], &a0[2]);", "misaligned");
  ExpectFault("tl_move<8>(&s0[1], &l0[0]);", "misaligned");
  ExpectFault("tl_move<16>(&a0[0], &l0[2]);", "misaligned");
  ExpectFault("tl_async_move<16>(&s0[thread * 4 + 2], &a0[0], true);", "misaligned");
  ExpectFault("tl_load_matrix<1, false>(&l0[0], &s0[thread]);", "misaligned");
}

TEST_F(EmulatorTest, NothingStartsAsZero) {
  ASSERT_TRUE(Run("a0[thread] = s0[thread] + 1; a0[thread + 64] = l0[2] + 1;").ok());
  EXPECT_EQ(first_[3], 0);
  EXPECT_EQ(first_[67], 0);
}

TEST_F(EmulatorTest, AsynchronousCopies) {
  const std::string start = "tl_async_move<16>(&s0[thread * 4], &a0[thread * 4], thread != 5);";
  ExpectRuns(start +
             "tl_async_commit(); tl_async_wait<0>(); __syncthreads();"
             "l0[0] = s0[255 - thread]; __syncthreads(); a0[thread] = l0[0];");
  EXPECT_EQ(first_[0], 255);
  ExpectRuns(start + "tl_async_commit(); tl_async_wait<0>(); a0[thread] = s0[thread * 4];");
  EXPECT_EQ(first_[5], 0);
  // No wait, a wait for less, no commit; a wait without a barrier.
  const std::string rest = "__syncthreads(); a0[thread] = s0[255 - thread];";
  const std::string flying = "may be under way";
  ExpectFault(start + "tl_async_commit();" + rest, flying);
  ExpectFault(start + "tl_async_commit(); tl_async_wait<1>();" + rest, flying);
  ExpectFault(start + "tl_async_wait<0>();" + rest, flying);
  ExpectFault(start + "tl_async_commit();" + "a0[thread] = s0[thread * 4];", flying);
  ExpectFault(start + "tl_async_commit(); tl_async_wait<0>(); a0[thread] = s0[255 - thread];", "");
  ExpectRuns(start + "tl_async_commit(); tl_async_commit(); tl_async_wait<1>();" + rest);
  // Overwritten on the way, or where somebody still reads.
  ExpectFault(start + "s0[thread * 4] = 1;", flying);
  ExpectFault(start + start, flying);
  ExpectFault("s0[thread] = 1; __syncthreads(); a0[thread] = s0[63 - thread];" + start, "");
  // Bounds of the source matter only where it is read.
  ExpectRuns("tl_async_move<4>(&s0[thread], &a0[thread + 1000], thread < 24);");
  ExpectFault("tl_async_move<4>(&s0[thread], &a0[thread + 1000], thread < 25);",
              "element 1024 of a0");
}

TEST_F(EmulatorTest, ArrivalsDiffer) {
  // What a copy reads is read when it arrives.
  const std::string body =
      "if (thread == 0) {\ntl_async_move<4>(&s0[0], &a0[0], true);\na0[0] = 100;\n"
      "tl_async_commit(); tl_async_wait<0>();\na0[1] = s0[0];\n}";
  first_[0] = 7;
  ASSERT_TRUE(Run(body, {.arrival = Arrival::kEager}).ok());
  EXPECT_EQ(first_[1], 7);
  ASSERT_TRUE(Run(body, {.arrival = Arrival::kLazy}).ok());
  EXPECT_EQ(first_[1], 100);
}

TEST_F(EmulatorTest, WarpInstructionsNeedAllLanes) {
  ExpectFault("if (thread != 7) l0[0] = tl_lane_xor(thread, 1);",
              "not reached by all of its lanes");
  ExpectFault(
      "if (thread == 7) {\nl0[0] = tl_lane_xor(thread, 1);\n} else {\n"
      "l0[0] = tl_lane_xor(thread, 1);\n}",
      "different instructions");
  ExpectFault("if (thread == 7) __syncthreads();\nl0[0] = tl_lane_xor(thread, 1);",
              "waits at the barrier of line 9");
}

TEST_F(EmulatorTest, LaneExchange) {
  ExpectRuns(
      "a0[thread] = tl_lane_xor(thread, 5);\n"
      "a0[thread + 64] = (int)tl_lane_xor((double)thread, 16);\n"
      "a0[thread + 128] = tl_lane_xor(thread % 2 == 0, 1);\n"
      "a0[thread + 192] = (int)(tl_lane_xor((long long)thread << 40, 2) >> 40);");
  for (int t = 0; t < kThreads; ++t) {
    EXPECT_EQ(first_[t], t ^ 5);
    EXPECT_EQ(first_[t + 64], t ^ 16);
    EXPECT_EQ(first_[t + 128], t % 2);
    EXPECT_EQ(first_[t + 192], t ^ 2);
  }
}

// Rows of 16 bytes: shorts 8 r + c.
TEST_F(EmulatorTest, MatrixLoads) {
  const std::string fill =
      "TL_SHARED(short, s1, 0, 2048);\n"
      "for (int i = thread; i < 2048; i += 64) s1[i] = i;\n__syncthreads();\n";
  ExpectRuns(fill +
             "if (group == 0) { tl_load_matrix<4, false>(&l0[0], &s1[thread * 8]);\n"
             "tl_load_matrix<2, true>(&l0[4], &s1[thread < 16 ? thread * 8 : -100]); }\n"
             "if (group == 0) for (int i = 0; i < 8; ++i) a0[thread * 8 + i] = l0[i];");
  for (int lane = 0; lane < 32; ++lane) {
    for (int m = 0; m < 4; ++m) {
      const int at = 64 * m + lane / 4 * 8 + lane % 4 * 2;
      EXPECT_EQ(first_[lane * 8 + m], at | (at + 1) << 16);
    }
    for (int m = 0; m < 2; ++m) {
      const int at = 64 * m + lane % 4 * 16 + lane / 4;
      EXPECT_EQ(first_[lane * 8 + 4 + m], at | (at + 8) << 16);
    }
  }
}

// As the PTX ISA says of stmatrix: where ldmatrix would have each register from. Shorts 16 l + 2 r
// and the next one in register r of lane l.
TEST_F(EmulatorTest, MatrixStores) {
  ExpectRuns(R"(
    TL_SHARED(short, s1, 0, 2048);
    for (int i = 0; i < 8; ++i) l0[i] = 16 * thread + 2 * i | (16 * thread + 2 * i + 1) << 16;
    if (group == 0) {
      tl_store_matrix<4, false>(&s1[thread * 8], &l0[0]);
      tl_store_matrix<2, true>(&s1[thread < 16 ? 256 + thread * 8 : -100], &l0[4]);
    }
    __syncthreads();
    for (int i = thread; i < 192; i += 64) a0[i] = s0[i];)");
  const auto element = [&](int m, int row, int col) {
    const int at = 64 * m + 8 * row + col;
    return first_[at / 2] >> at % 2 * 16 & 0xffff;
  };
  for (int row = 0; row < 8; ++row) {
    for (int col = 0; col < 8; ++col) {
      const int along = 16 * (row * 4 + col / 2) + col % 2;
      for (int r = 0; r < 4; ++r) EXPECT_EQ(element(r, row, col), along + 2 * r);
      const int down = 16 * (col * 4 + row / 2) + row % 2;
      for (int r = 4; r < 6; ++r) EXPECT_EQ(element(r, row, col), down + 2 * r);
    }
  }
}

TEST_F(EmulatorTest, MatrixStoresAreChecked) {
  ExpectFault("tl_store_matrix<4, false>(&s0[1020 + 4 * thread], &l0[0]);", "outside of the tile");
  ExpectFault("tl_store_matrix<1, false>(&s0[thread], &l0[0]);", "misaligned");
  ExpectFault(
      "if (group == 0) tl_store_matrix<1, false>(&s0[thread * 4], &l0[0]);\n"
      "if (group == 1) l0[0] = s0[0];",
      "no barrier lies between");
}

TEST_F(EmulatorTest, BankConflictsAreCounted) {
  const auto run = [&](std::string_view body) {
    stats_ = {};
    const Status s = Run(body);
    EXPECT_TRUE(s.ok()) << s;
    return stats_;
  };
  // Rows of 64 bytes: eight of them start in two banks.
  EmulateStats s = run("tl_load_matrix<1, false>(&l0[0], &s0[thread % 8 * 16]);");
  EXPECT_EQ(s.matrix_loads.accesses, 2);
  EXPECT_EQ(s.matrix_loads.extra, 6);
  s = run("tl_load_matrix<1, false>(&l0[0], &s0[thread % 8 * 4]);");
  EXPECT_EQ(s.matrix_loads.extra, 0);
  s = run("tl_store_matrix<1, false>(&s0[group * 512 + thread % 8 * 16], &l0[0]);");
  EXPECT_EQ(s.matrix_stores.accesses, 2);
  EXPECT_EQ(s.matrix_stores.extra, 6);
  s = run("for (int i = 0; i < 3; ++i) tl_move<16>(&l0[0], &s0[thread * 4]);");
  EXPECT_EQ(s.vector_reads.accesses, 6);
  EXPECT_EQ(s.vector_reads.extra, 0);
  s = run("tl_move<16>(&s0[thread % 32 * 32 + group * 4], &l0[0]);");
  EXPECT_EQ(s.vector_writes.accesses, 2);
  EXPECT_EQ(s.vector_writes.extra, 2 * 4 * 7);
  s = run("tl_async_move<4>(&s0[thread * 2], &a0[thread], true);");
  EXPECT_EQ(s.async_writes.accesses, 2);
  EXPECT_EQ(s.async_writes.extra, 2);
}

TEST_F(EmulatorTest, AtomicsAndGroups) {
  first_[0] = 0;
  ExpectRuns("tl_atomic_add(&a0[1], 1); tl_atomic_max(&a0[0], thread);");
  EXPECT_EQ(first_[0], 63);
}

// ---- matrix instructions: small integers, so that every format is exact ----

double Element(int which, int row, int col) { return (which * 5 + row * 3 + col * 7) % 9 - 2; }

TEST(EmulatedMma, ProductsOfWholeMatrices) {
  for (int number = 0; number < emulate::kNumAtoms; ++number) {
    const MatrixAtom& atom = emulate::AtomNumber(number);
    SCOPED_TRACE(atom.name);
    const bool is_unsigned = atom.a == DType::kU8 || atom.b == DType::kU8;
    const auto value = [&](int which, int row, int col) {
      return is_unsigned ? Element(which, row, col) + 2 : Element(which, row, col);
    };
    alignas(16) uint8_t a[32][64], b[32][64], c[32][64];
    void* cs[32];
    const void *as[32], *bs[32];
    for (int lane = 0; lane < 32; ++lane) {
      as[lane] = a[lane], bs[lane] = b[lane], cs[lane] = c[lane];
      for (int i = 0; i < emulate::ElementsA(atom); ++i) {
        const emulate::Position p = emulate::PlaceInA(atom, lane, i);
        StoreElement(atom.a, a[lane] + i * SizeOf(atom.a), value(0, p.row, p.col));
      }
      for (int i = 0; i < emulate::ElementsB(atom); ++i) {
        const emulate::Position p = emulate::PlaceInB(atom, lane, i);
        StoreElement(atom.b, b[lane] + i * SizeOf(atom.b), value(1, p.row, p.col));
      }
      for (int i = 0; i < emulate::ElementsC(atom); ++i) {
        StoreElement(atom.c, c[lane] + i * SizeOf(atom.c), i);
      }
    }
    emulate::Mma(atom, cs, as, bs);
    for (int lane = 0; lane < 32; ++lane) {
      for (int i = 0; i < emulate::ElementsC(atom); ++i) {
        const emulate::Position p = emulate::PlaceInC(atom, lane, i);
        double sum = i;
        for (int k = 0; k < atom.k; ++k) sum += value(0, p.row, k) * value(1, k, p.col);
        EXPECT_EQ(LoadElement(atom.c, c[lane] + i * SizeOf(atom.c)), sum) << lane << " " << i;
      }
    }
  }
}

}  // namespace
}  // namespace tl
