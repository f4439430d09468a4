#include "service/key.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "ir/unparse.h"
#include "service/generate.h"

namespace tl {
namespace {

// Changes whenever a document of the same content means something else.
constexpr std::string_view kSchema = "1";

// Takes the line "NAME VALUE" off.
bool TakeLine(std::string_view& text, std::string_view name, std::string_view& value) {
  const size_t end = text.find('\n');
  if (end == std::string_view::npos) return false;
  std::string_view line = text.substr(0, end);
  if (!absl::ConsumePrefix(&line, name) || !absl::ConsumePrefix(&line, " ")) return false;
  value = line;
  text.remove_prefix(end + 1);
  return true;
}

}  // namespace

std::string SemanticDocument(const Module& module, const Backend& backend, const Target& target,
                             int64_t shared_budget) {
  return absl::StrCat("schema ", kSchema, "\npasses ", PassesHash(), "\ncodegen ",
                      backend.CodegenIdentity(), "\ntarget ", target.identity, "\nshared_budget ",
                      shared_budget, "\n", CanonicalText(module));
}

std::optional<DocumentHead> ReadDocumentHead(std::string_view document) {
  DocumentHead head;
  const bool read =
      TakeLine(document, "schema", head.schema) && TakeLine(document, "passes", head.passes) &&
      TakeLine(document, "codegen", head.codegen) && TakeLine(document, "target", head.target);
  if (!read) return std::nullopt;
  return head;
}

bool IsOfThisVersion(const DocumentHead& head) {
  return head.schema == kSchema && head.passes == PassesHash();
}

}  // namespace tl
