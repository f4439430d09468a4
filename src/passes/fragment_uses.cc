#include "passes/fragment_uses.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "ir/visit.h"

namespace tl {
namespace {

// How a `parallel` indexes a tile, if it is by its own variables in their order and all of the tile
// is covered.
std::optional<std::vector<int>> DimsOf(const Buffer& b, const Parallel& p,
                                       const std::vector<ExprRef>& index) {
  // The one element of a complete reduction.
  if (b.extents == std::vector<int64_t>{1} && IsInt(index[0], 0)) return std::vector<int>{};
  std::vector<int> dims;
  for (size_t d = 0; d < index.size(); ++d) {
    const VarRef* ref = As<VarRef>(index[d]);
    const auto it = ref ? std::find(p.vars.begin(), p.vars.end(), ref->var) : p.vars.end();
    if (it == p.vars.end()) return std::nullopt;
    const int dim = static_cast<int>(it - p.vars.begin());
    if (p.extents[dim] != b.extents[d] || (!dims.empty() && dims.back() >= dim)) {
      return std::nullopt;
    }
    dims.push_back(dim);
  }
  return dims;
}

// Every access to a tile in a `parallel`.
void VisitTileAccesses(const Module& m, const Block& body,
                       absl::FunctionRef<void(BufferId, const std::vector<ExprRef>&)> visit) {
  const auto fragment = [&](BufferId id) { return m.buffer(id).scope == Scope::kFragment; };
  VisitStmts(body, [&](const StmtRef& s) {
    VisitStmtExprs(*s, [&](const ExprRef& root) {
      VisitExpr(root, [&](const ExprRef& e) {
        const Load* load = As<Load>(e);
        if (load && fragment(load->buffer)) visit(load->buffer, load->index);
      });
    });
    if (const Store* x = As<Store>(s); x && fragment(x->buffer)) visit(x->buffer, x->index);
  });
}

class Collector {
 public:
  explicit Collector(const Module& module) : m_(module) {}

  FragmentUses Run(const Block& body) {
    Walk(body, 1);
    const auto left = [&](BufferId id) { return !IsFragment(id) || left_.contains(id); };
    std::erase_if(out_.left, [&](const auto& l) { return !IsFragment(l.tile); });
    std::erase_if(out_.fragments, left);
    for (FragmentUses::Loop& loop : out_.loops) {
      std::erase_if(loop.tiles, [&](const auto& tile) { return left(tile.first); });
    }
    std::erase_if(out_.links, [&](const auto& l) { return left(l.src) || left(l.dst); });
    std::stable_sort(out_.products.begin(), out_.products.end(),
                     [](const auto& a, const auto& b) { return a.weight > b.weight; });
    return std::move(out_);
  }

 private:
  bool IsFragment(BufferId id) const { return m_.buffer(id).scope == Scope::kFragment; }
  void Leave(BufferId id, std::string_view why) {
    if (left_.insert(id).second) out_.left.push_back({id, why, span_});
  }
  // Registers hold whole fragments.
  void NeedWhole(const Region& r) {
    if (IsFragment(r.buffer) && (!IsWhole(m_.buffer(r.buffer), r) || r.rank() == 0)) {
      Leave(r.buffer, "a part of it is used");
    }
  }
  // The registers of all groups hold a fragment of the block together: none of them has it whole.
  void NeedSameTeam(BufferId id) {
    if (IsFragment(id) && in_group_ != out_.of_groups.contains(id)) {
      Leave(id, "a group uses a tile of the whole block");
    }
  }
  void LeaveLoaded(const ExprRef& root) {
    VisitExpr(root, [&](const ExprRef& e) {
      if (const Load* load = As<Load>(e)) Leave(load->buffer, kElement);
    });
  }

  void Walk(const Block& block, double trips) {
    for (const StmtRef& s : block) {
      span_ = s->span;
      if (const Parallel* x = As<Parallel>(s)) {
        AddParallel(*x);
        continue;
      }
      VisitStmtExprs(*s, [&](const ExprRef& e) { LeaveLoaded(e); });
      VisitRegions(*s, [&](const Region& r, bool) {
        NeedWhole(r);
        NeedSameTeam(r.buffer);
      });
      Add(s, trips);
      const bool outer = std::exchange(in_group_, in_group_ || As<OnGroup>(s));
      VisitBlocks(*s, [&](const Block& inner) { Walk(inner, trips * TripsOf(s)); });
      in_group_ = outer;
    }
  }

  static double TripsOf(const StmtRef& s) {
    const For* loop = As<For>(s);
    if (!loop) return 1;
    const int64_t *begin = IntValue(loop->begin), *end = IntValue(loop->end);
    return begin && end ? static_cast<double>(std::max<int64_t>(*end - *begin, 0)) : 64;
  }

  void Add(const StmtRef& s, double trips) {
    if (const Alloc* x = As<Alloc>(s)) {
      out_.fragments.push_back(x->buffer);
      if (in_group_) out_.of_groups.insert(x->buffer);
    }
    if (const Copy* x = As<Copy>(s)) AddCopy(*x);
    if (const Gemm* x = As<Gemm>(s)) {
      const double work = static_cast<double>(x->c.num_elements() * x->a.num_elements());
      out_.products.push_back({*x, trips * work});
    }
    if (const Reduce* x = As<Reduce>(s)) AddReduce(*x);
    if (const CumSum* x = As<CumSum>(s)) AddLink(x->src.buffer, x->dst.buffer);
    const auto leave = [&](const Region& r, std::string_view why) { Leave(r.buffer, why); };
    if (const ArgMax* x = As<ArgMax>(s)) leave(x->src, "argmax"), leave(x->dst, "argmax");
    if (const Atomic* x = As<Atomic>(s)) leave(x->dst, "an atomic update");
    if (const Store* x = As<Store>(s)) Leave(x->buffer, kElement);
    if (const AtomicElement* x = As<AtomicElement>(s)) Leave(x->buffer, kElement);
  }

  void AddParallel(const Parallel& p) {
    VisitTileAccesses(m_, p.body, [&](BufferId id, const std::vector<ExprRef>& index) {
      if (!DimsOf(m_.buffer(id), p, index)) Leave(id, "elements at computed indices");
      NeedSameTeam(id);
    });
    VisitStmts(p.body, [&](const StmtRef& s) {
      if (const AtomicElement* x = As<AtomicElement>(s)) Leave(x->buffer, "an atomic update");
      // One iteration of several that share the element may store it; the threads of the others
      // hold it too and would not hear of that.
      const Store* x = As<Store>(s);
      const auto dims =
          x && IsFragment(x->buffer) ? DimsOf(m_.buffer(x->buffer), p, x->index) : std::nullopt;
      if (dims && dims->size() < p.vars.size()) {
        Leave(x->buffer, "a loop over more dims than it has writes it");
      }
    });
    FragmentUses::Loop loop = UsesOf(m_, p);
    // A tile indexed in two ways would have to lie in two ways.
    for (size_t i = 0; i < loop.tiles.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        if (loop.tiles[i].first == loop.tiles[j].first) {
          Leave(loop.tiles[i].first, "indices in two orders");
        }
      }
    }
    out_.loops.push_back(std::move(loop));
  }

  void AddCopy(const Copy& copy) {
    const BufferId src = copy.src.buffer, dst = copy.dst.buffer;
    const auto transfer = [&](BufferId tile, BufferId other) {
      if (!IsFragment(tile) || m_.buffer(other).scope != Scope::kGlobal) return;
      const auto bytes = static_cast<int64_t>(SizeOf(m_.buffer(other).dtype));
      const auto [it, is_new] = out_.transfer_bytes.try_emplace(tile, bytes);
      it->second = std::min(it->second, bytes);
    };
    transfer(src, dst), transfer(dst, src);
    if (IsFragment(src) && IsFragment(dst) && (copy.transpose || src == dst)) {
      Leave(src, "a transposing copy"), Leave(dst, "a transposing copy");
    } else {
      AddLink(src, dst);
    }
  }

  void AddLink(BufferId src, BufferId dst) {
    if (IsFragment(src) && IsFragment(dst) && src != dst) out_.links.push_back({src, dst});
  }

  void AddReduce(const Reduce& r) {
    FragmentUses::Loop loop{r.src.extents};
    std::vector<int> all, rest;
    for (int d = 0; d < r.src.rank(); ++d) {
      all.push_back(d);
      if (d != r.dim) rest.push_back(d);
    }
    if (r.src.buffer == r.dst.buffer) return Leave(r.src.buffer, "a reduction into itself");
    loop.tiles = {{r.src.buffer, all}, {r.dst.buffer, rest}};
    out_.loops.push_back(std::move(loop));
  }

  static constexpr std::string_view kElement = "single elements outside of a parallel loop";

  const Module& m_;
  Span span_;
  bool in_group_ = false;
  FragmentUses out_;
  absl::flat_hash_set<BufferId> left_;
};

}  // namespace

FragmentUses CollectUses(const Module& module, const Block& body) {
  return Collector(module).Run(body);
}

FragmentUses::Loop UsesOf(const Module& module, const Parallel& parallel) {
  FragmentUses::Loop loop{parallel.extents};
  VisitTileAccesses(module, parallel.body, [&](BufferId id, const std::vector<ExprRef>& index) {
    auto dims = DimsOf(module.buffer(id), parallel, index);
    if (!dims) return;
    std::pair<BufferId, std::vector<int>> use{id, *std::move(dims)};
    if (std::find(loop.tiles.begin(), loop.tiles.end(), use) == loop.tiles.end()) {
      loop.tiles.push_back(std::move(use));
    }
  });
  return loop;
}

bool WritesRegisters(const Module& module, const Block& body) {
  bool writes = false;
  VisitStmts(body, [&](const StmtRef& s) {
    const Store* store = As<Store>(s);
    writes = writes || (store && module.buffer(store->buffer).layout);
  });
  return writes;
}

bool ReadsWhatItChanges(const Module& module, const Block& body) {
  const auto in_memory = [&](BufferId id) {
    const Buffer& b = module.buffer(id);
    return b.scope != Scope::kLocal && !b.layout;
  };
  absl::flat_hash_set<BufferId> read, changed;
  VisitAllExprs(body, [&](const ExprRef& e) {
    const Load* load = As<Load>(e);
    if (load && in_memory(load->buffer)) read.insert(load->buffer);
  });
  VisitStmts(body, [&](const StmtRef& s) {
    if (const Store* x = As<Store>(s); x && in_memory(x->buffer)) changed.insert(x->buffer);
    if (const AtomicElement* x = As<AtomicElement>(s)) changed.insert(x->buffer);
  });
  return std::any_of(changed.begin(), changed.end(), [&](BufferId b) { return read.contains(b); });
}

}  // namespace tl
