// clang as an offline compiler of HIP source: a program that is used where it is installed.
#ifndef TILEJIT_BACKENDS_HIP_CLANG_H_
#define TILEJIT_BACKENDS_HIP_CLANG_H_

#include <string>
#include <string_view>
#include <vector>

#include "backends/backend.h"
#include "base/search_paths.h"
#include "base/status.h"

namespace tl {

// A clang of version 17 or later, the latest first; NOT_FOUND / kMissingLibrary with the places.
StatusOr<std::string> FindClang(const SearchPaths& paths);
// Name and build-id of the program, without running it.
std::string ClangIdentity(const std::string& clang);

struct HipCode {
  std::string object;  // an ELF file that the driver loads
  std::string assembly;
  std::string log;
};
// By way of assembly; then ld.lld, of any version, links what the driver program of one version
// would hand to the same version's only.
StatusOr<HipCode> CompileHip(const std::string& clang, const SearchPaths& paths,
                             std::string_view source, const Target& target);

// Registers and scratch memory of each entry, from the compiler's remarks; empty where it made
// none.
std::vector<EntryResources> ReadHipRemarks(std::string_view log, const std::vector<Entry>& entries);

}  // namespace tl

#endif  // TILEJIT_BACKENDS_HIP_CLANG_H_
