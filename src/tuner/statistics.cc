#include "tuner/statistics.h"

#include <algorithm>
#include <cstddef>

namespace tl {

double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

bool Beats(const std::vector<double>& challenger, const std::vector<double>& incumbent,
           double margin) {
  const size_t rounds = std::min(challenger.size(), incumbent.size());
  if (rounds == 0) return false;
  size_t won = 0;
  for (size_t i = 0; i < rounds; ++i) won += challenger[i] < incumbent[i] ? 1 : 0;
  return Median(challenger) <= Median(incumbent) * (1 - margin) && 4 * won >= 3 * rounds;
}

}  // namespace tl
