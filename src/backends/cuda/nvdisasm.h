// The vendor's disassembler, a program that is used where it is installed.
#ifndef TILEJIT_BACKENDS_CUDA_NVDISASM_H_
#define TILEJIT_BACKENDS_CUDA_NVDISASM_H_

#include <string>
#include <string_view>

#include "base/search_paths.h"
#include "base/status.h"

namespace tl {

// Machine code of a cubin as text. NOT_FOUND / kMissingLibrary with the places when there is no
// nvdisasm.
StatusOr<std::string> DisassembleCubin(const SearchPaths& paths, std::string_view cubin);

}  // namespace tl

#endif  // TILEJIT_BACKENDS_CUDA_NVDISASM_H_
