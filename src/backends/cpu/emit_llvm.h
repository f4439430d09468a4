// A module at level Thread as textual LLVM IR (LLVM 19, opaque pointers), without LLVM.
#ifndef TILEJIT_BACKENDS_CPU_EMIT_LLVM_H_
#define TILEJIT_BACKENDS_CPU_EMIT_LLVM_H_

#include <string>

#include "backends/cpu/helpers.h"
#include "base/status.h"
#include "ir/module.h"

namespace tl::cpu {

// Changes with every change of the text that EmitLlvm writes for some module: part of cache keys.
inline constexpr char kEmitterVersion[] = "cpu-llvm-1";

// Symbol of launch `index`'s exported function; see runtime.h.
std::string EntrySymbol(int index);

// INTERNAL when the module is not at level Thread or holds what that level does not allow.
StatusOr<std::string> EmitLlvm(const Module& module, const CpuFacts& facts);

}  // namespace tl::cpu

#endif  // TILEJIT_BACKENDS_CPU_EMIT_LLVM_H_
