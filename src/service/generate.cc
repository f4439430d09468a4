#include "service/generate.h"

#include "passes/pipeline.h"

namespace tl {

StatusOr<Module> LowerFor(const Module& module, const Target& target, int64_t shared_budget) {
  if (target.interprets) return module;
  return Lower(module, target, shared_budget);
}

StatusOr<Generated> GenerateFor(Backend& backend, const Module& module, const Target& target,
                                int64_t shared_budget) {
  TL_ASSIGN_OR_RETURN(Module lowered, LowerFor(module, target, shared_budget));
  return backend.Generate(lowered, target, {});
}

}  // namespace tl
