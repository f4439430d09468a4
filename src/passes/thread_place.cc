#include "passes/thread_place.h"

#include <bit>
#include <utility>
#include <vector>

#include "ir/address.h"

namespace tl {
namespace {

// The rows of a swizzled tile are ordered alike after this many: Swizzle repeats at the latest
// then.
constexpr int64_t kPeriod = 8;

using SlotDigits = std::vector<FragmentLayout::DimDigit>;

// The bits of a coordinate that these digits set, if each digit has bits of its own.
std::optional<uint64_t> BitsOf(const SlotDigits& digits, int dim) {
  uint64_t bits = 0;
  for (const FragmentLayout::DimDigit& d : digits) {
    if (d.dim != dim) continue;
    const auto radix = static_cast<uint64_t>(d.radix), step = static_cast<uint64_t>(d.step);
    if (!std::has_single_bit(radix) || !std::has_single_bit(step)) return std::nullopt;
    bits |= (radix - 1) * step;
  }
  return bits;
}

}  // namespace

ThreadPlace::ThreadPlace(Lowering& l, const Region& window, const FragmentLayout& layout,
                         int64_t count, Keep keep, bool within_panels)
    : l_(l), window_(window), layout_(layout), within_panels_(within_panels) {
  const std::optional<Coords> strides = Strides();
  const Order order = OrderOfRows(count);
  if (!strides || order == Order::kMixed) return;
  const auto kept = [&](std::string_view name, ExprRef e) {
    return keep == Keep::kForLaunch ? l.Pinned(name, std::move(e)) : l.Named(name, std::move(e));
  };
  const Coords first = l.OfThread(layout);
  if (HasPanels()) {
    const Coords index = IndexOf(first);
    if (order == Order::kByThread) {
      of_thread_ = kept("place", TensorOffset(l.module(), window.buffer, index));
      return;
    }
    const Buffer& b = l.buffer(window.buffer);
    const PanelOffset place = OffsetInPanels(b, index);
    of_thread_ = kept("place", place.row);
    column_ = kept("column", Swizzled(b, index[b.rank() - 2], place.col));
    return;
  }
  ExprRef sum = MakeInt(0);
  for (size_t i = 0; i < first.size(); ++i) {
    ExprRef c = first[i];
    if (i > 0 && i + 1 == first.size() && !l.IsGlobal(window)) {
      c = Swizzled(l.buffer(window.buffer), first[i - 1], std::move(c));
      if (order == Order::kByBits) {
        column_ = kept("column", std::move(c));
        break;
      }
    }
    sum = Add(std::move(sum), Mul(std::move(c), (*strides)[i]));
  }
  of_thread_ = kept("place", std::move(sum));
}

ExprRef ThreadPlace::OffsetOf(const Lowering::Element& e) const {
  if (!of_thread_) return l_.Offset(window_.buffer, Lowering::Index(window_, e.at));
  const Coords index = Lowering::Index(window_, e.from_slot);
  if (l_.IsGlobal(window_)) return Add(l_.Offset(window_.buffer, index), of_thread_);
  // Whatever order the row has is in the thread's part.
  const Buffer& b = l_.buffer(window_.buffer);
  if (HasPanels()) {
    // The slots' columns are whole panels, or bits of their own, so that the two parts add up.
    const PanelOffset place = OffsetInPanels(b, index);
    const ExprRef col = column_ ? MakeBinary(BinaryOp::kBitXor, place.col, column_) : place.col;
    return Add(Add(l_.GroupOffset(window_.buffer), Add(place.row, col)), of_thread_);
  }
  ExprRef offset = MakeInt(0);
  for (size_t d = 0; d < index.size(); ++d) {
    const bool turned = column_ && d + 1 == index.size();
    const ExprRef i = turned ? MakeBinary(BinaryOp::kBitXor, index[d], column_) : index[d];
    offset = Add(Mul(std::move(offset), MakeInt(b.extents[d])), i);
  }
  return Add(Add(l_.GroupOffset(window_.buffer), std::move(offset)), of_thread_);
}

bool ThreadPlace::HasPanels() const {
  return !l_.IsGlobal(window_) && l_.buffer(window_.buffer).swizzle.panel_bytes > 0;
}

// Of an element of a window that starts where its buffer does.
Coords ThreadPlace::IndexOf(const Coords& c) const {
  Coords index(l_.buffer(window_.buffer).rank(), MakeInt(0));
  for (size_t i = 0; i < c.size(); ++i) index[window_.dims[i]] = c[i];
  return index;
}

// Of the window's dims; none for tensors that are packed there.
std::optional<Coords> ThreadPlace::Strides() const {
  const Buffer& b = l_.buffer(window_.buffer);
  Coords out;
  for (int d : window_.dims) {
    ExprRef stride;
    if (l_.IsGlobal(window_)) {
      stride = TensorStride(l_.module(), window_.buffer, d);
    } else {
      int64_t behind = 1;
      for (int after = d + 1; after < b.rank(); ++after) behind *= b.extents[after];
      stride = MakeInt(behind);
    }
    if (!stride) return std::nullopt;
    out.push_back(std::move(stride));
  }
  return out;
}

// Slot and window have to move by whole periods of rows.
ThreadPlace::Order ThreadPlace::OrderOfRows(int64_t count) const {
  const Buffer& b = l_.buffer(window_.buffer);
  if (l_.IsGlobal(window_) || b.swizzle.bits == 0) return Order::kByThread;
  const int last = window_.rank() - 1;
  if (last < 1 || window_.dims[last] != b.rank() - 1 || window_.dims[last - 1] != b.rank() - 2 ||
      !IsInt(window_.offset.back(), 0) ||
      l_.DivisorOf(window_.offset[b.rank() - 2]) % kPeriod != 0) {
    return Order::kMixed;
  }
  const SlotDigits digits = *layout_.DimDigits(LayoutAxis::kSlot);
  bool moves_along = false;
  for (size_t i = 0; i < digits.size(); ++i) {
    const bool vector = i == 0 && digits[i].radix == count;
    const bool whole_panels = HasPanels() && digits[i].step % b.PanelElements() == 0;
    if (digits[i].dim == last && !vector && !whole_panels) moves_along = true;
    if (digits[i].dim == last - 1 && digits[i].step % kPeriod != 0) return Order::kMixed;
  }
  if (!moves_along) return Order::kByThread;
  if (HasPanels() && !within_panels_) return Order::kMixed;
  return ColumnsShareNoBits() ? Order::kByBits : Order::kMixed;
}

bool ThreadPlace::ColumnsShareNoBits() const {
  const int last = window_.rank() - 1;
  uint64_t all = 0;
  for (LayoutAxis axis : {LayoutAxis::kSlot, LayoutAxis::kLane, LayoutAxis::kWarp}) {
    const std::optional<uint64_t> bits = BitsOf(*layout_.DimDigits(axis), last);
    if (!bits || (all & *bits) != 0) return false;
    all |= *bits;
  }
  return true;
}

}  // namespace tl
