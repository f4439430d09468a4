// The builtin families: tile programs embedded from kernels/*.tl.
#ifndef TILEJIT_SERVICE_FAMILIES_H_
#define TILEJIT_SERVICE_FAMILIES_H_

#include <string_view>

#include "absl/types/span.h"

namespace tl {

// Both are NUL-terminated.
struct FamilySource {
  std::string_view name;
  std::string_view text;
};

// Sorted by name.
absl::Span<const FamilySource> BuiltinFamilies();

// Null when there is none of that name.
const FamilySource* FindFamily(std::string_view name);

}  // namespace tl

#endif  // TILEJIT_SERVICE_FAMILIES_H_
