// Hopper's wgmma as a function of CUDA C++. Its instructions name every register of the result, up
// to 128, so that there is a text for every shape, written for those that a kernel uses.
#ifndef TILEJIT_BACKENDS_CUDA_WGMMA_TEXT_H_
#define TILEJIT_BACKENDS_CUDA_WGMMA_TEXT_H_

#include <string>

#include "backends/c_family/dialect.h"

namespace tl {

// The specialisation of tl_wgmma (primitives.cuh): all steps of a product in one piece of assembly,
// which compiles faster than one for each.
std::string WgmmaText(const WarpgroupProduct& p);

// tl_sums_in and tl_sums_out: each register to and from an array of the thread's.
std::string SumsText(const WarpgroupSums& sums);

}  // namespace tl

#endif  // TILEJIT_BACKENDS_CUDA_WGMMA_TEXT_H_
