// The search for the fastest combination of tune parameters.
//
//   explore   the default first; then wave after wave of candidates near the best so far. Each is
//             admitted, built and timed once; what is clearly slow is stopped after a launch.
//   halve     the others are timed again, longer each time, and the slower half stopped, until few
//             are left.
//   validate  the fastest of these, until there are as many right ones as can be finalists.
//   finals    finalists and the default are timed in turn, round by round, while there is time. The
//             default stays unless it is beaten beyond doubt (statistics.h).
#ifndef TILEJIT_TUNER_SEARCH_H_
#define TILEJIT_TUNER_SEARCH_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/status.h"
#include "tuner/lab.h"
#include "tuner/order.h"

namespace tl {

struct SearchOptions {
  double max_seconds = 0;     // what is begun is finished, so it may take a little longer
  size_t max_candidates = 0;  // that are built; 0: all
  int jobs = 0;               // how many are built at a time; 0: one per processor
  uint64_t seed = 0;
  // The winner of an earlier search: tried right after the default, and keeps its place on a tie.
  std::optional<size_t> incumbent;
  double round_ns = 4e6;  // of launches, the first time a candidate is timed
};

struct Candidate {
  Fate fate = Fate::kUntried;
  Status fault;
  double ns = 0;              // the median so far
  std::vector<double> times;  // of one launch, a value for each round
  bool validated = false;
};

struct Outcome {
  // Candidates, the default among them where it runs.
  size_t winner = 0;
  std::optional<size_t> runner_up;
  // Of the finals; the default's are empty where it does not run.
  std::vector<double> winner_times, default_times, runner_up_times;
  std::vector<Candidate> candidates;  // parallel to the combinations
  size_t refused = 0, built = 0, measured = 0, stopped = 0, disqualified = 0;
};

// Candidate 0 is the default: what the program is compiled to untuned. CANCELLED when the lab says
// so; the failure of the default, or of the first candidate, when not one runs and is right.
StatusOr<Outcome> Search(const Combinations& combinations, Lab& lab, const SearchOptions& options);

}  // namespace tl

#endif  // TILEJIT_TUNER_SEARCH_H_
