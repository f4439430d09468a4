// The programs that a plan names.
#ifndef TILEJIT_SERVICE_PLAN_PROGRAMS_H_
#define TILEJIT_SERVICE_PLAN_PROGRAMS_H_

#include <string>
#include <string_view>

#include "service/plan.h"

namespace tl {

// Family or file; "source" where the plan has the text.
std::string_view NameOf(const PlanEntry& entry);

// The text of an entry that names no family. Relative names of files are looked for in
// `directory`; empty: such a name is an error.
StatusOr<std::string> TextOf(const PlanEntry& entry, const std::string& directory);

}  // namespace tl

#endif  // TILEJIT_SERVICE_PLAN_PROGRAMS_H_
