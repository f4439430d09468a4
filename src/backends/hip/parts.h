// Telling two installations of a compiler apart without running either.
#ifndef TILEJIT_BACKENDS_HIP_PARTS_H_
#define TILEJIT_BACKENDS_HIP_PARTS_H_

#include <string>
#include <vector>

namespace tl {

// "clang-19 build-id 8f03…, libclang-cpp.so.19.1 build-id …": these programs and libraries, and of
// the libraries that they are linked against those of LLVM, in which the compiler proper lies and
// which are replaced without them.
std::string PartsOf(const std::vector<std::string>& files);

}  // namespace tl

#endif  // TILEJIT_BACKENDS_HIP_PARTS_H_
