#include "backends/emulate/bank_log.h"

#include <algorithm>
#include <array>
#include <tuple>

#include "layout/shared_layout.h"

namespace tl::emulate {

void BankLog::Start(int threads, int lanes, EmulateStats* stats) {
  const int warps = (threads + lanes - 1) / lanes;
  warps_.assign(stats != nullptr ? static_cast<size_t>(warps) : 0, {});
  lanes_ = lanes;
  stats_ = stats;
}

void BankLog::Note(int thread, int line, int offset, int bytes, bool write, bool async) {
  if (stats_ == nullptr) return;
  warps_[thread / lanes_].push_back({line, 0, thread % lanes_, offset, bytes, write, async});
}

void BankLog::NoteMatrix(const std::vector<int64_t>& rows, bool write) {
  if (stats_ == nullptr) return;
  BankCount& count = write ? stats_->matrix_stores : stats_->matrix_loads;
  ++count.accesses;
  count.extra += BankConflicts(rows, 16);
}

void BankLog::Count(const std::vector<Entry>& entries, size_t begin, size_t end) {
  std::vector<int64_t> offsets(static_cast<size_t>(lanes_), -1);
  for (size_t i = begin; i < end; ++i) offsets[entries[i].lane] = entries[i].offset;
  const Entry& first = entries[begin];
  BankCount& count = first.async   ? stats_->async_writes
                     : first.write ? stats_->vector_writes
                                   : stats_->vector_reads;
  ++count.accesses;
  count.extra += BankConflicts(offsets, first.bytes);
}

void BankLog::Flush(int warp) {
  if (stats_ == nullptr) return;
  std::vector<Entry>& entries = warps_[warp];
  const auto by_line = [](const Entry& a, const Entry& b) {
    return std::tie(a.line, a.write, a.lane) < std::tie(b.line, b.write, b.lane);
  };
  std::stable_sort(entries.begin(), entries.end(), by_line);
  for (size_t i = 1; i < entries.size(); ++i) {
    const bool again = !by_line(entries[i - 1], entries[i]);
    entries[i].ordinal = again ? entries[i - 1].ordinal + 1 : 0;
  }
  const auto key = [](const Entry& e) { return std::tie(e.line, e.write, e.ordinal); };
  std::stable_sort(entries.begin(), entries.end(),
                   [&](const Entry& a, const Entry& b) { return key(a) < key(b); });
  for (size_t begin = 0, end = 0; begin < entries.size(); begin = end) {
    while (end < entries.size() && key(entries[begin]) == key(entries[end])) ++end;
    Count(entries, begin, end);
  }
  entries.clear();
}

}  // namespace tl::emulate
