// Compiles everything in a plan into the cache.
#ifndef TILEJIT_SERVICE_WARM_H_
#define TILEJIT_SERVICE_WARM_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "service/context.h"
#include "service/plan.h"

namespace tl {

// One kernel of a plan is done.
struct WarmEvent {
  uint64_t done = 0;
  uint64_t total = 0;
  std::string_view program;  // family or file; "source" where the plan has the text
  const ParamSet* params = nullptr;
  std::string_view target;
  Span span;      // of its entry in the plan
  Status status;  // its span, if it has one, is in the program
  bool compiled = false;
};

struct WarmOptions {
  std::string_view plan;  // TOML text
  // Where files lie that the plan names by relative paths; empty: such a name is an error.
  std::string directory;
  // Not empty: instead of the plan's. An entry with targets of its own keeps those that are among
  // these.
  std::vector<std::string> targets;
  int jobs = 0;  // how many compile at a time; 0: one per processor
  // Called for one event at a time, from any thread. False: begin nothing more.
  std::function<bool(const WarmEvent&)> progress;
};

struct WarmSummary {
  uint64_t total = 0;
  uint64_t compiled = 0;
  uint64_t present = 0;  // in the cache before
  uint64_t failed = 0;
};

// A plan that cannot be read fails at once; what fails to compile does not keep the rest from it,
// and then the status is that of the first failure. CANCELLED: progress said so.
Status Warm(Context& context, const WarmOptions& options, WarmSummary& summary);

}  // namespace tl

#endif  // TILEJIT_SERVICE_WARM_H_
