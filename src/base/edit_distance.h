// "Did you mean": the nearest word of a list.
#ifndef TILEJIT_BASE_EDIT_DISTANCE_H_
#define TILEJIT_BASE_EDIT_DISTANCE_H_

#include <string>
#include <string_view>

#include "absl/types/span.h"

namespace tl {

// Insertions, deletions, substitutions and swaps of neighbours that turn `a` into `b`, each counted
// once; anything above `limit` is reported as limit + 1.
int EditDistance(std::string_view a, std::string_view b, int limit);

// The candidate that `word` most likely stands for, or "" if none is near: at most one edit per
// three letters, and at least one. The first of equals wins.
std::string_view NearestWord(std::string_view word, absl::Span<const std::string_view> candidates);

// "; did you mean 'copy'?", or "" if no candidate is near. To be appended to a message.
std::string DidYouMean(std::string_view word, absl::Span<const std::string_view> candidates);

}  // namespace tl

#endif  // TILEJIT_BASE_EDIT_DISTANCE_H_
