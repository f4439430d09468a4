// What a code object says about its kernels.
#ifndef TILEJIT_BACKENDS_HIP_CODE_OBJECT_H_
#define TILEJIT_BACKENDS_HIP_CODE_OBJECT_H_

#include <string_view>
#include <vector>

#include "backends/backend.h"

namespace tl {

// Registers and scratch memory of each entry, as the compiler noted them for the driver; empty
// unless all entries are there.
std::vector<EntryResources> ReadCodeObject(std::string_view binary,
                                           const std::vector<Entry>& entries);

}  // namespace tl

#endif  // TILEJIT_BACKENDS_HIP_CODE_OBJECT_H_
