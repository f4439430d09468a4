// Thousands of random layouts against their definitions; the default layout of many tiles.
#include "tests/unit/layout_testing.h"

namespace tl {
namespace {

using namespace layout_testing;  // NOLINT(build/namespaces)

TEST(LayoutSweep, Laws) {
  Rng rng(20240607);
  for (int i = 0; i < 20000 && !testing::Test::HasFailure(); ++i) {
    SCOPED_TRACE(i);
    CheckLaws(rng);
  }
}

// The random pairs are of all kinds, each often enough to mean something.
TEST(LayoutSweep, PairsOfAllKinds) {
  Rng rng(7);
  std::map<Conversion, int> kinds;
  for (int i = 0; i < 20000; ++i) {
    const Given from = RandomLayout(rng);
    ++kinds[ConversionBetween(from.Make(), RandomOther(rng, from).Make())];
  }
  for (Conversion kind :
       {Conversion::kIdentity, Conversion::kSlots, Conversion::kShuffle, Conversion::kShared}) {
    EXPECT_GT(kinds[kind], 500) << static_cast<int>(kind);
  }
}

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

struct Tile {
  std::vector<int64_t> extents;
  int64_t bytes;
  int warps, groups;
};

// The promises of the comment at BlockedLayout; padding is bounded by the bound on slots.
void CheckBlocked(const Tile& t) {
  const FragmentLayout l = BlockedLayout(t.extents, t.bytes, t.warps, 32, t.groups);
  SCOPED_TRACE(testing::Message() << l.ToString() << ", " << t.bytes << " bytes");
  ASSERT_EQ(l.extents(), t.extents);
  ASSERT_EQ(l.size(LayoutAxis::kLane), 32);
  ASSERT_EQ(l.size(LayoutAxis::kWarp), t.warps);
  ASSERT_EQ(l.size(LayoutAxis::kGroup), t.groups);
  ASSERT_TRUE(l.Covers());
  ASSERT_TRUE(l.IsSeparable());
  // Registers are not wasted.
  const int64_t threads = int64_t{32} * t.warps * t.groups;
  int64_t elements = 1;
  for (int64_t e : t.extents) elements *= e;
  ASSERT_LE(l.slots(), (t.extents.size() <= 2 ? 2 : 4) * CeilDiv(elements, threads));
  // Lanes and warps along the last dim.
  int64_t lanes = 1, warps = 1;
  const auto lane = l.DimDigits(LayoutAxis::kLane), warp = l.DimDigits(LayoutAxis::kWarp);
  for (const auto& d : *lane) lanes *= d.dim == l.rank() - 1 ? d.radix : 1;
  for (const auto& d : *warp) warps *= d.dim == l.rank() - 1 ? d.radix : 1;
  ASSERT_EQ(lanes & (lanes - 1), 0);
  ASSERT_LE(lanes, 32);
  if (elements / t.extents.back() >= t.warps * t.groups) {
    ASSERT_EQ(warps, 1);
  }
}

TEST(LayoutSweep, BlockedCovers) {
  const int64_t sizes[] = {1,  2,   3,   7,   8,   16,  31,  64,  80,
                           96, 127, 128, 160, 176, 192, 229, 256, 1000};
  for (int64_t bytes : {1, 2, 4, 8}) {
    for (int warps : {1, 2, 4, 6, 8, 12, 16, 32}) {
      for (int groups : {1, 2, 3}) {
        for (int64_t rows : sizes) {
          CheckBlocked({{rows}, bytes, warps, groups});
          for (int64_t cols : sizes) CheckBlocked({{rows, cols}, bytes, warps, groups});
          if (testing::Test::HasFailure()) return;
        }
      }
    }
  }
}

TEST(LayoutSweep, BlockedOfAnyRank) {
  Rng rng(3);
  for (int i = 0; i < 3000 && !testing::Test::HasFailure(); ++i) {
    Tile t{
        {}, int64_t{1} << Pick(rng, 0, 3), 1 << Pick(rng, 0, 5), static_cast<int>(Pick(rng, 1, 4))};
    for (int64_t d = Pick(rng, 1, 4); d > 0; --d) t.extents.push_back(Pick(rng, 1, 20));
    CheckBlocked(t);
  }
}

}  // namespace
}  // namespace tl
