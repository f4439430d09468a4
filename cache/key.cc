#include "cache/key.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstdio>

namespace tl {

std::string KeyHash::Bytes() const {
  std::string bytes(16, '\0');
  for (int i = 0; i < 8; ++i) {
    bytes[7 - i] = static_cast<char>(high >> (8 * i));
    bytes[15 - i] = static_cast<char>(low >> (8 * i));
  }
  return bytes;
}

std::string KeyHash::Hex() const {
  char text[33];
  std::snprintf(text, sizeof(text), "%016llx%016llx", static_cast<unsigned long long>(high),
                static_cast<unsigned long long>(low));
  return text;
}

KeyHash KeyHash::FromBytes(std::string_view bytes) {
  KeyHash hash;
  if (bytes.size() != 16) return hash;
  for (int i = 0; i < 8; ++i) {
    hash.high = hash.high << 8 | static_cast<unsigned char>(bytes[i]);
    hash.low = hash.low << 8 | static_cast<unsigned char>(bytes[8 + i]);
  }
  return hash;
}

KeyHash HashBytes(std::string_view bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {.high = hash.high64, .low = hash.low64};
}

std::string BuildDocument(const ArtifactKey& key) {
  // The length in front makes the border between the two parts unambiguous.
  return std::to_string(key.semantic_document.size()) + '\n' + key.semantic_document +
         key.compiler_identity;
}

KeyHash SemanticHash(const ArtifactKey& key, HashFunction hash) {
  return hash(key.semantic_document);
}

KeyHash BuildHash(const ArtifactKey& key, HashFunction hash) { return hash(BuildDocument(key)); }

}  // namespace tl
