// One checksum over a whole entry.
#ifndef TILEJIT_CACHE_CHECKSUM_H_
#define TILEJIT_CACHE_CHECKSUM_H_

#include <initializer_list>
#include <string_view>

#include "cache/key.h"

namespace tl {

// XXH3-128 over the fields, each framed by its length: moving a byte from one field to the next, or
// pairing a binary with other metadata, changes the result.
KeyHash Checksum(std::initializer_list<std::string_view> fields);

}  // namespace tl

#endif  // TILEJIT_CACHE_CHECKSUM_H_
