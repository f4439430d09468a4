// Send and recv: a message is a slot of the channel's ring, which lies in the arena like a tile of
// `depth` messages.
#include <string>

#include "absl/strings/str_cat.h"
#include "passes/lowering.h"

namespace tl {
namespace {

Status CheckChannels(const Lowering& l, Span span) {
  if (l.target().channels) return absl::OkStatus();
  return UnsupportedError(
      span, absl::StrCat("channels need groups that run side by side, which code for '",
                         l.target().name, "' does not have yet; the target 'reference' runs them"));
}

// Storage offset of message element `c` in slot `slot`.
ExprRef SlotOffset(const Lowering& l, BufferId channel, const ExprRef& slot, const Coords& c) {
  const int64_t size = l.buffer(channel).num_elements();
  return Add(Mul(slot, MakeInt(size)), l.Offset(channel, c));
}

// Between acquire and release every thread of the group works on its part of the message.
void Transfer(Lowering& l, BufferId channel, bool send, const Region& tile) {
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
