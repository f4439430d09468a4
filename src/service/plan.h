// Plans: what to compile ahead of time and what to tune for, as TOML text. docs/cache.md describes
// the format.
#ifndef TILEJIT_SERVICE_PLAN_H_
#define TILEJIT_SERVICE_PLAN_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "service/request.h"

namespace tl {

using ParamSet = std::vector<std::pair<std::string, std::string>>;

// A [[kernel]] of a plan.
struct PlanEntry {
  // Exactly one of the three is not empty.
  std::string family;
  std::string file;
  std::string source;
  std::vector<std::string> targets;  // empty: those of the plan
  int64_t shared_budget = 0;
  std::vector<ParamSet> params;  // lists multiplied out; at least one
  std::vector<ParamSet> dims;    // of launches that it is tuned for, numbers; the same
  Span span;                     // in the plan
};

struct Plan {
  std::vector<std::string> targets;
  std::vector<PlanEntry> entries;
};

// INVALID_ARGUMENT with the place in the plan; RESOURCE_EXHAUSTED beyond kMaxPlanBytes and
// kMaxPlanKernels.
StatusOr<Plan> ParsePlan(std::string_view text);

inline constexpr size_t kMaxPlanBytes = size_t{4} << 20;
// Parameter sets, each with every set of dims, of all entries together.
inline constexpr size_t kMaxPlanKernels = 100'000;

// The plan that warms one request for one target.
std::string PlanFor(const CompileRequest& request, std::string_view target);

}  // namespace tl

#endif  // TILEJIT_SERVICE_PLAN_H_
