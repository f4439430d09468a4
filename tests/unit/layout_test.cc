// Fragment and shared layouts: the worked examples, the laws on some random layouts (the sweep runs
// through many more), and the hardware's fragments against the formulas of its manuals.
#include <array>
#include <optional>
#include <utility>

#include "layout/matrix_fragments.h"
#include "layout/shared_layout.h"
#include "layout/svg.h"
#include "tests/unit/layout_testing.h"

namespace tl {
namespace {

using namespace layout_testing;  // NOLINT(build/namespaces)
using ::testing::ElementsAre;
using ::testing::Optional;

constexpr MatrixAtom kMma16 = {
    "mma", AtomForm::kMma, DType::kBF16, DType::kBF16, DType::kF32, 16, 8, 16};
constexpr MatrixAtom kMma16Half = {
    "mma", AtomForm::kMma, DType::kF16, DType::kF16, DType::kF32, 16, 8, 8};
constexpr MatrixAtom kMma8 = {"mma", AtomForm::kMma, DType::kI8, DType::kI8, DType::kI32, 16, 8,
                              32};
constexpr MatrixAtom kMmaTf32 = {
    "mma", AtomForm::kMma, DType::kF32, DType::kF32, DType::kF32, 16, 8, 8, true};
constexpr MatrixAtom kDmma = {"dmma", AtomForm::kDmma, DType::kF64, DType::kF64, DType::kF64, 8, 8,
                              4};

TEST(FragmentLayout, WorkedExample) {
  const FragmentLayout c({16, 8}, {{}, {}, {{4, 2}, {8, 8}}, {{2, 1}, {2, 64}}});
  EXPECT_EQ(c.At({0, 0, 13, 2}), 90);
  EXPECT_THAT(c.Coordinates(90), ElementsAre(11, 2));
  EXPECT_THAT(c.Owner(90), Optional(Place{0, 0, 13, 2}));
  // Lanes run on from row to row, so they are one digit; by dims they are two.
  EXPECT_EQ(c.ToString(), "16x8 lane {32,2} slot {2,1} {2,64}");
  using DimDigit = FragmentLayout::DimDigit;
  EXPECT_THAT(c.DimDigits(LayoutAxis::kLane),
              Optional(ElementsAre(DimDigit{4, 1, 2}, DimDigit{8, 0, 1})));
  EXPECT_EQ(c.vector(), 2);
  EXPECT_TRUE(c.Covers() && c.IsSeparable() && !c.IsReplicated());
  EXPECT_EQ(c.Project(1)->ToString(), "16 lane {4,0} {8,1} slot {2,8}");
  EXPECT_EQ(c.Project(0)->ToString(), "8 lane {4,2} {8,0} slot {2,1}");
}

// 16 bytes of bf16 after another, thread after thread: rows of 22 chunks that 128 threads cut
// anywhere.
TEST(FragmentLayout, FlatCyclicCopy) {
  const FragmentLayout copy({96, 176}, {99, 176},
                            {{}, {{4, 256}}, {{32, 8}}, {{8, 1}, {17, 1024}}});
  EXPECT_EQ(copy.ToString(), "96x176 in 99x176 warp {4,256} lane {32,8} slot {8,1} {17,1024}");
  EXPECT_EQ(copy.vector(), 8);
  EXPECT_EQ(copy.DimDigits(LayoutAxis::kLane), std::nullopt);
  EXPECT_FALSE(copy.IsSeparable());
  EXPECT_EQ(copy.Project(1), std::nullopt);
  EXPECT_FALSE(copy.Covers());  // 17408 of 17424, but all that are real
  EXPECT_THAT(copy.Owner(95 * 176 + 175), Optional(Place{0, 1, 31, 135}));
  EXPECT_EQ(copy.Owner(99 * 176 - 1), std::nullopt);
}

struct Printed {
  std::vector<int64_t> extents;
  FragmentLayout::Axes axes;
  const char* text;
};

TEST(FragmentLayout, CanonicalDigits) {
  const Printed cases[] = {
      {{1}, {}, "1"},
      {{32}, {{}, {}, {{2, 1}, {16, 2}}, {}}, "32 lane {32,1}"},
      {{32}, {{}, {}, {{16, 2}, {2, 1}}, {}}, "32 lane {16,2} {2,1}"},
      {{32}, {{}, {}, {{1, 7}, {4, 1}, {1, 0}}, {{8, 4}}}, "32 lane {4,1} slot {8,4}"},
      // Zeros are part of a thread axis' size, side by side they are one; in slots they are
      // nothing.
      {{8},
       {{{3, 0}}, {{2, 0}, {2, 0}}, {{8, 1}, {4, 0}}, {{5, 0}}},
       "8 group {3,0} warp {4,0} lane {8,1} {4,0}"},
      {{8}, {{}, {}, {}, {{2, 1}, {3, 0}, {4, 2}}}, "8 slot {8,1}"},
      {{4, 4}, {{}, {}, {}, {{4, 1}, {4, 4}}}, "4x4 slot {16,1}"},
      {{4, 4}, {{}, {}, {}, {{4, 4}, {4, 1}}}, "4x4 slot {4,4} {4,1}"},
  };
  for (const Printed& c : cases) EXPECT_EQ(FragmentLayout(c.extents, c.axes).ToString(), c.text);
}

TEST(FragmentLayout, VectorStaysInItsRow) {
  const auto vector = [](std::vector<int64_t> extents, FragmentLayout::Axes axes) {
    return FragmentLayout(std::move(extents), std::move(axes)).vector();
  };
  EXPECT_EQ(vector({8, 4}, {{}, {}, {}, {{32, 1}}}), 4);
  EXPECT_EQ(vector({8, 1}, {{}, {}, {}, {{8, 1}}}), 1);
  EXPECT_EQ(vector({8, 4}, {{}, {}, {{2, 2}, {8, 4}}, {{2, 1}}}), 2);
  EXPECT_EQ(vector({2, 6}, {{}, {}, {{3, 4}}, {{4, 1}}}), 2);  // the second run is cut at the row
  EXPECT_EQ(vector({8, 4}, {{}, {}, {{4, 1}}, {{8, 4}}}), 1);
}

TEST(FragmentLayout, Laws) {
  Rng rng(1);
  for (int i = 0; i < 500 && !testing::Test::HasFailure(); ++i) CheckLaws(rng);
}

// -- Conversions

TEST(Conversion, Kinds) {
  const FragmentLayout rows({8, 8}, {{}, {{2, 32}}, {{4, 8}}, {{8, 1}}});
  const FragmentLayout back({8, 8}, {{}, {{2, 32}}, {{4, 8}}, {{4, 2}, {2, 1}}});
  const FragmentLayout cols({8, 8}, {{}, {{2, 32}}, {{4, 2}}, {{2, 1}, {4, 8}}});
  const FragmentLayout across({8, 8}, {{}, {{2, 4}}, {{4, 16}}, {{4, 1}, {2, 8}}});
  const FragmentLayout one({8, 8}, {{}, {{2, 0}}, {{4, 0}}, {{64, 1}}});
  EXPECT_EQ(ConversionBetween(rows, rows), Conversion::kIdentity);
  EXPECT_EQ(ConversionBetween(rows, back), Conversion::kSlots);
  EXPECT_THAT(SlotPermutation(rows, back), Optional(ElementsAre(0, 2, 4, 6, 1, 3, 5, 7)));
  EXPECT_EQ(ConversionBetween(rows, cols), Conversion::kShuffle);
  EXPECT_EQ(SlotPermutation(rows, cols), std::nullopt);
  EXPECT_EQ(ConversionBetween(rows, across), Conversion::kShared);
  // Where everybody has everything, nothing has to cross warps; but the slots differ by thread.
  EXPECT_EQ(ConversionBetween(one, across), Conversion::kShuffle);
  EXPECT_EQ(ConversionBetween(rows, one), Conversion::kShared);
}

TEST(Conversion, PaddingDoesNotCount) {
  const FragmentLayout tight({6}, {{}, {}, {{3, 1}}, {{2, 3}}});
  const FragmentLayout wide({6}, {9}, {{}, {}, {{3, 1}}, {{3, 3}}});
  EXPECT_EQ(ConversionBetween(tight, wide), Conversion::kSlots);  // its third slot is never real
  EXPECT_EQ(ConversionBetween(wide, tight), Conversion::kSlots);
  EXPECT_THAT(SlotPermutation(wide, tight), Optional(ElementsAre(0, 1)));
  // The same registers under another padding.
  const FragmentLayout seven({6}, {7}, {{}, {}, {{3, 1}}, {{2, 3}}});
  EXPECT_EQ(ConversionBetween(tight, seven), Conversion::kIdentity);
}

// The result of one product as operand A of the next.
TEST(Conversion, AccumulatorToOperand) {
  for (const auto& [rows, cols, warps] :
       {std::array{64, 64, 4}, {128, 128, 4}, {128, 80, 8}, {96, 176, 3}, {192, 48, 12}}) {
    const FragmentLayout c = TiledC(kMma16, rows, cols, warps, 1);
    EXPECT_EQ(ConversionBetween(c, TiledA(kMma16, rows, cols, warps, 1)), Conversion::kIdentity);
  }
  // Warps along the columns hold less of the row than they need.
  EXPECT_EQ(ConversionBetween(TiledC(kMma16, 64, 64, 2, 2), TiledA(kMma16, 64, 64, 2, 2)),
            Conversion::kShared);
  // Four neighbours to a register instead of two: other lanes of the row have them.
  EXPECT_EQ(ConversionBetween(TiledC(kMma8, 64, 64, 4, 1), TiledA(kMma8, 64, 64, 4, 1)),
            Conversion::kShuffle);
  EXPECT_EQ(ConversionBetween(TiledC(kMmaTf32, 64, 64, 4, 1), TiledA(kMmaTf32, 64, 64, 4, 1)),
            Conversion::kShuffle);
}

// -- Fragments of the hardware

// Row and column of a register of a lane, from a manual.
using Formula = std::function<std::array<int64_t, 2>(int64_t warp, int64_t lane, int64_t slot)>;

void ExpectFragment(const FragmentLayout& layout, std::array<int64_t, 4> sizes,
                    const Formula& formula) {
  SCOPED_TRACE(layout.ToString());
  const auto [warps, lanes, rows, cols] = sizes;
  ASSERT_THAT(layout.extents(), ElementsAre(rows, cols));
  EXPECT_FALSE(layout.IsPadded());
  ASSERT_EQ(layout.size(LayoutAxis::kWarp), warps);
  ASSERT_EQ(layout.size(LayoutAxis::kLane), lanes);
  ASSERT_EQ(layout.slots() * warps * lanes, rows * cols);
  ForEachPlace(layout, [&](const Place& p) {
    const auto [row, col] = formula(p.warp, p.lane, p.slot);
    ASSERT_EQ(layout.At(p), row * cols + col) << p.warp << " " << p.lane << " " << p.slot;
  });
  EXPECT_TRUE(layout.Covers() && layout.IsSeparable() && !layout.IsReplicated());
  size_t digits = 0;
  for (int a = 0; a < kNumLayoutAxes; ++a)
    digits += layout.digits(static_cast<LayoutAxis>(a)).size();
  EXPECT_LE(digits, 7u);
}

// PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point type": groupID = laneid >> 2,
// threadID_in_group = laneid % 4. The manual indexes a<i>; so do these.
TEST(MatrixFragments, MmaOf16Bits) {
  ExpectFragment(AtomA(kMma16), {1, 32, 16, 16}, [](int64_t, int64_t lane, int64_t i) {
    const int64_t row = (i < 2) || (i >= 4 && i < 6) ? lane >> 2 : (lane >> 2) + 8;
    const int64_t col = (lane % 4) * 2 + (i & 1) + (i >= 4 ? 8 : 0);
    return std::array{row, col};
  });
  ExpectFragment(AtomA(kMma16Half), {1, 32, 16, 8}, [](int64_t, int64_t lane, int64_t i) {
    return std::array{i < 2 ? lane >> 2 : (lane >> 2) + 8, (lane % 4) * 2 + (i & 1)};
  });
  // The manual gives B as k x n.
  ExpectFragment(AtomB(kMma16), {1, 32, 8, 16}, [](int64_t, int64_t lane, int64_t i) {
    const int64_t k = (lane % 4) * 2 + (i & 1) + (i >= 2 ? 8 : 0);
    return std::array{lane >> 2, k};
  });
}

TEST(MatrixFragments, MmaAccumulator) {
  for (const MatrixAtom& atom : {kMma16, kMma16Half, kMma8, kMmaTf32}) {
    ExpectFragment(AtomC(atom), {1, 32, 16, 8}, [](int64_t, int64_t lane, int64_t i) {
      return std::array{i < 2 ? lane >> 2 : (lane >> 2) + 8, (lane % 4) * 2 + (i & 1)};
    });
  }
}

// AMD Instinct MI200 ISA, matrix arithmetic instructions: operands as rows by depth and depth by
// columns. The instruction is given B's transpose first, so its result is C's transpose.
TEST(MatrixFragments, Mfma) {
  for (const auto& [m, k, depth_items] :
       {std::array{32, 8, 4}, {16, 16, 4}, {32, 2, 1}, {16, 4, 1}, {32, 16, 8}, {16, 32, 8}}) {
    const MatrixAtom atom = {"mfma", AtomForm::kMfma, DType::kF16, DType::kF16, DType::kF32, m, m,
                             k};
    const auto factor = [m = m, items = depth_items](int64_t, int64_t lane, int64_t i) {
      return std::array{lane % m, items * (lane / m) + i};
    };
    ExpectFragment(AtomA(atom), {1, 64, m, k}, factor);
    ExpectFragment(AtomB(atom), {1, 64, m, k}, factor);
    ExpectFragment(AtomC(atom), {1, 64, m, m}, [m = m](int64_t, int64_t lane, int64_t i) {
      const int64_t row = 4 * (lane / m) + i % 4 + i / 4 * (256 / m);
      return std::array{lane % m, row};
    });
  }
  // What one product leaves, the next one takes.
  const MatrixAtom half = {"mfma", AtomForm::kMfma, DType::kF16, DType::kF16, DType::kF32, 32, 32,
                           8};
  EXPECT_EQ(ConversionBetween(TiledC(half, 64, 64, 2, 1), TiledA(half, 64, 64, 2, 1)),
            Conversion::kIdentity);
}

// mma.m16n8k32 with .u8, .s8, .e4m3 or .e5m2.
TEST(MatrixFragments, MmaOf8Bits) {
  ExpectFragment(AtomA(kMma8), {1, 32, 16, 32}, [](int64_t, int64_t lane, int64_t i) {
    const bool upper = i < 4 || (i >= 8 && i < 12);
    const int64_t col = (lane % 4) * 4 + (i & 3) + (i >= 8 ? 16 : 0);
    return std::array{upper ? lane >> 2 : (lane >> 2) + 8, col};
  });
  ExpectFragment(AtomB(kMma8), {1, 32, 8, 32}, [](int64_t, int64_t lane, int64_t i) {
    return std::array{lane >> 2, (lane % 4) * 4 + (i & 3) + (i >= 4 ? 16 : 0)};
  });
}

// mma.m16n8k8 with .tf32: a1 is below a0, a2 beside it.
TEST(MatrixFragments, MmaOf32Bits) {
  ExpectFragment(AtomA(kMmaTf32), {1, 32, 16, 8}, [](int64_t, int64_t lane, int64_t i) {
    const int64_t row = i == 0 || i == 2 ? lane >> 2 : (lane >> 2) + 8;
    return std::array{row, i < 2 ? lane % 4 : lane % 4 + 4};
  });
  ExpectFragment(AtomB(kMmaTf32), {1, 32, 8, 8}, [](int64_t, int64_t lane, int64_t i) {
    return std::array{lane >> 2, i == 0 ? lane % 4 : lane % 4 + 4};
  });
}

TEST(MatrixFragments, Dmma) {
  const Formula operand = [](int64_t, int64_t lane, int64_t) {
    return std::array{lane >> 2, lane % 4};
  };
  ExpectFragment(AtomA(kDmma), {1, 32, 8, 4}, operand);
  ExpectFragment(AtomB(kDmma), {1, 32, 8, 4}, operand);
  ExpectFragment(AtomC(kDmma), {1, 32, 8, 8}, [](int64_t, int64_t lane, int64_t i) {
    return std::array{lane >> 2, (lane % 4) * 2 + (i & 1)};
  });
}

// "wgmma .m64nNk16: D": row = (warp % 4) * 16 + laneid / 4 (+ 8), col = i / 4 * 8 + ...
TEST(MatrixFragments, Wgmma) {
  for (int n : {8, 80, 96, 176, 192, 256}) {
    ExpectFragment(WgmmaC(n), {4, 32, 64, n}, [](int64_t warp, int64_t lane, int64_t i) {
      const int64_t row = warp * 16 + lane / 4 + (i % 4 >= 2 ? 8 : 0);
      return std::array{row, i / 4 * 8 + (lane % 4) * 2 + (i & 1)};
    });
  }
  ExpectFragment(WgmmaA(DType::kF16), {4, 32, 64, 16}, [](int64_t warp, int64_t lane, int64_t i) {
    const int64_t row = warp * 16 + lane / 4 + (i % 4 >= 2 ? 8 : 0);
    return std::array{row, i / 4 * 8 + (lane % 4) * 2 + (i & 1)};
  });
  ExpectFragment(WgmmaA(DType::kE4M3), {4, 32, 64, 32}, [](int64_t warp, int64_t lane, int64_t i) {
    const int64_t row = warp * 16 + lane / 4 + (i % 8 >= 4 ? 8 : 0);
    return std::array{row, i / 8 * 16 + (lane % 4) * 4 + (i & 3)};
  });
  // An accumulator is operand A of the next product as it stands, in 16 bits.
  EXPECT_EQ(WgmmaC(16), WgmmaA(DType::kBF16));
  EXPECT_EQ(ConversionBetween(WgmmaC(32), WgmmaA(DType::kE4M3)), Conversion::kShuffle);
}

// Teams of four warps, each with whole instructions of 64 rows; columns are the widest
// instruction's.
TEST(MatrixFragments, TiledOverWarpgroups) {
  const MatrixAtom atom{"", AtomForm::kWgmma, DType::kF16, DType::kF16, DType::kF32, 64, 8, 16};
  for (const int n : {8, 24, 72, 176, 256}) {
    EXPECT_EQ(TiledC(atom, 64, n, 4, 1), WgmmaC(n)) << n;
  }
  EXPECT_EQ(TiledA(atom, 64, 16, 4, 1), WgmmaA(DType::kF16));
  // Two below each other with two instructions each, two beside each other.
  const FragmentLayout c = TiledC(atom, 256, 48, 8, 2), one = WgmmaC(24);
  ASSERT_EQ(c.size(LayoutAxis::kWarp), 16);
  ASSERT_EQ(c.slots(), 2 * one.slots());
  ForEachPlace(c, [&](const Place& p) {
    const int64_t group = p.warp / 4, block = p.slot / one.slots();
    Place in = p;
    in.warp = p.warp % 4, in.slot = p.slot % one.slots();
    const int64_t at = one.At(in);
    const int64_t row = group / 2 * 128 + block * 64 + at / 24, col = group % 2 * 24 + at % 24;
    ASSERT_EQ(c.At(p), row * 48 + col) << p.warp << " " << p.lane << " " << p.slot;
  });
  // Groups beside each other multiply the same rows.
  const FragmentLayout a = TiledA(atom, 128, 32, 8, 2), step = WgmmaA(DType::kF16);
  ForEachPlace(a, [&](const Place& p) {
    Place in = p;
    in.warp = p.warp % 4, in.slot = p.slot % step.slots();
    const int64_t at = step.At(in);
    ASSERT_EQ(a.At(p), (p.warp / 8 * 64 + at / 16) * 32 + p.slot / step.slots() * 16 + at % 16);
  });
}

// A product whose factors have changed places leaves its sums so.
TEST(MatrixFragments, Transposed) {
  const MatrixAtom wgmma{"", AtomForm::kWgmma, DType::kF16, DType::kF16, DType::kF32, 64, 8, 16};
  for (const FragmentLayout& l :
       {TiledC(wgmma, 64, 16, 4, 1), TiledC(wgmma, 256, 48, 8, 2), TiledA(wgmma, 128, 32, 8, 2),
        TiledC(kMma16, 100, 20, 2, 4), TiledC(kMma16, 16, 8, 1, 1), AtomA(kMma8),
        BlockedLayout({12, 40}, 2, 4, 32)}) {
    SCOPED_TRACE(l.ToString());
    const auto t = l.Transposed();
    ASSERT_TRUE(t.has_value());
    EXPECT_EQ(t->extents(), (std::vector<int64_t>{l.extents()[1], l.extents()[0]}));
    EXPECT_EQ(t->slots(), l.slots());
    ForEachPlace(l, [&](const Place& p) {
      const std::vector<int64_t> at = l.Coordinates(l.At(p));
      ASSERT_EQ(t->Coordinates(t->At(p)), (std::vector<int64_t>{at[1], at[0]}));
    });
    EXPECT_EQ(t->Transposed(), l);
  }
  // A digit that runs from the middle of a row into the next one has no transpose.
  EXPECT_FALSE(
      FragmentLayout({96, 176}, {99, 176}, {{}, {{4, 256}}, {{32, 8}}, {{8, 1}, {17, 1024}}})
          .Transposed()
          .has_value());
}

// Executes ldmatrix: matrix q has the rows that lanes 8q to 8q+7 name, and register q of lane t is
// the 4 bytes t % 4 of row t / 4.
void ExpectLdmatrix(const FragmentLayout& addresses, const FragmentLayout& fragment,
                    int64_t element_bytes) {
  SCOPED_TRACE(addresses.ToString());
  const int64_t run = 4 / element_bytes;
  ASSERT_EQ(addresses.slots() * element_bytes, 16);
  ASSERT_EQ(addresses.vector(), addresses.slots());
  ASSERT_EQ(addresses.size(LayoutAxis::kLane), 32);
  ForEachPlace(fragment, [&](const Place& p) {
    const int64_t source = p.slot / run * 8 + p.lane / 4;
    const int64_t element = p.lane % 4 * run + p.slot % run;
    ASSERT_EQ(fragment.At(p), addresses.At({0, 0, source, element}));
  });
}

TEST(MatrixFragments, Ldmatrix) {
  for (const MatrixAtom& atom : {kMma16, kMma16Half, kMma8, kMmaTf32}) {
    ExpectLdmatrix(LdmatrixA(atom), AtomA(atom), static_cast<int64_t>(SizeOf(atom.a)));
    ExpectLdmatrix(LdmatrixB(atom), AtomB(atom), static_cast<int64_t>(SizeOf(atom.b)));
  }
  // The familiar form: lane l names row l % 16, and the right half from lane 16 on.
  for (int64_t lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(LdmatrixA(kMma16).At({0, 0, lane, 0}), lane % 16 * 16 + lane / 16 * 8);
  }
}

// Executes stmatrix: register q of lane t becomes the 4 bytes t % 4 of row t / 4 of matrix q, or
// what these are of the matrix transposed, whose rows lanes 8q to 8q+7 name.
void ExpectStmatrix(const FragmentLayout& tile, bool down, int matrices, bool transpose) {
  SCOPED_TRACE(tile.ToString());
  const std::optional<MatrixStores> stores = StmatrixOf(tile, down);
  ASSERT_TRUE(stores);
  ASSERT_EQ(stores->matrices, matrices);
  ASSERT_EQ(stores->transpose, transpose);
  const int64_t together = 2 * matrices;
  ForEachPlace(tile, [&](const Place& p) {
    const int64_t q = p.slot % together / 2, first = p.slot / together * 8;
    const int64_t row = p.lane / 4, col = p.lane % 4 * 2 + p.slot % 2;
    ASSERT_EQ(tile.At(p), stores->addresses.At({p.group, p.warp, 8 * q + (transpose ? col : row),
                                                first + (transpose ? row : col)}));
  });
}

TEST(MatrixFragments, Stmatrix) {
  for (const auto& [tile, matrices] :
       {std::pair(AtomC(kMma16), 2), std::pair(TiledC(kMma16, 32, 24, 2, 1), 2),
        std::pair(TiledC(kMma16, 64, 64, 2, 2), 4), std::pair(WgmmaC(8), 2),
        std::pair(WgmmaC(24), 2), std::pair(WgmmaC(256), 4)}) {
    for (bool down : {false, true}) {
      ExpectStmatrix(tile, down, matrices, down);
      ExpectStmatrix(*tile.Transposed(), down, matrices, !down);
    }
  }
  // Lanes that hold longer runs, padding, or what others hold too.
  EXPECT_FALSE(StmatrixOf(BlockedLayout({64, 64}, 2, 4, 32), false));
  EXPECT_FALSE(StmatrixOf(TiledC(kMma16, 60, 64, 2, 2), false));
  EXPECT_FALSE(StmatrixOf(TiledA(kMma16, 64, 64, 2, 2), false));
  EXPECT_FALSE(StmatrixOf(MfmaC(32), false));
}

// AMD's matrix instruction calculator: 32x32 has rows 8 * (i / 4) + 4 * (lane / 32) + i % 4 of
// column lane % 32; 16x16 has rows 4 * (lane / 16) + i. RDNA 3 ISA, 7.9: even rows in the lower
// lanes.
TEST(MatrixFragments, Amd) {
  ExpectFragment(MfmaC(32), {1, 64, 32, 32}, [](int64_t, int64_t lane, int64_t i) {
    return std::array{8 * (i / 4) + 4 * (lane / 32) + i % 4, lane % 32};
  });
  ExpectFragment(MfmaC(16), {1, 64, 16, 16}, [](int64_t, int64_t lane, int64_t i) {
    return std::array{4 * (lane / 16) + i, lane % 16};
  });
  ExpectFragment(RdnaWmmaC(), {1, 32, 16, 16}, [](int64_t, int64_t lane, int64_t i) {
    return std::array{2 * i + lane / 16, lane % 16};
  });
}

// Blocks of instructions for every warp, against the comment in the header.
TEST(MatrixFragments, TiledOverWarps) {
  const FragmentLayout c = TiledC(kMma16, 100, 90, 2, 3);
  EXPECT_THAT(c.padded(), ElementsAre(128, 96));
  ForEachPlace(c, [&](const Place& p) {
    const int64_t atom = p.slot / 4, across = atom % 4, down = atom / 4;  // 4 x 4 instructions
    const int64_t flat = AtomC(kMma16).At({0, 0, p.lane, p.slot % 4});
    const int64_t row = p.warp / 3 * 64 + down * 16 + flat / 8;
    const int64_t col = p.warp % 3 * 32 + across * 8 + flat % 8;
    ASSERT_EQ(c.At(p), row * 96 + col);
  });
  EXPECT_TRUE(c.Covers() && c.IsSeparable() && !c.IsReplicated());

  const FragmentLayout a = TiledA(kMma16, 100, 40, 2, 3);
  EXPECT_THAT(a.padded(), ElementsAre(128, 48));
  ForEachPlace(a, [&](const Place& p) {
    const int64_t atom = p.slot / 8, along = atom % 3, down = atom / 3;  // 4 x 3 instructions
    const int64_t flat = AtomA(kMma16).At({0, 0, p.lane, p.slot % 8});
    const int64_t row = p.warp / 3 * 64 + down * 16 + flat / 16;
    ASSERT_EQ(a.At(p), row * 48 + along * 16 + flat % 16);
  });
  EXPECT_TRUE(a.Covers() && a.IsSeparable() && a.IsReplicated());
}

// -- The default

struct Blocked {
  std::vector<int64_t> extents;
  int64_t bytes;
  int warps, groups;
  const char* text;
};

TEST(BlockedLayout, Examples) {
  const Blocked cases[] = {
      {{128, 64}, 2, 8, 1, "128x64 warp {8,256} lane {32,8} slot {8,1} {4,2048}"},
      {{64, 64}, 4, 8, 1, "64x64 warp {8,128} lane {32,4} slot {4,1} {4,1024}"},
      // Odd factors go to slots: 4 threads with 5 vectors each.
      {{128, 160}, 2, 8, 1, "128x160 warp {8,1280} lane {4,8} {8,160} slot {8,1} {5,32} {2,10240}"},
      {{64, 229}, 4, 8, 1, "64x229 in 64x232 warp {8,928} lane {8,1} {4,232} slot {29,8} {2,7424}"},
      {{8, 229}, 4, 8, 1, "8x229 in 8x256 warp {8,256} lane {32,1} slot {8,32}"},
      // Warps go along the row where there are too few rows.
      {{1, 8192}, 4, 8, 1, "1x8192 warp {8,128} lane {32,4} slot {4,1} {8,1024}"},
      {{128, 128}, 4, 6, 1, "128x128 in 132x128 warp {6,128} lane {32,4} slot {4,1} {22,768}"},
      {{128, 128}, 2, 4, 2, "128x128 group {2,1024} warp {4,256} lane {32,8} slot {8,1} {8,2048}"},
      // Threads that are left over.
      {{64}, 4, 8, 1, "64 warp {2,32} {4,0} lane {32,1}"},
      {{4, 2}, 4, 2, 1, "4x2 warp {2,0} lane {8,1} {4,0}"},
      {{1}, 8, 8, 2, "1 group {2,0} warp {8,0} lane {32,0}"},
      // Outer dims.
      {{4, 8, 64, 128}, 2, 8, 1, "4x8x64x128 warp {8,256} lane {32,8} slot {8,1} {128,2048}"},
  };
  for (const Blocked& c : cases) {
    EXPECT_EQ(BlockedLayout(c.extents, c.bytes, c.warps, 32, c.groups).ToString(), c.text);
  }
  EXPECT_EQ(BlockedLayout({4, 8}, 4, 1, 1).ToString(), "4x8 slot {32,1}");
  EXPECT_EQ(BlockedLayout({64, 64}, 4, 4, 64).ToString(),
            "64x64 warp {4,256} lane {64,4} slot {4,1} {4,1024}");
}

// -- Shared memory

int BruteConflicts(const std::vector<int64_t>& offsets, int bytes) {
  const int lanes = bytes == 16 ? 8 : bytes == 8 ? 16 : 32;
  int extra = 0;
  for (size_t begin = 0; begin < offsets.size(); begin += lanes) {
    int most = 1;
    for (int64_t bank = 0; bank < 32; ++bank) {
      std::set<int64_t> words;
      for (size_t i = begin; i < std::min(offsets.size(), begin + lanes); ++i) {
        for (int64_t b = 0; offsets[i] >= 0 && b < bytes; ++b) {
          if ((offsets[i] + b) / 4 % 32 == bank) words.insert((offsets[i] + b) / 4);
        }
      }
      most = std::max(most, static_cast<int>(words.size()));
    }
    extra += most - 1;
  }
  return extra;
}

TEST(SharedLayout, BankConflicts) {
  Rng rng(5);
  for (int i = 0; i < 2000; ++i) {
    const int bytes = 1 << Pick(rng, 0, 4);
    const int64_t most = Pick(rng, 0, 1) ? 64 : 2048;
    std::vector<int64_t> offsets(Pick(rng, 1, 32));
    for (int64_t& o : offsets) o = Pick(rng, 0, 9) ? Pick(rng, 0, most / bytes) * bytes : -1;
    ASSERT_EQ(BankConflicts(offsets, bytes), BruteConflicts(offsets, bytes));
  }
  std::vector<int64_t> column(32);
  for (int64_t i = 0; i < 32; ++i) column[i] = i * 128;
  EXPECT_EQ(BankConflicts(column, 4), 31);
  EXPECT_EQ(BankConflicts(column, 16), 4 * 7);
  EXPECT_EQ(BankConflicts(std::vector<int64_t>(32, 64), 4), 0);  // one word, read once for all
  EXPECT_EQ(BankConflicts({}, 4), 0);
}

TEST(SharedLayout, SwizzleByRow) {
  const std::pair<int64_t, Swizzle> cases[] = {
      {16, {}},      {32, {1, 2}}, {48, {}},      {64, {2, 1}},  {96, {1, 2}},
      {128, {3, 0}}, {176, {}},    {192, {2, 1}}, {256, {3, 0}}, {384, {3, 0}},
      {20, {}},      {8, {}},      {0, {}},
  };
  for (const auto& [row_bytes, swizzle] : cases) {
    EXPECT_EQ(SwizzleFor(row_bytes), swizzle) << row_bytes;
  }
  // The header's example: chunk 0 of rows 0, 2, 4, 6.
  std::vector<int64_t> chunks;
  for (int64_t row : {0, 2, 4, 6}) {
    chunks.push_back((SwizzledOffset(SwizzleFor(64), 64, row, 0) - row * 64) / 16);
  }
  EXPECT_THAT(chunks, ElementsAre(0, 1, 2, 3));
}

// The hardware permutes bits of whole addresses: in rows of 128 bytes bits 4 to 6 by 7 to 9, of 64
// bits 4 and 5 by 7 and 8, of 32 bit 4 by 7. Tiles begin at multiples of 1024.
TEST(SharedLayout, PanelsAreTheHardwaresOrder) {
  for (int64_t row_bytes = 32; row_bytes <= 1024; row_bytes += 32) {
    const Swizzle s = PanelsFor(row_bytes);
    const int64_t width = row_bytes % 128 == 0 ? 128 : row_bytes % 64 == 0 ? 64 : 32;
    EXPECT_EQ(s.panel_bytes, width == row_bytes ? 0 : width);
    for (const int64_t rows : {8, 24, 64}) {
      for (int64_t row = 0; row < rows; ++row) {
        for (int64_t column = 0; column < row_bytes; ++column) {
          const int64_t plain = column / width * rows * width + row * width + column % width;
          const int64_t mask = width / 16 - 1;
          ASSERT_EQ(SwizzledOffset(s, row_bytes, row, column, rows), plain ^ (plain >> 7 & mask)
                                                                                 << 4)
              << row_bytes << " " << row << " " << column;
        }
      }
    }
  }
}

TEST(SharedLayout, SwizzleMovesWholeChunksWithinTheirRow) {
  for (int64_t row_bytes = 16; row_bytes <= 1024; row_bytes += 16) {
    const Swizzle swizzle = SwizzleFor(row_bytes);
    for (int64_t row = 0; row < 9; ++row) {
      std::set<int64_t> offsets;
      for (int64_t column = 0; column < row_bytes; ++column) {
        const int64_t offset = SwizzledOffset(swizzle, row_bytes, row, column);
        ASSERT_EQ(offset / row_bytes, row);
        ASSERT_EQ(offset % 16, column % 16);
        offsets.insert(offset);
      }
      ASSERT_EQ(static_cast<int64_t>(offsets.size()), row_bytes);
    }
  }
}

// Matrices of ldmatrix at any row that is a multiple of 8, and rows written 16 bytes a lane.
TEST(SharedLayout, SwizzleLeavesNoConflicts) {
  for (int64_t row_bytes = 16; row_bytes <= 1024; row_bytes += 16) {
    const Swizzle swizzle = SwizzleFor(row_bytes);
    const int64_t chunks = row_bytes / 16;
    const auto offset = [&](int64_t row, int64_t chunk) {
      return SwizzledOffset(swizzle, row_bytes, row, chunk * 16);
    };
    for (int64_t chunk = 0; chunk < chunks; ++chunk) {
      for (int64_t first = 0; first < 64; first += 8) {
        std::vector<int64_t> offsets;
        for (int64_t row = first; row < first + 8; ++row) offsets.push_back(offset(row, chunk));
        ASSERT_EQ(BankConflicts(offsets, 16), 0) << row_bytes;
      }
    }
    for (int64_t first = 0; first < 16 * chunks; first += 32) {
      std::vector<int64_t> offsets;
      for (int64_t i = first; i < first + 32; ++i)
        offsets.push_back(offset(i / chunks, i % chunks));
      ASSERT_EQ(BankConflicts(offsets, 16), 0) << row_bytes;
    }
  }
}

// -- Pictures

int64_t Count(const std::string& text, std::string_view part) {
  int64_t count = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++count;
  return count;
}

TEST(LayoutSvg, BoxesAreRunsOfOneThread) {
  const std::string svg = FragmentSvg(AtomC(kMma16), "mma_c");
  EXPECT_THAT(svg, ::testing::HasSubstr("mma_c: 16x8 lane {32,2} slot {2,1} {2,64}"));
  EXPECT_THAT(svg, ::testing::HasSubstr(">13.2-3</text>"));
  EXPECT_EQ(Count(svg, "M"), 64);      // pairs
  EXPECT_EQ(Count(svg, "<path"), 32);  // lanes
  // 16 columns of padding, and what nobody holds.
  const FragmentLayout odd({1, 3}, {1, 6}, {{}, {}, {{2, 1}}, {{2, 2}}});
  const std::string grey = FragmentSvg(odd, "a<b>&c");
  EXPECT_THAT(grey, ::testing::HasSubstr("a&lt;b&gt;&amp;c"));
  EXPECT_EQ(Count(grey, "#eeeeee"), 1);
  EXPECT_EQ(Count(grey, "#ffffff"), 1);
  // Many boxes: colours only.
  EXPECT_EQ(Count(FragmentSvg(BlockedLayout({64, 64}, 4, 8, 32), "x"), ">0.0-3<"), 8);
  EXPECT_EQ(Count(FragmentSvg(BlockedLayout({256, 64}, 4, 8, 32), "x"), ">0.0-3<"), 0);
}

TEST(LayoutSvg, Banks) {
  const std::string svg = SharedSvg(8, 32, 2, SwizzleFor(64), "t");
  EXPECT_THAT(svg, ::testing::HasSubstr("chunk ^= row / 2 mod 4"));
  EXPECT_THAT(svg, ::testing::HasSubstr("ldmatrix takes 0 extra passes, plain rows 3"));
  EXPECT_EQ(Count(svg, ">28-31</text>"), 4);  // eight groups of banks, 32 chunks
  const std::string plain = SharedSvg(2, 3, 8, {}, "t");
  EXPECT_EQ(Count(plain, ">10-11</text>"), 1);
  EXPECT_EQ(Count(plain, "ldmatrix"), 0);
}

}  // namespace
}  // namespace tl
