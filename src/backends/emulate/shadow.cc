#include "backends/emulate/shadow.h"

#include <algorithm>
#include <utility>

namespace tl::emulate {
namespace {

int Thread(uint16_t recorded) { return recorded >= 0xfffd ? -1 : recorded; }
uint16_t Line(int line) { return static_cast<uint16_t>(std::min(line, 0xffff)); }

}  // namespace

void Shadow::Start(int bytes, int threads, int group_size) {
  const Byte fresh = {0, kNobody, kNobody, 0, 0, 0, false};
  bytes_.assign(static_cast<size_t>(bytes), fresh);
  group_of_.resize(static_cast<size_t>(threads));
  for (int t = 0; t < threads; ++t) group_of_[t] = static_cast<uint8_t>(t / group_size);
  now_.assign(static_cast<size_t>(threads / group_size), 1);
  read_times_.assign(static_cast<size_t>(bytes) * groups(), 0);
  known_.assign(static_cast<size_t>(threads) * groups(), 1);
  mbarriers_.clear();
  for (auto& fences : fences_) fences.assign(static_cast<size_t>(threads), {});
  async_readers_.clear();
  progress_.Start(threads);
}

void Shadow::PassBarrier(std::span<const ThreadRange> threads) {
  progress_.Meet(threads);
  Clocks all(groups(), 0);
  for (const ThreadRange& r : threads) {
    for (int g = GroupOf(r.first); g <= GroupOf(r.first + r.count - 1); ++g) all[g] = ++now_[g];
  }
  const auto for_each = [&](auto visit) {
    for (const ThreadRange& r : threads) {
      for (int t = r.first; t < r.first + r.count; ++t) {
        for (size_t g = 0; g < groups(); ++g) visit(KnownBy(t, g), all[g]);
      }
    }
  };
  // What one of them knows, all know now; and what they all did.
  for_each([](uint32_t known, uint32_t& most) { most = std::max(most, known); });
  for_each([](uint32_t& known, uint32_t most) { known = most; });
}

void Shadow::Arrive(int mbarrier, int thread) {
  Clocks& gathered = mbarriers_[mbarrier].gathered;
  gathered.resize(groups(), 0);
  for (size_t g = 0; g < groups(); ++g) gathered[g] = std::max(gathered[g], Known(g, thread));
  progress_.Arrive(mbarrier, thread);
}

void Shadow::EndPhase(int mbarrier) {
  Mbarrier& m = mbarriers_[mbarrier];
  m.told = std::move(m.gathered);
  m.gathered.clear();
  progress_.EndPhase(mbarrier);
}

void Shadow::Learn(int mbarrier, int thread) {
  const Clocks& told = mbarriers_[mbarrier].told;
  for (size_t g = 0; g < told.size(); ++g) {
    KnownBy(thread, g) = std::max(KnownBy(thread, g), told[g]);
  }
  progress_.Learn(mbarrier, thread);
}

bool Shadow::WriteOrdered(int byte, int thread) const {
  const Byte& b = bytes_[static_cast<size_t>(byte)];
  if (b.writer == kNobody || b.writer == thread) return true;
  if (b.writer == kBulk) return b.write_time <= progress_.Known(b.fences, thread);
  return b.write_time < Known(group_of_[b.writer], thread);
}

Shadow::Conflict Shadow::WithWriter(int byte) const {
  const Byte& b = bytes_[static_cast<size_t>(byte)];
  const auto kind = b.in_flight         ? Conflict::kInFlight
                    : b.writer == kBulk ? Conflict::kBulkWrite
                                        : Conflict::kWithWrite;
  return {kind, Thread(b.writer), b.write_line, byte};
}

bool Shadow::ReadsOrdered(int byte, int thread) const {
  const Byte& b = bytes_[static_cast<size_t>(byte)];
  if (b.reader == kNobody || b.reader == thread) return true;
  const uint32_t* times = &read_times_[static_cast<size_t>(byte) * groups()];
  for (size_t g = 0; g < groups(); ++g) {
    if (times[g] != 0 && times[g] >= Known(g, thread)) return false;
  }
  return true;
}

void Shadow::AddReader(int byte, int thread, int line) {
  Byte& b = bytes_[static_cast<size_t>(byte)];
  uint32_t* const times = ReadTimes(byte);
  // Whoever is ordered after this read is so after those that it is ordered after.
  const bool only = ReadsOrdered(byte, thread);
  if (only) std::fill_n(times, groups(), 0);
  b.reader = only ? static_cast<uint16_t>(thread) : kMany;
  b.read_line = Line(line);
  times[GroupOf(thread)] = now_[GroupOf(thread)];
}

Shadow::Conflict Shadow::Read(int offset, int bytes, int thread, int line) {
  for (int i = offset; i < offset + bytes; ++i) {
    const Byte& b = bytes_[static_cast<size_t>(i)];
    if (b.in_flight || !WriteOrdered(i, thread)) return WithWriter(i);
    AddReader(i, thread, line);
  }
  return {};
}

Shadow::Conflict Shadow::Write(int offset, int bytes, int thread, int line, bool same) {
  const uint16_t fences = Fences(kProxyFence, thread);
  for (int i = offset; i < offset + bytes; ++i) {
    Byte& b = bytes_[static_cast<size_t>(i)];
    const bool replica = same && b.write_line == Line(line);
    if (b.in_flight || (!replica && !WriteOrdered(i, thread))) return WithWriter(i);
    if (!ReadsOrdered(i, thread)) return {Conflict::kWithRead, Thread(b.reader), b.read_line, i};
    if (const AsyncReader* reader = ReadingAsync(i, thread)) {
      return {Conflict::kAsyncRead, -1, reader->lines[reader->last[i]], i};
    }
    b.writer = static_cast<uint16_t>(thread);
    b.write_time = now_[GroupOf(thread)];
    b.write_line = Line(line);
    b.fences = fences;
    b.reader = kNobody;
    std::fill_n(ReadTimes(i), groups(), 0);
  }
  return {};
}

void Shadow::Launch(int offset, int bytes) {
  for (int i = offset; i < offset + bytes; ++i) bytes_[static_cast<size_t>(i)].in_flight = true;
}

void Shadow::Complete(int offset, int bytes, int thread) {
  for (int i = offset; i < offset + bytes; ++i) {
    Byte& b = bytes_[static_cast<size_t>(i)];
    b.in_flight = false;
    b.write_time = now_[GroupOf(thread)];
    b.fences = Fences(kProxyFence, thread);
  }
}

// ---- The async proxy

void Shadow::Fence(FenceKind kind, int thread) {
  fences_[kind][thread].push_back(now_[GroupOf(thread)]);
}

bool Shadow::Fenced(FenceKind kind, int thread, uint16_t before, const Knowledge& known) const {
  const Clocks& times = fences_[kind][thread];
  if (times.size() <= before) return false;
  return thread == known.thread || times[before] < known.groups[group_of_[thread]];
}

int Shadow::NewAsyncReader(std::vector<int> counters) {
  async_readers_.push_back({std::move(counters), std::vector<uint32_t>(bytes_.size(), 0), {0}});
  return static_cast<int>(async_readers_.size()) - 1;
}

Shadow::Knowledge Shadow::KnownToAll(int first, int count) const {
  Knowledge known{count == 1 ? first : -1, Clocks(groups(), 0xffffffffu), {}};
  for (int t = first; t < first + count; ++t) {
    for (size_t g = 0; g < groups(); ++g) known.groups[g] = std::min(known.groups[g], Known(g, t));
  }
  for (int c = 0; c < progress_.counters(); ++c) {
    known.counters.push_back(progress_.KnownToAll(c, first, count));
  }
  return known;
}

const Shadow::AsyncReader* Shadow::ReadingAsync(int byte, int thread) const {
  for (const AsyncReader& reader : async_readers_) {
    for (int counter : reader.counters) {
      if (progress_.Known(counter, thread) < reader.last[byte]) return &reader;
    }
  }
  return nullptr;
}

Shadow::Conflict Shadow::ReadAsync(int offset, int bytes, const Knowledge& known, int reader,
                                   uint32_t operation, int line) {
  AsyncReader& r = async_readers_[reader];
  r.lines.resize(operation + 1);
  r.lines[operation] = Line(line);
  for (int i = offset; i < offset + bytes; ++i) {
    const Byte& b = bytes_[static_cast<size_t>(i)];
    if (b.in_flight) return WithWriter(i);
    r.last[i] = operation;
    if (!WriteOrdered(b, known)) return WithWriter(i);
    if (!VisibleToAsync(b, known)) return {Conflict::kNoFence, Thread(b.writer), b.write_line, i};
  }
  return {};
}

bool Shadow::WriteOrdered(const Byte& b, const Knowledge& known) const {
  if (b.writer == kNobody || b.writer == known.thread) return true;
  if (b.writer == kBulk) return b.write_time <= known.counters[b.fences];
  return b.write_time < known.groups[group_of_[b.writer]];
}

// Given that it is ordered.
bool Shadow::VisibleToAsync(const Byte& b, const Knowledge& known) const {
  return b.writer == kNobody || b.writer == kBulk || Fenced(kProxyFence, b.writer, b.fences, known);
}

Shadow::Conflict Shadow::LaunchBulk(int offset, int bytes, const Knowledge& known, int line) {
  for (int i = offset; i < offset + bytes; ++i) {
    const Byte& b = bytes_[static_cast<size_t>(i)];
    if (b.in_flight || !WriteOrdered(b, known)) return WithWriter(i);
    if (!VisibleToAsync(b, known)) return {Conflict::kNoFence, Thread(b.writer), b.write_line, i};
  }
  const Conflict conflict = Write(offset, bytes, known.thread, line, false);
  if (!conflict) Launch(offset, bytes);
  return conflict;
}

void Shadow::CompleteBulk(int offset, int bytes, int counter, uint32_t count) {
  for (int i = offset; i < offset + bytes; ++i) {
    Byte& b = bytes_[static_cast<size_t>(i)];
    b.in_flight = false;
    b.writer = kBulk;
    b.write_time = count;
    b.fences = static_cast<uint16_t>(counter);
  }
}

}  // namespace tl::emulate
