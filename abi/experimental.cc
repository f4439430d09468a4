// Declared for those who plan ahead; each returns UNIMPLEMENTED until it works.
#define TL_EXPERIMENTAL
#include "abi/error.h"
#include "absl/strings/str_cat.h"

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

tl_status tl_seal(tl_context*) { return NotYet("tl_seal"); }

tl_status tl_warm(tl_context*, const char*, size_t) { return NotYet("tl_warm"); }
