// CUDA C++ text to a binary or to PTX.
#ifndef TILEJIT_BACKENDS_CUDA_COMPILE_H_
#define TILEJIT_BACKENDS_CUDA_COMPILE_H_

#include <string>

#include "backends/cuda/nvrtc.h"
#include "base/status.h"
#include "base/target.h"

namespace tl {

struct CompiledText {
  std::string output;  // cubin or PTX
  std::string log;
};

enum class CompileForm : uint8_t { kCubin, kPtx };

StatusOr<CompiledText> CompileCuda(const Nvrtc& nvrtc, const std::string& source,
                                   const Target& target, CompileForm form);

}  // namespace tl

#endif  // TILEJIT_BACKENDS_CUDA_COMPILE_H_
