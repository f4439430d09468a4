#include "service/request.h"

#include "absl/strings/str_cat.h"
#include "ir/syntax.h"

namespace tl {

Status CheckSourceSize(std::string_view source) {
  const size_t limit = syntax::Limits{}.bytes;
  if (source.size() <= limit) return absl::OkStatus();
  return LimitError(
      {}, absl::StrCat("the program has ", source.size(), " bytes; the limit is ", limit));
}

std::string RequestKey(const CompileRequest& request) {
  std::string key;
  key.reserve(request.source.size() + 256);
  // Lengths keep neighbouring strings apart.
  auto add = [&key](std::string_view s) { absl::StrAppend(&key, s.size(), ":", s); };
  add(request.source);
  add(request.family);
  add(request.target);
  absl::StrAppend(&key, request.device, ",", request.shared_budget, ",");
  for (const auto& [name, value] : request.params) {
    add(name);
    add(value);
  }
  return key;
}

}  // namespace tl
