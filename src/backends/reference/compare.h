// Compares what a backend left in memory with the exact values and their bounds.
#ifndef TILEJIT_BACKENDS_REFERENCE_COMPARE_H_
#define TILEJIT_BACKENDS_REFERENCE_COMPARE_H_

#include <cstdint>
#include <string>

#include "backends/reference/reference.h"
#include "ir/module.h"

namespace tl::reference {

struct Comparison {
  double worst_ratio = 0;  // largest |actual - expected| / bound; infinite where a NaN is missing
  int64_t worst_at = -1;   // its offset in the tensor's storage
  double expected = 0, actual = 0, bound = 0;
  int64_t compared = 0;
  int64_t unbounded = 0;   // elements of which the model says nothing
  int64_t mismatches = 0;  // ratio above 1
  int64_t strays = 0;  // bytes' elements that nothing should have written, yet differ from poison

  bool ok() const { return mismatches == 0 && strays == 0; }
};

// `memory`: the tensor's storage in its dtype. Elements that the program did not write (or whose
// block was not sampled) are skipped; with `poisoned`, elements that it did not write must still be
// all ones, as MakeInputs leaves outputs: only after a run of all blocks, and not for inout.
Comparison Compare(const Output& expected, const void* memory, bool poisoned);

// "C[3, 70]" for an offset, by search of the tensor's index; "C+offset" where there is none.
std::string ElementName(const Module& module, BufferId id, const HostArgs& args, int64_t offset);

}  // namespace tl::reference

#endif  // TILEJIT_BACKENDS_REFERENCE_COMPARE_H_
