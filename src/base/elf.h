// What can be read from an ELF file without loading it: its notes, and which libraries it names.
#ifndef TILEJIT_BASE_ELF_H_
#define TILEJIT_BASE_ELF_H_

#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace tl {

class ElfFile {
 public:
  // INVALID_ARGUMENT when it is no whole 64-bit little-endian ELF file, NOT_FOUND when there is no
  // file. Reads parts of it only, which may be hundreds of megabytes.
  static StatusOr<ElfFile> Open(const std::string& path);
  // Of bytes that outlive it.
  static StatusOr<ElfFile> In(std::string_view bytes);

  // What the first note of this owner and type says; empty if there is none.
  std::string Note(std::string_view owner, uint32_t type) const;
  // Names of the libraries that it is linked against, as the loader looks for them.
  std::vector<std::string> Needed() const;

 private:
  using ReadAt = std::function<bool(void* to, size_t bytes, uint64_t offset)>;
  static StatusOr<ElfFile> Make(ReadAt read, std::string_view name);
  std::string Content(uint64_t offset, uint64_t bytes) const;  // empty if it cannot be read
  bool OffsetOf(uint64_t address, uint64_t* offset) const;

  ReadAt read_;
  std::vector<Elf64_Phdr> segments_;
};

}  // namespace tl

#endif  // TILEJIT_BASE_ELF_H_
