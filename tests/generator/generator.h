// Random valid tile programs, as text.
//
// Programs are valid by construction: every window, index and loop bound is known to stay inside,
// every tile is written before it is read, blocks and iterations never depend on each other, and
// values are kept in ranges in which error bounds still say something. The same seed gives the same
// program on any machine.
#ifndef TILEJIT_TESTS_GENERATOR_GENERATOR_H_
#define TILEJIT_TESTS_GENERATOR_GENERATOR_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tl::generator {

struct Program {
  uint64_t seed = 0;
  std::string text;
  std::vector<std::pair<std::string, std::string>> values;  // fixed dims and parameters, for Bind
  std::vector<int64_t> dims;     // of the dims that stay dynamic, in order
  std::vector<int64_t> strides;  // of the `?`, in order
};

// What programs look like: any, or such that most products have the extents and the threads that
// warpgroups multiply with.
enum class Kind : uint8_t { kAny, kWarpgroups };

Program Generate(uint64_t seed, Kind kind = Kind::kAny);

}  // namespace tl::generator

#endif  // TILEJIT_TESTS_GENERATOR_GENERATOR_H_
