// Sums that stay parts until they are finished: every lane adds up its own elements of a row, and
// the lanes exchange once, at `finish`, instead of at every `reduce_sum`.
#ifndef TILEJIT_PASSES_PARTIAL_SUMS_H_
#define TILEJIT_PASSES_PARTIAL_SUMS_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "ir/module.h"
#include "layout/fragment_layout.h"

namespace tl {

// Bits in which the numbers of lanes differ that hold parts of one line along `dim`.
std::vector<int> LanesAlong(const FragmentLayout& layout, int dim);
// How many warps hold parts of one line.
int64_t WarpCountAlong(const FragmentLayout& layout, int dim);

// Reducers of a launch whose parts lanes may keep, with the exchanges that complete them. Fragments
// have their layouts.
using PartialSums = absl::flat_hash_map<BufferId, std::vector<int>>;
PartialSums FindPartialSums(const Module& module, const Launch& launch);

}  // namespace tl

#endif  // TILEJIT_PASSES_PARTIAL_SUMS_H_
