// Names of cached artifacts. A *semantic* key says what a kernel computes and for which target; a
// *build* key says in addition which compiler made it. Neither contains a path, an environment
// variable or a time. Hashes only index: the documents themselves are stored and compared.
#ifndef TILEJIT_CACHE_KEY_H_
#define TILEJIT_CACHE_KEY_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace tl {

// 128 bits of XXH3. Not cryptographic: two documents with one hash are possible, and everything
// that uses it copes with that.
struct KeyHash {
  uint64_t high = 0;
  uint64_t low = 0;

  // 16 bytes, most significant first.
  std::string Bytes() const;
  // 32 lower-case hexadecimal digits.
  std::string Hex() const;
  // From what Bytes() made; all zeros for a string of another length.
  static KeyHash FromBytes(std::string_view bytes);

  friend bool operator==(const KeyHash&, const KeyHash&) = default;
  template <typename H>
  friend H AbslHashValue(H state, const KeyHash& hash) {
    return H::combine(std::move(state), hash.high, hash.low);
  }
};

struct ArtifactKey {
  // Canonical tile IR, bound parameters and configuration, full target, options, hash of prelude
  // and code generator, schema version: everything that changes what the binary does. Opaque here.
  std::string semantic_document;
  // Name, version and build-id of the compiler that this process would use; empty when it has none.
  std::string compiler_identity;

  friend bool operator==(const ArtifactKey&, const ArtifactKey&) = default;
};

using HashFunction = KeyHash (*)(std::string_view bytes);

KeyHash HashBytes(std::string_view bytes);

// The text behind the build key: both parts, framed so that no two keys share it.
std::string BuildDocument(const ArtifactKey& key);

KeyHash SemanticHash(const ArtifactKey& key, HashFunction hash = &HashBytes);
KeyHash BuildHash(const ArtifactKey& key, HashFunction hash = &HashBytes);

}  // namespace tl

#endif  // TILEJIT_CACHE_KEY_H_
