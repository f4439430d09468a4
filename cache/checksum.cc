#include "cache/checksum.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstdint>

namespace tl {

KeyHash Checksum(std::initializer_list<std::string_view> fields) {
  XXH3_state_t state;
  XXH3_INITSTATE(&state);
  XXH3_128bits_reset(&state);
  for (std::string_view field : fields) {
    // Little-endian on every machine that this project runs on; a pack from another one would fail
    // its check, which is a miss.
    const uint64_t size = field.size();
    XXH3_128bits_update(&state, &size, sizeof(size));
    XXH3_128bits_update(&state, field.data(), field.size());
  }
  const XXH128_hash_t hash = XXH3_128bits_digest(&state);
  return {.high = hash.high64, .low = hash.low64};
}

}  // namespace tl
