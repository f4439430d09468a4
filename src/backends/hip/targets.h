// The GPU architectures that HIP code is generated for, and the names of GPUs that have them. Read
// in the vendor's ISA documents, not tried on silicon.
#ifndef TILEJIT_BACKENDS_HIP_TARGETS_H_
#define TILEJIT_BACKENDS_HIP_TARGETS_H_

#include <compare>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/target.h"

namespace tl {

// "gfx90a", "MI250X"; case, blanks and the vendor's words do not count.
StatusOr<Target> FindHipTarget(std::string_view name);
// Architectures, then GPUs.
std::vector<std::string> HipTargetNames();

struct RocmVersion {
  int major = 0, minor = 0;
  friend auto operator<=>(const RocmVersion&, const RocmVersion&) = default;
};
// The first version that is known to know the architecture.
RocmVersion FirstRocmFor(const Target& target);

}  // namespace tl

#endif  // TILEJIT_BACKENDS_HIP_TARGETS_H_
