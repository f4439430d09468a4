#include "backends/cuda/ptxas_info.h"

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace tl {
namespace {

// The number that stands directly before `unit` in `line`, 0 if none does.
int NumberBefore(std::string_view line, std::string_view unit) {
  const size_t at = line.find(unit);
  if (at == std::string_view::npos) return 0;
  std::string_view head = absl::StripTrailingAsciiWhitespace(line.substr(0, at));
  size_t start = head.size();
  while (start > 0 && absl::ascii_isdigit(static_cast<unsigned char>(head[start - 1]))) --start;
  int number = 0;
  return absl::SimpleAtoi(head.substr(start), &number) ? number : 0;
}

std::string_view Quoted(std::string_view line) {
  const size_t open = line.find('\'');
  if (open == std::string_view::npos) return "";
  const size_t close = line.find('\'', open + 1);
  return close == std::string_view::npos ? "" : line.substr(open + 1, close - open - 1);
}

// A line with a code C75xx or C76xx: the digit behind C7, or 0.
char PerformanceFamily(std::string_view line) {
  const size_t at = line.find("(C7");
  if (at == std::string_view::npos || at + 6 >= line.size() || line[at + 6] != ')') return 0;
  return line[at + 3] == '5' || line[at + 3] == '6' ? line[at + 3] : '\0';
}

}  // namespace

PtxasInfo ParsePtxasInfo(std::string_view log) {
  PtxasInfo info;
  for (std::string_view line : absl::StrSplit(log, '\n')) {
    if (const char family = PerformanceFamily(line)) {
      std::vector<std::string>& lines = family == '5' ? info.serialised : info.performance;
      lines.emplace_back(absl::StripAsciiWhitespace(line));
    } else if (line.find("Compiling entry function") != std::string_view::npos) {
      info.entries.push_back({.symbol = std::string(Quoted(line))});
    } else if (!info.entries.empty()) {
      PtxasEntry& e = info.entries.back();
      if (int n = NumberBefore(line, " registers")) e.registers = n;
      if (int n = NumberBefore(line, " bytes stack frame")) e.stack_bytes = n;
      if (int n = NumberBefore(line, " bytes spill stores")) e.spill_store_bytes = n;
      if (int n = NumberBefore(line, " bytes spill loads")) e.spill_load_bytes = n;
    }
  }
  return info;
}

std::optional<RegisterShortage> FindRegisterShortage(std::string_view log) {
  const size_t at = log.find("(C7602)");
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view line = log.substr(at, log.find('\n', at) - at);
  return RegisterShortage{NumberBefore(line, ") to compile"), NumberBefore(line, " or higher")};
}

std::vector<std::string> PtxasNotes(const PtxasInfo& info) {
  std::vector<std::string> notes = info.serialised;
  notes.insert(notes.end(), info.performance.begin(), info.performance.end());
  for (const PtxasEntry& e : info.entries) {
    if (e.spill_store_bytes == 0 && e.spill_load_bytes == 0) continue;
    notes.push_back(absl::StrCat(e.symbol, " spills registers: ", e.spill_store_bytes,
                                 " bytes stored, ", e.spill_load_bytes, " bytes loaded"));
  }
  return notes;
}

}  // namespace tl
