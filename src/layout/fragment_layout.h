// Which thread holds which elements of a tile, and in which of its registers.
//
// A fragment layout maps (group, warp, lane, slot) to an element. Each of the four axes is a list
// of digits, the least significant one first: the axis' index is written in the mixed radix of its
// digits, every digit is multiplied by its stride, and the sum over all axes is the element's index
// in the row-major order of the padded tile. That index is flat: a digit may run through rows and
// columns alike.
//
// Example: the result of `mma.m16n8k16`, a tile of 16 x 8 on 32 lanes with four registers each.
//
//     lane: {4, 2} {8, 8}      slot: {2, 1} {2, 64}
//
// Lane 13 = 1 + 3*4 has digits 1 and 3, slot 2 = 0 + 1*2 has digits 0 and 1, so that lane's slot 2
// is element 1*2 + 3*8 + 0*1 + 1*64 = 90 of the tile: row 11, column 2. The manual says the same:
// row = lane/4 + 8 for the upper pair, column = 2*(lane%4). (The lanes' 8 is 4*2, so they run on
// from row to row and are kept as one digit, {32, 2}.)
//
// A digit with stride 0 replicates: all its values hold the same element. Elements beyond `extents`
// (the tile padded up to `padded`) exist in registers and mean nothing.
#ifndef TILEJIT_LAYOUT_FRAGMENT_LAYOUT_H_
#define TILEJIT_LAYOUT_FRAGMENT_LAYOUT_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tl {

struct Digit {
  int64_t radix, stride;
  bool operator==(const Digit&) const = default;
};
using Digits = std::vector<Digit>;

enum class LayoutAxis : uint8_t { kGroup, kWarp, kLane, kSlot };
inline constexpr int kNumLayoutAxes = 4;

// Where an element lies.
struct Place {
  int64_t group = 0, warp = 0, lane = 0, slot = 0;
  bool operator==(const Place&) const = default;
};

class FragmentLayout {
 public:
  struct Axes {
    Digits group, warp, lane, slot;
  };

  // Canonical: neighbouring digits that run on (stride = radix * stride of the one before) are one,
  // radix 1 is left out; slots of stride 0 hold nothing new and are left out.
  FragmentLayout(std::vector<int64_t> extents, std::vector<int64_t> padded, Axes axes);
  // Without padding.
  FragmentLayout(std::vector<int64_t> extents, Axes axes)
      : FragmentLayout(extents, extents, std::move(axes)) {}

  const std::vector<int64_t>& extents() const { return extents_; }
  const std::vector<int64_t>& padded() const { return padded_; }
  const Digits& digits(LayoutAxis axis) const { return axes_[static_cast<int>(axis)]; }
  int rank() const { return static_cast<int>(extents_.size()); }
  int64_t size(LayoutAxis axis) const;  // product of the radices
  int64_t slots() const { return size(LayoutAxis::kSlot); }
  int64_t padded_elements() const;

  // Flat index in the padded tile.
  int64_t At(const Place& p) const;
  // Row-major coordinates of a flat index of the padded tile.
  std::vector<int64_t> Coordinates(int64_t flat) const;
  // Is the element inside `extents`?
  bool IsReal(int64_t flat) const;

  // Every element of the padded tile is held by somebody.
  bool Covers() const;
  // Some element is held by several threads.
  bool IsReplicated() const;
  // The padded tile differs from the tile.
  bool IsPadded() const { return extents_ != padded_; }

  // A digit that stays within one dim: coordinate `dim` grows by `step` with it; dim -1: stride 0.
  struct DimDigit {
    int64_t radix;
    int dim;
    int64_t step;
    bool operator==(const DimDigit&) const = default;
  };
  // The axis' digits, cut where one runs from a dim into the next ({32, 1} of 8 x 4 elements: {4,
  // dim 1 by 1} and {8, dim 0 by 1}); the index' mixed radix stays what it was. nullopt where a
  // digit cannot be cut so, as in a cyclic dealing of 96 x 176 elements.
  std::optional<std::vector<DimDigit>> DimDigits(LayoutAxis axis) const;
  // DimDigits exist for every axis, and their sums never leave the padded tile: coordinate d is the
  // sum of digit * step over the digits of dim d.
  bool IsSeparable() const;

  // Elements that one thread holds next to each other along the last dim, from any multiple of as
  // many slots on: the first slot digit's radix (cut at the row's end) where its stride is 1,
  // else 1.
  int64_t vector() const;

  // Lowest thread, then lowest slot that holds the element; nullopt where nobody does.
  std::optional<Place> Owner(int64_t flat) const;

  // The layout of what is left when dim is reduced (or of what is broadcast along dim): digits of
  // that dim get stride 0 (in slots: are left out) and the dim goes. nullopt unless IsSeparable.
  // The last dim of a rank-1 layout leaves one element, of extents {1}.
  std::optional<FragmentLayout> Project(int dim) const;

  // The same places of the transposed tile: what holds element (i, j) here holds (j, i) there, in
  // the same slot. Of rank 2; nullopt unless IsSeparable.
  std::optional<FragmentLayout> Transposed() const;

  // The same map and the same tile.
  bool operator==(const FragmentLayout&) const = default;

  // "96x176 lane {4,2} {8,176} slot {2,1} ...": for reports and tests.
  std::string ToString() const;

 private:
  std::vector<int64_t> extents_, padded_;
  std::array<Digits, kNumLayoutAxes> axes_;
};

// How the elements of one layout come to the places of another of the same extents.
enum class Conversion : uint8_t {
  kIdentity,  // nothing moves
  kSlots,     // every thread has what it needs: registers are renamed
  kShuffle,   // every warp has what it needs: lanes exchange
  kShared,    // through shared memory
};
Conversion ConversionBetween(const FragmentLayout& from, const FragmentLayout& to);
// kSlots: for each slot of `to` the slot of `from` that holds its element, in every thread.
std::optional<std::vector<int64_t>> SlotPermutation(const FragmentLayout& from,
                                                    const FragmentLayout& to);

// The default for tiles without demands. Threads run along the last dim with `vector` neighbouring
// elements each (at most 16 bytes), then along the others; what is left over goes to slots, and
// threads that are left over replicate. Every digit stays within one dimension.
// `threads_along_last` is a power of two of at most 32, so that reductions along the last dim stay
// within a warp, unless there are fewer rows than warps; odd factors go to slots (160 columns of 2
// bytes: 4 threads with 5 vectors each). Of all ways the one with the fewest slots, then the least
// padding, then the widest vector, as long as neighbouring lanes read whole sectors of 32 bytes of
// a row.
FragmentLayout BlockedLayout(const std::vector<int64_t>& extents, int64_t element_bytes, int warps,
                             int warp_size, int groups = 1);

}  // namespace tl

#endif  // TILEJIT_LAYOUT_FRAGMENT_LAYOUT_H_
