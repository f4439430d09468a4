// segment … in split: the plan on its own, and whole programs against the unsplit sum.
#include <algorithm>
#include <random>

#include "backends/reference/split.h"
#include "tests/unit/reference_testing.h"

namespace tl::reference {
namespace {

using ::testing::ElementsAreArray;

// All counts up to 4 of three items, all numbers of parts up to 9, checked by their definition.
TEST(SplitPlan, CutsEveryUnitOnceInOrder) {
  for (int code = 0; code < 125; ++code) {
    const std::vector<int64_t> counts{code % 5 - 1, code / 5 % 5, code / 25};
    for (int64_t parts = 1; parts <= 9; ++parts) {
      const StatusOr<SplitPlan> plan = SplitPlan::Make(counts, parts);
      ASSERT_TRUE(plan.ok());
      int64_t total = 0;
      for (int64_t c : counts) total += std::max<int64_t>(c, 0);
      std::vector<std::vector<Piece>> by_item(counts.size());
      std::vector<bool> used(counts.size() + parts);
      for (int64_t run = 0; run < parts; ++run) {
        int64_t units = 0;
        for (const Piece& piece : plan->PiecesOf(run)) {
          EXPECT_LT(piece.begin, piece.end);
          EXPECT_EQ(piece.part, piece.item + run);
          EXPECT_FALSE(used[piece.part]);
          used[piece.part] = true;
          units += piece.end - piece.begin;
          by_item[piece.item].push_back(piece);
        }
        EXPECT_EQ(units, (run + 1) * total / parts - run * total / parts);
        EXPECT_EQ(plan->IsEmpty(run), units == 0);
      }
      for (size_t i = 0; i < counts.size(); ++i) {
        int64_t next = 0;
        std::vector<int64_t> slots, visited;
        for (const Piece& piece : by_item[i]) {
          EXPECT_EQ(piece.begin, next);
          EXPECT_EQ(piece.whole, piece.end - piece.begin == counts[i]);
          next = piece.end;
          slots.push_back(piece.part);
        }
        EXPECT_EQ(next, std::max<int64_t>(counts[i], 0));
        const int64_t item = static_cast<int64_t>(i);
        for (int64_t s = plan->FirstSlot(item); s < plan->EndSlot(item); ++s) {
          if (!plan->IsEmpty(s - item)) visited.push_back(s);
        }
        EXPECT_EQ(visited, slots);
      }
    }
  }
}

TEST(SplitPlan, LargeAndBadNumbers) {
  const int64_t big = int64_t{1} << 61;
  const StatusOr<SplitPlan> plan = SplitPlan::Make({big, big}, 3);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->PiecesOf(1).size(), 2u);
  EXPECT_FALSE(SplitPlan::Make({big, big, big, big}, 3).ok());
  EXPECT_FALSE(SplitPlan::Make({1}, 0).ok());
}

constexpr char kSplitSum[] = R"(tl 1.0
kernel split_sum(B: dim, L: dim, P: dim) {
  in X: tensor<f32>[B, L, 2], len: tensor<i32>[B]
  out Y: tensor<f32>[B, 2], pieces: tensor<i32>[B]
  workspace W: tensor<f32>[B + P, 2]
  init len = uniform(0, L)
  launch segment (b, i0, i1, part, whole) in split(b in B: ceildiv(len[b], 2), P) {
    x = alloc_fragment<f32>[2, 2]
    s = alloc_reducer<f32, sum>[2]
    r = alloc_fragment<f32>[2]
    pipelined i in i0..i1 stages=2 {
      copy X[b, i*2:, 0:] -> x rows=len[b] - i*2
      reduce_sum x -> s dim=0
    }
    finish s
    copy s -> r
    if whole { copy r -> Y[b, 0:] } else { copy r -> W[part, 0:] }
  }
  launch b in B {
    s, x = alloc_fragment<f32>[2]
    n = alloc_var<i32>(0)
    clear s
    serial p in parts(b) {
      n += 1
      copy W[p, 0:] -> x  # undefined where a whole piece left nothing; then s is not used
      parallel c in 2 { s[c] += x[c] }
    }
    parallel i in 1 { pieces[b] = n }
    if n != 1 { copy s -> Y[b, 0:] }
  }
})";

TEST(Split, SumsInPiecesEqualTheWhole) {
  std::mt19937 random(3);
  for (int round = 0; round < 60; ++round) {
    const int B = 1 + static_cast<int>(random() % 5), L = 12,
              P = 1 + static_cast<int>(random() % 9);
    Doubles lengths, x = Ramp(B * L * 2, round), want;
    for (int b = 0; b < B; ++b) {
      lengths.push_back(random() % 3 == 0 ? 0 : static_cast<double>(random() % (L + 1)));
      for (int c = 0; c < 2; ++c) {
        double sum = 0;
        for (int i = 0; i < lengths[b]; ++i) sum += x[(b * L + i) * 2 + c];
        want.push_back(sum);
      }
    }
    Program p(kSplitSum);
    TL_ASSERT_OK(p.status());
    p.Dim("B", B).Dim("L", L).Dim("P", P).Set("X", x).Set("len", lengths);
    TL_ASSERT_OK(p.Run(2));
    EXPECT_THAT(p.Exact("Y"), ElementsAreArray(want)) << round;
  }
}

}  // namespace
}  // namespace tl::reference
