// What operators do with the kernels of a cache or of a pack: look, check, carry elsewhere.
#ifndef TILEJIT_SERVICE_CACHE_CONTENTS_H_
#define TILEJIT_SERVICE_CACHE_CONTENTS_H_

#include <cstdint>
#include <string>

#include "cache/store.h"

namespace tl {

// A cache entry as people see it.
struct CacheEntry {
  std::string kernel;      // name of the program that it was compiled from; "" when not recorded
  std::string target;      // Target::identity
  std::string parameters;  // JSON object: dims, parameters and tune parameters as text
  std::string compiler;
  std::string key;  // semantic key in hexadecimal
  int64_t bytes = 0;
  int64_t created = 0;   // seconds since 1970
  bool current = false;  // false: of another version of the library, which alone would look it up
};

// All but `current`, which takes the backends to tell.
CacheEntry Describe(const EntryInfo& info);

}  // namespace tl

#endif  // TILEJIT_SERVICE_CACHE_CONTENTS_H_
