// Which values and tiles a `lag` replays.
#ifndef TILEJIT_BACKENDS_REFERENCE_LAG_H_
#define TILEJIT_BACKENDS_REFERENCE_LAG_H_

#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "ir/module.h"

namespace tl::reference {

// One `lag` of a loop. In iteration i its body sees these as they were when iteration i − distance
// came to the same place: the loop index, values defined directly in the loop before it, and tiles
// that a copy from a tensor filled directly in the loop before it. `in_turn` counts as directly.
struct LagSite {
  const Lag* lag;
  std::vector<VarId> vars;
  std::vector<BufferId> tiles;  // only those that the body uses
};

struct LagLoop {
  std::vector<LagSite> sites;  // in program order
};

// Every loop with lags. Fails where a body writes a tile that is replayed.
StatusOr<std::unordered_map<const For*, LagLoop>> FindLagLoops(const Module& module);

}  // namespace tl::reference

#endif  // TILEJIT_BACKENDS_REFERENCE_LAG_H_
