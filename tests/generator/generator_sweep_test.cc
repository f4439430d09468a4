// A fixed share of random programs, and proof that the comparison notices planted bugs. The program
// `generator` runs as many as one likes.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "tests/generator/coverage.h"
#include "tests/generator/differential.h"
#include "tests/generator/generator.h"
#include "tests/generator/mutate.h"

namespace tl::generator {
namespace {

// Programs of a shard's seeds; at most 5 % may be refused.
void RunShard(uint64_t first, int count, const std::vector<std::string>& backends,
              Kind kind = Kind::kAny) {
  Differential differential(backends);
  std::map<std::string, int> refusals;
  int refused = 0;
  for (int i = 0; i < count; ++i) {
    const Program program = Generate(first + static_cast<uint64_t>(i), kind);
    const Outcome outcome = differential.Run(program);
    if (outcome.verdict == Verdict::kRefused) {
      ++refused;
      ++refusals[outcome.where + ": " + outcome.kind];
    }
    if (outcome.verdict != Verdict::kDiffers) continue;
    const Program small =
        Minimize(program, outcome, [&](const Program& p) { return differential.Run(p); });
    ADD_FAILURE() << outcome.where << ": " << outcome.message << "\n"
                  << Describe(program) << "---- made small\n"
                  << Describe(small);
    return;
  }
  EXPECT_LE(refused * 20, std::max(count, 20)) << ::testing::PrintToString(refusals);
}

class Shard : public ::testing::TestWithParam<int> {};

// Other seeds than those that `generator` starts with.
uint64_t FirstSeed(int shard) { return 1000000u + 1000u * static_cast<uint64_t>(shard); }

TEST_P(Shard, CompiledAndInterpretedCodeAgreesWithTheReference) {
  RunShard(FirstSeed(GetParam()), 60, {"nested", "cpu", "thread"});
}

TEST_P(Shard, CudaSourceAgreesWithTheReference) {
  RunShard(FirstSeed(GetParam()) + 500, 4, {"emulate"});
}

TEST_P(Shard, ProductsOfWarpgroupsAgreeWithTheReference) {
  RunShard(FirstSeed(GetParam()) + 700, 4, {"emulate:sm_90a"}, Kind::kWarpgroups);
}

INSTANTIATE_TEST_SUITE_P(Random, Shard, ::testing::Range(0, 4));

// Programs that showed a fault once.
TEST(Generator, OldFaultsStayMended) {
  // Atomic updates behind conditions within their error.
  Differential cpu({"cpu"});
  for (uint64_t seed : {20230, 35143, 22286, 26106}) {
    EXPECT_EQ(cpu.Run(Generate(seed)).verdict, Verdict::kAgrees) << seed;
  }
  // Types of conditional expressions and of remainders by 1; an operand deeper than its fragment.
  Differential gpu({"emulate"});
  for (uint64_t seed : {10194, 34013, 24405}) {
    EXPECT_EQ(gpu.Run(Generate(seed)).verdict, Verdict::kAgrees) << seed;
  }
  // A wait for sums that only a branch knows.
  Differential hopper({"emulate:sm_90a"});
  // A wait between a fence and its product.
  for (uint64_t seed : {65, 5237}) {
    EXPECT_EQ(hopper.Run(Generate(seed, Kind::kWarpgroups)).verdict, Verdict::kAgrees) << seed;
  }
}

TEST(Generator, IsTheSameEverywhere) {
  const Program a = Generate(42), b = Generate(42);
  EXPECT_EQ(a.text, b.text);
  EXPECT_EQ(a.values, b.values);
  EXPECT_NE(a.text, Generate(43).text);
}

// Whether one of the seeds shows the bug.
bool Finds(const Bug& bug, Differential& differential, int seeds, std::string* how) {
  for (int seed = 1; seed <= seeds; ++seed) {
    const uint64_t place = static_cast<uint64_t>(seed) * 7919;
    const Outcome outcome = differential.Run(Generate(static_cast<uint64_t>(seed)), [&](Module& m) {
      return m.level == bug.level && bug.plant(m, place);
    });
    if (outcome.verdict != Verdict::kDiffers) continue;
    *how = "seed " + std::to_string(seed) + ": " + outcome.message;
    return true;
  }
  return false;
}

class PlantedBug : public ::testing::TestWithParam<Bug> {};

TEST_P(PlantedBug, IsFound) {
  constexpr int kSeeds = 150;
  // Interpreted threads are quickest; rings and exchanges between lanes exist on a GPU only.
  Differential threads({"thread"}), gpu({"emulate"});
  std::string how;
  EXPECT_TRUE(Finds(GetParam(), threads, kSeeds, &how) || Finds(GetParam(), gpu, kSeeds, &how))
      << GetParam().name;
  if (!how.empty()) RecordProperty("found", how);
}

INSTANTIATE_TEST_SUITE_P(Each, PlantedBug, ::testing::ValuesIn(Bugs().begin(), Bugs().end()),
                         [](const auto& info) {
                           std::string name(info.param.name);
                           for (char& c : name) c = c == ' ' ? '_' : c;
                           return name;
                         });

}  // namespace
}  // namespace tl::generator
