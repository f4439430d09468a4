#include "abi/compile_options.h"

#include <cstring>

#include "absl/strings/str_cat.h"

namespace tl::abi {

StatusOr<CompileRequest> Translate(const tl_compile_options& o) {
  CompileRequest request;
  if (o.source) {
    const bool terminated = o.source_size == 0 || o.source_size == TL_ZERO_TERMINATED;
    request.source = {o.source, terminated ? std::strlen(o.source) : o.source_size};
    if (request.source.empty()) return absl::InvalidArgumentError("source is empty");
    TL_RETURN_IF_ERROR(CheckSourceSize(request.source));
  }
  if (o.family) {
    request.family = o.family;
    if (request.family.empty()) return absl::InvalidArgumentError("family is empty");
  }
  if (o.num_params > 0 && !o.params)
    return absl::InvalidArgumentError("params is NULL but num_params is not 0");
  for (size_t i = 0; i < o.num_params; ++i) {
    if (!o.params[i].name || !o.params[i].value) {
      return absl::InvalidArgumentError(
          absl::StrCat("params[", i, "] has no ", o.params[i].name ? "value" : "name"));
    }
    request.params.emplace_back(o.params[i].name, o.params[i].value);
  }
  if (o.target) request.target = o.target;
  if (o.target && request.target.empty()) return absl::InvalidArgumentError("target is empty");
  request.device = o.device;
  if (o.shared_budget < 0)
    return absl::InvalidArgumentError(
        absl::StrCat("shared_budget is ", o.shared_budget,
                     "; it is a number of bytes, or 0 for what the target has"));
  request.shared_budget = o.shared_budget;
  return request;
}

}  // namespace tl::abi
