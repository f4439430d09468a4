#include "backends/cpu/module/bytes.h"

#include <cstdlib>
#include <cstring>

namespace tl_cpu {

void GiveBytes(std::string_view text, tl_cpu_bytes* out) {
  if (out == nullptr) return;
  *out = {nullptr, 0};
  if (text.empty()) return;
  char* data = static_cast<char*>(std::malloc(text.size() + 1));
  if (data == nullptr) return;
  std::memcpy(data, text.data(), text.size());
  data[text.size()] = '\0';
  *out = {data, text.size()};
}

}  // namespace tl_cpu

void tl_cpu_free(tl_cpu_bytes* bytes) {
  if (bytes == nullptr) return;
  std::free(bytes->data);
  *bytes = {nullptr, 0};
}
