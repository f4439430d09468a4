// The way from a bound tile program to the scalar code of one thread.
#ifndef TILEJIT_PASSES_PIPELINE_H_
#define TILEJIT_PASSES_PIPELINE_H_

#include <cstdint>
#include <string_view>

#include "absl/types/span.h"
#include "base/status.h"
#include "base/target.h"
#include "ir/module.h"

namespace tl {

struct PassOptions {
  int64_t shared_budget = 0;  // bytes per block; 0: the target's limit
  bool may_stage = true;      // shared memory may be spent on the way of results to global memory
  int max_slots = 16;         // of the ring of a pipelined loop; 1: no overlap
};

struct Pass {
  std::string_view name;
  Status (*run)(Module& module, const Target& target, const PassOptions& options);
  std::string_view why;  // why it stands where it stands
};

// All passes, in order. The module is verified after each.
absl::Span<const Pass> Passes();

// `tile` (level Tile) as code for one thread of `target` (level Thread).
//
// What an emitter finds: statements of level Thread only (module.h); every tile in the launch's
// arena (scope kShared, arena_offset, flat element offsets); channels likewise, coming into being
// at their Alloc; local arrays at theirs. Grid axes are Lets of Launch::block, their product is the
// number of blocks. Mutable variables are assigned before they are read and need no declaration in
// place. Statements outside ThreadFor and OnFirstThread run in every thread with the same values.
// An emitter that lets one block walk several block indices puts a barrier between two of them.
//
// Errors: RESOURCE_EXHAUSTED where the tiles do not fit, UNIMPLEMENTED where the target cannot do
// what the program asks, INTERNAL for a fault of a pass.
StatusOr<Module> Lower(const Module& tile, const Target& target, int64_t shared_budget = 0);

}  // namespace tl

#endif  // TILEJIT_PASSES_PIPELINE_H_
