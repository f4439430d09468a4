#include "base/edit_distance.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "absl/strings/str_cat.h"

namespace tl {
namespace {

// Longer words are typed by no one: the cost of comparing stays bounded whatever the input.
constexpr size_t kMaxWord = 64;

}  // namespace

int EditDistance(std::string_view a, std::string_view b, int limit) {
  const int over = limit + 1;
  if (a.size() > kMaxWord || b.size() > kMaxWord) return a == b ? 0 : over;
  if (std::abs(static_cast<int>(a.size()) - static_cast<int>(b.size())) > limit) return over;
  // Rows i-2, i-1 and i of the usual table.
  std::vector<int> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      const bool swapped =
          i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && a[i - 1] != b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(row);
  }
  return std::min(last[b.size()], over);
}

std::string_view NearestWord(std::string_view word, absl::Span<const std::string_view> candidates) {
  int best = std::max(1, static_cast<int>(std::min(word.size(), kMaxWord)) / 3) + 1;
  std::string_view nearest;
  for (std::string_view candidate : candidates) {
    const int distance = EditDistance(word, candidate, best - 1);
    // A word of one or two letters is one edit away from every other: that is no resemblance.
    if (distance >= best || distance >= static_cast<int>(std::min(word.size(), candidate.size()))) {
      continue;
    }
    best = distance;
    nearest = candidate;
  }
  return nearest;
}

std::string DidYouMean(std::string_view word, absl::Span<const std::string_view> candidates) {
  const std::string_view nearest = NearestWord(word, candidates);
  return nearest.empty() ? "" : absl::StrCat("; did you mean '", nearest, "'?");
}

}  // namespace tl
