// What the assembler says about each entry, read from the compiler's log.
#ifndef TILEJIT_BACKENDS_CUDA_PTXAS_INFO_H_
#define TILEJIT_BACKENDS_CUDA_PTXAS_INFO_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tl {

struct PtxasEntry {
  std::string symbol;
  int registers = 0;
  int stack_bytes = 0;
  int spill_store_bytes = 0;
  int spill_load_bytes = 0;
};

struct PtxasInfo {
  std::vector<PtxasEntry> entries;
  // Whole lines with a code C75xx: asynchronous matrix instructions were serialised, or waits were
  // injected between them. The generated code is at fault.
  std::vector<std::string> serialised;
  // Whole lines with a code C76xx: registers ran short.
  std::vector<std::string> performance;
};

// An empty or unknown log gives an empty result.
PtxasInfo ParsePtxasInfo(std::string_view log);

// Registers of a thread, and how many one of its instructions takes, where the assembler gave up
// for that (C7602).
struct RegisterShortage {
  int available = 0, needed = 0;
};
std::optional<RegisterShortage> FindRegisterShortage(std::string_view log);

// One line per entry with spills and per performance message, for a report.
std::vector<std::string> PtxasNotes(const PtxasInfo& info);

}  // namespace tl

#endif  // TILEJIT_BACKENDS_CUDA_PTXAS_INFO_H_
