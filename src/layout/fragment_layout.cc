#include "layout/fragment_layout.h"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <span>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace tl {
namespace {

int64_t Product(std::span<const int64_t> values) {
  return std::accumulate(values.begin(), values.end(), int64_t{1}, std::multiplies<>());
}

// The offset that an axis' index stands for.
int64_t OffsetOf(const Digits& digits, int64_t index) {
  int64_t offset = 0;
  for (const Digit& d : digits) {
    offset += index % d.radix * d.stride;
    index /= d.radix;
  }
  return offset;
}

// Without radix 1, and with runs joined. Two lists of the same map end up the same: the first
// stride is the map's value at 1, and the first radix is how far the map stays linear.
Digits Coalesced(const Digits& digits) {
  Digits out;
  for (const Digit& d : digits) {
    assert(d.radix >= 1 && d.stride >= 0);
    if (d.radix == 1) continue;
    if (!out.empty() && d.stride == out.back().radix * out.back().stride) {
      out.back().radix *= d.radix;
    } else {
      out.push_back(d);
    }
  }
  return out;
}

// Cuts `digit` at the borders of the dims and appends the pieces; false where that is impossible.
bool CutAtDims(Digit digit, std::span<const int64_t> padded,
               std::vector<FragmentLayout::DimDigit>& pieces) {
  if (digit.stride == 0) {
    pieces.push_back({digit.radix, -1, 0});
    return true;
  }
  int64_t behind = 1;  // elements behind the dim
  for (int dim = static_cast<int>(padded.size()) - 1; dim >= 0; --dim) {
    const int64_t whole = behind * padded[dim];
    if (digit.stride < whole) {
      if (digit.stride % behind != 0) return false;
      const int64_t step = digit.stride / behind;
      if ((digit.radix - 1) * digit.stride < whole) {
        pieces.push_back({digit.radix, dim, step});
        return true;
      }
      const int64_t fit = padded[dim] / step;
      if (padded[dim] % step != 0 || digit.radix % fit != 0) return false;
      pieces.push_back({fit, dim, step});
      digit = {digit.radix / fit, whole};
    }
    behind = whole;
  }
  return false;  // leaves the tile
}

// All digits that make a difference, with where they come from, by falling strides.
struct Source {
  Digit digit;
  LayoutAxis axis;
  int64_t weight;  // of the digit in its axis' index
  int64_t rest;    // the most that the sources behind this one add
};

std::vector<Source> SourcesOf(const FragmentLayout& layout) {
  std::vector<Source> sources;
  for (int a = 0; a < kNumLayoutAxes; ++a) {
    const auto axis = static_cast<LayoutAxis>(a);
    int64_t weight = 1;
    for (const Digit& d : layout.digits(axis)) {
      if (d.stride != 0) sources.push_back({d, axis, weight, 0});
      weight *= d.radix;
    }
  }
  std::stable_sort(sources.begin(), sources.end(), [](const Source& x, const Source& y) {
    return x.digit.stride > y.digit.stride;
  });
  int64_t rest = 0;
  for (size_t i = sources.size(); i-- > 0;) {
    sources[i].rest = rest;
    rest += (sources[i].digit.radix - 1) * sources[i].digit.stride;
  }
  return sources;
}

// No two sums of digits are the same.
bool IsInjective(const std::vector<Source>& sources) {
  return std::all_of(sources.begin(), sources.end(),
                     [](const Source& s) { return s.digit.stride > s.rest; });
}

int64_t& Component(Place& place, LayoutAxis axis) {
  switch (axis) {
    case LayoutAxis::kGroup:
      return place.group;
    case LayoutAxis::kWarp:
      return place.warp;
    case LayoutAxis::kLane:
      return place.lane;
    case LayoutAxis::kSlot:
      break;
  }
  return place.slot;
}

bool Before(const Place& x, const Place& y) {
  return std::tie(x.group, x.warp, x.lane, x.slot) < std::tie(y.group, y.warp, y.lane, y.slot);
}

// Tries every way to write `flat` as a sum of the sources. Where the layout is injective there is
// at most one value for each digit, so this is division from the top down.
void FindOwner(std::span<const Source> sources, int64_t flat, Place place,
               std::optional<Place>& best) {
  if (sources.empty()) {
    if (flat == 0 && (!best || Before(place, *best))) best = place;
    return;
  }
  const Source& s = sources.front();
  const int64_t last = std::min(flat / s.digit.stride, s.digit.radix - 1);
  const int64_t short_of = std::max<int64_t>(0, flat - s.rest);
  const int64_t first = (short_of + s.digit.stride - 1) / s.digit.stride;
  for (int64_t value = first; value <= last; ++value) {
    Place next = place;
    Component(next, s.axis) += value * s.weight;
    FindOwner(sources.subspan(1), flat - value * s.digit.stride, next, best);
  }
}

std::string DigitsText(std::string_view name, const Digits& digits) {
  if (digits.empty()) return "";
  return absl::StrCat(" ", name, " ", absl::StrJoin(digits, " ", [](std::string* out, Digit d) {
                        absl::StrAppend(out, "{", d.radix, ",", d.stride, "}");
                      }));
}

}  // namespace

FragmentLayout::FragmentLayout(std::vector<int64_t> extents, std::vector<int64_t> padded, Axes axes)
    : extents_(std::move(extents)), padded_(std::move(padded)) {
  assert(!extents_.empty() && extents_.size() == padded_.size());
  Digits slot;
  for (const Digit& d : axes.slot) {
    if (d.stride != 0) slot.push_back(d);
  }
  const Digits* given[] = {&axes.group, &axes.warp, &axes.lane, &slot};
  for (int a = 0; a < kNumLayoutAxes; ++a) axes_[a] = Coalesced(*given[a]);
}

int64_t FragmentLayout::size(LayoutAxis axis) const {
  int64_t size = 1;
  for (const Digit& d : digits(axis)) size *= d.radix;
  return size;
}

int64_t FragmentLayout::padded_elements() const { return Product(padded_); }

int64_t FragmentLayout::At(const Place& p) const {
  return OffsetOf(digits(LayoutAxis::kGroup), p.group) +
         OffsetOf(digits(LayoutAxis::kWarp), p.warp) + OffsetOf(digits(LayoutAxis::kLane), p.lane) +
         OffsetOf(digits(LayoutAxis::kSlot), p.slot);
}

std::vector<int64_t> FragmentLayout::Coordinates(int64_t flat) const {
  std::vector<int64_t> coordinates(padded_.size());
  for (size_t d = padded_.size(); d-- > 1;) {
    coordinates[d] = flat % padded_[d];
    flat /= padded_[d];
  }
  coordinates[0] = flat;
  return coordinates;
}

bool FragmentLayout::IsReal(int64_t flat) const {
  for (size_t d = padded_.size(); d-- > 1;) {
    if (flat % padded_[d] >= extents_[d]) return false;
    flat /= padded_[d];
  }
  return flat < extents_[0];
}

bool FragmentLayout::Covers() const {
  // From the smallest stride up: the sums so far are all of [0, covered). A larger next stride
  // leaves `covered` out for good, any other extends the interval.
  const std::vector<Source> sources = SourcesOf(*this);
  int64_t covered = 1;
  for (size_t i = sources.size(); i-- > 0;) {
    const Digit& d = sources[i].digit;
    if (d.stride > covered) break;
    covered += (d.radix - 1) * d.stride;
  }
  return covered >= padded_elements();
}

bool FragmentLayout::IsReplicated() const {
  const auto zero = [](const Digit& d) { return d.stride == 0; };
  for (const Digits& digits : axes_) {
    if (std::any_of(digits.begin(), digits.end(), zero)) return true;
  }
  if (IsInjective(SourcesOf(*this))) return false;
  // Digits overlap: whoever is not its element's owner, slots aside, is a second holder.
  std::vector<int64_t> holder(padded_elements(), -1);
  const int64_t groups = size(LayoutAxis::kGroup), warps = size(LayoutAxis::kWarp);
  const int64_t lanes = size(LayoutAxis::kLane);
  for (int64_t thread = 0; thread < groups * warps * lanes; ++thread) {
    for (int64_t slot = 0; slot < slots(); ++slot) {
      int64_t& h =
          holder[At({thread / lanes / warps, thread / lanes % warps, thread % lanes, slot})];
      if (h >= 0 && h != thread) return true;
      h = thread;
    }
  }
  return false;
}

std::optional<std::vector<FragmentLayout::DimDigit>> FragmentLayout::DimDigits(
    LayoutAxis axis) const {
  std::vector<DimDigit> pieces;
  for (const Digit& digit : digits(axis)) {
    if (!CutAtDims(digit, padded_, pieces)) return std::nullopt;
  }
  return pieces;
}

bool FragmentLayout::IsSeparable() const {
  std::vector<int64_t> room = padded_;
  for (int a = 0; a < kNumLayoutAxes; ++a) {
    const auto pieces = DimDigits(static_cast<LayoutAxis>(a));
    if (!pieces) return false;
    for (const DimDigit& d : *pieces) {
      if (d.dim >= 0) room[d.dim] -= (d.radix - 1) * d.step;
    }
  }
  return std::all_of(room.begin(), room.end(), [](int64_t left) { return left > 0; });
}

int64_t FragmentLayout::vector() const {
  const Digits& slot = digits(LayoutAxis::kSlot);
  if (slot.empty() || slot[0].stride != 1) return 1;
  if (IsSeparable()) {
    const DimDigit first = DimDigits(LayoutAxis::kSlot)->front();
    return first.dim == rank() - 1 ? first.radix : 1;
  }
  // Runs may begin anywhere and end in the next row: only what divides everything is sure.
  int64_t sure = std::gcd(slot[0].radix, padded_.back());
  for (const Digits& digits : axes_) {
    for (const Digit& d : digits) {
      if (&d != &slot[0]) sure = std::gcd(sure, d.stride);
    }
  }
  return sure;
}

std::optional<Place> FragmentLayout::Owner(int64_t flat) const {
  std::optional<Place> best;
  if (flat < 0) return best;
  FindOwner(SourcesOf(*this), flat, Place{}, best);
  return best;
}

std::optional<FragmentLayout> FragmentLayout::Project(int dim) const {
  assert(dim >= 0 && dim < rank());
  if (!IsSeparable()) return std::nullopt;
  std::vector<int64_t> extents = extents_, padded = padded_;
  extents.erase(extents.begin() + dim);
  padded.erase(padded.begin() + dim);
  const auto behind = [&](int d) {  // elements of what is left behind dim d of this
    return Product(std::span(padded).subspan(d < dim ? d + 1 : d));
  };
  std::array<Digits, kNumLayoutAxes> axes;
  for (int a = 0; a < kNumLayoutAxes; ++a) {
    const auto pieces = DimDigits(static_cast<LayoutAxis>(a));
    for (const DimDigit& d : *pieces) {
      const bool stays = d.dim >= 0 && d.dim != dim;
      axes[a].push_back({d.radix, stays ? d.step * behind(d.dim) : 0});
    }
  }
  if (extents.empty()) extents = padded = {1};
  return FragmentLayout(std::move(extents), std::move(padded),
                        {axes[0], axes[1], axes[2], axes[3]});
}

std::optional<FragmentLayout> FragmentLayout::Transposed() const {
  assert(rank() == 2);
  if (!IsSeparable()) return std::nullopt;
  const int64_t strides[] = {1, padded_[0]};  // of this one's dims in the transposed tile
  std::array<Digits, kNumLayoutAxes> axes;
  for (int a = 0; a < kNumLayoutAxes; ++a) {
    const auto pieces = DimDigits(static_cast<LayoutAxis>(a));
    for (const DimDigit& d : *pieces) {
      axes[a].push_back({d.radix, d.dim < 0 ? 0 : d.step * strides[d.dim]});
    }
  }
  return FragmentLayout({extents_[1], extents_[0]}, {padded_[1], padded_[0]},
                        {axes[0], axes[1], axes[2], axes[3]});
}

std::string FragmentLayout::ToString() const {
  std::string text = absl::StrJoin(extents_, "x");
  if (IsPadded()) absl::StrAppend(&text, " in ", absl::StrJoin(padded_, "x"));
  constexpr std::string_view kNames[] = {"group", "warp", "lane", "slot"};
  for (int a = 0; a < kNumLayoutAxes; ++a) text += DigitsText(kNames[a], axes_[a]);
  return text;
}

}  // namespace tl
