// How elements come from one layout to another: by enumerating both.
#include <algorithm>
#include <cassert>
#include <limits>
#include <utility>

#include "layout/fragment_layout.h"

namespace tl {
namespace {

// Sums of three of them are still negative.
constexpr int64_t kNobody = std::numeric_limits<int64_t>::min() / 8;

// The offsets of all indices below the product of the radices.
std::vector<int64_t> Offsets(const Digits& digits) {
  std::vector<int64_t> offsets = {0};
  for (const Digit& d : digits) {
    const size_t size = offsets.size();
    offsets.reserve(size * d.radix);
    for (int64_t value = 1; value < d.radix; ++value) {
      for (size_t i = 0; i < size; ++i) offsets.push_back(offsets[i] + value * d.stride);
    }
  }
  return offsets;
}

// Sums of an outer and an inner offset, the inner ones running fastest.
std::vector<int64_t> Sums(const std::vector<int64_t>& outer, const std::vector<int64_t>& inner) {
  std::vector<int64_t> sums;
  sums.reserve(outer.size() * inner.size());
  for (int64_t o : outer) {
    for (int64_t i : inner) sums.push_back(o + i);
  }
  return sums;
}

std::vector<int64_t> Offsets(const FragmentLayout& layout, LayoutAxis axis) {
  return Offsets(layout.digits(axis));
}

// Offsets of the warps of `layout` in the numbering (group, warp) of `like`; kNobody where `layout`
// has no such warp.
std::vector<int64_t> WarpOffsets(const FragmentLayout& layout, const FragmentLayout& like) {
  std::vector<int64_t> groups = Offsets(layout, LayoutAxis::kGroup);
  std::vector<int64_t> warps = Offsets(layout, LayoutAxis::kWarp);
  groups.resize(like.size(LayoutAxis::kGroup), kNobody);
  warps.resize(like.size(LayoutAxis::kWarp), kNobody);
  return Sums(groups, warps);
}

std::vector<int64_t> ThreadOffsets(const FragmentLayout& layout, const FragmentLayout& like) {
  std::vector<int64_t> lanes = Offsets(layout, LayoutAxis::kLane);
  lanes.resize(like.size(LayoutAxis::kLane), kNobody);
  return Sums(WarpOffsets(layout, like), lanes);
}

// For every element of the padded tile of `to` its index in that of `from`; -1 where it is padding.
// Empty where every element is its own.
std::vector<int64_t> Translation(const FragmentLayout& from, const FragmentLayout& to) {
  if (!from.IsPadded() && !to.IsPadded()) return {};
  std::vector<int64_t> table = {0};
  for (int d = 0; d < to.rank(); ++d) {
    std::vector<int64_t> next;
    next.reserve(table.size() * to.padded()[d]);
    for (int64_t base : table) {
      for (int64_t i = 0; i < to.padded()[d]; ++i) {
        const bool real = base >= 0 && i < to.extents()[d];
        next.push_back(real ? base * from.padded()[d] + i : -1);
      }
    }
    table = std::move(next);
  }
  return table;
}

// Slots of one thread by what they add, the lowest slot of equal ones first.
std::vector<std::pair<int64_t, int64_t>> SortedSlots(const std::vector<int64_t>& offsets) {
  std::vector<std::pair<int64_t, int64_t>> sorted;
  for (size_t s = 0; s < offsets.size(); ++s) sorted.emplace_back(offsets[s], s);
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

class Converter {
 public:
  Converter(const FragmentLayout& from, const FragmentLayout& to)
      : from_(from), to_(to), translate_(Translation(from, to)) {
    assert(from.extents() == to.extents());
  }

  std::optional<std::vector<int64_t>> SlotPermutation() const {
    const std::vector<int64_t> from_threads = ThreadOffsets(from_, to_);
    const std::vector<int64_t> to_threads = ThreadOffsets(to_, to_);
    const std::vector<int64_t> from_slots = Offsets(from_, LayoutAxis::kSlot);
    const auto sorted = SortedSlots(from_slots);
    std::vector<int64_t> permutation;
    for (int64_t slot : Offsets(to_, LayoutAxis::kSlot)) {
      // All threads that need something in this slot find it at one distance from their base.
      int64_t distance = kNobody;
      for (size_t t = 0; t < to_threads.size(); ++t) {
        const int64_t element = InFrom(to_threads[t] + slot);
        if (element < 0) continue;
        const int64_t here = element - from_threads[t];
        if (distance != kNobody && here != distance) return std::nullopt;
        distance = here;
      }
      // Its own place where that will do, as it does for padding.
      const size_t own = permutation.size();
      if (own < from_slots.size() && (distance == kNobody || from_slots[own] == distance)) {
        permutation.push_back(static_cast<int64_t>(own));
        continue;
      }
      const auto found =
          std::lower_bound(sorted.begin(), sorted.end(), std::pair(distance, int64_t{0}));
      const bool any = distance == kNobody;
      if (!any && (found == sorted.end() || found->first != distance)) return std::nullopt;
      permutation.push_back(any ? 0 : found->second);
    }
    return permutation;
  }

  bool StaysInWarps() const {
    const std::vector<int64_t> from_warps = WarpOffsets(from_, to_);
    const std::vector<int64_t> to_warps = WarpOffsets(to_, to_);
    const std::vector<int64_t> from_places = PlacesInWarp(from_), to_places = PlacesInWarp(to_);
    std::vector<int> held_by(from_.padded_elements(), -1);
    for (size_t w = 0; w < to_warps.size(); ++w) {
      if (from_warps[w] >= 0) {
        for (int64_t p : from_places) held_by[from_warps[w] + p] = static_cast<int>(w);
      }
      for (int64_t p : to_places) {
        const int64_t element = InFrom(to_warps[w] + p);
        if (element >= 0 && held_by[element] != static_cast<int>(w)) return false;
      }
    }
    return true;
  }

 private:
  static std::vector<int64_t> PlacesInWarp(const FragmentLayout& layout) {
    return Sums(Offsets(layout, LayoutAxis::kLane), Offsets(layout, LayoutAxis::kSlot));
  }

  int64_t InFrom(int64_t flat) const { return translate_.empty() ? flat : translate_[flat]; }

  const FragmentLayout& from_;
  const FragmentLayout& to_;
  const std::vector<int64_t> translate_;
};

bool IsIota(const std::vector<int64_t>& values) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] != static_cast<int64_t>(i)) return false;
  }
  return true;
}

}  // namespace

std::optional<std::vector<int64_t>> SlotPermutation(const FragmentLayout& from,
                                                    const FragmentLayout& to) {
  return Converter(from, to).SlotPermutation();
}

Conversion ConversionBetween(const FragmentLayout& from, const FragmentLayout& to) {
  if (from == to) return Conversion::kIdentity;
  const Converter converter(from, to);
  if (const auto permutation = converter.SlotPermutation()) {
    const bool same = from.slots() == to.slots() && IsIota(*permutation);
    return same ? Conversion::kIdentity : Conversion::kSlots;
  }
  return converter.StaysInWarps() ? Conversion::kShuffle : Conversion::kShared;
}

}  // namespace tl
