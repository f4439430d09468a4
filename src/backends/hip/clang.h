// clang as an offline compiler of HIP source: a program that is used where it is installed.
#ifndef TILEJIT_BACKENDS_HIP_CLANG_H_
#define TILEJIT_BACKENDS_HIP_CLANG_H_

#include <string>
#include <string_view>

#include "base/search_paths.h"
#include "base/status.h"
#include "base/target.h"

namespace tl {

// Earlier ones do not know all of the targets.
inline constexpr int kNewestClang = 22, kOldestClang = 17;

struct ClangPrograms {
  std::string clang;
  std::string linker;
};
// The latest of these clangs, and its ld.lld or else any;
// NOT_FOUND / kMissingLibrary with the places.
StatusOr<ClangPrograms> FindClang(const SearchPaths& paths);

struct HipCode {
  std::string object;  // an ELF file that the driver loads
  std::string log;
};
// By way of assembly; then ld.lld, of any version, links what the driver program of one version
// would hand to the same version's only.
StatusOr<HipCode> CompileByClang(const ClangPrograms& programs, std::string_view source,
                                 const Target& target);

}  // namespace tl

#endif  // TILEJIT_BACKENDS_HIP_CLANG_H_
