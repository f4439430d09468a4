#include "passes/infer_layouts.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "base/int_math.h"
#include "ir/visit.h"
#include "layout/matrix_fragments.h"
#include "passes/exchange_registers.h"
#include "passes/fragment_uses.h"
#include "passes/notes.h"
#include "passes/product.h"
#include "passes/select_atoms.h"

namespace tl {

FragmentLayout PlainC(int64_t rows, int64_t cols, int warp_size, int warp_rows, int warp_cols) {
  const WarpUnit unit = PlainUnitOf(warp_size);
  const int64_t m = CeilDiv(rows, unit.rows * warp_rows);
  const int64_t n = CeilDiv(cols, unit.cols * warp_cols);
  const int64_t width = unit.cols * n * warp_cols;
  FragmentLayout::Axes axes;
  axes.lane = {{unit.cols / 4, 4}, {unit.rows, width}};
  axes.warp = {{warp_cols, unit.cols * n}, {warp_rows, unit.rows * m * width}};
  axes.slot = {{4, 1}, {n, unit.cols}, {m, unit.rows * width}};
  return FragmentLayout({rows, cols}, {unit.rows * m * warp_rows, width}, std::move(axes));
}

FragmentLayout Restrict(const FragmentLayout& layout, const std::vector<int>& kept) {
  FragmentLayout out = layout;
  for (int d = layout.rank() - 1; d >= 0; --d) {
    if (std::find(kept.begin(), kept.end(), d) == kept.end()) out = *out.Project(d);
  }
  return out;
}

namespace {

using LayoutRef = std::shared_ptr<const FragmentLayout>;

// More than this in one thread's registers would spill.
constexpr int64_t kMaxRegisterBytes = 640;

// May threads hold elements of so many bytes by `layout`?
bool FitsRegisters(const FragmentLayout& layout, int64_t bytes) {
  return layout.IsSeparable() && layout.slots() * bytes <= kMaxRegisterBytes;
}

FragmentLayout LayoutOfC(const Target& target, const Gemm& g) {
  const int64_t m = g.c.extents[0], n = g.c.extents[1];
  if (g.atom == kNoAtom) return PlainC(m, n, target.warp_size, g.warp_rows, g.warp_cols);
  const Product p = ProductOf(g);
  FragmentLayout c =
      TiledC(target.matrix_atoms[g.atom], p.left.rows, p.right.rows, p.left.warps, p.right.warps);
  return g.swapped ? *c.Transposed() : c;
}

// May the instructions take their left factor from its own registers? What pads the depth there is
// not zero.
bool TakesFragment(const Target& target, const Gemm& g) {
  if (g.atom == kNoAtom || ProductOf(g).depth % target.matrix_atoms[g.atom].k != 0) return false;
  return g.swapped || !g.transpose_a;
}

FragmentLayout LayoutOfLeft(const Target& target, const Gemm& g) {
  const Product p = ProductOf(g);
  FragmentLayout left =
      TiledA(target.matrix_atoms[g.atom], p.left.rows, p.depth, p.left.warps, p.right.warps);
  return p.left.depth_first ? *left.Transposed() : left;
}

// Warps that hold a fragment together.
struct Teams {
  int block, group;
};

// Steps 2 and 3.
class Assignment {
 public:
  Assignment(Module& module, const Target& target, const FragmentUses& uses, Teams teams)
      : m_(module), target_(target), uses_(uses), teams_(teams) {
    for (BufferId f : uses.fragments) class_[f] = f;
  }

  void Run() {
    for (const FragmentUses::Loop& loop : uses_.loops) {
      for (const auto& [id, dims] : loop.tiles) {
        for (const auto& [other, other_dims] : loop.tiles) {
          if (dims == other_dims) Unite(id, other);
        }
      }
    }
    for (const FragmentUses::Product& p : uses_.products) {
      if (Mapped(p.gemm.c.buffer)) Give(p.gemm.c.buffer, LayoutOfC(target_, p.gemm));
    }
    for (const FragmentUses::Product& p : uses_.products) {
      const BufferId left = ProductOf(p.gemm).left.region.buffer;
      if (!TakesFragment(target_, p.gemm) || !Mapped(left)) continue;
      Give(left, LayoutOfLeft(target_, p.gemm));
    }
    Derive();
    std::vector<BufferId> rest = uses_.fragments;
    std::stable_sort(rest.begin(), rest.end(), [&](BufferId x, BufferId y) {
      return m_.buffer(x).num_elements() > m_.buffer(y).num_elements();
    });
    for (BufferId f : rest) {
      if (layouts_.contains(Find(f))) continue;
      Give(f, BlockedLayout(m_.buffer(f).extents, NarrowestOf(f), WarpsOf(f), target_.warp_size));
      Derive();
    }
    for (BufferId f : uses_.fragments) m_.buffers[f].layout = layouts_[Find(f)];
  }

 private:
  bool Mapped(BufferId f) const { return class_.contains(f); }
  int WarpsOf(BufferId f) const {
    return uses_.of_groups.contains(f) ? teams_.group : teams_.block;
  }

  BufferId Find(BufferId f) {
    while (class_[f] != f) f = class_[f];
    return f;
  }
  void Unite(BufferId x, BufferId y) {
    if (Mapped(x) && Mapped(y) && m_.buffer(x).extents == m_.buffer(y).extents) {
      class_[Find(y)] = Find(x);
    }
  }

  // The first layout a class is given stays. Too large for registers: it stays in shared memory.
  void Give(BufferId f, FragmentLayout layout) {
    int64_t widest = 1;
    for (BufferId other : uses_.fragments) {
      if (Find(other) != Find(f)) continue;
      widest = std::max(widest, static_cast<int64_t>(SizeOf(m_.buffer(other).dtype)));
    }
    const bool fits = FitsRegisters(layout, widest);
    layouts_.try_emplace(
        Find(f), fits ? std::make_shared<const FragmentLayout>(std::move(layout)) : nullptr);
  }

  // Projections and copies of what has a layout, until nothing new follows.
  void Derive() {
    for (bool changed = true; changed;) {
      const size_t before = layouts_.size();
      for (const FragmentUses::Loop& loop : uses_.loops) DeriveLoop(loop);
      for (const FragmentUses::Link& link : uses_.links) {
        DeriveCopy(link.src, link.dst);
        DeriveCopy(link.dst, link.src);
      }
      changed = layouts_.size() != before;
    }
  }

  // From the tile that has all of the loop's dims to those that have some.
  void DeriveLoop(const FragmentUses::Loop& loop) {
    for (const auto& [full, dims] : loop.tiles) {
      if (dims.size() != loop.extents.size()) continue;
      const LayoutRef layout = Known(full);
      if (!layout) continue;
      for (const auto& [part, kept] : loop.tiles) {
        if (kept.size() < dims.size() && !layouts_.contains(Find(part))) {
          Give(part, Restrict(*layout, kept));
        }
      }
    }
  }
  void DeriveCopy(BufferId from, BufferId to) {
    const LayoutRef layout = Known(from);
    if (layout && layout->extents() == m_.buffer(to).extents && !layouts_.contains(Find(to))) {
      Give(to, *layout);
    }
  }
  LayoutRef Known(BufferId f) {
    const auto it = layouts_.find(Find(f));
    return it == layouts_.end() ? nullptr : it->second;
  }

  // Element size that decides how many neighbours a thread takes: the narrowest that comes from or
  // goes to global memory, so that those accesses are wide.
  int64_t NarrowestOf(BufferId f) {
    int64_t bytes = 8;
    for (BufferId other : uses_.fragments) {
      if (Find(other) != Find(f)) continue;
      const auto it = uses_.transfer_bytes.find(other);
      const auto own = static_cast<int64_t>(SizeOf(m_.buffer(other).dtype));
      bytes = std::min(bytes, it == uses_.transfer_bytes.end() ? own : it->second);
    }
    return bytes;
  }

  Module& m_;
  const Target& target_;
  const FragmentUses& uses_;
  const Teams teams_;
  absl::flat_hash_map<BufferId, BufferId> class_;
  absl::flat_hash_map<BufferId, LayoutRef> layouts_;  // by class
};

// Step 4.
class Converter : public StmtMapper {
 public:
  Converter(Module& module, const Target& target, Teams teams)
      : m_(module), target_(target), teams_(teams), warps_(teams.block) {}

  Block MapBlock(const Block& b) override {
    Block out;
    for (const StmtRef& s : b) {
      before_.clear(), after_.clear();
      StmtRef mapped = Convert(s);
      Block before = std::move(before_), after = std::move(after_);
      if (!mapped) {
        const int outer = std::exchange(warps_, As<OnGroup>(s) ? teams_.group : warps_);
        mapped = StmtMapper::MapStmt(s);
        warps_ = outer;
      }
      out.insert(out.end(), before.begin(), before.end());
      out.push_back(std::move(mapped));
      out.insert(out.end(), after.begin(), after.end());
    }
    return out;
  }

 private:
  // The statement with its fragments as it needs them; null: nothing to do.
  StmtRef Convert(const StmtRef& s) {
    span_ = s->span;
    if (const Parallel* x = As<Parallel>(s)) return MakeStmt(Converted(*x), s->span, s->id);
    if (const Gemm* x = As<Gemm>(s)) return MakeStmt(Converted(*x), s->span, s->id);
    if (const Reduce* x = As<Reduce>(s)) return MakeStmt(Converted(*x), s->span, s->id);
    if (const CumSum* x = As<CumSum>(s)) return MakeStmt(Converted(*x), s->span, s->id);
    return nullptr;
  }

  const FragmentLayout* LayoutOf(BufferId id) const { return m_.buffer(id).layout.get(); }

  Parallel Converted(const Parallel& p) {
    Parallel out = p;
    const FragmentUses::Loop loop = UsesOf(m_, p);
    const bool any = std::any_of(loop.tiles.begin(), loop.tiles.end(),
                                 [&](const auto& tile) { return LayoutOf(tile.first); });
    if (!any) return out;
    out.layout = LayoutOf(loop);
    if (!FitsRegisters(loop, *out.layout) || ReplicasWouldDiffer(p.body, *out.layout)) {
      out.layout = nullptr;
    }
    Substitution renamed;
    for (const auto& [id, dims] : loop.tiles) {
      if (!LayoutOf(id)) continue;
      LayoutRef needed;  // null: in shared memory
      if (out.layout) {
        needed = std::make_shared<const FragmentLayout>(Restrict(*out.layout, dims));
        if (*needed == *LayoutOf(id)) continue;
      }
      renamed.tiles[id] = {Temporary(id, std::move(needed), true, Writes(p.body, id)), {}};
    }
    if (!renamed.tiles.empty()) out.body = Renamed(out.body, renamed);
    return out;
  }

  // Who runs which iterations: whoever holds the elements of a fragment that has one for each.
  LayoutRef LayoutOf(const FragmentUses::Loop& loop) const {
    for (const auto& [id, dims] : loop.tiles) {
      if (LayoutOf(id) && dims.size() == loop.extents.size()) return m_.buffer(id).layout;
    }
    return std::make_shared<const FragmentLayout>(
        BlockedLayout(loop.extents, 4, warps_, target_.warp_size));
  }

  // A thread's iterations are unrolled, so there are at most as many as a fragment may have slots
  // (of one byte); and the fragments of fewer dims than the loop must fit as it needs them.
  bool FitsRegisters(const FragmentUses::Loop& loop, const FragmentLayout& layout) const {
    return tl::FitsRegisters(layout, 1) &&
           std::all_of(loop.tiles.begin(), loop.tiles.end(), [&](const auto& tile) {
             const auto& [id, dims] = tile;
             const auto bytes = static_cast<int64_t>(SizeOf(m_.buffer(id).dtype));
             return !LayoutOf(id) || tl::FitsRegisters(Restrict(layout, dims), bytes);
           });
  }

  // Several threads hold one element, all of them keep it up to date, and one changes memory: what
  // the others read there would be old or new.
  bool ReplicasWouldDiffer(const Block& body, const FragmentLayout& layout) const {
    return WritesRegisters(m_, body) && ReadsWhatItChanges(m_, body) && layout.IsReplicated();
  }

  bool Writes(const Block& body, BufferId id) const {
    bool writes = false;
    VisitStmts(body, [&](const StmtRef& s) {
      if (const Store* store = As<Store>(s)) writes = writes || store->buffer == id;
    });
    return writes;
  }

  Block Renamed(const Block& body, const Substitution& renamed) {
    class Renamer : public StmtMapper {
     public:
      Renamer(const Module& m, const Substitution& s) : m_(m), s_(s) {}
      ExprRef MapExpr(const ExprRef& e) override { return Substitute(m_, e, s_); }
      BufferId MapBuffer(BufferId b) override {
        const auto it = s_.tiles.find(b);
        return it == s_.tiles.end() ? b : it->second.to;
      }

     private:
      const Module& m_;
      const Substitution& s_;
    };
    return Renamer(m_, renamed).MapBlock(body);
  }

  Gemm Converted(const Gemm& g) {
    Gemm out = g;
    const FragmentLayout* c = LayoutOf(g.c.buffer);
    if (!c) {
      out.atom = kNoAtom, out.swapped = false;
    } else {
      FragmentLayout needed = LayoutOfC(target_, g);
      if (!(needed == *c)) {
        out.c.buffer = Converted(g.c.buffer, std::move(needed), !g.clear, true);
        out.trailing = false;
        out.under_way = 0;
      }
    }
    Region &left = LeftOf(out), &right = RightOf(out);
    const FragmentLayout* l = LayoutOf(left.buffer);
    const bool direct = l && c && TakesFragment(target_, g) && *l == LayoutOfLeft(target_, g);
    const bool in_place = out.atom != kNoAtom && target_.matrix_atoms[out.atom].in_place();
    if (l && !direct) left.buffer = InShared(left.buffer, in_place);
    if (LayoutOf(right.buffer)) right.buffer = InShared(right.buffer, in_place);
    return out;
  }

  Reduce Converted(const Reduce& r) {
    Reduce out = r;
    const FragmentLayout *src = LayoutOf(r.src.buffer), *dst = LayoutOf(r.dst.buffer);
    if (!src && !dst) return out;
    if (!src) {
      out.dst.buffer = Temporary(r.dst.buffer, nullptr, !r.clear, true);
      return out;
    }
    std::optional<FragmentLayout> needed = src->Project(r.dim);
    if (dst && *needed == *dst) return out;
    const BufferId whole = Temporary(r.dst, *std::move(needed), !r.clear);
    out.dst = WholeTile(m_.buffer(whole), whole);
    return out;
  }

  // Between tiles in memory where the threads do not hold the elements in their order.
  CumSum Converted(const CumSum& c) {
    CumSum out = c;
    const FragmentLayout *src = LayoutOf(c.src.buffer), *dst = LayoutOf(c.dst.buffer);
    if (src && dst && *src == *dst && RunsInOrder(*src, c.dim)) return out;
    const bool in_place = c.src.buffer == c.dst.buffer;
    if (dst) out.dst.buffer = Temporary(c.dst.buffer, nullptr, in_place, true);
    if (in_place) {
      out.src.buffer = out.dst.buffer;
    } else if (src) {
      out.src.buffer = Temporary(c.src.buffer, nullptr, true, false);
    }
    return out;
  }

  // ---- Temporaries

  BufferId Converted(BufferId id, FragmentLayout layout, bool read, bool written) {
    return Temporary(id, std::make_shared<const FragmentLayout>(std::move(layout)), read, written);
  }
  BufferId Temporary(BufferId id, LayoutRef layout, bool read, bool written) {
    Note(m_.buffer(id), layout.get());
    const Region original = WholeTile(m_.buffer(id), id);
    const BufferId copy = NewTile(m_.buffer(id), std::move(layout));
    const Region other = WholeTile(m_.buffer(copy), copy);
    if (read) before_.push_back(MakeStmt(Copy{original, other}, span_));
    if (written) after_.push_back(MakeStmt(Copy{other, original}, span_));
    return copy;
  }
  // In place of a window of a tile that does not lie in registers.
  BufferId Temporary(const Region& window, FragmentLayout layout, bool read) {
    Note(m_.buffer(window.buffer), &layout);
    Buffer like = m_.buffer(window.buffer);
    like.extents = window.extents;
    const BufferId copy =
        NewTile(std::move(like), std::make_shared<const FragmentLayout>(std::move(layout)));
    const Region other = WholeTile(m_.buffer(copy), copy);
    if (read) before_.push_back(MakeStmt(Copy{window, other}, span_));
    after_.push_back(MakeStmt(Copy{other, window}, span_));
    return copy;
  }
  // `to`: null for shared memory.
  void Note(const Buffer& b, const FragmentLayout* to) {
    std::string_view how = "through shared memory";
    if (b.layout && to && SlotPermutation(*b.layout, *to)) {
      how = "within each thread";
    } else if (b.layout && to && IsExchange(*b.layout, *to)) {
      how = "by exchanges between lanes";
    }
    const auto bytes = b.num_elements() * static_cast<int64_t>(SizeOf(b.dtype));
    m_.notes.push_back(absl::StrCat(b.name, " is converted for the statement", At(span_), ": ", how,
                                    ", ", bytes, " bytes"));
  }
  BufferId InShared(BufferId id, bool in_place) {
    const BufferId copy = Temporary(id, nullptr, true, false);
    Buffer& b = m_.buffers[copy];
    const int64_t row_bytes = b.extents.back() * static_cast<int64_t>(SizeOf(b.dtype));
    b.swizzle = in_place ? PanelsFor(row_bytes) : SwizzleFor(row_bytes);
    b.in_place = in_place;
    return copy;
  }
  BufferId NewTile(Buffer like, LayoutRef layout) {
    like.name += "_c";
    like.scope = Scope::kFragment;
    like.swizzle = {};
    like.in_place = false;
    like.ring = false;
    like.role = BufferRole::kTile;
    like.layout = std::move(layout);
    const BufferId id = m_.AddBuffer(std::move(like));
    before_.insert(before_.begin(), MakeStmt(Alloc{id}, span_));
    return id;
  }

  Module& m_;
  const Target& target_;
  const Teams teams_;
  int warps_;  // of the team at work
  Span span_;
  Block before_, after_;
};

}  // namespace

Status InferLayouts(Module& module, const Target& target) {
  for (Launch& launch : module.launches) {
    if (!UsesRegisters(target, launch)) continue;
    const int per_group = launch.threads / target.warp_size;
    const Teams teams{per_group * launch.groups, per_group};
    const FragmentUses uses = CollectUses(module, launch.body);
    Assignment(module, target, uses, teams).Run();
    for (const FragmentUses::Left& left : uses.left) {
      module.notes.push_back(absl::StrCat(module.buffer(left.tile).name,
                                          " stays in shared memory: ", left.why, At(left.span)));
    }
    launch.body = Converter(module, target, teams).MapBlock(launch.body);
  }
  module.level = Level::kMapped;
  return absl::OkStatus();
}

}  // namespace tl
