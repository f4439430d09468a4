#include "base/elf.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tl {
namespace {

// Notes, names and tables of libraries are far smaller.
constexpr uint64_t kMostBytes = uint64_t{64} << 20;

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

uint64_t Padded(uint64_t bytes) { return (bytes + 3) & ~uint64_t{3}; }

// Notes are {name size, description size, type, name, description}, both padded to four bytes.
std::string NoteIn(std::string_view notes, std::string_view owner, uint32_t type) {
  while (notes.size() >= sizeof(Elf64_Nhdr)) {
    Elf64_Nhdr head;
    std::memcpy(&head, notes.data(), sizeof(head));
    const uint64_t name = sizeof(head);
    const uint64_t description = name + Padded(head.n_namesz);
    const uint64_t end = description + Padded(head.n_descsz);
    if (description + head.n_descsz > notes.size()) return "";
    const bool owns =
        head.n_namesz == owner.size() + 1 && notes.substr(name, owner.size()) == owner;
    if (owns && head.n_type == type) return std::string(notes.substr(description, head.n_descsz));
    if (end > notes.size()) return "";
    notes.remove_prefix(end);
  }
  return "";
}

}  // namespace

StatusOr<ElfFile> ElfFile::Open(const std::string& path) {
  auto file = std::make_shared<const File>(path);
  if (!file->ok()) return absl::NotFoundError(absl::StrCat(path, ": ", std::strerror(errno)));
  return Make([file](void* to, size_t bytes, uint64_t at) { return file->Read(to, bytes, at); },
              path);
}

StatusOr<ElfFile> ElfFile::In(std::string_view all) {
  const auto read = [all](void* to, size_t bytes, uint64_t at) {
    if (at > all.size() || bytes > all.size() - at) return false;
    if (bytes > 0) std::memcpy(to, all.data() + at, bytes);  // of nothing, `to` may be null
    return true;
  };
  return Make(read, "this");
}

StatusOr<ElfFile> ElfFile::Make(ReadAt read, std::string_view name) {
  ElfFile file;
  file.read_ = std::move(read);
  Elf64_Ehdr head;
  if (!file.read_(&head, sizeof(head), 0) || std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
      head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_ident[EI_DATA] != ELFDATA2LSB ||
      head.e_phentsize != sizeof(Elf64_Phdr)) {
    return absl::InvalidArgumentError(absl::StrCat(name, " is no 64-bit ELF file"));
  }
  file.segments_.resize(head.e_phnum);
  if (!file.read_(file.segments_.data(), file.segments_.size() * sizeof(Elf64_Phdr),
                  head.e_phoff)) {
    return absl::InvalidArgumentError(absl::StrCat(name, " is cut off"));
  }
  return file;
}

std::string ElfFile::Content(uint64_t offset, uint64_t bytes) const {
  if (bytes > kMostBytes) return "";
  std::string content(bytes, '\0');
  return read_(content.data(), content.size(), offset) ? content : "";
}

std::string ElfFile::Note(std::string_view owner, uint32_t type) const {
  for (const Elf64_Phdr& s : segments_) {
    if (s.p_type != PT_NOTE) continue;
    std::string found = NoteIn(Content(s.p_offset, s.p_filesz), owner, type);
    if (!found.empty()) return found;
  }
  return "";
}

bool ElfFile::OffsetOf(uint64_t address, uint64_t* offset) const {
  for (const Elf64_Phdr& s : segments_) {
    if (s.p_type != PT_LOAD || address < s.p_vaddr || address - s.p_vaddr >= s.p_filesz) continue;
    *offset = s.p_offset + (address - s.p_vaddr);
    return true;
  }
  return false;
}

std::vector<std::string> ElfFile::Needed() const {
  std::vector<uint64_t> names;  // where in the table of strings
  uint64_t table = 0, table_bytes = 0;
  for (const Elf64_Phdr& s : segments_) {
    if (s.p_type != PT_DYNAMIC) continue;
    const std::string entries = Content(s.p_offset, s.p_filesz);
    for (size_t at = 0; at + sizeof(Elf64_Dyn) <= entries.size(); at += sizeof(Elf64_Dyn)) {
      Elf64_Dyn entry;
      std::memcpy(&entry, entries.data() + at, sizeof(entry));
      if (entry.d_tag == DT_NULL) break;
      if (entry.d_tag == DT_NEEDED) names.push_back(entry.d_un.d_val);
      if (entry.d_tag == DT_STRTAB) table = entry.d_un.d_ptr;
      if (entry.d_tag == DT_STRSZ) table_bytes = entry.d_un.d_val;
    }
  }
  std::vector<std::string> needed;
  uint64_t offset = 0;
  if (!OffsetOf(table, &offset)) return needed;
  const std::string strings = Content(offset, table_bytes);
  for (uint64_t name : names) {
    if (name < strings.size()) needed.emplace_back(strings.c_str() + name);
  }
  return needed;
}

}  // namespace tl
