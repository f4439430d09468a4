// What a request would compile to, without compiling it.
#include "service/context.h"
#include "service/generate.h"
#include "service/key.h"
#include "service/largest_fit.h"
#include "service/report.h"

namespace tl {

StatusOr<std::string> Context::Query(const CompileRequest& request) {
  TL_RETURN_IF_ERROR(CheckProcess());
  TL_ASSIGN_OR_RETURN(Prepared prepared, Prepare(request));
  // No device is touched for an answer.
  prepared.destination.ordinal = -1;
  const auto& [destination, module, choice] = prepared;
  ArtifactKey key;
  key.semantic_document =
      SemanticDocument(*module, *destination.backend, destination.target, request.shared_budget);
  std::shared_ptr<Program> program = FindProgram(key.semantic_document);
  if (!program) {
    FindOptions options = MatchOptions();
    TL_ASSIGN_OR_RETURN(program,
                        FindInStore(module, destination, key, request.shared_budget, options));
  }
  const std::string hash = SemanticHash(key).Hex();
  if (program) {
    TL_ASSIGN_OR_RETURN(const std::shared_ptr<Kernel> kernel,
                        Kernel::Create(module, program, choice));
    return CachedReport(*kernel, hash);
  }
  const StatusOr<Generated> generated =
      GenerateFor(*destination.backend, *module, destination.target, request.shared_budget);
  if (!generated.ok()) {
    TL_ASSIGN_OR_RETURN(const syntax::Program text, Parse(request));
    return WithLargestFit(generated.status(), text, request, destination.target);
  }
  return UncachedReport(*module, destination.target, request.shared_budget, *generated, hash,
                        choice);
}

}  // namespace tl
