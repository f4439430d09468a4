#include "backends/emulate/shadow.h"

#include <algorithm>

namespace tl::emulate {
namespace {

int Thread(uint16_t recorded) { return recorded >= 0xfffd ? -1 : recorded; }
uint16_t Line(int line) { return static_cast<uint16_t>(std::min(line, 0xffff)); }

}  // namespace

void Shadow::Start(int bytes, int threads, int group_size) {
  const Byte fresh = {0, 0, kNobody, kNobody, 0, 0, false, 0};
  bytes_.assign(static_cast<size_t>(bytes), fresh);
  group_of_.resize(static_cast<size_t>(threads));
  for (int t = 0; t < threads; ++t) group_of_[t] = static_cast<uint8_t>(t / group_size);
  now_.assign(static_cast<size_t>(threads / group_size), 1);
  known_ = now_;
  block_now_ = 1;
}

void Shadow::PassBarrier(int group) {
  if (group >= 0) {
    ++now_[group];
    return;
  }
  for (uint32_t& clock : now_) ++clock;
  known_ = now_;
  ++block_now_;
}

bool Shadow::WriteOrdered(const Byte& b, int thread) const {
  if (b.writer == kNobody || b.writer == thread) return true;
  return Ordered(GroupOf(b.writer), b.write_time, thread);
}

bool Shadow::ReadsOrdered(const Byte& b, int thread) const {
  if (b.reader == kNobody || b.reader == thread) return true;
  // Only the block's barriers order groups.
  if (b.reader == kSeveralGroups) return b.read_time < block_now_;
  return Ordered(b.reader == kMany ? b.read_group : GroupOf(b.reader), b.read_time, thread);
}

void Shadow::AddReader(Byte& b, int thread, int line) const {
  const int group = GroupOf(thread);
  b.read_line = Line(line);
  if (ReadsOrdered(b, thread)) {  // whoever is ordered after this read is so after the earlier ones
    b.reader = static_cast<uint16_t>(thread);
    b.read_time = now_[group];
    return;
  }
  const int before = b.reader == kSeveralGroups ? -1
                     : b.reader == kMany        ? b.read_group
                                                : GroupOf(b.reader);
  b.reader = before == group ? kMany : kSeveralGroups;
  b.read_group = static_cast<uint8_t>(group);
  b.read_time = before == group ? now_[group] : block_now_;
}

Shadow::Conflict Shadow::Read(int offset, int bytes, int thread, int line) {
  for (int i = offset; i < offset + bytes; ++i) {
    Byte& b = bytes_[static_cast<size_t>(i)];
    if (b.in_flight) return {Conflict::kInFlight, Thread(b.writer), b.write_line, i};
    if (!WriteOrdered(b, thread)) return {Conflict::kWithWrite, Thread(b.writer), b.write_line, i};
    AddReader(b, thread, line);
  }
  return {};
}

Shadow::Conflict Shadow::Write(int offset, int bytes, int thread, int line, bool same) {
  for (int i = offset; i < offset + bytes; ++i) {
    Byte& b = bytes_[static_cast<size_t>(i)];
    if (b.in_flight) return {Conflict::kInFlight, Thread(b.writer), b.write_line, i};
    const bool replica = same && b.write_line == Line(line);
    if (!replica && !WriteOrdered(b, thread)) {
      return {Conflict::kWithWrite, Thread(b.writer), b.write_line, i};
    }
    if (!ReadsOrdered(b, thread)) return {Conflict::kWithRead, Thread(b.reader), b.read_line, i};
    b.writer = static_cast<uint16_t>(thread);
    b.write_time = now_[GroupOf(thread)];
    b.write_line = Line(line);
    b.reader = kNobody;
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
  }
}

}  // namespace tl::emulate
