// Any bytes: either an error that says something, with a place unless the text is too long, or a
// plan that keeps its own rules.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "service/plan.h"

namespace {

void CheckError(const tl::Status& status, size_t size) {
  const bool documented = absl::IsInvalidArgument(status) || absl::IsResourceExhausted(status);
  if (!documented || status.message().empty()) __builtin_trap();
  if (!tl::DetailOf(status).span.valid() && size <= tl::kMaxPlanBytes) __builtin_trap();
}

void CheckEntry(const tl::PlanEntry& entry) {
  const int given = !entry.family.empty() + !entry.file.empty() + !entry.source.empty();
  if (given != 1 || entry.params.empty() || !entry.span.valid() || entry.shared_budget < 0)
    __builtin_trap();
  for (const tl::ParamSet& set : entry.params) {
    for (const auto& [name, value] : set) {
      if (value.empty()) __builtin_trap();
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const tl::StatusOr<tl::Plan> plan = tl::ParsePlan({reinterpret_cast<const char*>(data), size});
  if (!plan.ok()) {
    CheckError(plan.status(), size);
    return 0;
  }
  size_t sets = 0;
  for (const tl::PlanEntry& entry : plan->entries) {
    CheckEntry(entry);
    sets += entry.params.size();
  }
  if (plan->entries.empty() || sets > tl::kMaxPlanKernels) __builtin_trap();
  return 0;
}
