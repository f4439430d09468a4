// Tiles of one thread block and strided windows into them.
#ifndef TILEJIT_BACKENDS_REFERENCE_TILE_H_
#define TILEJIT_BACKENDS_REFERENCE_TILE_H_

#include <array>
#include <cstdint>
#include <vector>

#include "backends/reference/value.h"
#include "ir/module.h"

namespace tl::reference {

inline constexpr int kMaxRank = 8;
using Index = std::array<int64_t, kMaxRank>;

// Elements of a tile, a message or a row on its way; err and def only in kExact.
struct Elements {
  std::vector<Cell> cell;
  std::vector<double> err;
  std::vector<uint8_t> def;

  void Resize(int64_t n, bool exact);
};

struct Tile {
  BufferId id = kNoId;
  const Buffer* buffer = nullptr;
  Elements data;
  // kExact: which iteration of which `parallel` stored the element last; see Agent::CheckRace.
  std::vector<uint64_t> writer;
  bool readable = true;  // a reducer becomes so when it is finished

  // Enters scope: undefined, or for a reducer its identity.
  void Enter(BufferId id, const Buffer& buffer, bool exact);
};

// Element c of the view is at sum of c[i] * stride[i].
struct TileView {
  BufferId id = kNoId;
  DType dtype = DType::kF32;
  Cell* cell = nullptr;
  double* err = nullptr;   // null in kRounded
  uint8_t* def = nullptr;  // null in kRounded
  int rank = 0;
  Index extent{};
  Index stride{};

  int64_t At(const Index& c) const {
    int64_t at = 0;
    for (int d = 0; d < rank; ++d) at += c[d] * stride[d];
    return at;
  }
  Value Get(int64_t at) const {
    Value v{.c = cell[at]};
    if (def != nullptr) {
      v.err = err[at];
      if (!def[at]) v.undefined = id;
    }
    return v;
  }
  void Set(int64_t at, const Value& v) const {
    cell[at] = v.c;
    if (def != nullptr) {
      err[at] = v.err;
      def[at] = v.undefined == kNoId;
    }
  }
};

// The view of all of `data` as a row-major block of these extents.
TileView ViewOf(BufferId id, DType dtype, const std::vector<int64_t>& extents, Elements* data);

// Calls fn(const Index&) for every coordinate of the first `rank` extents, last dim fastest.
template <typename Fn>
void ForEachCoordinate(int rank, const Index& extent, Fn fn) {
  for (int d = 0; d < rank; ++d) {
    if (extent[d] <= 0) return;
  }
  Index c{};
  while (true) {
    fn(c);
    int d = rank - 1;
    while (d >= 0 && ++c[d] == extent[d]) c[d--] = 0;
    if (d < 0) return;
  }
}

}  // namespace tl::reference

#endif  // TILEJIT_BACKENDS_REFERENCE_TILE_H_
