// The build-id of an ELF file: what the linker stamped it with, so that two builds of one library
// can be told apart without loading either.
#ifndef TILEJIT_BASE_BUILD_ID_H_
#define TILEJIT_BASE_BUILD_ID_H_

#include <string>

#include "base/status.h"

namespace tl {

// Lower-case hexadecimal. INVALID_ARGUMENT when the file is no 64-bit little-endian ELF file,
// NOT_FOUND when it has no build-id.
StatusOr<std::string> ReadBuildId(const std::string& path);

}  // namespace tl

#endif  // TILEJIT_BASE_BUILD_ID_H_
