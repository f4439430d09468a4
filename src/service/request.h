// What a caller of tl_compile asks for.
#ifndef TILEJIT_SERVICE_REQUEST_H_
#define TILEJIT_SERVICE_REQUEST_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace tl {

struct CompileRequest {
  std::string_view source;  // either this
  std::string_view family;  // or this
  std::vector<std::pair<std::string_view, std::string_view>> params;
  std::string_view target;  // empty: device
  int device = 0;
  int64_t shared_budget = 0;
};

// RESOURCE_EXHAUSTED for more text than the language allows; to be asked before anything copies it.
Status CheckSourceSize(std::string_view source);

// Everything above in one string: the key of the kernels that this context already has.
std::string RequestKey(const CompileRequest& request);

}  // namespace tl

#endif  // TILEJIT_SERVICE_REQUEST_H_
