// Blocks that run together (a launch's `cluster`), and what they copy the same: along an axis that
// a copy's source does not depend on, each loads a share of it for all.
#ifndef TILEJIT_PASSES_CLUSTERS_H_
#define TILEJIT_PASSES_CLUSTERS_H_

#include <string>

#include "absl/container/flat_hash_map.h"
#include "base/status.h"
#include "base/target.h"
#include "ir/module.h"
#include "passes/early_copies.h"

namespace tl {

// A pass, at level Tile: keeps the cluster of a launch whose grid is whole ones on a target that
// has them; else says why not.
Status CheckClusters(Module& module, const Target& target);

// Blocks of the launch run alone, and the report says why.
void DropCluster(Module& module, Launch& launch, std::string_view reason);

// Which values differ between the blocks of a cluster. Axes are bits: bit i is axis i of the
// launch.
class ClusterFacts {
 public:
  ClusterFacts(const Module& module, const Launch& launch, const LaunchFacts& facts);

  // The axes along which the launch's clusters have several blocks.
  unsigned axes() const { return axes_; }
  // Along which of them may the value differ?
  unsigned VariesAlong(const ExprRef& e) const;
  // The loop's iterations, of all times that it is come to.
  unsigned TripsVaryAlong(const For& loop) const;
  // The copy's source.
  unsigned VariesAlong(const Copy& copy) const;
  // Blocks that differ along these axes only.
  int BlocksAlong(unsigned axes) const;
  // "m" or "m, n".
  std::string NamesOf(unsigned axes) const;

 private:
  void Walk(const Block& block, unsigned control);
  void Note(VarId var, unsigned axes);

  const Module& m_;
  const Launch& launch_;
  const LaunchFacts& facts_;
  unsigned axes_ = 0;
  absl::flat_hash_map<VarId, unsigned> vars_;   // what is not there varies along none
  absl::flat_hash_map<VarId, unsigned> trips_;  // by the loops' variables
  bool changed_ = false;
};

}  // namespace tl

#endif  // TILEJIT_PASSES_CLUSTERS_H_
