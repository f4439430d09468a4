#include "cache/open_cache.h"

#include <utility>

#include "cache/directory.h"
#include "cache/layered_store.h"
#include "cache/memory_store.h"
#include "cache/schema.h"
#include "cache/sqlite_store.h"

namespace tl {
namespace {

using Layers = std::vector<std::unique_ptr<ArtifactStore>>;

SqliteStoreOptions StoreOptions(const CacheOptions& options) {
  SqliteStoreOptions store_options;
  store_options.max_bytes = options.max_bytes;
  store_options.warn = options.warn;
  store_options.vfs = options.vfs;
  return store_options;
}

void Warn(const CacheOptions& options, const std::string& message) {
  if (options.warn) options.warn("cache: " + message);
}

std::unique_ptr<ArtifactStore> Memory(const CacheOptions& options) {
  return std::make_unique<MemoryStore>(options.max_memory_bytes);
}

// The database of `directory` as it stands, below a memory store. What stands there is not ours to
// repair, so a database that cannot be used is the same as none.
void AddReadOnly(const CacheOptions& options, const std::string& directory,
                 const std::string& reason, Layers& layers) {
  layers.push_back(Memory(options));
  auto store = SqliteStore::OpenReadOnly(directory + "/" + kDatabaseName, StoreOptions(options));
  if (store.ok()) layers.push_back(*std::move(store));
  Warn(options, reason + "; new kernels are kept in memory only");
}

void AddDirectory(const CacheOptions& options, const std::string& directory, Layers& layers) {
  if (options.assume_network_file_system || IsOnNetworkFileSystem(directory)) {
    AddReadOnly(options, directory, directory + " is on a network file system", layers);
    return;
  }
  auto store = SqliteStore::Open(directory, StoreOptions(options));
  if (store.ok()) {
    layers.push_back(*std::move(store));
    // Takes what the disk does not: full, failing, or removed under us.
    layers.push_back(Memory(options));
    return;
  }
  AddReadOnly(options, directory, std::string(store.status().message()), layers);
}

void AddCache(const CacheOptions& options, Layers& layers) {
  if (options.memory_only) {
    layers.push_back(Memory(options));
    return;
  }
  StatusOr<std::string> directory = options.directory;
  if (directory.ok()) directory = PrepareDirectory(*directory);
  if (directory.ok()) {
    AddDirectory(options, *directory, layers);
    return;
  }
  layers.push_back(Memory(options));
  Warn(options, std::string(directory.status().message()) + "; kernels are kept in memory only");
}

}  // namespace

std::unique_ptr<ArtifactStore> OpenCache(const CacheOptions& options) {
  Layers layers;
  AddCache(options, layers);
  for (const std::string& pack : options.packs) {
    auto store = SqliteStore::OpenReadOnly(pack, StoreOptions(options));
    if (store.ok()) {
      layers.push_back(*std::move(store));
      continue;
    }
    const std::string line =
        "pack " + pack + " is left out: " + std::string(store.status().message());
    Warn(options, line);
    if (options.packs_left_out != nullptr) options.packs_left_out->push_back(line);
  }
  if (layers.size() == 1) return std::move(layers.front());
  return std::make_unique<LayeredStore>(std::move(layers));
}

}  // namespace tl
