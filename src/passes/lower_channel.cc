// Send and recv: a message is a slot of the channel's ring, which lies in the arena like a tile of
// `depth` messages.
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "passes/lowering.h"
#include "passes/mbarriers.h"

namespace tl {
namespace {

Status CheckChannels(const Lowering& l, Span span) {
  if (l.target().channels) return absl::OkStatus();
  return UnsupportedError(
      span, absl::StrCat("channels need groups that hand over to each other by barriers in memory, "
                         "which '",
                         l.target().name,
                         "' does not have; the targets 'cpu' and 'reference' run "
                         "them"));
}

// ---- Groups that a runtime schedules

// Storage offset of message element `c` in slot `slot`.
ExprRef SlotOffset(const Lowering& l, BufferId channel, const ExprRef& slot, const Coords& c) {
  const int64_t size = l.buffer(channel).num_elements();
  return Add(Mul(slot, MakeInt(size)), l.Offset(channel, c));
}

void TransferByRuntime(Lowering& l, BufferId channel, bool send, const Region& tile) {
  const VarId slot = l.module().AddVar("slot", ScalarType::kInt, VarRole::kLet);
  l.intervals().Set(slot, {0, l.buffer(channel).depth - 1});
  l.Emit(ChannelAcquire{channel, send, slot});
  const DType dtype = l.buffer(channel).dtype;
  l.ForEach(tile.extents, [&](const Coords& c) {
    const ExprRef offset = SlotOffset(l, channel, l.Read(slot), c);
    if (send) {
      l.Emit(Store{channel, {offset}, StoreOp::kSet, ConvertTo(dtype, l.LoadAt(tile, c))});
    } else {
      l.StoreAt(tile, c, MakeLoad(channel, dtype, {offset}));
    }
  });
  l.Emit(Barrier{l.team()});
  l.Emit(ChannelRelease{channel, send});
}

// ---- Groups that meet at mbarriers

// From here on the channel is a tile of all its messages: what copies to and from tiles know of
// vectors and registers serves messages too.
void AddSlots(Buffer& channel) {
  channel.extents.insert(channel.extents.begin(), std::exchange(channel.depth, 1));
  if (channel.rank() < 3) return;
  channel.swizzle =
      SwizzleFor(channel.extents.back() * static_cast<int64_t>(SizeOf(channel.dtype)));
}

Region MessageIn(const Lowering& l, BufferId channel, const ExprRef& slot) {
  Region r = l.Whole(channel);
  r.offset[0] = slot;
  r.dims.erase(r.dims.begin());
  r.extents.erase(r.extents.begin());
  return r;
}

// Made once for the whole launch: between two lives of a channel its positions stay, because all
// its messages have been received then.
Lowering::Ring MakeRing(Lowering& l, BufferId channel) {
  Lowering::Ring ring;
  ring.depth = l.buffer(channel).depth;
  const int64_t count = 2 * ring.depth, arrivals = l.team_size();
  ring.mbarriers =
      AddMbarriers(l.module(), absl::StrCat(l.buffer(channel).name, "_mbarriers"), count, 0);
  AddSlots(l.module().buffers[channel]);
  l.AtStart([&] {
    l.Emit(Alloc{ring.mbarriers});
    for (Lowering::Ring::Position* p : {&ring.sender, &ring.receiver}) {
      p->slot = l.Mutable("slot", DType::kU8, MakeInt(0));
      p->parity = l.Mutable("parity", DType::kU8, MakeInt(0));
    }
    Block init = l.Capture([&] {
      l.Serial("i", MakeInt(0), MakeInt(count), [&](const ExprRef& i) {
        // Every thread of a group arrives for what it has done itself.
        l.Emit(Mbarrier{Mbarrier::Op::kInit, ring.mbarriers, i, MakeInt(arrivals)});
      });
    });
    l.Emit(OnFirstThread{Team::kBlock, std::move(init)});
  });
  return ring;
}

const Lowering::Ring& RingOf(Lowering& l, BufferId channel) {
  const auto it = l.rings().find(channel);
  if (it != l.rings().end()) return it->second;
  return l.rings().emplace(channel, MakeRing(l, channel)).first->second;
}

void TransferByMbarriers(Lowering& l, BufferId channel, bool send, const Region& tile) {
  const Lowering::Ring& ring = RingOf(l, channel);
  const Lowering::Ring::Position& at = send ? ring.sender : ring.receiver;
  const ExprRef slot = l.Named("slot", l.Read(at.slot)), parity = l.Read(at.parity);
  const ExprRef full = slot, free = Add(slot, MakeInt(ring.depth));
  // A slot is free from the start: the phase before the first has ended.
  const ExprRef phase = send ? MakeBinary(BinaryOp::kBitXor, parity, MakeInt(1)) : parity;
  l.Emit(Mbarrier{Mbarrier::Op::kWait, ring.mbarriers, send ? free : full, phase});
  const Region message = MessageIn(l, channel, slot);
  LowerCopy(l, send ? Copy{tile, message} : Copy{message, tile});
  // Race checkers do not see that one thread may speak for those that it has met: all arrive. They
  // meet all the same, because the emulator's clocks are those of groups and step at barriers.
  l.Emit(Barrier{l.team()});
  l.Emit(Mbarrier{Mbarrier::Op::kArrive, ring.mbarriers, send ? full : free, nullptr});
  const ExprRef wraps = MakeBinary(BinaryOp::kEq, slot, MakeInt(ring.depth - 1));
  l.Set(at.parity, MakeSelect(wraps, MakeBinary(BinaryOp::kBitXor, parity, MakeInt(1)), parity));
  l.Set(at.slot, MakeSelect(wraps, MakeInt(0), Add(slot, MakeInt(1))));
}

void Transfer(Lowering& l, BufferId channel, bool send, const Region& tile) {
  const auto transfer = l.target().simt ? TransferByMbarriers : TransferByRuntime;
  transfer(l, channel, send, tile);
}

}  // namespace

Status LowerSend(Lowering& l, const Send& send, Span span) {
  TL_RETURN_IF_ERROR(CheckChannels(l, span));
  Transfer(l, send.channel, true, l.Prepared(send.src));
  return absl::OkStatus();
}

Status LowerRecv(Lowering& l, const Recv& recv, Span span) {
  TL_RETURN_IF_ERROR(CheckChannels(l, span));
  Transfer(l, recv.channel, false, l.Prepared(recv.dst));
  return absl::OkStatus();
}

}  // namespace tl
