// `partition` run by the emulator: the loop cut at its start, in the middle, at its end and
// outside, with every number of iterations around those in flight, whenever copies arrive.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/emulate/emulate_testing.h"

namespace tl {
namespace {

using ::testing::Contains;
using testing::CudaCase;
using ::testing::HasSubstr;
using testing::Values;

void ExpectRightWheneverCopiesArrive(const CudaCase& c, std::string_view target) {
  ExpectRightNumbers(
      c, *FindCudaTarget(target),
      {.seeds = {1}, .arrivals = {Arrival::kRandom, Arrival::kEager, Arrival::kLazy}});
}

std::vector<std::string> NotesOf(const CudaCase& c, std::string_view target) {
  const auto lowered = testing::LowerText(c.text, c.values, *FindCudaTarget(target));
  EXPECT_TRUE(lowered.ok()) << lowered.status();
  return lowered.ok() ? lowered->thread.notes : std::vector<std::string>();
}

// Trips 0 ... 2*stages + 1, the last one not whole; the condition changes at iteration L.
CudaCase Loop(const Values& values, int stages) {
  CudaCase c{
      testing::NameOf("partitions", values), testing::TableText("partitions"), values, {}, {}};
  c.values.emplace_back("stages", absl::StrCat(stages));
  for (int64_t trips = 0; trips <= 2 * stages + 1; ++trips) {
    const std::set<int64_t> cuts = {0,     1,        trips / 2, std::max<int64_t>(trips - 1, 0),
                                    trips, trips + 3};
    for (int64_t l : cuts) c.dims.push_back({64, std::max<int64_t>(trips * 16 - 3, 0), l});
  }
  return c;
}

const std::vector<std::string> kForms = {"below",  "above", "scaled", "value", "both",
                                         "either", "first", "last",   "two",   "nested"};

// Every form of condition with every way in which iterations hang together.
TEST(Partition, EveryCut) {
  const std::vector<Values> ways = {
      {},
      {{"back", "on"}},
      {{"distance", "1"}},
      {{"distance", "1"}, {"back", "on"}},
      {{"distance", "2"}},
  };
  for (size_t i = 0; i < kForms.size(); ++i) {
    Values values = ways[i % ways.size()];
    values.emplace_back("when", kForms[i]);
    for (const char* target : {"sm_80", "sm_90a"}) {
      const CudaCase c = Loop(values, 2);
      EXPECT_THAT(NotesOf(c, target), Contains(HasSubstr(" loops, the steady one"))) << c.name;
      ExpectRightWheneverCopiesArrive(c, target);
    }
  }
}

TEST(Partition, HopperAgents) {
  for (const char* copies : {"self", "warp"}) {
    for (const char* stay : {"off", "on"}) {
      for (const char* distance : {"0", "1"}) {
        CudaCase c = Loop({{"copies", copies}, {"stay", stay}, {"distance", distance}}, 3);
        // Several tiles of a block, so that counters go on.
        for (std::vector<int64_t>& dims : c.dims) dims[0] = 200;
        ExpectRightWheneverCopiesArrive(c, "sm_90a");
      }
    }
  }
}

// Groups that go on alone, an iteration apart, and hand over to each other.
TEST(Partition, Groups) {
  CudaCase c{"groups",
             R"(tl 1.0
kernel k(N: dim, L: dim) {
  in X: tensor<f32>[N*16, 64] out Y: tensor<f32>[N*16, 64]
  launch m in 1 groups=2 threads=64 {
    sent = alloc_chan<f32>[16, 64] depth=2
    on g in 2 {
      x = alloc_fragment<f32>[16, 64]
      serial j in N partition {
        if g == 0 {
          copy X[j*16, 0] -> x
          if j < L { parallel r, c in [16, 64] { x[r, c] = x[r, c] * 2 } }
          send x -> sent
        } else {
          recv sent -> x
          if j + 1 >= L { parallel r, c in [16, 64] { x[r, c] = x[r, c] + 1 } }
          copy x -> Y[j*16, 0]
        }
      }
    }
  }
})",
             {},
             {},
             {}};
  for (int64_t n = 0; n < 5; ++n) {
    for (int64_t l = 0; l < 6; ++l) c.dims.push_back({n, l});
  }
  for (const char* target : {"sm_80", "sm_90a"}) {
    EXPECT_THAT(NotesOf(c, target), Contains(HasSubstr(": 3 loops, the steady one"))) << target;
    ExpectRightWheneverCopiesArrive(c, target);
  }
}

// ---- Attention

TEST(Partition, Attention) {
  const Values shared = {{"partition", "on"}, {"bm", "64"}, {"D", "64"}, {"rows", "16"}};
  const std::vector<Values> forms = {
      {{"causal", "on"}, {"overlap", "on"}, {"bn", "32"}},
      {{"causal", "on"}, {"overlap", "off"}, {"bn", "32"}},
      {{"causal", "off"}, {"overlap", "on"}, {"bn", "32"}, {"lse", "on"}},
      {{"causal", "on"}, {"overlap", "on"}, {"bn", "48"}, {"stages", "1"}, {"lse", "on"}},
  };
  for (const Values& form : forms) {
    CudaCase c{
        testing::NameOf("attention", form), testing::FamilyText("attention"), shared, {}, {}};
    c.values.insert(c.values.end(), form.begin(), form.end());
    c.dims = {{1, 2, 1, 70, 200}, {1, 2, 2, 130, 130}, {2, 1, 1, 33, 10}, {1, 1, 1, 64, 64},
              {1, 3, 1, 1, 1},    {1, 2, 1, 4, 0},     {1, 1, 1, 65, 33}};
    for (const char* target : {"sm_80", "sm_90a"}) {
      EXPECT_THAT(NotesOf(c, target), Contains(HasSubstr(" loops, the steady one"))) << c.name;
      ExpectRightWheneverCopiesArrive(c, target);
    }
  }
}

}  // namespace
}  // namespace tl
