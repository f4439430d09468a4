// Declared for those who plan ahead: what does not work yet returns UNIMPLEMENTED.
#define TL_EXPERIMENTAL
#include <string>

#include "abi/error.h"
#include "absl/strings/str_cat.h"
#include "service/layout_picture.h"

namespace {

tl_status NotYet(const char* what) {
  return tl::abi::Report(
      absl::UnimplementedError(absl::StrCat(what, " is experimental and does not work yet")));
}

}  // namespace

tl_status tl_tune(tl_context*, const tl_tune_options*, tl_kernel** out) {
  if (out) *out = nullptr;
  return NotYet("tl_tune");
}

tl_status tl_layout_svg(const char* name, const char** data, size_t* size) {
  thread_local std::string svg;
  return tl::abi::Call([&]() -> tl::Status {
    if (!data || !size) return absl::InvalidArgumentError("data or size is NULL");
    *data = nullptr;
    *size = 0;
    if (!name) return absl::InvalidArgumentError("name is NULL");
    TL_ASSIGN_OR_RETURN(svg, tl::LayoutSvg(name));
    *data = svg.c_str();
    *size = svg.size();
    return absl::OkStatus();
  });
}
