#include "passes/bank_notes.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "layout/shared_layout.h"

namespace tl {
namespace {

// Byte offset of the element at `c` of a window that starts at 0: where it really starts is the
// same for all lanes and moves none of them to another's bank.
int64_t OffsetIn(const Buffer& b, const Region& window, const std::vector<int64_t>& c) {
  std::vector<int64_t> index(b.rank(), 0);
  for (size_t i = 0; i < c.size(); ++i) index[window.dims[i]] = c[i];
  const auto bytes = static_cast<int64_t>(SizeOf(b.dtype));
  const int64_t row_bytes = b.extents.back() * bytes, column = index.back() * bytes;
  if (b.rank() < 2) return column;
  int64_t rows_before = 0;
  for (int d = 0; d + 2 < b.rank(); ++d) rows_before = (rows_before + index[d]) * b.extents[d + 1];
  return rows_before * row_bytes +
         SwizzledOffset(b.swizzle, row_bytes, index[b.rank() - 2], column, b.extents[b.rank() - 2]);
}

void Note(Lowering& l, std::string_view verb, BufferId tile, int extra) {
  if (extra == 0) return;
  l.Note(absl::StrCat(verb, " ", l.buffer(tile).name),
         absl::StrCat(extra, extra == 1 ? " extra pass" : " extra passes",
                      " per access of a warp (bank conflicts)"));
}

}  // namespace

void NoteConflicts(Lowering& l, std::string_view verb, const Region& tile,
                   const FragmentLayout& layout, int64_t count) {
  const Buffer& b = l.buffer(tile.buffer);
  if (b.scope == Scope::kGlobal || b.layout) return;
  std::vector<int64_t> offsets;
  for (int64_t lane = 0; lane < l.target().warp_size; ++lane) {
    const int64_t flat = layout.At({.lane = lane});
    offsets.push_back(layout.IsReal(flat) ? OffsetIn(b, tile, layout.Coordinates(flat)) : -1);
  }
  const auto bytes = static_cast<int>(count * static_cast<int64_t>(SizeOf(b.dtype)));
  Note(l, verb, tile.buffer, BankConflicts(offsets, bytes));
}

void NoteMatrixConflicts(Lowering& l, std::string_view verb, const Region& tile) {
  std::vector<int64_t> offsets;
  for (int64_t row = 0; row < 8; ++row) {
    offsets.push_back(OffsetIn(l.buffer(tile.buffer), tile, {row, 0}));
  }
  Note(l, absl::StrCat(verb, " matrices of"), tile.buffer, BankConflicts(offsets, 16));
}

}  // namespace tl
