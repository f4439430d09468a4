#include "tuner/order.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

namespace tl {
namespace {

size_t Differences(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  size_t count = 0;
  for (size_t i = 0; i < a.size(); ++i) count += a[i] != b[i] ? 1 : 0;
  return count;
}

}  // namespace

std::vector<size_t> Nearest(const Combinations& combinations, const std::vector<size_t>& untried,
                            size_t best, size_t count) {
  std::vector<std::pair<size_t, size_t>> ranked;  // differences, candidate
  for (size_t candidate : untried)
    ranked.emplace_back(Differences(combinations[candidate], combinations[best]), candidate);
  const auto end = ranked.begin() + static_cast<std::ptrdiff_t>(std::min(count, ranked.size()));
  std::partial_sort(ranked.begin(), end, ranked.end());
  std::vector<size_t> nearest;
  for (auto it = ranked.begin(); it != end; ++it) nearest.push_back(it->second);
  return nearest;
}

std::vector<size_t> WithNewValues(const Combinations& combinations,
                                  const std::vector<size_t>& untried,
                                  const std::vector<size_t>& tried, size_t from) {
  std::set<std::pair<size_t, std::string_view>> seen;  // parameter, value
  const auto see = [&](size_t candidate) {
    const std::vector<std::string>& values = combinations[candidate];
    for (size_t p = 0; p < values.size(); ++p) seen.emplace(p, values[p]);
  };
  for (size_t candidate : tried) see(candidate);
  // Each of these has all its new values at once.
  std::vector<size_t> chosen;
  for (size_t candidate : Nearest(combinations, untried, from, untried.size())) {
    const size_t before = seen.size();
    see(candidate);
    if (seen.size() > before) chosen.push_back(candidate);
  }
  return chosen;
}

}  // namespace tl
