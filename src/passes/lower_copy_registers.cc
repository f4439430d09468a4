// Copies in the widest accesses that can be proven, and copies from and to registers.
//
// What only the launch knows (where a tensor starts, whether a dynamic stride is a multiple)
// becomes a condition that is the same for the whole launch: the wide form stands in one branch,
// elements one by one in the other, so that any tensor gives the right result.
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ir/address.h"
#include "ir/visit.h"
#include "layout/matrix_fragments.h"
#include "passes/bank_notes.h"
#include "passes/exchange_registers.h"
#include "passes/lowering.h"
#include "passes/thread_place.h"

namespace tl {
namespace {

constexpr int64_t kVectorBytes = 16;

ExprRef IsMultiple(const Lowering& l, const ExprRef& e, int64_t of) {
  if (l.DivisorOf(e) % of == 0) return MakeBool(true);
  return MakeBinary(BinaryOp::kEq, MakeBinary(BinaryOp::kMod, e, MakeInt(of)), MakeInt(0));
}

// False as soon as one of them can never hold.
ExprRef Both(ExprRef a, ExprRef b) {
  const BoolLit* known = As<BoolLit>(b);
  return known && !known->value ? b : And(std::move(a), std::move(b));
}

// `count` neighbouring elements along the last dim of a window may move at once, where `fast`
// holds.
struct Width {
  int64_t count = 1;
  ExprRef fast = MakeBool(true);
};

int64_t BytesOf(const Lowering& l, const Region& r) {
  return static_cast<int64_t>(SizeOf(l.buffer(r.buffer).dtype));
}

// Does the last dim of the window run along neighbouring elements?
bool RunsAlongMemory(const Lowering& l, const Region& r) {
  const Buffer& b = l.buffer(r.buffer);
  if (r.rank() == 0 || r.dims.back() != b.rank() - 1 || !b.packed.empty()) return false;
  return b.scope != Scope::kGlobal || IsInt(b.strides.back(), 1);
}

// A vector lies inside the tensor or outside of it, never across the border.
ExprRef NoneStraddles(const Lowering& l, const Region& r, const ExprRef& rows, int64_t count) {
  const Buffer& b = l.buffer(r.buffer);
  ExprRef ok = MakeBool(true);
  Coords first(r.rank(), MakeInt(0)), last;
  for (int64_t extent : r.extents) last.push_back(MakeInt(extent - 1));
  const auto inside = [&](const Coords& c) {
    const ExprRef e = InsideWindow(l, r, c, nullptr);
    const BoolLit* known = As<BoolLit>(e);
    return known && known->value;
  };
  if (!inside(first) || !inside(last)) ok = IsMultiple(l, b.shape.back(), count);
  if (rows && r.rank() == 1) ok = Both(std::move(ok), IsMultiple(l, rows, count));
  return ok;
}

// Does the launch know whether it is a multiple of something, and nobody before?
bool DependsOnDim(Lowering& l, const ExprRef& e) {
  return AnyNode(e, [&](const ExprRef& node) {
    const VarRef* ref = As<VarRef>(node);
    return ref && l.module().var(ref->var).role == VarRole::kDim;
  });
}

Width WidthOf(Lowering& l, const Region& r, const ExprRef& rows, int64_t at_most) {
  const Buffer& b = l.buffer(r.buffer);
  Width w;
  if (!RunsAlongMemory(l, r)) return w;
  int64_t count = 1;
  while (count * 2 <= std::min(at_most, kVectorBytes / BytesOf(l, r))) count *= 2;
  const ExprRef& offset = r.offset.back();
  const bool asks = b.scope == Scope::kGlobal && DependsOnDim(l, offset);
  const auto divides = [&](int64_t n) {
    return r.extents.back() % n == 0 && (asks || l.DivisorOf(offset) % n == 0) &&
           (b.scope == Scope::kGlobal || b.extents.back() % n == 0);
  };
  while (count > 1 && !divides(count)) count /= 2;
  w.count = count;
  if (count == 1 || b.scope != Scope::kGlobal) return w;
  w.fast = MakeIsAligned(r.buffer, static_cast<int>(count * BytesOf(l, r)));
  w.fast = Both(std::move(w.fast), IsMultiple(l, offset, count));
  for (int d = 0; d + 1 < b.rank(); ++d) {
    w.fast = Both(std::move(w.fast), IsMultiple(l, b.strides[d], count));
  }
  w.fast = Both(std::move(w.fast), NoneStraddles(l, r, rows, count));
  return w;
}

// ---- For the report

// Where the wide form of a copy does not run. `fast` tests alignment first, then the rows.
std::string Fallback(const ExprRef& fast, int64_t bytes) {
  if (As<BoolLit>(fast)) return "";
  const bool rows = As<IsAligned>(fast) == nullptr;
  return absl::StrCat("; element by element where it is not aligned to ", bytes, " bytes",
                      rows ? ", or its rows are no multiples of that" : "");
}

std::string_view Asynchronous(Eviction evict) {
  return evict == Eviction::kNormal ? ", asynchronous"
                                    : ", asynchronous, without the hint for the L2 cache";
}

void NoteVectors(Lowering& l, const Region& tensor, bool from, int64_t count, const ExprRef& fast,
                 Eviction evict, bool async = false) {
  const int64_t bytes = count * BytesOf(l, tensor);
  const BoolLit* known = As<BoolLit>(fast);
  if (known && !known->value) {
    const char* const why = "element by element: the tensor's rows are no multiples of a vector";
    return NoteCopy(l, tensor, from, why);
  }
  NoteCopy(l, tensor, from,
           absl::StrCat(bytes, "-byte vectors", async ? Asynchronous(evict) : Evicted(evict),
                        Fallback(fast, bytes)));
}

void NoteElements(Lowering& l, const Region& tensor, bool from, bool transpose) {
  const bool along = RunsAlongMemory(l, tensor);
  NoteCopy(l, tensor, from,
           absl::StrCat("element by element: ",
                        transpose ? "it transposes"
                        : along   ? "no thread has neighbours that start at a multiple of a vector"
                                  : "the window's rows do not run along memory"));
}

// ---- Memory and a fragment

// One side of a copy that lies in memory.
struct Window {
  Region region;
  ExprRef rows;  // may be null
  bool transpose = false;
  Eviction evict = Eviction::kNormal;

  Coords At(const Coords& c) const { return transpose ? Coords{c[1], c[0]} : c; }
  ExprRef Inside(const Lowering& l, const Coords& c) const {
    if (!l.IsGlobal(region)) return MakeBool(true);
    return InsideWindow(l, region, At(c), rows);
  }
};

DType TypeOf(const Lowering& l, BufferId id) { return l.buffer(id).dtype; }

ExprRef Register(const Lowering& l, BufferId array, const ExprRef& slot) {
  return MakeLoad(array, TypeOf(l, array), {slot});
}

void SetRegister(Lowering& l, BufferId array, const ExprRef& slot, const ExprRef& value) {
  l.Emit(Store{array, {slot}, StoreOp::kSet, ConvertTo(TypeOf(l, array), value)});
}

void LoadElements(Lowering& l, const Window& w, BufferId fragment) {
  l.ForEachElement(*l.LayoutOf(fragment), 1, [&](const Lowering::Element& e) {
    const ExprRef value = l.LoadAt(w.region, w.At(e.at));
    const ExprRef inside = And(e.real, w.Inside(l, e.at));
    SetRegister(l, fragment, e.slot, MakeSelect(inside, value, Zero(value->type)));
  });
}

void LoadVectors(Lowering& l, const Window& w, BufferId fragment, int64_t count) {
  const DType type = TypeOf(l, w.region.buffer);
  const bool same = type == TypeOf(l, fragment);
  const ThreadPlace place(l, w.region, *l.LayoutOf(fragment), count, ThreadPlace::Keep::kHere);
  l.ForEachElement(*l.LayoutOf(fragment), count, [&](const Lowering::Element& e) {
    const auto each = [&](absl::FunctionRef<void(const ExprRef&, const ExprRef&)> body) {
      l.Slots("e", count, [&](const ExprRef& i) { body(Add(e.slot, i), i); });
    };
    const auto load = [&] {
      const BufferId to = same ? fragment : l.LocalArray("vector", type, count);
      l.Emit(VectorMove{to, same ? e.slot : MakeInt(0), w.region.buffer, place.OffsetOf(e),
                        static_cast<int>(count), w.evict});
      if (same) return;
      each([&](const ExprRef& slot, const ExprRef& i) {
        SetRegister(l, fragment, slot, Register(l, to, i));
      });
    };
    l.EmitIfElse(And(e.real, w.Inside(l, e.at)), load, [&] {
      each([&](const ExprRef& slot, const ExprRef&) {
        SetRegister(l, fragment, slot, Zero(ComputeType(TypeOf(l, fragment))));
      });
    });
  });
}

void LoadFragment(Lowering& l, const Window& w, BufferId fragment) {
  Width width;
  if (!w.transpose) width = WidthOf(l, w.region, w.rows, l.LayoutOf(fragment)->vector());
  const auto by_element = [&] { LoadElements(l, w, fragment); };
  if (width.count == 1) {
    NoteElements(l, w.region, true, w.transpose);
    return by_element();
  }
  NoteVectors(l, w.region, true, width.count, width.fast, w.evict);
  NoteConflicts(l, "reading", w.region, *l.LayoutOf(fragment), width.count);
  l.EmitIfElse(width.fast, [&] { LoadVectors(l, w, fragment, width.count); }, by_element);
}

void StoreElements(Lowering& l, BufferId fragment, const Window& w) {
  const FragmentLayout& layout = *l.LayoutOf(fragment);
  const ExprRef owner = l.IsOwner(layout);
  l.ForEachElement(layout, 1, [&](const Lowering::Element& e) {
    l.EmitIf(And(And(owner, e.real), w.Inside(l, e.at)),
             [&] { l.StoreAt(w.region, w.At(e.at), Register(l, fragment, e.slot)); });
  });
}

void StoreVectors(Lowering& l, BufferId fragment, const Window& w, int64_t count) {
  const FragmentLayout& layout = *l.LayoutOf(fragment);
  const DType type = TypeOf(l, w.region.buffer);
  const bool same = type == TypeOf(l, fragment);
  const ExprRef owner = l.IsOwner(layout);
  const ThreadPlace place(l, w.region, layout, count, ThreadPlace::Keep::kHere);
  l.ForEachElement(layout, count, [&](const Lowering::Element& e) {
    l.EmitIf(And(And(owner, e.real), w.Inside(l, e.at)), [&] {
      const BufferId from = same ? fragment : l.LocalArray("vector", type, count);
      if (!same) {
        l.Slots("e", count, [&](const ExprRef& i) {
          SetRegister(l, from, i, Register(l, fragment, Add(e.slot, i)));
        });
      }
      l.Emit(VectorMove{w.region.buffer, place.OffsetOf(e), from, same ? e.slot : MakeInt(0),
                        static_cast<int>(count), w.evict});
    });
  });
}

// Threads that hold few neighbours each would write many short pieces of rows: they put the tile in
// order in shared memory first, and it leaves in whole vectors.
bool WantsOrder(Lowering& l, BufferId fragment, const Window& w) {
  const FragmentLayout& layout = *l.LayoutOf(fragment);
  constexpr int64_t kFewSlots = 8;
  if (!l.may_stage() || !l.IsGlobal(w.region) || w.transpose || layout.slots() < kFewSlots) {
    return false;
  }
  const int64_t whole = WidthOf(l, w.region, w.rows, kVectorBytes).count;
  return whole > layout.vector() && whole * BytesOf(l, w.region) == kVectorBytes;
}

// Where the launch asks for boxes: the tile, in panels in shared memory, leaves by one thread.
bool LeavesInBoxes(Lowering& l, const Window& w) {
  if (!l.stores().wanted() || !l.IsGlobal(w.region)) return false;
  std::string why = l.stores().WhyNot(TypeOf(l, w.region.buffer), w.region, w.rows);
  if (why.empty() && !l.may_stage()) why = "there is no room in shared memory for the tile";
  return MayLeaveInBoxes(l, w.region, why);
}

// Registers of a result of matrix instructions that are rounded to 16 bits, four matrices of 8 x 8
// at a time. False: the layout or the tile is another.
bool StoreMatrices(Lowering& l, BufferId fragment, const Window& w) {
  const Buffer& tile = l.buffer(w.region.buffer);
  constexpr int64_t kBytes = 2, kRun = 8;
  if (!l.stores().wanted() || !l.target().matrix_stores || l.IsGlobal(w.region)) return false;
  if (tile.layout || w.region.rank() != 2 || BytesOf(l, w.region) != kBytes) return false;
  if (w.region.dims[0] != tile.rank() - 2 || w.region.dims[1] != tile.rank() - 1) return false;
  if (tile.extents.back() % kRun != 0 || l.DivisorOf(w.region.offset.back()) % kRun != 0)
    return false;
  const std::optional<MatrixStores> stores = StmatrixOf(*l.LayoutOf(fragment), w.transpose);
  if (!stores || !stores->addresses.IsSeparable()) return false;
  NoteMatrixConflicts(l, "writing", w.region);
  const int64_t count = int64_t{stores->matrices} * 2;
  std::optional<ThreadPlace> place;
  if (!w.transpose) {
    place.emplace(l, w.region, stores->addresses, kRun, ThreadPlace::Keep::kHere, true);
  }
  l.ForEachElement(stores->addresses, kRun, [&](const Lowering::Element& e) {
    const ExprRef first = Mul(Div(e.slot, kRun), MakeInt(count));
    const BufferId rounded = l.LocalArray("rounded", tile.dtype, count);
    l.Slots("e", count, [&](const ExprRef& i) {
      SetRegister(l, rounded, i, Register(l, fragment, Add(first, i)));
    });
    const ExprRef at = w.transpose
                           ? l.Offset(w.region.buffer, Lowering::Index(w.region, w.At(e.at)))
                           : place->OffsetOf(e);
    l.Emit(
        StoreMatrix{w.region.buffer, at, rounded, MakeInt(0), stores->matrices, stores->transpose});
  });
  return true;
}

void StoreFragment(Lowering& l, BufferId fragment, const Window& w) {
  if (LeavesInBoxes(l, w)) {
    const BufferId id = l.Scratch("ordered", TypeOf(l, w.region.buffer), w.region.extents);
    Buffer& ordered = l.module().buffers[id];
    ordered.swizzle = PanelsFor(w.region.extents.back() * BytesOf(l, w.region));
    ordered.in_place = true;
    StoreFragment(l, fragment, {l.Whole(id), nullptr, w.transpose});
    return StoreBoxes(l, {.src = l.Whole(id), .dst = w.region, .rows = w.rows, .evict = w.evict});
  }
  if (StoreMatrices(l, fragment, w)) return;
  if (WantsOrder(l, fragment, w)) {
    const BufferId id = l.Scratch("ordered", TypeOf(l, w.region.buffer), w.region.extents);
    l.module().buffers[id].swizzle = SwizzleFor(w.region.extents.back() * BytesOf(l, w.region));
    StoreFragment(l, fragment, {l.Whole(id), nullptr, false});
    return LowerCopy(l, {.src = l.Whole(id), .dst = w.region, .rows = w.rows, .evict = w.evict});
  }
  Width width;
  if (!w.transpose) width = WidthOf(l, w.region, w.rows, l.LayoutOf(fragment)->vector());
  const auto by_element = [&] { StoreElements(l, fragment, w); };
  if (width.count == 1) {
    NoteElements(l, w.region, false, w.transpose);
    return by_element();
  }
  NoteVectors(l, w.region, false, width.count, width.fast, w.evict);
  NoteConflicts(l, "writing", w.region, *l.LayoutOf(fragment), width.count);
  l.EmitIfElse(width.fast, [&] { StoreVectors(l, fragment, w, width.count); }, by_element);
}

// ---- Two fragments

void CopyFragment(Lowering& l, BufferId src, BufferId dst) {
  const FragmentLayout &from = *l.LayoutOf(src), &to = *l.LayoutOf(dst);
  if (from == to) {
    return l.Slots("s", to.slots(),
                   [&](const ExprRef& s) { SetRegister(l, dst, s, Register(l, src, s)); });
  }
  if (const auto permutation = SlotPermutation(from, to)) {
    for (size_t s = 0; s < permutation->size(); ++s) {
      SetRegister(l, dst, MakeInt(static_cast<int64_t>(s)),
                  Register(l, src, MakeInt((*permutation)[s])));
    }
    return;
  }
  if (IsExchange(from, to)) {
    l.Slots("s", to.slots(),
            [&](const ExprRef& s) { SetRegister(l, dst, s, Register(l, src, s)); });
    return ExchangeRegisters(l, dst, from, to);
  }
  const BufferId scratch = l.Scratch("converted", TypeOf(l, dst), to.extents());
  Buffer& b = l.module().buffers[scratch];
  if (b.rank() > 1) {
    b.swizzle = SwizzleFor(b.extents.back() * static_cast<int64_t>(SizeOf(b.dtype)));
  }
  StoreFragment(l, src, {l.Whole(scratch), nullptr, false});
  LoadFragment(l, {l.Whole(scratch), nullptr, false}, dst);
}

}  // namespace

// Others are not worth a line.
void NoteCopy(Lowering& l, const Region& tensor, bool from, std::string_view how) {
  if (!l.IsGlobal(tensor)) return;
  l.Note(absl::StrCat(from ? "copy of " : "copy to ", l.buffer(tensor.buffer).name), how);
}

std::string Evicted(Eviction evict) {
  return evict == Eviction::kNormal ? "" : absl::StrCat(", evicted ", Name(evict));
}

bool CopyRegisters(Lowering& l, const Copy& copy) {
  const bool from = l.LayoutOf(copy.src.buffer), to = l.LayoutOf(copy.dst.buffer);
  if (!from && !to) return false;
  if (copy.dst.num_elements() == 0) return true;
  if (from && to) {
    CopyFragment(l, copy.src.buffer, copy.dst.buffer);
    return true;
  }
  Window w{l.Prepared(from ? copy.dst : copy.src), nullptr, copy.transpose, copy.evict};
  if (copy.rows) w.rows = l.Fixed("rows", l.Lowered(copy.rows));
  if (from) {
    StoreFragment(l, copy.src.buffer, w);
  } else {
    LoadFragment(l, w, copy.dst.buffer);
  }
  return true;
}

// ---- Shared and global memory

namespace {

bool MoveVectors(Lowering& l, const Copy& copy, ThreadPlace::Keep keep,
                 absl::FunctionRef<void()> otherwise) {
  const Region &src = copy.src, &dst = copy.dst;
  const bool from_tensor = l.IsGlobal(src);
  const Region& tensor = from_tensor ? src : dst;
  const bool same = TypeOf(l, src.buffer) == TypeOf(l, dst.buffer);
  if (!same || (from_tensor && l.IsGlobal(dst))) {
    NoteCopy(l, tensor, from_tensor,
             same ? "element by element: both sides are tensors"
                  : "element by element: the types differ");
    return false;
  }
  const auto by_element = [&] { NoteElements(l, tensor, from_tensor, copy.transpose); };
  if (copy.transpose) return by_element(), false;
  Width from = WidthOf(l, src, copy.rows, kVectorBytes);
  Width to = WidthOf(l, dst, copy.rows, from.count);
  const FragmentLayout layout =
      BlockedLayout(dst.extents, kVectorBytes / to.count, l.warps(), l.target().warp_size);
  const int64_t count = std::min(to.count, layout.vector());
  constexpr int64_t kSmallestVector = 4;
  if (count * BytesOf(l, src) < kSmallestVector || !layout.IsSeparable()) {
    return by_element(), false;
  }
  from = WidthOf(l, src, copy.rows, count);
  to = WidthOf(l, dst, copy.rows, count);
  const ExprRef fast = Both(from.fast, to.fast);
  const bool async = copy.async && l.target().async_copies;
  NoteVectors(l, tensor, from_tensor, count, fast, copy.evict, from_tensor && async);
  NoteConflicts(l, "reading", src, layout, count);
  NoteConflicts(l, "writing", dst, layout, count);

  const ThreadPlace from_place(l, src, layout, count, keep);
  const ThreadPlace to_place(l, dst, layout, count, keep);
  const auto move = [&](const Lowering::Element& e) {
    const ExprRef src_at = from_place.OffsetOf(e), dst_at = to_place.OffsetOf(e);
    const auto plain = [&] {
      l.Emit(
          VectorMove{dst.buffer, dst_at, src.buffer, src_at, static_cast<int>(count), copy.evict});
    };
    if (!l.IsGlobal(src)) {
      const ExprRef inside =
          l.IsGlobal(dst) ? InsideWindow(l, dst, e.at, copy.rows) : MakeBool(true);
      return l.EmitIf(inside, plain);
    }
    const ExprRef inside = InsideWindow(l, src, e.at, copy.rows);
    if (async) {
      return l.Emit(
          AsyncMove{dst.buffer, dst_at, src.buffer, src_at, static_cast<int>(count), inside});
    }
    l.EmitIfElse(inside, plain, [&] {
      const ExprRef zero = Zero(ComputeType(TypeOf(l, dst.buffer)));
      l.Slots("e", count, [&](const ExprRef& i) {
        l.Emit(Store{dst.buffer, {Add(dst_at, i)}, StoreOp::kSet, zero});
      });
    });
  };
  const auto vectors = [&] {
    const ExprRef owner = l.IsOwner(layout);
    l.ForEachElement(layout, count, [&](const Lowering::Element& e) {
      l.EmitIf(And(owner, e.real), [&] { move(e); });
    });
  };
  l.EmitIfElse(fast, vectors, otherwise);
  return true;
}

}  // namespace

bool CopyVectors(Lowering& l, const Copy& copy, absl::FunctionRef<void()> otherwise) {
  if (!l.has_registers() || copy.dst.rank() == 0) return false;
  return MoveVectors(l, copy, ThreadPlace::Keep::kForLaunch, otherwise);
}

// A tensor that boxes cannot describe has no vectors either, but one of which rows are left out
// has, now and then.
void CopyWithoutBoxes(Lowering& l, const Copy& copy) {
  const Copy plain{.src = copy.src, .dst = copy.dst, .rows = copy.rows, .evict = copy.evict};
  const auto by_element = [&] { CopyElements(l, plain); };
  if (copy.rows && MoveVectors(l, plain, ThreadPlace::Keep::kHere, by_element)) return;
  by_element();
}

}  // namespace tl
