#include "backends/reference/tile.h"

#include <algorithm>
#include <limits>

namespace tl::reference {
namespace {

// What an unwritten element holds: conspicuous where it is not tracked.
Cell Poison(DType t) {
  if (IsFloat(t)) return Cell{.f = std::numeric_limits<double>::quiet_NaN()};
  if (t == DType::kBool) return Cell{.i = 1};
  return Cell{.i = WrapTo(t, -0x5a5a5a5a5a5a5a5b)};
}

Cell IdentityCell(const Buffer& b) {
  const double v = Identity(b.reduce_op, b.dtype);
  if (IsFloat(b.dtype)) return Cell{.f = v};
  // The largest i64 is not a double.
  if (b.dtype == DType::kI64 && v > 1) return Cell{.i = std::numeric_limits<int64_t>::max()};
  return Cell{.i = static_cast<int64_t>(v)};
}

}  // namespace

void Elements::Resize(int64_t n, bool exact) {
  cell.resize(n);
  if (!exact) return;
  err.resize(n);
  def.resize(n);
}

void Tile::Enter(BufferId new_id, const Buffer& new_buffer, bool exact) {
  id = new_id;
  buffer = &new_buffer;
  const bool reducer = new_buffer.role == BufferRole::kReducer;
  readable = !reducer;
  data.Resize(new_buffer.num_elements(), exact);
  std::fill(data.cell.begin(), data.cell.end(),
            reducer ? IdentityCell(new_buffer) : Poison(new_buffer.dtype));
  std::fill(data.err.begin(), data.err.end(), 0.0);
  std::fill(data.def.begin(), data.def.end(), reducer);
  // Locals are private to the iteration that allocates them.
  if (exact && new_buffer.scope != Scope::kLocal) writer.assign(data.cell.size(), 0);
}

TileView ViewOf(BufferId id, DType dtype, const std::vector<int64_t>& extents, Elements* data) {
  TileView v;
  v.id = id;
  v.dtype = dtype;
  v.cell = data->cell.data();
  if (!data->def.empty() || data->cell.empty()) {
    v.err = data->err.data();
    v.def = data->def.data();
  }
  v.rank = static_cast<int>(extents.size());
  int64_t stride = 1;
  for (int d = v.rank - 1; d >= 0; --d) {
    v.extent[d] = extents[d];
    v.stride[d] = stride;
    stride *= extents[d];
  }
  return v;
}

}  // namespace tl::reference
