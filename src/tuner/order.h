// Which candidates to try next.
#ifndef TILEJIT_TUNER_ORDER_H_
#define TILEJIT_TUNER_ORDER_H_

#include <cstddef>
#include <string>
#include <vector>

namespace tl {

// Values of the tune parameters, one row per candidate, all rows equally long.
using Combinations = std::vector<std::vector<std::string>>;

// Up to `count` candidates of those in `untried`, the most promising first: those that differ from
// `best` in the fewest parameters, since what is right for one parameter mostly stays right when
// another changes; of these the first as written, because authors list what they expect to be fast.
std::vector<size_t> Nearest(const Combinations& combinations, const std::vector<size_t>& untried,
                            size_t best, size_t count);

// For every value of a parameter that no candidate in `tried` has, one of `untried` that has it:
// the one that differs least from `from`. Some values are possible only together with several
// others, and would be many steps away.
std::vector<size_t> WithNewValues(const Combinations& combinations,
                                  const std::vector<size_t>& untried,
                                  const std::vector<size_t>& tried, size_t from);

}  // namespace tl

#endif  // TILEJIT_TUNER_ORDER_H_
