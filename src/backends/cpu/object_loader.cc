#include "backends/cpu/object_loader.h"

#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace tl::cpu {
namespace {

// Objects come from a file that anybody may have damaged: nothing read from one is used unchecked.
constexpr size_t kMaxObjectBytes = size_t{1} << 30;
constexpr uint64_t kMaxAlignment = 4096;
// jmp *0(%rip) and the address it jumps to: reaches any function from code that can only reach ±2
// GiB.
constexpr size_t kStubBytes = 16;

enum Protection { kExecute, kReadOnly, kWrite, kNumProtections };

Status Damaged(std::string_view what) {
  return absl::DataLossError(absl::StrCat("object file: ", what));
}
Status Unknown(std::string_view what) {
  return absl::UnimplementedError(absl::StrCat("object file: unknown ", what));
}

// Where a section goes.
struct Placement {
  bool loaded = false;
  size_t offset = 0;  // into the image
};

class Loader {
 public:
  Loader(std::string_view bytes, absl::FunctionRef<void*(std::string_view)> resolve)
      : bytes_(bytes), resolve_(resolve) {}

  StatusOr<std::unique_ptr<LoadedObject>> Load() {
    TL_RETURN_IF_ERROR(ReadHeaders());
    TL_RETURN_IF_ERROR(ReadSymbols());
    TL_RETURN_IF_ERROR(PlaceSections());
    TL_RETURN_IF_ERROR(Map());
    TL_RETURN_IF_ERROR(Copy());
    TL_RETURN_IF_ERROR(Relocate());
    TL_RETURN_IF_ERROR(Protect());
    ExportSymbols();
    return std::move(object_);
  }

 private:
  template <typename T>
  bool Read(uint64_t offset, T* out) const {
    if (offset > bytes_.size() || bytes_.size() - offset < sizeof(T)) return false;
    std::memcpy(out, bytes_.data() + offset, sizeof(T));
    return true;
  }

  bool InFile(const Elf64_Shdr& s) const {
    return s.sh_offset <= bytes_.size() && s.sh_size <= bytes_.size() - s.sh_offset;
  }

  Status ReadHeaders() {
    Elf64_Ehdr header;
    if (bytes_.size() > kMaxObjectBytes || !Read(0, &header) ||
        std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
      return Damaged("not an ELF file");
    }
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
        header.e_machine != EM_X86_64) {
      return Unknown("machine");
    }
    if (header.e_type != ET_REL || header.e_shentsize != sizeof(Elf64_Shdr)) {
      return Damaged("not relocatable");
    }
    sections_.resize(header.e_shnum);
    for (size_t i = 0; i < sections_.size(); ++i) {
      if (!Read(header.e_shoff + i * sizeof(Elf64_Shdr), &sections_[i])) {
        return Damaged("section table");
      }
      const Elf64_Shdr& s = sections_[i];
      if (s.sh_type != SHT_NULL && s.sh_type != SHT_NOBITS && !InFile(s)) {
        return Damaged("section bounds");
      }
    }
    return absl::OkStatus();
  }

  Status ReadSymbols() {
    for (const Elf64_Shdr& s : sections_) {
      if (s.sh_type != SHT_SYMTAB) continue;
      if (s.sh_link >= sections_.size() || sections_[s.sh_link].sh_type != SHT_STRTAB ||
          !symbols_.empty()) {
        return Damaged("symbol table");
      }
      const Elf64_Shdr& names = sections_[s.sh_link];
      names_ = bytes_.substr(names.sh_offset, names.sh_size);
      symbols_.resize(s.sh_size / sizeof(Elf64_Sym));
      if (symbols_.empty()) continue;
      if (symbols_.empty()) continue;
      std::memcpy(symbols_.data(), bytes_.data() + s.sh_offset,
                  symbols_.size() * sizeof(Elf64_Sym));
    }
    return absl::OkStatus();
  }

  StatusOr<std::string_view> NameOf(const Elf64_Sym& symbol) const {
    if (symbol.st_name >= names_.size()) return Damaged("symbol name");
    const std::string_view rest = names_.substr(symbol.st_name);
    const size_t end = rest.find('\0');
    if (end == rest.npos) return Damaged("symbol name");
    return rest.substr(0, end);
  }

  static Protection ProtectionOf(const Elf64_Shdr& s) {
    if (s.sh_flags & SHF_EXECINSTR) return kExecute;
    return s.sh_flags & SHF_WRITE ? kWrite : kReadOnly;
  }

  // Sections of one protection lie together on pages of their own. Stubs follow the code, pointers
  // of the global offset table the constants.
  Status PlaceSections() {
    placements_.resize(sections_.size());
    size_t at = 0;
    for (int p = 0; p < kNumProtections; ++p) {
      at = AlignUp(at, page_);
      begin_[p] = at;
      for (size_t i = 0; i < sections_.size(); ++i) {
        const Elf64_Shdr& s = sections_[i];
        if (!(s.sh_flags & SHF_ALLOC) || ProtectionOf(s) != p) continue;
        if (s.sh_flags & SHF_TLS) return Unknown("section kind");
        const uint64_t alignment = std::max<uint64_t>(s.sh_addralign, 1);
        if (alignment > kMaxAlignment || (alignment & (alignment - 1)) != 0 ||
            s.sh_size > kMaxObjectBytes) {
          return Damaged("section size");
        }
        at = AlignUp(at, alignment);
        placements_[i] = {true, at};
        at += s.sh_size;
        if (at > kMaxObjectBytes) return Damaged("section size");
      }
      at = AlignUp(at, kStubBytes);
      if (p == kExecute) stubs_ = at, at += symbols_.size() * kStubBytes;
      if (p == kReadOnly) got_ = at, at += symbols_.size() * sizeof(void*);
    }
    size_ = AlignUp(at, page_);
    begin_[kNumProtections] = size_;
    return size_ > 0 ? absl::OkStatus() : Damaged("nothing to load");
  }

  Status Map() {
    void* memory = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return absl::ResourceExhaustedError("no memory for a kernel's code");
    image_ = static_cast<char*>(memory);
    object_ = std::make_unique<LoadedObject>(memory, size_);
    return absl::OkStatus();
  }

  Status Copy() {
    for (size_t i = 0; i < sections_.size(); ++i) {
      const Elf64_Shdr& s = sections_[i];
      if (!placements_[i].loaded || s.sh_type == SHT_NOBITS) continue;
      std::memcpy(image_ + placements_[i].offset, bytes_.data() + s.sh_offset, s.sh_size);
    }
    return absl::OkStatus();
  }

  // Address of symbol number `index`; *external tells that it is not part of the image.
  StatusOr<char*> AddressOf(uint32_t index, bool* external) {
    *external = false;
    if (index >= symbols_.size()) return Damaged("symbol number");
    const Elf64_Sym& symbol = symbols_[index];
    if (symbol.st_shndx == SHN_UNDEF) {
      *external = true;
      TL_ASSIGN_OR_RETURN(const std::string_view name, NameOf(symbol));
      void* address = resolve_(name);
      if (address == nullptr) {
        return absl::NotFoundError(absl::StrCat("object file: undefined symbol ", name));
      }
      return static_cast<char*>(address);
    }
    if (symbol.st_shndx >= sections_.size()) return Unknown("symbol kind");
    const Placement& place = placements_[symbol.st_shndx];
    if (!place.loaded || symbol.st_value > sections_[symbol.st_shndx].sh_size) {
      return Damaged("symbol value");
    }
    return image_ + place.offset + symbol.st_value;
  }

  Status Relocate() {
    for (const Elf64_Shdr& s : sections_) {
      if (s.sh_type == SHT_REL) return Unknown("relocation table");
      if (s.sh_type != SHT_RELA) continue;
      if (s.sh_info >= sections_.size()) return Damaged("relocation table");
      if (!placements_[s.sh_info].loaded) continue;
      for (uint64_t at = 0; at + sizeof(Elf64_Rela) <= s.sh_size; at += sizeof(Elf64_Rela)) {
        Elf64_Rela rela;
        std::memcpy(&rela, bytes_.data() + s.sh_offset + at, sizeof(rela));
        TL_RETURN_IF_ERROR(Apply(s.sh_info, rela));
      }
    }
    return absl::OkStatus();
  }

  Status Apply(uint32_t section, const Elf64_Rela& rela) {
    const uint32_t symbol = ELF64_R_SYM(rela.r_info);
    const uint32_t type = ELF64_R_TYPE(rela.r_info);
    const size_t width = type == R_X86_64_64 ? 8 : 4;
    const uint64_t size = sections_[section].sh_size;
    if (rela.r_offset > size || size - rela.r_offset < width) return Damaged("relocation offset");
    char* place = image_ + placements_[section].offset + rela.r_offset;
    bool external;
    TL_ASSIGN_OR_RETURN(char* target, AddressOf(symbol, &external));
    switch (type) {
      case R_X86_64_64: {
        const uint64_t value = reinterpret_cast<uint64_t>(target) + rela.r_addend;
        std::memcpy(place, &value, sizeof(value));
        return absl::OkStatus();
      }
      case R_X86_64_PLT32:
        if (external) target = Stub(symbol, target);
        return Relative(place, target, rela.r_addend);
      case R_X86_64_PC32:
        return Relative(place, target, rela.r_addend);
      case R_X86_64_GOTPCREL:
      case R_X86_64_GOTPCRELX:
      case R_X86_64_REX_GOTPCRELX: {
        char* entry = image_ + got_ + symbol * sizeof(void*);
        std::memcpy(entry, &target, sizeof(target));
        return Relative(place, entry, rela.r_addend);
      }
      default:
        return Unknown(absl::StrCat("relocation ", type));
    }
  }

  static Status Relative(char* place, const char* target, int64_t addend) {
    const int64_t distance = reinterpret_cast<int64_t>(target) - reinterpret_cast<int64_t>(place);
    int64_t value;
    if (__builtin_add_overflow(distance, addend, &value) || value != static_cast<int32_t>(value)) {
      return Unknown("distance of a relocation");
    }
    const int32_t narrow = static_cast<int32_t>(value);
    std::memcpy(place, &narrow, sizeof(narrow));
    return absl::OkStatus();
  }

  char* Stub(uint32_t symbol, char* target) {
    char* stub = image_ + stubs_ + symbol * kStubBytes;
    constexpr unsigned char kJump[] = {0xFF, 0x25, 0, 0, 0, 0};
    std::memcpy(stub, kJump, sizeof(kJump));
    std::memcpy(stub + sizeof(kJump), &target, sizeof(target));
    return stub;
  }

  Status Protect() {
    constexpr int kFlags[] = {PROT_READ | PROT_EXEC, PROT_READ, PROT_READ | PROT_WRITE};
    for (int p = 0; p < kNumProtections; ++p) {
      const size_t bytes = begin_[p + 1] - begin_[p];
      if (bytes > 0 && mprotect(image_ + begin_[p], bytes, kFlags[p]) != 0) {
        return absl::PermissionDeniedError(
            "the system does not allow generated code to be executed");
      }
    }
    return absl::OkStatus();
  }

  void ExportSymbols() {
    for (size_t i = 0; i < symbols_.size(); ++i) {
      const Elf64_Sym& symbol = symbols_[i];
      if (ELF64_ST_BIND(symbol.st_info) != STB_GLOBAL || symbol.st_shndx == SHN_UNDEF) continue;
      bool external;
      const StatusOr<char*> address = AddressOf(static_cast<uint32_t>(i), &external);
      const StatusOr<std::string_view> name = NameOf(symbol);
      if (address.ok() && name.ok()) object_->AddSymbol(std::string(*name), *address);
    }
  }

  static size_t AlignUp(size_t v, size_t alignment) {
    return (v + alignment - 1) & ~(alignment - 1);
  }

  const std::string_view bytes_;
  absl::FunctionRef<void*(std::string_view)> resolve_;
  const size_t page_ = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  std::vector<Elf64_Shdr> sections_;
  std::vector<Elf64_Sym> symbols_;
  std::string_view names_;
  std::vector<Placement> placements_;
  size_t begin_[kNumProtections + 1] = {};
  size_t stubs_ = 0, got_ = 0, size_ = 0;
  char* image_ = nullptr;
  std::unique_ptr<LoadedObject> object_;
};

}  // namespace

LoadedObject::~LoadedObject() { munmap(memory_, size_); }

void* LoadedObject::Symbol(std::string_view name) const {
  const auto it = symbols_.find(name);
  return it == symbols_.end() ? nullptr : it->second;
}

StatusOr<std::unique_ptr<LoadedObject>> LoadObject(
    std::string_view bytes, absl::FunctionRef<void*(std::string_view)> resolve) {
  return Loader(bytes, resolve).Load();
}

}  // namespace tl::cpu
