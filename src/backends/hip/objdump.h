// Code objects as assembly, for people.
#ifndef TILEJIT_BACKENDS_HIP_OBJDUMP_H_
#define TILEJIT_BACKENDS_HIP_OBJDUMP_H_

#include <string>
#include <string_view>

#include "base/search_paths.h"
#include "base/status.h"
#include "base/target.h"

namespace tl {

// By LLVM's llvm-objdump, which is used where it is installed.
StatusOr<std::string> DisassembleCodeObject(const SearchPaths& paths, std::string_view binary,
                                            const Target& target);

}  // namespace tl

#endif  // TILEJIT_BACKENDS_HIP_OBJDUMP_H_
