#include "passes/expand_lag.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "ir/visit.h"
#include "passes/lowering.h"

namespace tl {
namespace {

ExprRef Op(BinaryOp op, ExprRef a, ExprRef b) { return MakeBinary(op, std::move(a), std::move(b)); }

// The blocks of in_turn stand in the block around them, between marks. Within a turn there is no
// other.
class TurnFlattener : public StmtMapper {
 public:
  Block MapBlock(const Block& b) override {
    Block out;
    for (const StmtRef& s : b) {
      const InTurn* turn = As<InTurn>(s);
      if (!turn) {
        out.push_back(MapStmt(s));
        continue;
      }
      const bool outer = std::exchange(inside_, true);
      if (!outer) out.push_back(MakeStmt(Turn{.begins = true}, s->span, s->id));
      Block body = MapBlock(turn->body);
      out.insert(out.end(), body.begin(), body.end());
      if (!outer) out.push_back(MakeStmt(Turn{.begins = false}, s->span, s->id));
      inside_ = outer;
    }
    return out;
  }

 private:
  bool inside_ = false;
};

// Everything an expanded lag needs: its body and the rings of what it replays.
struct Replay {
  StmtRef stmt;
  int64_t distance;
  struct RingOfTile {
    BufferId tile, ring;
  };
  std::vector<RingOfTile> tiles;
  struct RingOfValue {
    VarId value;
    std::vector<VarId> ring;  // mutable; the last one is the oldest
  };
  std::vector<RingOfValue> values;

  const Block& body() const { return As<Lag>(stmt)->body; }
};

// One pipelined loop with lags in it.
class LoopExpander {
 public:
  // `defined`: mutable variables that have a value where the loop stands.
  LoopExpander(Module& module, const StmtRef& stmt, const For& loop,
               const absl::flat_hash_set<VarId>& defined)
      : m_(module), stmt_(stmt), loop_(loop), defined_before_(defined) {}

  // The statements that stand in place of the loop. Loops nested in it are expanded already.
  Block Run() {
    const ExprRef begin = NewLet(out_, "begin", loop_.begin);
    const ExprRef end = NewLet(out_, "end", loop_.end);
    const ExprRef trips =
        NewLet(out_, "trips", Op(BinaryOp::kMax, Op(BinaryOp::kSub, end, begin), MakeInt(0)));
    first_ = loop_.down ? Op(BinaryOp::kSub, end, MakeInt(1)) : begin;

    For main = loop_;
    main.var = m_.AddVar("it", ScalarType::kInt, VarRole::kLoop, stmt_->span);
    main.begin = MakeInt(0);
    main.end = trips;
    main.down = false;
    main.body = Hoist(MainBody(Read(main.var)));
    out_.push_back(MakeStmt(std::move(main), stmt_->span, stmt_->id));
    AddRemainder(trips);
    return std::move(out_);
  }

 private:
  ExprRef Read(VarId v) const { return MakeVar(v, m_.var(v).type); }

  ExprRef NewLet(Block& out, const char* name, ExprRef value) {
    if (IntValue(value)) return value;
    const VarId v = m_.AddVar(name, value->type, VarRole::kLet, stmt_->span);
    out.push_back(MakeStmt(Let{v, std::move(value)}));
    return Read(v);
  }

  // The loop's own index in its `it`-th iteration.
  ExprRef IndexAt(const ExprRef& it) const {
    return Op(loop_.down ? BinaryOp::kSub : BinaryOp::kAdd, first_, it);
  }

  Block MainBody(const ExprRef& it) {
    Block body{MakeStmt(Let{loop_.var, IndexAt(it)})};
    std::vector<BufferId> filled;
    std::vector<VarId> defined;
    for (const StmtRef& s : loop_.body) {
      if (As<Lag>(s)) {
        replays_.push_back(MakeReplay(s, filled, defined));
        Step(replays_.back(), it, true, body);
        continue;
      }
      if (const Let* let = As<Let>(s)) defined.push_back(let->var);
      if (const Copy* copy = As<Copy>(s)) NoteFilled(*copy, filled);
      body.push_back(s);
    }
    return body;
  }

  // What the loop's body makes anew and a lag uses as it is at present: it outlives the loop, since
  // the last lags run behind it.
  Block Hoist(Block body) {
    Block out;
    for (StmtRef& s : body) {
      const Alloc* alloc = As<Alloc>(s);
      if (alloc && present_tiles_.contains(alloc->buffer)) {
        out_.push_back(s);
        const Buffer& b = m_.buffer(alloc->buffer);
        if (b.role == BufferRole::kReducer) out.push_back(StartAnew(b, alloc->buffer, *s));
        continue;
      }
      const Assign* assign = As<Assign>(s);
      if (assign && present_vars_.contains(assign->var) && !defined_before_.contains(assign->var)) {
        out_.push_back(MakeStmt(Assign{assign->var, ZeroOf(m_.var(assign->var).type)}, s->span));
        present_vars_.erase(assign->var);
      }
      out.push_back(std::move(s));
    }
    return out;
  }

  static StmtRef StartAnew(const Buffer& b, BufferId id, const Stmt& at) {
    return MakeStmt(Fill{WholeTile(b, id), IdentityOf(b.reduce_op, b.dtype)}, at.span, at.id);
  }

  static ExprRef ZeroOf(ScalarType type) {
    return type == ScalarType::kBool  ? MakeBool(false)
           : type == ScalarType::kInt ? MakeInt(0)
                                      : MakeFloat(0, type);
  }

  void NoteFilled(const Copy& copy, std::vector<BufferId>& filled) const {
    const bool fills = m_.buffer(copy.src.buffer).scope == Scope::kGlobal &&
                       m_.buffer(copy.dst.buffer).scope != Scope::kGlobal;
    if (fills && std::find(filled.begin(), filled.end(), copy.dst.buffer) == filled.end()) {
      filled.push_back(copy.dst.buffer);
    }
  }

  // Makes rings for what the body uses of the given tiles and values.
  Replay MakeReplay(const StmtRef& s, const std::vector<BufferId>& filled,
                    const std::vector<VarId>& defined) {
    Replay r{s, As<Lag>(s)->distance};
    absl::flat_hash_set<BufferId> used_tiles;
    absl::flat_hash_set<VarId> used_vars;
    VisitStmts(r.body(), [&](const StmtRef& child) {
      VisitRegions(*child, [&](const Region& region, bool) { used_tiles.insert(region.buffer); });
    });
    VisitAllExprs(r.body(), [&](const ExprRef& e) {
      if (const Load* load = As<Load>(e)) used_tiles.insert(load->buffer);
      if (const VarRef* ref = As<VarRef>(e)) used_vars.insert(ref->var);
    });
    for (BufferId tile : filled) {
      if (used_tiles.erase(tile)) r.tiles.push_back({tile, NewTileRing(tile, r.distance)});
    }
    for (VarId v : defined) {
      if (used_vars.erase(v)) r.values.push_back({v, NewValueRing(v, r.distance)});
    }
    present_tiles_.insert(used_tiles.begin(), used_tiles.end());
    present_vars_.insert(used_vars.begin(), used_vars.end());
    return r;
  }

  BufferId NewTileRing(BufferId tile, int64_t slots) {
    Buffer ring = m_.buffer(tile);
    ring.name = absl::StrCat(ring.name, "_lag");
    ring.scope = Scope::kFragment;  // of the block or group that runs the loop
    ring.boxes = 0;
    ring.extents.insert(ring.extents.begin(), slots);
    const BufferId id = m_.AddBuffer(std::move(ring));
    out_.push_back(MakeStmt(Alloc{id}, stmt_->span));
    return id;
  }

  std::vector<VarId> NewValueRing(VarId value, int64_t slots) {
    std::vector<VarId> ring;
    for (int64_t i = 0; i < slots; ++i) {
      const Var& v = m_.var(value);
      const ScalarType type = v.type;
      const VarId id =
          m_.AddVar(absl::StrCat(v.name, "_lag"), type, VarRole::kMutable, stmt_->span);
      out_.push_back(MakeStmt(Assign{id, ZeroOf(type)}));
      ring.push_back(id);
    }
    return ring;
  }

  // One iteration of a lag: the replay of iteration it - distance, then the rings step. Behind the
  // loop (`present` false) there is no present value to keep.
  void Step(const Replay& r, const ExprRef& it, bool present, Block& out) {
    const ExprRef k = MakeInt(r.distance);
    const ExprRef slot = Op(BinaryOp::kMod, it, k);
    Substitution s;
    Block body;
    s.vars[loop_.var] =
        NewLet(body, m_.var(loop_.var).name.c_str(), IndexAt(Op(BinaryOp::kSub, it, k)));
    for (const auto& t : r.tiles) s.tiles[t.tile] = {t.ring, {slot}};
    for (const auto& v : r.values) {
      // A constant of this replay, so that the body may hold it beyond the ring's next step.
      s.vars[v.value] = NewLet(body, m_.var(v.value).name.c_str(), Read(v.ring.back()));
    }
    Block replayed = CloneBlock(m_, r.body(), std::move(s));
    body.insert(body.end(), replayed.begin(), replayed.end());
    out.push_back(
        MakeStmt(If{Op(BinaryOp::kGe, it, k), std::move(body), {}}, r.stmt->span, r.stmt->id));
    if (present) {
      for (const auto& t : r.tiles) KeepTile(t, slot, r, out);
    }
    for (const auto& v : r.values) StepValues(v, present, out);
  }

  void KeepTile(const Replay::RingOfTile& t, const ExprRef& slot, const Replay& r, Block& out) {
    Copy copy;
    copy.src = WholeTile(m_.buffer(t.tile), t.tile);
    copy.dst = copy.src;
    copy.dst.buffer = t.ring;
    copy.dst.offset.insert(copy.dst.offset.begin(), slot);
    for (int& d : copy.dst.dims) ++d;
    out.push_back(MakeStmt(std::move(copy), r.stmt->span));
  }

  void StepValues(const Replay::RingOfValue& v, bool present, Block& out) {
    for (size_t i = v.ring.size(); i-- > 1;) {
      out.push_back(MakeStmt(Assign{v.ring[i], Read(v.ring[i - 1])}));
    }
    if (present) out.push_back(MakeStmt(Assign{v.ring[0], Read(v.value)}));
  }

  // Iterations trips … trips + k - 1, in which only the lags run, each as long as it has iterations
  // left.
  void AddRemainder(const ExprRef& trips) {
    int64_t longest = 0;
    for (const Replay& r : replays_) longest = std::max(longest, r.distance);
    const VarId extra = m_.AddVar("extra", ScalarType::kInt, VarRole::kLoop, stmt_->span);
    const ExprRef it = Op(BinaryOp::kAdd, trips, Read(extra));
    Block body;
    for (const Replay& r : replays_) {
      Block step;
      Step(r, it, false, step);
      const ExprRef left = Op(BinaryOp::kLt, Read(extra), MakeInt(r.distance));
      body.push_back(MakeStmt(If{left, std::move(step), {}}));
    }
    For loop{LoopKind::kSerial, extra, MakeInt(0), MakeInt(longest), false, 1, std::move(body)};
    out_.push_back(MakeStmt(std::move(loop), stmt_->span));
  }

  Module& m_;
  const StmtRef& stmt_;
  const For& loop_;
  ExprRef first_;
  const absl::flat_hash_set<VarId>& defined_before_;
  Block out_;
  std::vector<Replay> replays_;
  // What lags use and do not replay.
  absl::flat_hash_set<BufferId> present_tiles_;
  absl::flat_hash_set<VarId> present_vars_;
};

class LagExpander : public StmtMapper {
 public:
  explicit LagExpander(Module& module) : m_(module) {}

  Block MapBlock(const Block& b) override {
    Block out;
    const absl::flat_hash_set<VarId> outside = defined_;
    for (const StmtRef& s : b) {
      if (const Assign* assign = As<Assign>(s)) defined_.insert(assign->var);
      const StmtRef inner = MapStmt(s);  // nested loops first
      const For* loop = As<For>(inner);
      if (loop && HasLag(*loop)) {
        Block expanded = LoopExpander(m_, inner, *loop, defined_).Run();
        out.insert(out.end(), expanded.begin(), expanded.end());
      } else {
        out.push_back(inner);
      }
    }
    defined_ = outside;
    return out;
  }

 private:
  static bool HasLag(const For& loop) {
    return std::any_of(loop.body.begin(), loop.body.end(),
                       [](const StmtRef& s) { return As<Lag>(s) != nullptr; });
  }

  Module& m_;
  absl::flat_hash_set<VarId> defined_;  // mutable variables assigned so far, of the blocks around
};

}  // namespace

Status ExpandLag(Module& module, const Target&) {
  for (Launch& launch : module.launches) {
    launch.body = LagExpander(module).MapBlock(TurnFlattener().MapBlock(launch.body));
  }
  return absl::OkStatus();
}

}  // namespace tl
