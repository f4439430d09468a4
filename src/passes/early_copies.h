// Which copies of a pipelined loop may start iterations before their data is needed, and why the
// others may not. Analysis only; plan_pipelines.h says what is made of it.
#ifndef TILEJIT_PASSES_EARLY_COPIES_H_
#define TILEJIT_PASSES_EARLY_COPIES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "ir/module.h"

namespace tl {

bool IsPipelined(const StmtRef& s);

// What has to be known about a whole launch. Loops are named by their variables.
class LaunchFacts {
 public:
  LaunchFacts(const Module& module, const Launch& launch);

  // Does some statement of the launch write it?
  bool IsWritten(BufferId b) const { return written_.contains(b); }
  // Variable of the innermost pipelined loop that holds every use of the tile; kNoId: none does.
  VarId HomeOf(BufferId tile) const;
  // Bytes of on-chip memory that are taken while the loop runs. Fragments count nothing.
  int64_t LiveBytes(VarId loop) const;
  // The tile has so many slots.
  void SetDepth(BufferId tile, int depth) { depths_[tile] = depth; }

 private:
  // Positions in program order.
  struct Range {
    int first = 0, last = -1;
  };
  struct Loop {
    VarId var;
    int parent;  // index, -1: none
    int depth;
    Range range;
  };

  void Walk(const Block& block, absl::flat_hash_set<BufferId>& outer);
  void Enter(const StmtRef& s, absl::flat_hash_set<BufferId>& used);
  void NoteUse(BufferId b, bool write);
  int Common(int a, int b) const;

  const Module& module_;
  absl::flat_hash_set<BufferId> written_;
  std::vector<Loop> loops_;  // pipelined ones
  int current_ = -1;         // index of the innermost loop around the statement at hand
  absl::flat_hash_map<BufferId, int> home_;
  absl::flat_hash_map<BufferId, Range> ranges_;  // tiles
  absl::flat_hash_map<BufferId, int> depths_;
  int position_ = 0;
};

// Of one loop.
struct LoopCopies {
  // Tiles whose copies may start early, each filled at the top level of the body by one copy, or by
  // several that fill a part each and together all of it.
  std::vector<BufferId> tiles;
  // The lets at the top level of the body that tell where these copies read from.
  absl::flat_hash_set<VarId> lets;
  // One line for each other copy from a tensor.
  std::vector<std::string> refused;
};

LoopCopies FindEarlyCopies(const Module& module, const LaunchFacts& facts, const For& loop);

// What a tile's first byte in the arena is a multiple of.
int64_t ArenaAlignment(const Buffer& b);
// Bytes of on-chip memory for a tile or a channel, rounded up as PlanArena aligns.
int64_t ArenaBytes(const Buffer& b);

}  // namespace tl

#endif  // TILEJIT_PASSES_EARLY_COPIES_H_
