#include "backends/hip/code_object.h"

#include <cstdint>
#include <nlohmann/json.hpp>

#include "base/elf.h"

namespace tl {
namespace {

using Json = nlohmann::json;

// "AMDGPU", NT_AMDGPU_METADATA: MessagePack, described in LLVM's "User Guide for AMDGPU Backend".
constexpr uint32_t kMetadata = 32;

int Number(const Json& kernel, const char* key) {
  const auto found = kernel.find(key);
  return found != kernel.end() && found->is_number_integer() ? found->get<int>() : 0;
}

bool IsNamed(const Json& kernel, std::string_view symbol) {
  const auto name = kernel.find(".name");
  return name != kernel.end() && name->is_string() && name->get_ref<const std::string&>() == symbol;
}

EntryResources Resources(const Json& kernel) {
  // A register of a wave that is spilled is 4 bytes of each of its threads.
  const int spilled = 4 * Number(kernel, ".vgpr_spill_count");
  EntryResources r;
  r.registers = Number(kernel, ".vgpr_count");  // those for accumulation among them
  r.stack_bytes = Number(kernel, ".private_segment_fixed_size");
  r.spill_store_bytes = r.spill_load_bytes = spilled;
  return r;
}

Json KernelsOf(std::string_view binary) {
  const StatusOr<ElfFile> file = ElfFile::In(binary);
  if (!file.ok()) return {};
  const Json metadata = Json::from_msgpack(file->Note("AMDGPU", kMetadata), /*strict=*/true,
                                           /*allow_exceptions=*/false);
  if (!metadata.is_object()) return {};
  return metadata.value("amdhsa.kernels", Json());
}

}  // namespace

std::vector<EntryResources> ReadCodeObject(std::string_view binary,
                                           const std::vector<Entry>& entries) {
  const Json kernels = KernelsOf(binary);
  std::vector<EntryResources> all;
  for (const Entry& entry : entries) {
    for (const Json& kernel : kernels) {
      if (kernel.is_object() && IsNamed(kernel, entry.symbol)) all.push_back(Resources(kernel));
    }
  }
  if (all.size() != entries.size()) all.clear();
  return all;
}

}  // namespace tl
