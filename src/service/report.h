// What a kernel tells about itself.
#ifndef TILEJIT_SERVICE_REPORT_H_
#define TILEJIT_SERVICE_REPORT_H_

#include <string>

#include "base/status.h"
#include "service/kernel.h"

namespace tl {

// The values are those of tl_text in tl.h.
enum class Text : int32_t {
  kIr = 0,
  kSource,
  kAssembly,
  kSass,
  kReport,
  kLog,
  kBinary,
  kMapped,
  kThread
};

// The report of a kernel that a query found, with "cached": true and its semantic key.
std::string CachedReport(const Kernel& kernel, const std::string& key);
// As much of a report as there is before anything is compiled, with "cached": false.
std::string UncachedReport(const Module& module, const Target& target, int64_t shared_budget,
                           const Generated& generated, const std::string& key,
                           const Choice& choice);

// Source, assembly and the Thread listing are made again on demand: a kernel from the cache has
// them too.
StatusOr<std::string> KernelText(const Kernel& kernel, Text what);

}  // namespace tl

#endif  // TILEJIT_SERVICE_REPORT_H_
