// What a warp's accesses to a tile in shared memory cost beyond one pass, as lines of the report.
#ifndef TILEJIT_PASSES_BANK_NOTES_H_
#define TILEJIT_PASSES_BANK_NOTES_H_

#include <cstdint>
#include <string_view>

#include "passes/lowering.h"

namespace tl {

// Lanes touch `count` neighbouring elements each, dealt out by `layout`, of the window `tile` of a
// tile. `verb`: "reading", "writing".
void NoteConflicts(Lowering& l, std::string_view verb, const Region& tile,
                   const FragmentLayout& layout, int64_t count);

// Matrices of 8 rows by 16 bytes, the rows along the window's first dim.
void NoteMatrixConflicts(Lowering& l, std::string_view verb, const Region& tile);

}  // namespace tl

#endif  // TILEJIT_PASSES_BANK_NOTES_H_
