// copy and tile atomics: the operations that may cross the edge of a tensor.
#include <algorithm>
#include <cstring>

#include "backends/reference/agent.h"

namespace tl::reference {
namespace {

// Tile coordinates of the other side of a transposing copy.
Index Swapped(Index c) {
  std::swap(c[0], c[1]);
  return c;
}

// Which part [low, high) of n elements along buffer dim d lies inside the tensor; all other
// coordinates of `at` must, else it is empty.
struct Range {
  int64_t low = 0, high = 0;
};
Range Inside(const Tensor& tensor, const Index& at, int d, int64_t n) {
  Range r{0, n};
  for (int i = 0; i < tensor.rank(); ++i) {
    if (i == d) {
      r.low = std::clamp<int64_t>(-at[i], 0, n);
      r.high = std::clamp<int64_t>(tensor.extent(i) - at[i], r.low, n);
    } else if (at[i] < 0 || at[i] >= tensor.extent(i)) {
      return {};
    }
  }
  return r;
}

// One row of a tile along its last dim, seen from the tensor's side.
struct Row {
  Index at;       // of the tensor
  int dim;        // of the tensor, along which the row runs
  int64_t n;      // elements
  TileView tile;  // rank 1
};

// Calls fn(row, c) for every row of the tile; c holds the region's coordinates of its first
// element.
template <typename Fn>
void ForEachRow(const Region& region, const Index& offset, const TileView& tile, bool transpose,
                Fn fn) {
  const int rank = tile.rank;
  Index outer = tile.extent;
  const int64_t n = rank == 0 ? 1 : tile.extent[rank - 1];
  ForEachCoordinate(std::max(rank - 1, 0), outer, [&](const Index& c) {
    const Index rc = transpose ? Swapped(c) : c;
    Row row;
    row.at = offset;
    for (int i = 0; i < region.rank(); ++i) row.at[region.dims[i]] += rc[i];
    row.dim = rank == 0 ? 0 : region.dims[transpose ? 0 : rank - 1];
    row.n = n;
    row.tile = tile;
    row.tile.rank = 1;
    row.tile.extent[0] = n;
    row.tile.stride[0] = rank == 0 ? 1 : tile.stride[rank - 1];
    const int64_t at = tile.At(c);
    row.tile.cell += at;
    if (row.tile.def != nullptr) {
      row.tile.err += at;
      row.tile.def += at;
    }
    fn(row, rc);
  });
}

TileView Part(TileView row, int64_t low) {
  const int64_t at = low * row.stride[0];
  row.cell += at;
  if (row.def != nullptr) {
    row.err += at;
    row.def += at;
  }
  return row;
}

// `rows=` limits dim 0 of the region: along the row itself when the row runs along it.
Range Limit(Range r, const Index& c, bool along, int64_t rows) {
  if (along)
    return {std::min(r.low, std::max<int64_t>(rows, 0)), std::clamp<int64_t>(rows, 0, r.high)};
  return c[0] < rows ? r : Range{};
}

}  // namespace

void Agent::ConvertRow(DType from, const TileView& row, DType to, int64_t n) const {
  if (from == to) return;
  const ScalarType type = ComputeType(from);
  for (int64_t i = 0; i < n; ++i) {
    const int64_t at = i * row.stride[0];
    Value v = arith_.Convert(to, type, row.Get(at));
    row.Set(at, v);
  }
}

bool Agent::Exec(const Stmt& s, const Copy& copy) {
  block_->work += copy.dst.num_elements();
  TileView src, dst;
  if (buffer(copy.src.buffer).scope == Scope::kGlobal) {
    return View(copy.dst, s.span, &dst) && CopyIn(s, copy, dst);
  }
  if (!ReadView(copy.src, s.span, &src)) return false;
  if (buffer(copy.dst.buffer).scope == Scope::kGlobal) return CopyOut(s, copy, src);
  return View(copy.dst, s.span, &dst) && CopyTile(copy, src, dst);
}

// Through memory of its own: the windows may lie in one tile.
bool Agent::CopyTile(const Copy& copy, const TileView& src, const TileView& dst) {
  Elements all;
  all.Resize(copy.dst.num_elements(), exact_);
  const TileView tmp = ViewOf(src.id, src.dtype, copy.dst.extents, &all);
  ForEachCoordinate(dst.rank, dst.extent, [&](const Index& c) {
    tmp.Set(tmp.At(c), src.Get(src.At(copy.transpose ? Swapped(c) : c)));
  });
  const ScalarType type = ComputeType(src.dtype);
  ForEachCoordinate(dst.rank, dst.extent, [&](const Index& c) {
    const Value v = tmp.Get(tmp.At(c));
    dst.Set(dst.At(c), src.dtype == dst.dtype ? v : arith_.Convert(dst.dtype, type, v));
  });
  return true;
}

bool Agent::CopyIn(const Stmt& s, const Copy& copy, const TileView& dst) {
  Index offset;
  if (!EvalOffsets(copy.src, s.span, &offset)) return false;
  const int64_t rows = copy.rows ? EvalInt(copy.rows, "rows") : INT64_MAX;
  if (failed()) return false;
  const Tensor& tensor = machine_->tensor(copy.src.buffer);
  const DType from = buffer(copy.src.buffer).dtype;
  const bool along = copy.transpose || dst.rank == 1;
  Elements line;
  line.Resize(dst.rank == 0 ? 1 : dst.extent[dst.rank - 1], exact_);
  ForEachRow(copy.src, offset, dst, copy.transpose, [&](Row row, const Index& c) {
    const Range r = Limit(Inside(tensor, row.at, row.dim, row.n), c, along, rows);
    const TileView buf = ViewOf(row.tile.id, from, {row.n}, &line);
    std::memset(buf.cell, 0, static_cast<size_t>(row.n) * sizeof(Cell));
    if (exact_) {
      std::fill_n(buf.err, row.n, 0.0);
      std::fill_n(buf.def, row.n, uint8_t{1});
    }
    row.at[row.dim] += r.low;
    tensor.ReadRun(row.at, row.dim, r.high - r.low, Part(buf, r.low));
    ConvertRow(from, buf, dst.dtype, row.n);
    for (int64_t i = 0; i < row.n; ++i) row.tile.Set(i * row.tile.stride[0], buf.Get(i));
  });
  return !failed();
}

bool Agent::CopyOut(const Stmt& s, const Copy& copy, const TileView& src) {
  Index offset;
  if (!EvalOffsets(copy.dst, s.span, &offset)) return false;
  const int64_t rows = copy.rows ? EvalInt(copy.rows, "rows") : INT64_MAX;
  if (failed()) return false;
  Tensor& tensor = machine_->tensor(copy.dst.buffer);
  const DType to = tensor.buffer().dtype;
  const bool along = copy.transpose || src.rank == 1;
  Elements line;
  line.Resize(src.rank == 0 ? 1 : src.extent[src.rank - 1], exact_);
  ForEachRow(copy.dst, offset, src, copy.transpose, [&](Row row, const Index& c) {
    if (failed()) return;
    const Range r = Limit(Inside(tensor, row.at, row.dim, row.n), c, along, rows);
    const int64_t n = r.high - r.low;
    if (n <= 0) return;
    const TileView part = Part(row.tile, r.low);
    if (!CheckDefinedOutput(copy.dst.buffer, part, n, s.span)) return;
    row.at[row.dim] += r.low;
    if (src.dtype == to) return tensor.WriteRun(row.at, row.dim, n, part);
    const TileView buf = ViewOf(src.id, to, {n}, &line);
    for (int64_t i = 0; i < n; ++i) buf.Set(i, part.Get(i * part.stride[0]));
    ConvertRow(src.dtype, buf, to, n);
    tensor.WriteRun(row.at, row.dim, n, buf);
  });
  return !failed();
}

bool Agent::Exec(const Stmt& s, const Atomic& atomic) {
  TileView src;
  if (!ReadView(atomic.src, s.span, &src)) return false;
  Index offset;
  if (!EvalOffsets(atomic.dst, s.span, &offset)) return false;
  Tensor& tensor = machine_->tensor(atomic.dst.buffer);
  const ScalarType type = ComputeType(src.dtype);
  ForEachCoordinate(src.rank, src.extent, [&](const Index& c) {
    if (failed()) return;
    Index at = offset;
    for (int d = 0; d < src.rank; ++d) at[atomic.dst.dims[d]] += c[d];
    if (!tensor.Contains(at)) return;
    const Value v = arith_.Convert(tensor.buffer().dtype, type, src.Get(src.At(c)));
    AtomicAt(s, atomic.op, &tensor, tensor.Offset(at), v);
  });
  block_->work += atomic.src.num_elements();
  return !failed();
}

}  // namespace tl::reference
