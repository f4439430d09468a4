// Packs: entries and tuned records in one file that other processes read below their own cache,
// without locks, without a log and without writing (CacheOptions::packs). docs/cache.md.
#ifndef TILEJIT_CACHE_PACK_H_
#define TILEJIT_CACHE_PACK_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "base/status.h"
#include "cache/store.h"

namespace tl {

// To read. NOT_FOUND, PERMISSION_DENIED (it must be a regular file of this user or of root that
// nobody else may write) or DATA_LOSS (no pack of this version) say why not.
StatusOr<std::unique_ptr<ArtifactStore>> OpenPack(const std::string& path, WarningCallback warn);

struct PackContents {
  int64_t entries = 0;
  int64_t records = 0;
  int64_t bytes = 0;  // of the entries, as StoreStats counts them
};

// Writes the entries of `store` that verify and that `wanted` accepts, with all tuned records. The
// file appears under `path` when it is complete and on the disk, in place of an earlier one;
// processes that have that one open keep it.
StatusOr<PackContents> WritePack(ArtifactStore& store, const std::string& path,
                                 absl::FunctionRef<bool(const ArtifactKey& key)> wanted);

struct ImportCounts {
  int64_t added = 0;
  int64_t present = 0;  // builds that the store had already
  int64_t records = 0;
};

// Takes everything of a pack into `store`, after all of it was verified: DATA_LOSS when anything is
// damaged, and then nothing is taken.
StatusOr<ImportCounts> ImportPack(const std::string& path, ArtifactStore& store);

}  // namespace tl

#endif  // TILEJIT_CACHE_PACK_H_
