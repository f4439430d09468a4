// A module at level Thread as textual LLVM IR (LLVM 19, opaque pointers), without LLVM.
#ifndef TILEJIT_BACKENDS_CPU_EMIT_LLVM_H_
#define TILEJIT_BACKENDS_CPU_EMIT_LLVM_H_

#include <string>
#include <string_view>

#include "backends/cpu/helpers.h"
#include "base/status.h"
#include "ir/module.h"

namespace tl::cpu {

// Symbol of launch `index`'s exported function; see runtime.h.
std::string EntrySymbol(int index);

// Symbol of a zero-terminated text: the processor that the object is made for, as the target's
// identity names it.
inline constexpr char kProcessorSymbol[] = "tl_processor";

// INTERNAL when the module is not at level Thread or holds what that level does not allow.
StatusOr<std::string> EmitLlvm(const Module& module, const CpuFacts& facts,
                               std::string_view processor);

}  // namespace tl::cpu

#endif  // TILEJIT_BACKENDS_CPU_EMIT_LLVM_H_
