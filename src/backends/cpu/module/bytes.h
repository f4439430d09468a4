// Memory handed across the module's border.
#ifndef TILEJIT_BACKENDS_CPU_MODULE_BYTES_H_
#define TILEJIT_BACKENDS_CPU_MODULE_BYTES_H_

#include <string_view>

#include "backends/cpu/module/interface.h"

namespace tl_cpu {

// Copies `text` into *out, which may be null. An allocation failure leaves *out empty.
void GiveBytes(std::string_view text, tl_cpu_bytes* out);

}  // namespace tl_cpu

#endif  // TILEJIT_BACKENDS_CPU_MODULE_BYTES_H_
