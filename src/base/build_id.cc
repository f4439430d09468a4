#include "base/build_id.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/elf.h"

namespace tl {

StatusOr<std::string> ReadBuildId(const std::string& path) {
  TL_ASSIGN_OR_RETURN(const ElfFile file, ElfFile::Open(path));
  const std::string id = file.Note("GNU", NT_GNU_BUILD_ID);
  if (id.empty()) return absl::NotFoundError(absl::StrCat(path, " has no build-id"));
  return absl::BytesToHexString(id);
}

}  // namespace tl
