#include "base/build_id.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace tl {
namespace {

class File {
 public:
  explicit File(const std::string& path) : fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~File() {
    if (fd_ >= 0) close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  bool ok() const { return fd_ >= 0; }
  bool Read(void* to, size_t bytes, uint64_t offset) const {
    size_t done = 0;
    while (done < bytes) {
      const ssize_t n = pread(fd_, static_cast<char*>(to) + done, bytes - done,
                              static_cast<off_t>(offset + done));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return false;
      done += static_cast<size_t>(n);
    }
    return true;
  }

 private:
  const int fd_;
};

// Notes are {name size, description size, type, name, description}, both padded to four bytes.
std::string BuildIdIn(std::string_view notes) {
  while (notes.size() >= sizeof(Elf64_Nhdr)) {
    Elf64_Nhdr head;
    std::memcpy(&head, notes.data(), sizeof(head));
    const uint64_t name = sizeof(head);
    const uint64_t description = name + ((uint64_t{head.n_namesz} + 3) & ~uint64_t{3});
    const uint64_t end = description + ((uint64_t{head.n_descsz} + 3) & ~uint64_t{3});
    if (description + head.n_descsz > notes.size()) return "";
    const bool gnu = head.n_namesz == 4 && notes.substr(name, 3) == "GNU";
    if (gnu && head.n_type == NT_GNU_BUILD_ID) {
      return absl::BytesToHexString(notes.substr(description, head.n_descsz));
    }
    if (end > notes.size()) return "";
    notes.remove_prefix(end);
  }
  return "";
}

}  // namespace

StatusOr<std::string> ReadBuildId(const std::string& path) {
  const File file(path);
  if (!file.ok()) return absl::NotFoundError(absl::StrCat(path, ": ", std::strerror(errno)));
  Elf64_Ehdr head;
  if (!file.Read(&head, sizeof(head), 0) || std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
      head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_ident[EI_DATA] != ELFDATA2LSB ||
      head.e_phentsize != sizeof(Elf64_Phdr)) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is no 64-bit ELF file"));
  }
  std::vector<Elf64_Phdr> segments(head.e_phnum);
  if (!file.Read(segments.data(), segments.size() * sizeof(Elf64_Phdr), head.e_phoff)) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is cut off"));
  }
  constexpr uint64_t kMostNotes = 1 << 20;
  for (const Elf64_Phdr& s : segments) {
    if (s.p_type != PT_NOTE || s.p_filesz > kMostNotes) continue;
    std::string notes(s.p_filesz, '\0');
    if (!file.Read(notes.data(), notes.size(), s.p_offset)) continue;
    std::string id = BuildIdIn(notes);
    if (!id.empty()) return id;
  }
  return absl::NotFoundError(absl::StrCat(path, " has no build-id"));
}

}  // namespace tl
