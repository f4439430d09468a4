// The two compilers of HIP source, and which of them serves a target.
#ifndef TILEJIT_BACKENDS_HIP_COMPILER_H_
#define TILEJIT_BACKENDS_HIP_COMPILER_H_

#include <string>
#include <string_view>
#include <variant>

#include "backends/compile_job.h"
#include "backends/hip/clang.h"
#include "backends/hip/find_hiprtc.h"
#include "base/search_paths.h"
#include "base/target.h"

namespace tl {

using HipCompiler = std::variant<HiprtcLibrary, ClangPrograms>;

// By files and their names alone, so that the same machine always gives the same answer: the first
// HIPRTC whose version is known to know the target, else clang. SearchPaths::hip_compiler leaves
// one kind of them only, and then any version of HIPRTC may try.
StatusOr<HipCompiler> ChooseHipCompiler(const SearchPaths& paths, const Target& target);

// Name, version and build-ids of everything that has a hand in the code.
std::string HipCompilerIdentity(const HipCompiler& compiler);

// HIPRTC compiles elsewhere. Where the process it does so in dies, the error says of what, and what
// would compile for the target.
StatusOr<HipCode> CompileHip(const HipCompiler& compiler, const CompileElsewhere& elsewhere,
                             std::string_view source, const Target& target);

}  // namespace tl

#endif  // TILEJIT_BACKENDS_HIP_COMPILER_H_
