// What the statements of a launch need of the fragments that they touch: the facts from which
// layouts are inferred.
#ifndef TILEJIT_PASSES_FRAGMENT_USES_H_
#define TILEJIT_PASSES_FRAGMENT_USES_H_

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "ir/module.h"

namespace tl {

struct FragmentUses {
  // An iteration space and the tiles indexed by some of its variables: tile dim i is loop dim
  // dims[i]. A `parallel`, or a reduction (the space is the source's).
  struct Loop {
    std::vector<int64_t> extents;
    std::vector<std::pair<BufferId, std::vector<int>>> tiles;  // in order of appearance
  };
  struct Product {
    Gemm gemm;
    double weight;  // multiply-adds, loops around it counted
  };
  struct Link {
    BufferId src, dst;
  };

  // Those that registers can serve, in order of their allocation.
  std::vector<BufferId> fragments;
  // The others, each with the use that keeps it in shared memory.
  struct Left {
    BufferId tile;
    std::string_view why;
    Span span;
  };
  std::vector<Left> left;
  std::vector<Loop> loops;
  std::vector<Product> products;  // the dearest first
  std::vector<Link> links;        // copied whole
  // Allocated inside `on g`: each group has its own.
  absl::flat_hash_set<BufferId> of_groups;
  // Narrowest element that the fragment is copied from or to in global memory.
  absl::flat_hash_map<BufferId, int64_t> transfer_bytes;
};

FragmentUses CollectUses(const Module& module, const Block& body);

// The fragments of one `parallel` that are indexed by its variables, each in one way.
FragmentUses::Loop UsesOf(const Module& module, const Parallel& parallel);

// Of the body of a `parallel`, once fragments have layouts: does it store into a fragment that lies
// in registers; does it load from a tensor or a tile in memory that it changes too?
bool WritesRegisters(const Module& module, const Block& body);
bool ReadsWhatItChanges(const Module& module, const Block& body);

}  // namespace tl

#endif  // TILEJIT_PASSES_FRAGMENT_USES_H_
