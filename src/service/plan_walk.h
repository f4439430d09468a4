// Walks through what a plan asks for on one device.
#ifndef TILEJIT_SERVICE_PLAN_WALK_H_
#define TILEJIT_SERVICE_PLAN_WALK_H_

#include <functional>
#include <string>
#include <string_view>

#include "service/context.h"
#include "service/plan.h"
#include "service/request.h"

namespace tl {

// An entry with one of its parameter sets and one of its sets of dims. Lives for the visit.
struct PlanStop {
  std::string_view program;  // as NameOf says it
  CompileRequest request;    // for the device
  const ParamSet* dims = nullptr;
  Span span;  // of the entry in the plan
};

struct PlanWalk {
  std::string_view plan;  // TOML text
  std::string directory;  // where files lie that it names by relative paths
  int device = 0;
  std::function<bool(const PlanStop&)> visit;  // false: go no further
};

// Entries for other targets than the device's are passed over; with none for it left, or a text
// that cannot be read, nothing is visited.
Status WalkPlan(const Context& context, const PlanWalk& walk);

}  // namespace tl

#endif  // TILEJIT_SERVICE_PLAN_WALK_H_
