// Loads a relocatable x86-64 ELF object into the process, without LLVM: a kernel from the cache is
// ready in microseconds, also where the compiler module is missing.
#ifndef TILEJIT_BACKENDS_CPU_OBJECT_LOADER_H_
#define TILEJIT_BACKENDS_CPU_OBJECT_LOADER_H_

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "base/status.h"

namespace tl::cpu {

// Code and data of one object, unmapped with it.
class LoadedObject {
 public:
  LoadedObject(void* memory, size_t size) : memory_(memory), size_(size) {}
  ~LoadedObject();
  LoadedObject(const LoadedObject&) = delete;
  LoadedObject& operator=(const LoadedObject&) = delete;

  // Address of a global symbol, or null.
  void* Symbol(std::string_view name) const;
  void AddSymbol(std::string name, void* address) {
    symbols_.insert_or_assign(std::move(name), address);
  }

 private:
  void* memory_;
  size_t size_;
  absl::flat_hash_map<std::string, void*> symbols_;
};

// `resolve` gives the addresses of undefined symbols, null for unknown ones. DATA_LOSS for bytes
// that are no sound object, UNIMPLEMENTED for a sound one with a kind of relocation, section or
// machine that this loader does not know, NOT_FOUND for an unknown symbol.
StatusOr<std::unique_ptr<LoadedObject>> LoadObject(
    std::string_view bytes, absl::FunctionRef<void*(std::string_view)> resolve);

}  // namespace tl::cpu

#endif  // TILEJIT_BACKENDS_CPU_OBJECT_LOADER_H_
