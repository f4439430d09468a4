#include "llvm/TargetParser/Host.h"

#include <string>

#include "backends/cpu/module/bytes.h"
#include "backends/cpu/module/guard.h"
#include "backends/cpu/module/interface.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/TargetParser/SubtargetFeature.h"

uint32_t tl_cpu_version(void) { return TL_CPU_INTERFACE_VERSION; }

const char* tl_cpu_compiler(void) { return "LLVM " LLVM_VERSION_STRING; }

int32_t tl_cpu_host(tl_cpu_bytes* cpu, tl_cpu_bytes* features) {
  const std::string error = tl_cpu::Guarded([&]() -> std::string {
    llvm::SubtargetFeatures list;
    for (const auto& feature : llvm::sys::getHostCPUFeatures()) {
      list.AddFeature(feature.first(), feature.second);
    }
    tl_cpu::GiveBytes(llvm::sys::getHostCPUName(), cpu);
    tl_cpu::GiveBytes(list.getString(), features);
    return "";
  });
  return error.empty() ? 0 : 1;
}
