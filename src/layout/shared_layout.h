// How a tile lies in shared memory: row-major, with the 16-byte chunks of a row permuted so that
// eight rows of one column of chunks fall into different banks.
//
// Shared memory has 32 banks of 4 bytes, 128 bytes in all, so eight chunks. `ldmatrix` and 16-byte
// accesses read eight chunks at a time; they are free of conflicts when the chunks' positions
// modulo 8 differ. In a tile of 64-byte rows (4 chunks), the rows 0, 2, 4, 6 start in the same
// bank. With bits = 2 and row_shift = 1, chunk c of row r lies at c ^ ((r >> 1) & 3): rows 0, 2, 4,
// 6 now put their chunk 0 at 0, 1, 2, 3.
#ifndef TILEJIT_LAYOUT_SHARED_LAYOUT_H_
#define TILEJIT_LAYOUT_SHARED_LAYOUT_H_

#include <cstdint>
#include <vector>

namespace tl {

struct Swizzle {
  int bits = 0;       // chunk index modulo 2^bits is permuted; 0: plain row-major
  int row_shift = 0;  // by (row >> row_shift) modulo 2^bits
  // Longer rows are cut into pieces of so many bytes: the first piece of every row, then the second
  // of every row, ... 0: rows are whole.
  int64_t panel_bytes = 0;

  bool operator==(const Swizzle&) const = default;
};

// The one that leaves no conflicts for rows of `row_bytes` (a multiple of 16; else none).
Swizzle SwizzleFor(int64_t row_bytes);

// The same for what reads matrices of 8 rows by 32, 64 or 128 bytes (Hopper's matrix instructions
// and its copies of boxes): panels of the largest of these that divides `row_bytes`, a multiple
// of 32.
Swizzle PanelsFor(int64_t row_bytes);

// Byte offset of byte `column` of row `row`; `rows`: of the tile, where it has panels.
int64_t SwizzledOffset(Swizzle swizzle, int64_t row_bytes, int64_t row, int64_t column,
                       int64_t rows = 0);

// Extra passes that the shared memory takes for one access of a warp: lane i touches `bytes` (1, 2,
// 4, 8, 16) bytes at offsets[i] (negative: it takes no part). Accesses of 8 bytes go by half warps,
// those of 16 by quarters; lanes that touch the same 4 bytes share them.
int BankConflicts(const std::vector<int64_t>& offsets, int bytes);

}  // namespace tl

#endif  // TILEJIT_LAYOUT_SHARED_LAYOUT_H_
