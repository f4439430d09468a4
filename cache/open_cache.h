// The one way for a service to get its store.
#ifndef TILEJIT_CACHE_OPEN_CACHE_H_
#define TILEJIT_CACHE_OPEN_CACHE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "cache/store.h"

namespace tl {

struct CacheOptions {
  // Where to keep things; a failure (no HOME) is told once and means memory only.
  StatusOr<std::string> directory = std::string();
  // Never touch a disk: directory is ignored.
  bool memory_only = false;
  // Databases to read from below the writable store, the first one first. One that cannot be used
  // is told and left out.
  std::vector<std::string> packs;
  // Gets one line for each pack that is left out, besides the warning; may be null.
  std::vector<std::string>* packs_left_out = nullptr;
  int64_t max_bytes = int64_t{4} << 30;           // on disk; 0: no cap
  int64_t max_memory_bytes = int64_t{256} << 20;  // of what cannot go to disk; 0: no cap
  WarningCallback warn;
  // For tests: a failing SQLite VFS, and the verdict "network file system".
  std::string vfs;
  bool assume_network_file_system = false;
};

// Never fails and never returns null. What can be used of the directory is used: read-write; else
// read-only as it stands under a memory store (network file system, read-only disk, child of a
// process that has it open); else memory alone.
std::unique_ptr<ArtifactStore> OpenCache(const CacheOptions& options);

}  // namespace tl

#endif  // TILEJIT_CACHE_OPEN_CACHE_H_
