// Any bytes: either an error with a place, or a program whose canonical text reads back as itself.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "ir/syntax.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto program = tl::syntax::Parse(text);
  if (!program.ok()) {
    const tl::ErrorDetail detail = tl::DetailOf(program.status());
    const bool documented =
        detail.reason == tl::Reason::kSyntax || detail.reason == tl::Reason::kLimit;
    if (!documented || program.status().message().empty()) __builtin_trap();
    if (!detail.span.valid() && size <= (1 << 20)) __builtin_trap();
    return 0;
  }
  const std::string printed = tl::syntax::Print(*program);
  const auto again = tl::syntax::Parse(printed);
  // Indentation and blanks may lift a text of nearly the largest size over the limit.
  if (!again.ok() && printed.size() > (1 << 20)) return 0;
  if (!again.ok() || tl::syntax::Print(*again) != printed) __builtin_trap();
  return 0;
}
