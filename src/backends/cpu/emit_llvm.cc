#include "backends/cpu/emit_llvm.h"

#include "absl/strings/str_cat.h"
#include "backends/cpu/kernel_emitter.h"

namespace tl::cpu {

std::string EntrySymbol(int index) { return absl::StrCat("tl_kernel_", index, "_range"); }

StatusOr<std::string> EmitLlvm(const Module& module, const CpuFacts& facts,
                               std::string_view processor) {
  if (module.level != Level::kThread) {
    return absl::InternalError("CPU code generator: the module is not at level Thread");
  }
  ModuleText text;
  text.Define(absl::StrCat("@", kProcessorSymbol, " = constant [", processor.size() + 1,
                           " x i8] c\"", processor, "\\00\"\n\n"));
  for (int i = 0; i < static_cast<int>(module.launches.size()); ++i) {
    TL_RETURN_IF_ERROR(KernelEmitter(module, i, facts, &text).Emit());
  }
  return text.Finish();
}

}  // namespace tl::cpu
