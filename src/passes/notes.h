// How places are named in what the passes say about their choices (Module::notes).
#ifndef TILEJIT_PASSES_NOTES_H_
#define TILEJIT_PASSES_NOTES_H_

#include <string>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace tl {

// " at 12:5"; nothing for what a pass made.
inline std::string At(const Span& span) {
  const std::string at = FormatSpan(span);
  return at.empty() ? at : absl::StrCat(" at ", at);
}

}  // namespace tl

#endif  // TILEJIT_PASSES_NOTES_H_
