// Layouts at random, and what they mean by enumeration.
#ifndef TILEJIT_TESTS_UNIT_LAYOUT_TESTING_H_
#define TILEJIT_TESTS_UNIT_LAYOUT_TESTING_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "layout/fragment_layout.h"

namespace tl::layout_testing {

using Rng = std::mt19937_64;

inline int64_t Pick(Rng& rng, int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(rng);
}

inline int64_t SizeOfDigits(const Digits& digits) {
  int64_t size = 1;
  for (const Digit& d : digits) size *= d.radix;
  return size;
}

// The definition, on digits that nothing has touched.
inline int64_t ValueOf(const Digits& digits, int64_t index) {
  int64_t value = 0, weight = 1;
  for (const Digit& d : digits) {
    value += index / weight % d.radix * d.stride;
    weight *= d.radix;
  }
  return value;
}

// A layout as given to the constructor.
struct Given {
  std::vector<int64_t> extents, padded;
  FragmentLayout::Axes axes;
  FragmentLayout Make() const { return FragmentLayout(extents, padded, axes); }
};

inline void ForEachPlace(const FragmentLayout& layout,
                         const std::function<void(const Place&)>& visit) {
  for (int64_t g = 0; g < layout.size(LayoutAxis::kGroup); ++g) {
    for (int64_t w = 0; w < layout.size(LayoutAxis::kWarp); ++w) {
      for (int64_t l = 0; l < layout.size(LayoutAxis::kLane); ++l) {
        for (int64_t s = 0; s < layout.slots(); ++s) visit({g, w, l, s});
      }
    }
  }
}

// A real element's row-major index in the unpadded tile; -1 for padding.
inline int64_t RealIndex(const FragmentLayout& layout, int64_t flat) {
  const std::vector<int64_t> at = layout.Coordinates(flat);
  int64_t index = 0;
  for (int d = 0; d < layout.rank(); ++d) {
    if (at[d] >= layout.extents()[d]) return -1;
    index = index * layout.extents()[d] + at[d];
  }
  return index;
}

inline std::vector<int64_t> RandomExtents(Rng& rng, int64_t rank) {
  const int64_t sizes[] = {1, 2, 3, 4, 5, 6, 8, 10, 12, 16};
  std::vector<int64_t> extents(rank);
  for (int64_t& e : extents) e = sizes[Pick(rng, 0, rank == 1 ? 9 : rank == 2 ? 8 : 5)];
  return extents;
}

// Every element once, in digits that stay in their dims, dealt out to the axes in random order;
// some threads replicate.
inline Given RandomCover(Rng& rng, std::vector<int64_t> extents, std::vector<int64_t> padded) {
  std::vector<Digit> pieces;
  int64_t behind = 1;
  for (size_t d = padded.size(); d-- > 0;) {
    int64_t left = padded[d], stride = behind;
    for (int64_t p = 2; left > 1; ++p) {
      for (; left % p == 0; left /= p, stride *= p) pieces.push_back({p, stride});
    }
    behind *= padded[d];
  }
  if (Pick(rng, 0, 1)) pieces.push_back({2, 0});
  if (Pick(rng, 0, 3) == 0) pieces.push_back({3, 0});
  if (Pick(rng, 0, 2)) std::shuffle(pieces.begin(), pieces.end(), rng);
  Given given{std::move(extents), std::move(padded), {}};
  Digits* axes[] = {&given.axes.group, &given.axes.warp, &given.axes.lane, &given.axes.slot};
  for (const Digit& piece : pieces) axes[Pick(rng, 0, 3)]->push_back(piece);
  return given;
}

// Any digits that stay inside the padded tile: holes, overlaps, rows cut anywhere.
inline Given RandomDigits(Rng& rng, std::vector<int64_t> extents, std::vector<int64_t> padded) {
  int64_t room = -1, places = 1;
  for (int64_t p : padded) room = room < 0 ? p - 1 : (room + 1) * p - 1;
  Given given{std::move(extents), std::move(padded), {}};
  Digits* axes[] = {&given.axes.group, &given.axes.warp, &given.axes.lane, &given.axes.slot};
  for (int64_t n = Pick(rng, 0, 7); n > 0; --n) {
    const int64_t radix = Pick(rng, 1, 4);
    if (places * radix > 600) continue;
    const int64_t most = radix == 1 ? 9 : room / (radix - 1);
    const int64_t stride = Pick(rng, 0, 3) ? Pick(rng, 0, std::min<int64_t>(most, 12)) : 0;
    axes[Pick(rng, 0, 3)]->push_back({radix, stride});
    room -= (radix - 1) * stride;
    places *= radix;
  }
  return given;
}

inline Given RandomLayout(Rng& rng) {
  const std::vector<int64_t> padded = RandomExtents(rng, Pick(rng, 1, 3));
  std::vector<int64_t> extents = padded;
  if (Pick(rng, 0, 1)) {
    for (int64_t& e : extents) e = Pick(rng, std::max<int64_t>(1, e - 2), e);
  }
  return Pick(rng, 0, 1) ? RandomCover(rng, extents, padded) : RandomDigits(rng, extents, padded);
}

// Another layout of the same extents: like `from` with parts moved, or something else altogether.
inline Given RandomOther(Rng& rng, const Given& from) {
  Given to = from;
  const auto axis = [&]() -> Digits& {
    Digits* axes[] = {&to.axes.group, &to.axes.warp, &to.axes.lane, &to.axes.slot};
    return *axes[Pick(rng, 0, 3)];
  };
  switch (Pick(rng, 0, 3)) {
    case 0:
      std::shuffle(to.axes.slot.begin(), to.axes.slot.end(), rng);
      return to;
    case 1:
      std::shuffle(to.axes.lane.begin(), to.axes.lane.end(), rng);
      std::swap(to.axes.lane, to.axes.slot);
      return to;
    case 2: {
      Digits& digits = axis();
      std::shuffle(digits.begin(), digits.end(), rng);
      return to;
    }
    default:
      for (size_t d = 0; d < to.padded.size(); ++d) {
        to.padded[d] = to.extents[d] + Pick(rng, 0, 2);
      }
      return Pick(rng, 0, 1) ? RandomCover(rng, to.extents, to.padded)
                             : RandomDigits(rng, to.extents, to.padded);
  }
}

// -- The laws, each by enumeration over layouts of some hundred places

// Canonical digits hold the same map, and cutting digits into pieces changes nothing.
inline void CheckCanonical(Rng& rng, const Given& given) {
  const FragmentLayout layout = given.Make();
  const FragmentLayout::Axes& a = given.axes;
  Digits slot = a.slot;
  std::erase_if(slot, [](const Digit& d) { return d.stride == 0; });
  ASSERT_EQ(layout.size(LayoutAxis::kGroup), SizeOfDigits(a.group));
  ASSERT_EQ(layout.size(LayoutAxis::kWarp), SizeOfDigits(a.warp));
  ASSERT_EQ(layout.size(LayoutAxis::kLane), SizeOfDigits(a.lane));
  ASSERT_EQ(layout.slots(), SizeOfDigits(slot));
  ForEachPlace(layout, [&](const Place& p) {
    ASSERT_EQ(layout.At(p), ValueOf(a.group, p.group) + ValueOf(a.warp, p.warp) +
                                ValueOf(a.lane, p.lane) + ValueOf(slot, p.slot));
  });

  Given cut = given;
  for (Digits* digits : {&cut.axes.group, &cut.axes.warp, &cut.axes.lane, &cut.axes.slot}) {
    Digits pieces;
    for (const Digit& d : *digits) {
      const int64_t part = Pick(rng, 1, d.radix);
      if (d.radix % part != 0) {
        pieces.push_back(d);
        continue;
      }
      pieces.push_back({part, d.stride});
      pieces.push_back({1, Pick(rng, 0, 99)});
      pieces.push_back({d.radix / part, d.stride * part});
    }
    *digits = pieces;
  }
  EXPECT_EQ(cut.Make(), layout);
  for (int axis = 0; axis < kNumLayoutAxes; ++axis) {
    const Digits& digits = layout.digits(static_cast<LayoutAxis>(axis));
    for (size_t i = 0; i < digits.size(); ++i) {
      EXPECT_GT(digits[i].radix, 1);
      if (i > 0) {
        EXPECT_NE(digits[i].stride, digits[i - 1].radix * digits[i - 1].stride);
      }
    }
  }
}

inline void CheckCoverage(const FragmentLayout& layout) {
  std::map<int64_t, std::set<std::tuple<int64_t, int64_t, int64_t>>> holders;
  ForEachPlace(layout,
               [&](const Place& p) { holders[layout.At(p)].insert({p.group, p.warp, p.lane}); });
  EXPECT_EQ(layout.Covers(), static_cast<int64_t>(holders.size()) == layout.padded_elements());
  const bool several = std::any_of(holders.begin(), holders.end(),
                                   [](const auto& h) { return h.second.size() > 1; });
  EXPECT_EQ(layout.IsReplicated(), several);
}

inline void CheckOwner(const FragmentLayout& layout) {
  std::map<int64_t, Place> first;
  ForEachPlace(layout, [&](const Place& p) { first.emplace(layout.At(p), p); });
  for (int64_t flat = -2; flat < layout.padded_elements() + 3; ++flat) {
    const std::optional<Place> owner = layout.Owner(flat);
    const auto found = first.find(flat);
    ASSERT_EQ(owner.has_value(), found != first.end()) << flat;
    if (owner) {
      ASSERT_EQ(*owner, found->second) << flat;
    }
  }
}

// Sums of the pieces of an axis, by dim; the pieces' radices are a mixed radix of the index.
inline std::vector<int64_t> CoordinatesOf(const std::vector<FragmentLayout::DimDigit>& pieces,
                                          int64_t index, int rank) {
  std::vector<int64_t> at(rank, 0);
  for (const FragmentLayout::DimDigit& d : pieces) {
    if (d.dim >= 0) at[d.dim] += index % d.radix * d.step;
    index /= d.radix;
  }
  return at;
}

inline void CheckDims(const FragmentLayout& layout) {
  for (int64_t flat = 0; flat < layout.padded_elements(); ++flat) {
    int64_t back = 0;
    bool real = true;
    const std::vector<int64_t> at = layout.Coordinates(flat);
    for (int d = 0; d < layout.rank(); ++d) {
      ASSERT_LT(at[d], layout.padded()[d]);
      back = back * layout.padded()[d] + at[d];
      real = real && at[d] < layout.extents()[d];
    }
    ASSERT_EQ(back, flat);
    ASSERT_EQ(layout.IsReal(flat), real);
  }
  std::vector<std::vector<FragmentLayout::DimDigit>> pieces;
  bool inside = true;
  for (int a = 0; a < kNumLayoutAxes; ++a) {
    const auto axis = static_cast<LayoutAxis>(a);
    const auto cut = layout.DimDigits(axis);
    if (!cut) {
      EXPECT_FALSE(layout.IsSeparable());
      return;
    }
    int64_t size = 1;
    for (const auto& d : *cut) size *= d.radix;
    EXPECT_EQ(size, layout.size(axis));
    // By itself an axis' piece stays in its dim.
    int64_t weight = 1;
    for (const auto& d : *cut) {
      for (int64_t v = 0; v < d.radix; ++v) {
        std::vector<int64_t> expected(layout.rank(), 0);
        if (d.dim >= 0) expected[d.dim] = v * d.step;
        ASSERT_EQ(layout.Coordinates(ValueOf(layout.digits(axis), v * weight)), expected);
      }
      weight *= d.radix;
    }
    pieces.push_back(*cut);
  }
  // Together they may leave the dim, and only then are the sums no coordinates.
  ForEachPlace(layout, [&](const Place& p) {
    std::vector<int64_t> sum(layout.rank(), 0);
    const int64_t indices[] = {p.group, p.warp, p.lane, p.slot};
    for (int a = 0; a < kNumLayoutAxes; ++a) {
      const std::vector<int64_t> part = CoordinatesOf(pieces[a], indices[a], layout.rank());
      for (int d = 0; d < layout.rank(); ++d) sum[d] += part[d];
    }
    inside = inside && sum == layout.Coordinates(layout.At(p));
  });
  EXPECT_EQ(layout.IsSeparable(), inside);

  // What vector() promises holds from any thread's every vector-th slot on.
  ForEachPlace(layout, [&](const Place& p) {
    const int64_t within = p.slot % layout.vector();
    Place begin = p;
    begin.slot -= within;
    std::vector<int64_t> expected = layout.Coordinates(layout.At(begin));
    expected.back() += within;
    ASSERT_EQ(layout.Coordinates(layout.At(p)), expected);
  });
}

// Every thread's set of elements, without the dim. (Slots that would hold the same are one.)
inline void CheckProject(const FragmentLayout& layout) {
  for (int dim = 0; dim < layout.rank(); ++dim) {
    const std::optional<FragmentLayout> projected = layout.Project(dim);
    ASSERT_EQ(projected.has_value(), layout.IsSeparable());
    if (!projected) continue;
    for (LayoutAxis axis : {LayoutAxis::kGroup, LayoutAxis::kWarp, LayoutAxis::kLane}) {
      ASSERT_EQ(projected->size(axis), layout.size(axis));
    }
    using Thread = std::tuple<int64_t, int64_t, int64_t>;
    std::map<Thread, std::set<std::vector<int64_t>>> expected, actual;
    ForEachPlace(layout, [&](const Place& p) {
      std::vector<int64_t> at = layout.Coordinates(layout.At(p));
      at.erase(at.begin() + dim);
      if (at.empty()) at = {0};
      expected[{p.group, p.warp, p.lane}].insert(at);
    });
    ForEachPlace(*projected, [&](const Place& p) {
      actual[{p.group, p.warp, p.lane}].insert(projected->Coordinates(projected->At(p)));
    });
    EXPECT_EQ(actual, expected);
  }
}

// Where an element's holders are, for the brute force below.
using Holders = std::map<int64_t, std::vector<Place>>;

inline bool AnyOf(const Holders& holders, int64_t element,
                  const std::function<bool(const Place&)>& like) {
  const auto found = holders.find(element);
  return found != holders.end() && std::any_of(found->second.begin(), found->second.end(), like);
}

inline void CheckConversion(const FragmentLayout& from, const FragmentLayout& to) {
  Holders holders;
  ForEachPlace(from, [&](const Place& p) {
    const int64_t element = RealIndex(from, from.At(p));
    if (element >= 0) holders[element].push_back(p);
  });
  bool identity = from.slots() == to.slots(), shuffle = true;
  std::vector<std::set<int64_t>> choices(to.slots());  // slots of `from` that suit all threads
  for (auto& c : choices) {
    for (int64_t s = 0; s < from.slots(); ++s) c.insert(s);
  }
  ForEachPlace(to, [&](const Place& p) {
    const int64_t element = RealIndex(to, to.At(p));
    if (element < 0) return;
    identity = identity && AnyOf(holders, element, [&](const Place& q) { return q == p; });
    shuffle = shuffle && AnyOf(holders, element, [&](const Place& q) {
                return q.group == p.group && q.warp == p.warp;
              });
    std::erase_if(choices[p.slot], [&](int64_t s) {
      const Place here{p.group, p.warp, p.lane, s};
      return !AnyOf(holders, element, [&](const Place& q) { return q == here; });
    });
  });
  const bool slots =
      std::none_of(choices.begin(), choices.end(), [](const auto& c) { return c.empty(); });
  const Conversion expected = identity  ? Conversion::kIdentity
                              : slots   ? Conversion::kSlots
                              : shuffle ? Conversion::kShuffle
                                        : Conversion::kShared;
  EXPECT_EQ(ConversionBetween(from, to), expected) << from.ToString() << " -> " << to.ToString();
  const auto permutation = SlotPermutation(from, to);
  ASSERT_EQ(permutation.has_value(), slots);
  if (!permutation) return;
  ASSERT_EQ(static_cast<int64_t>(permutation->size()), to.slots());
  for (int64_t s = 0; s < to.slots(); ++s) EXPECT_TRUE(choices[s].contains((*permutation)[s]));
}

inline void CheckLaws(Rng& rng) {
  const Given given = RandomLayout(rng);
  const FragmentLayout layout = given.Make();
  SCOPED_TRACE(layout.ToString());
  CheckCanonical(rng, given);
  CheckCoverage(layout);
  CheckOwner(layout);
  CheckDims(layout);
  CheckProject(layout);
  CheckConversion(layout, RandomOther(rng, given).Make());
}

}  // namespace tl::layout_testing

#endif  // TILEJIT_TESTS_UNIT_LAYOUT_TESTING_H_
