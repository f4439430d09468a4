// Loops that say `partition`: the iterations in which a condition on the index is the exception get
// a loop of their own, and what is left, the steady iterations, does not ask.
//
//     for i in a..b { if i < m { A } B }
//     ->  p = clamp(m, a, b)  for i in a..p { A B }  for i in p..b { B }
//
// Every condition that the author wrote in the loop (a lag's too), and of which index_conditions.h
// can tell where it is known, is settled in the steady iterations, and so are those of other passes
// that are known there but for a few iterations. In the steady ones a condition is what it is in
// all iterations but a few, else false: `if` is taken to name the exception. Where conditions at
// both ends do so, there are three loops.
//
// The loops run the same iterations in the same order, and each iteration the same statements. So
// whatever lives on from one iteration to the next (counters and phases of rings, copies and
// products under way, what a lag keeps) does so from one loop to the next.
#ifndef TILEJIT_PASSES_PARTITION_LOOPS_H_
#define TILEJIT_PASSES_PARTITION_LOOPS_H_

#include "base/status.h"
#include "base/target.h"
#include "ir/module.h"

namespace tl {

// Level Thread. Behind it no loop says `partition`; notes say what became of those that did.
Status PartitionLoops(Module& module, const Target& target);

}  // namespace tl

#endif  // TILEJIT_PASSES_PARTITION_LOOPS_H_
