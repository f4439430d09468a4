// Which part of a launch threads run that only copy (producers).
#ifndef TILEJIT_PASSES_PRODUCER_H_
#define TILEJIT_PASSES_PRODUCER_H_

#include <string>

#include "absl/container/flat_hash_map.h"
#include "base/target.h"
#include "ir/module.h"
#include "passes/early_copies.h"

namespace tl {

// Loops of a launch by their variables, and what a producer runs in place of each; the last
// statement is a loop, to whose body what the loops inside come to is added.
using ProducerLoops = absl::flat_hash_map<VarId, Block>;

// The statements of `body`, which is the launch's or a part of it, that lead to these loops: loops
// and conditions around them, and the values that they, and the copies in them, depend on. Where
// groups own tiles, those of all owners. `reason` says why a producer cannot know them; then the
// block is empty.
Block SliceForProducer(const Module& module, const Launch& launch, const Block& body,
                       const LaunchFacts& facts, const ProducerLoops& loops, std::string& reason);

// Sets the launch's producers, and how they and the others share the registers.
void AddProducers(const Target& target, Launch& launch);

}  // namespace tl

#endif  // TILEJIT_PASSES_PRODUCER_H_
