// The text behind a semantic key: everything that decides what a binary does, and nothing else: no
// path, no time, no environment.
#ifndef TILEJIT_SERVICE_KEY_H_
#define TILEJIT_SERVICE_KEY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "backends/backend.h"
#include "base/target.h"
#include "ir/module.h"

namespace tl {

std::string SemanticDocument(const Module& module, const Backend& backend, const Target& target,
                             int64_t shared_budget);

// What a document says before the program begins.
struct DocumentHead {
  std::string_view schema;
  std::string_view passes;
  std::string_view codegen;
  std::string_view target;  // Target::identity
};

// Nothing when the text is no semantic document. The views point into it.
std::optional<DocumentHead> ReadDocumentHead(std::string_view document);

// Whether this library would ever look a document with this head up: its schema and passes are
// ours. The code generator is the backend's to compare.
bool IsOfThisVersion(const DocumentHead& head);

}  // namespace tl

#endif  // TILEJIT_SERVICE_KEY_H_
