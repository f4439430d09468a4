// Compiler bugs, planted on purpose: a differential test that finds none of them proves nothing.
#ifndef TILEJIT_TESTS_GENERATOR_MUTATE_H_
#define TILEJIT_TESTS_GENERATOR_MUTATE_H_

#include <cstdint>
#include <string_view>

#include "absl/types/span.h"
#include "ir/module.h"

namespace tl::generator {

struct Bug {
  std::string_view name;
  Level level;  // of the module that is changed: before or after the passes
  // Plants the bug at one of the places where it can be, chosen by `seed`; false: there is none.
  bool (*plant)(Module& module, uint64_t seed);
};

absl::Span<const Bug> Bugs();

}  // namespace tl::generator

#endif  // TILEJIT_TESTS_GENERATOR_MUTATE_H_
