#include "ir/visit.h"

#include <utility>

namespace tl {
namespace {

template <class... Ts>
struct Overloaded : Ts... {
  using Ts::operator()...;
};
template <class... Ts>
Overloaded(Ts...) -> Overloaded<Ts...>;

using MapFn = absl::FunctionRef<ExprRef(const ExprRef&)>;

std::vector<ExprRef> MapList(const std::vector<ExprRef>& list, MapFn map) {
  std::vector<ExprRef> out;
  out.reserve(list.size());
  for (const ExprRef& e : list) out.push_back(map(e));
  return out;
}

ExprRef MapCall(const ExprRef& e, const Call& call, MapFn map) {
  std::vector<ExprRef> args = MapList(call.args, map);
  if (args == call.args) return e;
  return MakeCall(call.fn, std::move(args), e->span);
}

ExprRef MapLoad(const ExprRef& e, const Load& load, MapFn map) {
  std::vector<ExprRef> index = MapList(load.index, map);
  if (index == load.index) return e;
  return std::make_shared<const Expr>(Expr{Load{load.buffer, std::move(index)}, e->type, e->span});
}

ExprRef MapSelect(const ExprRef& e, const Select& x, MapFn map) {
  ExprRef cond = map(x.cond), yes = map(x.yes), no = map(x.no);
  if (cond == x.cond && yes == x.yes && no == x.no) return e;
  return MakeSelect(std::move(cond), std::move(yes), std::move(no), e->span);
}

}  // namespace

void VisitExpr(const ExprRef& e, absl::FunctionRef<void(const ExprRef&)> visit) {
  visit(e);
  // The mapper doubles as a walker: every child maps to itself, so nothing is rebuilt.
  MapChildren(e, [&](const ExprRef& child) {
    VisitExpr(child, visit);
    return child;
  });
}

ExprRef MapChildren(const ExprRef& e, MapFn map) {
  return std::visit(
      Overloaded{
          [&](const Unary& x) {
            ExprRef arg = map(x.arg);
            return arg == x.arg ? e : MakeUnary(x.op, std::move(arg), e->span);
          },
          [&](const Binary& x) {
            ExprRef lhs = map(x.lhs), rhs = map(x.rhs);
            if (lhs == x.lhs && rhs == x.rhs) return e;
            return MakeBinary(x.op, std::move(lhs), std::move(rhs), e->span);
          },
          [&](const Select& x) { return MapSelect(e, x, map); },
          [&](const Call& x) { return MapCall(e, x, map); },
          [&](const Cast& x) {
            ExprRef arg = map(x.arg);
            return arg == x.arg ? e : MakeCast(x.to, std::move(arg), e->span);
          },
          [&](const Load& x) { return MapLoad(e, x, map); },
          [&](const PartsBound& x) {
            ExprRef item = map(x.item);
            return item == x.item ? e : MakePartsBound(x.launch, std::move(item), x.end, e->span);
          },
          [&](const auto&) { return e; },
      },
      e->node);
}

ExprRef RewriteExpr(const ExprRef& e, MapFn rewrite) {
  ExprRef mapped = MapChildren(e, [&](const ExprRef& c) { return RewriteExpr(c, rewrite); });
  ExprRef replacement = rewrite(mapped);
  return replacement ? replacement : mapped;
}

bool AnyNode(const ExprRef& e, absl::FunctionRef<bool(const ExprRef&)> test) {
  bool found = false;
  VisitExpr(e, [&](const ExprRef& node) { found = found || test(node); });
  return found;
}

bool HasLoad(const ExprRef& e) {
  return AnyNode(e, [](const ExprRef& node) { return As<Load>(node) != nullptr; });
}

void VisitRegions(const Stmt& s, absl::FunctionRef<void(const Region&, bool)> visit) {
  std::visit(Overloaded{
                 [&](const Copy& x) { visit(x.src, false), visit(x.dst, true); },
                 [&](const Fill& x) { visit(x.dst, true); },
                 [&](const Gemm& x) { visit(x.a, false), visit(x.b, false), visit(x.c, true); },
                 [&](const Reduce& x) { visit(x.src, false), visit(x.dst, true); },
                 [&](const ArgMax& x) { visit(x.src, false), visit(x.dst, true); },
                 [&](const CumSum& x) { visit(x.src, false), visit(x.dst, true); },
                 [&](const Atomic& x) { visit(x.src, false), visit(x.dst, true); },
                 [&](const Send& x) { visit(x.src, false); },
                 [&](const Recv& x) { visit(x.dst, true); },
                 [&](const auto&) {},
             },
             s.node);
}

void VisitStmtExprs(const Stmt& s, absl::FunctionRef<void(const ExprRef&)> visit) {
  const auto list = [&](const std::vector<ExprRef>& exprs) {
    for (const ExprRef& e : exprs) visit(e);
  };
  VisitRegions(s, [&](const Region& r, bool) { list(r.offset); });
  std::visit(
      Overloaded{
          [&](const Let& x) { visit(x.value); },
          [&](const Assign& x) { visit(x.value); },
          [&](const Store& x) { list(x.index), visit(x.value); },
          [&](const AtomicElement& x) { list(x.index), visit(x.value); },
          [&](const For& x) { visit(x.begin), visit(x.end); },
          [&](const If& x) { visit(x.cond); },
          [&](const Copy& x) {
            if (x.rows) visit(x.rows);
            if (x.barrier) visit(x.barrier);
          },
          [&](const Fill& x) { visit(x.value); },
          [&](const ThreadFor& x) { visit(x.extent); },
          [&](const VectorMove& x) { visit(x.dst_offset), visit(x.src_offset); },
          [&](const AsyncMove& x) { visit(x.dst_offset), visit(x.src_offset), visit(x.inside); },
          [&](const LoadMatrix& x) { visit(x.dst_offset), visit(x.src_offset); },
          [&](const StoreMatrix& x) { visit(x.dst_offset), visit(x.src_offset); },
          [&](const Mma& x) { visit(x.a_offset), visit(x.b_offset), visit(x.c_offset); },
          [&](const Wgmma& x) { visit(x.a.offset), visit(x.b.offset), visit(x.c_offset); },
          [&](const LaneExchange& x) { visit(x.value); },
          [&](const Mbarrier& x) {
            visit(x.index);
            if (x.value) visit(x.value);
            if (x.block) visit(x.block);
          },
          [&](const BulkLoad& x) {
            list(x.at), visit(x.dst_offset), visit(x.barrier);
            if (x.blocks) visit(x.blocks);
          },
          [&](const BulkStore& x) { list(x.at), visit(x.src_offset); },
          [&](const auto&) {},
      },
      s.node);
}

void VisitBlocks(const Stmt& s, absl::FunctionRef<void(const Block&)> visit) {
  std::visit(Overloaded{
                 [&](const For& x) { visit(x.body); },
                 [&](const If& x) { visit(x.then_body), visit(x.else_body); },
                 [&](const Parallel& x) { visit(x.body); },
                 [&](const OnGroup& x) { visit(x.body); },
                 [&](const Lag& x) { visit(x.body); },
                 [&](const InTurn& x) { visit(x.body); },
                 [&](const ThreadFor& x) { visit(x.body); },
                 [&](const OnFirstThread& x) { visit(x.body); },
                 [&](const SlotFor& x) { visit(x.body); },
                 [&](const OnProducer& x) { visit(x.body); },
                 [&](const auto&) {},
             },
             s.node);
}

void VisitAccesses(const Stmt& s,
                   absl::FunctionRef<void(BufferId, const ExprRef&, bool write)> visit) {
  std::visit(
      Overloaded{
          [&](const Store& x) {
            if (x.op != StoreOp::kSet) visit(x.buffer, x.index[0], false);
            visit(x.buffer, x.index[0], true);
          },
          [&](const AtomicElement& x) { visit(x.buffer, x.index[0], true); },
          [&](const VectorMove& x) {
            visit(x.src, x.src_offset, false), visit(x.dst, x.dst_offset, true);
          },
          [&](const AsyncMove& x) {
            visit(x.src, x.src_offset, false), visit(x.dst, x.dst_offset, true);
          },
          [&](const LoadMatrix& x) {
            visit(x.src, x.src_offset, false), visit(x.dst, x.dst_offset, true);
          },
          [&](const StoreMatrix& x) {
            visit(x.src, x.src_offset, false), visit(x.dst, x.dst_offset, true);
          },
          [&](const Mma& x) {
            visit(x.a, x.a_offset, false), visit(x.b, x.b_offset, false);
            visit(x.c, x.c_offset, false), visit(x.c, x.c_offset, true);
          },
          [&](const Wgmma& x) {
            visit(x.a.buffer, x.a.offset, false), visit(x.b.buffer, x.b.offset, false);
            visit(x.c, x.c_offset, false), visit(x.c, x.c_offset, true);
          },
          // Whoever arrives or waits must have seen it made.
          [&](const Mbarrier& x) { visit(x.barriers, x.index, x.op == Mbarrier::Op::kInit); },
          [&](const BulkLoad& x) {
            visit(x.barriers, x.barrier, false), visit(x.dst, x.dst_offset, true);
          },
          [&](const BulkStore& x) { visit(x.src, x.src_offset, false); },
          [&](const auto&) {},
      },
      s.node);
}

void VisitStmts(const Block& block, absl::FunctionRef<void(const StmtRef&)> visit) {
  for (const StmtRef& s : block) {
    visit(s);
    VisitBlocks(*s, [&](const Block& b) { VisitStmts(b, visit); });
  }
}

void VisitAllExprs(const Block& block, absl::FunctionRef<void(const ExprRef&)> visit) {
  VisitStmts(block, [&](const StmtRef& s) {
    VisitStmtExprs(*s, [&](const ExprRef& e) { VisitExpr(e, visit); });
  });
}

Region StmtMapper::MapRegion(const Region& r) {
  Region out = r;
  out.buffer = MapBuffer(r.buffer);
  for (ExprRef& e : out.offset) e = MapExpr(e);
  return out;
}

Block StmtMapper::MapBlock(const Block& b) {
  Block out;
  out.reserve(b.size());
  for (const StmtRef& s : b) out.push_back(MapStmt(s));
  return out;
}

namespace {

// VectorMove, AsyncMove, LoadMatrix and StoreMatrix name their two places alike.
template <typename Move>
Move MapMove(Move x, StmtMapper& m) {
  x.dst = m.MapBuffer(x.dst), x.dst_offset = m.MapExpr(x.dst_offset);
  x.src = m.MapBuffer(x.src), x.src_offset = m.MapExpr(x.src_offset);
  return x;
}

}  // namespace

StmtRef StmtMapper::MapStmt(const StmtRef& s) {
  const auto map = [&](const ExprRef& e) { return MapExpr(e); };
  const auto make = [&](auto node) { return MakeStmt(std::move(node), s->span, s->id); };
  return std::visit(Overloaded{
                        [&](Let x) {
                          x.value = MapExpr(x.value);
                          x.var = MapDefinition(x.var);
                          return make(std::move(x));
                        },
                        [&](Assign x) {
                          x.value = MapExpr(x.value);
                          x.var = MapAssigned(x.var);
                          return make(std::move(x));
                        },
                        [&](Alloc x) {
                          x.buffer = MapBuffer(x.buffer);
                          return make(std::move(x));
                        },
                        [&](Store x) {
                          x.index = MapList(x.index, map);
                          x.value = MapExpr(x.value);
                          x.buffer = MapBuffer(x.buffer);
                          return make(std::move(x));
                        },
                        [&](AtomicElement x) {
                          x.index = MapList(x.index, map);
                          x.value = MapExpr(x.value);
                          x.buffer = MapBuffer(x.buffer);
                          return make(std::move(x));
                        },
                        [&](For x) {
                          x.begin = MapExpr(x.begin);
                          x.end = MapExpr(x.end);
                          x.var = MapDefinition(x.var);
                          x.body = MapBlock(x.body);
                          return make(std::move(x));
                        },
                        [&](If x) {
                          x.cond = MapExpr(x.cond);
                          x.then_body = MapBlock(x.then_body);
                          x.else_body = MapBlock(x.else_body);
                          return make(std::move(x));
                        },
                        [&](Turn x) {
                          if (x.barriers != kNoId) x.barriers = MapBuffer(x.barriers);
                          return make(x);
                        },
                        [&](Copy x) {
                          x.src = MapRegion(x.src);
                          x.dst = MapRegion(x.dst);
                          if (x.rows) x.rows = MapExpr(x.rows);
                          if (x.barriers != kNoId) x.barriers = MapBuffer(x.barriers);
                          if (x.barrier) x.barrier = MapExpr(x.barrier);
                          return make(std::move(x));
                        },
                        [&](Fill x) {
                          x.dst = MapRegion(x.dst);
                          x.value = MapExpr(x.value);
                          return make(std::move(x));
                        },
                        [&](Gemm x) {
                          x.a = MapRegion(x.a);
                          x.b = MapRegion(x.b);
                          x.c = MapRegion(x.c);
                          return make(std::move(x));
                        },
                        [&](Finish x) {
                          x.reducer = MapBuffer(x.reducer);
                          return make(std::move(x));
                        },
                        [&](Parallel x) {
                          for (VarId& v : x.vars) v = MapDefinition(v);
                          x.body = MapBlock(x.body);
                          return make(std::move(x));
                        },
                        [&](OnGroup x) {
                          x.var = MapDefinition(x.var);
                          x.body = MapBlock(x.body);
                          return make(std::move(x));
                        },
                        [&](Send x) {
                          x.src = MapRegion(x.src);
                          x.channel = MapBuffer(x.channel);
                          return make(std::move(x));
                        },
                        [&](Recv x) {
                          x.dst = MapRegion(x.dst);
                          x.channel = MapBuffer(x.channel);
                          return make(std::move(x));
                        },
                        [&](ThreadFor x) {
                          x.extent = MapExpr(x.extent);
                          x.var = MapDefinition(x.var);
                          x.body = MapBlock(x.body);
                          return make(std::move(x));
                        },
                        [&](ChannelAcquire x) {
                          x.channel = MapBuffer(x.channel);
                          x.slot = MapDefinition(x.slot);
                          return make(std::move(x));
                        },
                        [&](ChannelRelease x) {
                          x.channel = MapBuffer(x.channel);
                          return make(std::move(x));
                        },
                        [&](Barrier x) { return make(x); },
                        [&](SlotFor x) {
                          x.var = MapDefinition(x.var);
                          x.body = MapBlock(x.body);
                          return make(std::move(x));
                        },
                        [&](VectorMove x) { return make(MapMove(std::move(x), *this)); },
                        [&](AsyncMove x) {
                          x.inside = MapExpr(x.inside);
                          return make(MapMove(std::move(x), *this));
                        },
                        [&](AsyncCommit x) { return make(x); },
                        [&](AsyncWait x) { return make(x); },
                        [&](LoadMatrix x) { return make(MapMove(std::move(x), *this)); },
                        [&](StoreMatrix x) { return make(MapMove(std::move(x), *this)); },
                        [&](Mma x) {
                          x.a = MapBuffer(x.a), x.a_offset = MapExpr(x.a_offset);
                          x.b = MapBuffer(x.b), x.b_offset = MapExpr(x.b_offset);
                          x.c = MapBuffer(x.c), x.c_offset = MapExpr(x.c_offset);
                          return make(std::move(x));
                        },
                        [&](Wgmma x) {
                          for (MatrixInPlace* m : {&x.a, &x.b}) {
                            m->buffer = MapBuffer(m->buffer), m->offset = MapExpr(m->offset);
                          }
                          x.c = MapBuffer(x.c), x.c_offset = MapExpr(x.c_offset);
                          return make(std::move(x));
                        },
                        [&](WgmmaSync x) {
                          if (x.c != kNoId) x.c = MapBuffer(x.c);
                          return make(x);
                        },
                        [&](ProxyFence x) { return make(x); },
                        [&](MbarrierFence x) { return make(x); },
                        [&](LaneExchange x) {
                          x.value = MapExpr(x.value);
                          x.var = MapDefinition(x.var);
                          return make(std::move(x));
                        },
                        [&](Mbarrier x) {
                          x.barriers = MapBuffer(x.barriers);
                          x.index = MapExpr(x.index);
                          if (x.value) x.value = MapExpr(x.value);
                          if (x.block) x.block = MapExpr(x.block);
                          return make(std::move(x));
                        },
                        [&](BulkLoad x) {
                          for (ExprRef& e : x.at) e = MapExpr(e);
                          x.dst = MapBuffer(x.dst), x.dst_offset = MapExpr(x.dst_offset);
                          x.barriers = MapBuffer(x.barriers), x.barrier = MapExpr(x.barrier);
                          if (x.blocks) x.blocks = MapExpr(x.blocks);
                          return make(std::move(x));
                        },
                        [&](BulkStore x) {
                          for (ExprRef& e : x.at) e = MapExpr(e);
                          x.src = MapBuffer(x.src), x.src_offset = MapExpr(x.src_offset);
                          return make(std::move(x));
                        },
                        [&](BulkSync x) { return make(x); },
                        [&](auto x) {
                          if constexpr (requires { x.body; }) {
                            x.body = MapBlock(x.body);
                          } else {  // Reduce, ArgMax, CumSum, Atomic
                            x.src = MapRegion(x.src);
                            x.dst = MapRegion(x.dst);
                          }
                          return make(std::move(x));
                        },
                    },
                    s->node);
}

namespace {

class Cloner : public StmtMapper {
 public:
  Cloner(Module& module, Substitution& substitution) : m_(module), s_(substitution) {}

  ExprRef MapExpr(const ExprRef& e) override { return Substitute(m_, e, s_); }

  Region MapRegion(const Region& r) override {
    Region out = StmtMapper::MapRegion(r);
    const auto it = s_.tiles.find(r.buffer);
    if (it == s_.tiles.end()) return out;
    const std::vector<ExprRef>& prefix = it->second.prefix;
    out.offset.insert(out.offset.begin(), prefix.begin(), prefix.end());
    for (int& d : out.dims) d += static_cast<int>(prefix.size());
    return out;
  }

  VarId MapDefinition(VarId v) override {
    Var copy = m_.vars[v];
    const ScalarType type = copy.type;
    m_.vars.push_back(std::move(copy));
    const VarId id = static_cast<VarId>(m_.vars.size()) - 1;
    s_.vars[v] = MakeVar(id, type);
    return id;
  }

  VarId MapAssigned(VarId v) override {
    const auto it = s_.vars.find(v);
    return it == s_.vars.end() ? v : As<VarRef>(it->second)->var;
  }

  BufferId MapBuffer(BufferId b) override {
    const auto it = s_.tiles.find(b);
    return it == s_.tiles.end() ? b : it->second.to;
  }

  StmtRef MapStmt(const StmtRef& s) override {
    const Alloc* alloc = As<Alloc>(s);
    if (alloc && m_.buffer(alloc->buffer).scope != Scope::kChannel) {
      Buffer copy = m_.buffers[alloc->buffer];
      s_.tiles[alloc->buffer] = {m_.AddBuffer(std::move(copy)), {}};
    }
    const Store* store = As<Store>(s);
    StmtRef out = StmtMapper::MapStmt(s);
    const auto it = store ? s_.tiles.find(store->buffer) : s_.tiles.end();
    if (it == s_.tiles.end() || it->second.prefix.empty()) return out;
    Store prefixed = *As<Store>(out);
    prefixed.index.insert(prefixed.index.begin(), it->second.prefix.begin(),
                          it->second.prefix.end());
    return MakeStmt(std::move(prefixed), s->span, s->id);
  }

 private:
  Module& m_;
  Substitution& s_;
};

}  // namespace

ExprRef Substitute(const Module& module, const ExprRef& e, const Substitution& substitution) {
  return RewriteExpr(e, [&](const ExprRef& node) -> ExprRef {
    if (const VarRef* ref = As<VarRef>(node)) {
      const auto it = substitution.vars.find(ref->var);
      return it == substitution.vars.end() ? nullptr : it->second;
    }
    const Load* load = As<Load>(node);
    if (!load) return nullptr;
    const auto it = substitution.tiles.find(load->buffer);
    if (it == substitution.tiles.end()) return nullptr;
    std::vector<ExprRef> index = it->second.prefix;
    index.insert(index.end(), load->index.begin(), load->index.end());
    return MakeLoad(it->second.to, module.buffer(it->second.to).dtype, std::move(index),
                    node->span);
  });
}

Block CloneBlock(Module& module, const Block& block, Substitution substitution) {
  return Cloner(module, substitution).MapBlock(block);
}

}  // namespace tl
