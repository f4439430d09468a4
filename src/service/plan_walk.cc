#include "service/plan_walk.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "service/plan_programs.h"

namespace tl {
namespace {

struct Stretch {
  const PlanEntry* entry;
  std::string text;  // where it is no family
};

Status AtEntry(const PlanEntry& entry, const Status& status) {
  return MakeError(status.code(), status.message(), {.span = entry.span, .log = {}});
}

// Whether the device can run what is compiled for one of the entry's targets.
StatusOr<bool> IsFor(const PlanEntry& entry, const Plan& plan, const Context& context,
                     const Target& device) {
  const std::vector<std::string>& names = entry.targets.empty() ? plan.targets : entry.targets;
  bool fits = names.empty();
  for (const std::string& name : names) {
    const StatusOr<Target> target = context.FindTarget(name);
    if (!target.ok()) return AtEntry(entry, target.status());
    fits = fits || (target->backend == device.backend && device.Runs(*target));
  }
  return fits;
}

StatusOr<std::vector<Stretch>> StretchesFor(const Context& context, const PlanWalk& walk,
                                            const Plan& plan) {
  TL_ASSIGN_OR_RETURN(const Device* device, context.FindDevice(walk.device));
  std::vector<Stretch> stretches;
  for (const PlanEntry& entry : plan.entries) {
    TL_ASSIGN_OR_RETURN(const bool fits, IsFor(entry, plan, context, device->info.target));
    if (!fits) continue;
    StatusOr<std::string> text = TextOf(entry, walk.directory);
    if (!text.ok()) return AtEntry(entry, text.status());
    stretches.push_back({&entry, *std::move(text)});
  }
  if (!stretches.empty()) return stretches;
  return absl::InvalidArgumentError(absl::StrCat("no kernel of the plan is for ",
                                                 device->info.target.name, ", the target of ",
                                                 device->info.name));
}

// False: no further.
bool Visit(const PlanWalk& walk, const Stretch& stretch) {
  const PlanEntry& entry = *stretch.entry;
  for (const ParamSet& params : entry.params) {
    PlanStop stop{NameOf(entry), {}, nullptr, entry.span};
    stop.request.family = entry.family;
    stop.request.source = stretch.text;
    stop.request.device = walk.device;
    stop.request.shared_budget = entry.shared_budget;
    for (const auto& [name, value] : params) stop.request.params.emplace_back(name, value);
    for (const ParamSet& dims : entry.dims) {
      stop.dims = &dims;
      if (!walk.visit(stop)) return false;
    }
  }
  return true;
}

}  // namespace

Status WalkPlan(const Context& context, const PlanWalk& walk) {
  TL_RETURN_IF_ERROR(context.CheckProcess());
  TL_ASSIGN_OR_RETURN(const Plan plan, ParsePlan(walk.plan));
  TL_ASSIGN_OR_RETURN(const std::vector<Stretch> stretches, StretchesFor(context, walk, plan));
  for (const Stretch& stretch : stretches) {
    if (!Visit(walk, stretch)) return absl::CancelledError("the visitor has seen enough");
  }
  return absl::OkStatus();
}

}  // namespace tl
