// Where all radices are powers of two, a layout is a list of bits: each bit of the lane's number
// and of the slot's number stands for one bit of one coordinate. Two layouts with the same warps
// then differ by a permutation of these bits, which is made of swaps:
//
//   slot bit with slot bit   registers are renamed
//   lane bit with slot bit   every lane gives away one half of its registers and gets another's
//   lane bit with lane bit   three of the former
#include "passes/exchange_registers.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>
#include <vector>

namespace tl {
namespace {

struct CoordinateBit {
  int dim;
  int64_t step;
  bool operator==(const CoordinateBit&) const = default;
};

// The bits of one axis, the lowest first; nullopt where there are others than bits.
std::optional<std::vector<CoordinateBit>> BitsOf(const FragmentLayout& layout, LayoutAxis axis) {
  const auto digits = layout.DimDigits(axis);
  if (!digits) return std::nullopt;
  std::vector<CoordinateBit> bits;
  for (const FragmentLayout::DimDigit& d : *digits) {
    if (d.dim < 0 || !std::has_single_bit(static_cast<uint64_t>(d.radix))) return std::nullopt;
    for (int64_t r = 1; r < d.radix; r *= 2) bits.push_back({d.dim, d.step * r});
  }
  return bits;
}

class Exchange {
 public:
  Exchange(Lowering& l, BufferId registers, int lane_bits, std::vector<CoordinateBit> now)
      : l_(l), registers_(registers), lane_bits_(lane_bits), now_(std::move(now)) {}

  // Brings every bit to the place where `wanted` has it: lanes first, then slots.
  void Run(const std::vector<CoordinateBit>& wanted) {
    for (int p = 0; p < static_cast<int>(wanted.size()); ++p) {
      const auto it = std::find(now_.begin(), now_.end(), wanted[p]);
      Swap(p, static_cast<int>(it - now_.begin()));
    }
  }

 private:
  bool IsLane(int bit) const { return bit < lane_bits_; }

  void Swap(int p, int q) {
    if (p == q) return;
    if (p > q) std::swap(p, q);
    if (IsLane(q)) {
      const int slot = lane_bits_;
      for (int lane : {p, q, p}) SwapLaneSlot(lane, slot);
    } else if (IsLane(p)) {
      SwapLaneSlot(p, q);
    } else {
      SwapSlots(p, q);
    }
    std::swap(now_[p], now_[q]);
  }

  ExprRef At(const ExprRef& slot) const {
    return MakeLoad(registers_, l_.buffer(registers_).dtype, {slot});
  }
  void Set(const ExprRef& slot, const ExprRef& value) {
    l_.Emit(Store{registers_, {slot}, StoreOp::kSet, value});
  }

  int64_t slots() const { return int64_t{1} << (static_cast<int>(now_.size()) - lane_bits_); }

  // Slot number `i` of those without bit `bit`.
  static ExprRef Without(const ExprRef& i, int64_t bit) {
    const auto op = [](BinaryOp o, const ExprRef& x, int64_t y) {
      return MakeBinary(o, x, MakeInt(y));
    };
    const ExprRef high = op(BinaryOp::kMul, op(BinaryOp::kDiv, i, bit), 2 * bit);
    return Add(high, op(BinaryOp::kMod, i, bit));
  }

  void SwapLaneSlot(int lane, int slot) {
    const int64_t bit = int64_t{1} << (slot - lane_bits_), mask = int64_t{1} << lane;
    const ExprRef own = MakeBinary(BinaryOp::kBitAnd, l_.lane(), MakeInt(mask));
    const ExprRef low = MakeBinary(BinaryOp::kEq, own, MakeInt(0));
    l_.Slots("s", slots() / 2, [&](const ExprRef& i) {
      const ExprRef a = l_.Named("a", Without(i, bit));
      const ExprRef b = Add(a, MakeInt(bit));
      const ScalarType type = At(a)->type;
      const VarId other = l_.module().AddVar("other", type, VarRole::kLet);
      l_.Emit(LaneExchange{other, MakeSelect(low, At(b), At(a)), static_cast<int>(mask)});
      const ExprRef kept = l_.Named("kept", MakeSelect(low, At(a), At(b)));
      Set(a, MakeSelect(low, kept, l_.Read(other)));
      Set(b, MakeSelect(low, l_.Read(other), kept));
    });
  }

  void SwapSlots(int p, int q) {
    const int64_t low = int64_t{1} << (p - lane_bits_), high = int64_t{1} << (q - lane_bits_);
    l_.Slots("s", slots() / 4, [&](const ExprRef& i) {
      const ExprRef base = l_.Named("base", Without(Without(i, low), high));
      const ExprRef a = Add(base, MakeInt(low)), b = Add(base, MakeInt(high));
      const ExprRef kept = l_.Named("kept", At(a));
      Set(a, At(b));
      Set(b, kept);
    });
  }

  Lowering& l_;
  const BufferId registers_;
  const int lane_bits_;
  std::vector<CoordinateBit> now_;
};

// What each bit of the lane's number and, behind it, of the slot's stands for.
struct Bits {
  int lanes;
  std::vector<CoordinateBit> all;
};

std::optional<Bits> BitsOf(const FragmentLayout& layout) {
  auto all = BitsOf(layout, LayoutAxis::kLane);
  const auto slots = BitsOf(layout, LayoutAxis::kSlot);
  if (!all || !slots) return std::nullopt;
  const int lanes = static_cast<int>(all->size());
  all->insert(all->end(), slots->begin(), slots->end());
  return Bits{lanes, *std::move(all)};
}

}  // namespace

bool IsExchange(const FragmentLayout& from, const FragmentLayout& to) {
  if (from.padded() != to.padded() || from.slots() != to.slots() || from.slots() < 2 ||
      from.digits(LayoutAxis::kWarp) != to.digits(LayoutAxis::kWarp) ||
      from.digits(LayoutAxis::kGroup) != to.digits(LayoutAxis::kGroup)) {
    return false;
  }
  const auto now = BitsOf(from), wanted = BitsOf(to);
  return now && wanted && now->lanes == wanted->lanes &&
         std::is_permutation(now->all.begin(), now->all.end(), wanted->all.begin(),
                             wanted->all.end());
}

void ExchangeRegisters(Lowering& l, BufferId registers, const FragmentLayout& from,
                       const FragmentLayout& to) {
  Bits now = *BitsOf(from);
  Exchange(l, registers, now.lanes, std::move(now.all)).Run(BitsOf(to)->all);
}

}  // namespace tl
