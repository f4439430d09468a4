#include "passes/plan_pipelines.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "ir/visit.h"
#include "passes/clusters.h"
#include "passes/early_copies.h"
#include "passes/mbarriers.h"
#include "passes/own_tiles.h"
#include "passes/pipeline_plan.h"
#include "passes/plan_loops.h"
#include "passes/producer.h"
#include "passes/select_atoms.h"

namespace tl {
namespace {

ExprRef Op(BinaryOp op, ExprRef a, ExprRef b) { return MakeBinary(op, std::move(a), std::move(b)); }

// ---- First of all

// `unrolled` loops of a pipelined one that do nothing but copy become their iterations, so that
// what they copy counts as the pipelined loop's own.
class Unroller : public StmtMapper {
 public:
  explicit Unroller(Module& module) : m_(module) {}

  StmtRef MapStmt(const StmtRef& s) override {
    const bool outer = std::exchange(inside_, IsPipelined(s));
    StmtRef out = StmtMapper::MapStmt(s);
    inside_ = outer;
    return out;
  }

  // `b` is the body of a pipelined loop where `inside_` holds.
  Block MapBlock(const Block& b) override {
    Block out;
    const bool inside = inside_;
    for (const StmtRef& s : b) {
      const For* loop = As<For>(s);
      if (inside && loop && Copies(*loop)) {
        for (int64_t i = *IntValue(loop->begin); i < *IntValue(loop->end); ++i) {
          Substitution index;
          index.vars[loop->var] = MakeInt(i);
          Block once = CloneBlock(m_, loop->body, std::move(index));
          out.insert(out.end(), once.begin(), once.end());
        }
      } else {
        out.push_back(MapStmt(s));
      }
    }
    return out;
  }

 private:
  bool Copies(const For& loop) const {
    constexpr int64_t kMostIterations = 16;
    const int64_t *begin = IntValue(loop.begin), *end = IntValue(loop.end);
    if (loop.kind != LoopKind::kUnrolled || !begin || !end || *end - *begin > kMostIterations) {
      return false;
    }
    return absl::c_all_of(loop.body, [&](const StmtRef& s) {
      const Copy* copy = As<Copy>(s);
      return As<Let>(s) || (copy && m_.buffer(copy->src.buffer).scope == Scope::kGlobal);
    });
  }

  Module& m_;
  bool inside_ = false;
};

// ---- Apply

// Uses of a ring's tiles in the loop's own statements mean the slot of the current iteration.
class SlotReader : public StmtMapper {
 public:
  SlotReader(const Module& module, const std::vector<BufferId>& tiles, const ExprRef& slot)
      : m_(module), slot_(slot) {
    for (BufferId tile : tiles) uses_.tiles[tile] = {tile, {slot}};
  }

  ExprRef MapExpr(const ExprRef& e) override { return Substitute(m_, e, uses_); }

  Region MapRegion(const Region& r) override {
    Region out = StmtMapper::MapRegion(r);
    if (!uses_.tiles.contains(r.buffer)) return out;
    out.offset.insert(out.offset.begin(), slot_);
    for (int& d : out.dims) ++d;
    return out;
  }

 private:
  const Module& m_;
  const ExprRef slot_;
  Substitution uses_;
};

// Reads of what a lag keeps mean the slot of the iteration before.
class KeptReader : public StmtMapper {
 public:
  KeptReader(const std::vector<KeptTile>& kept, ExprRef last)
      : kept_(kept), last_(std::move(last)) {}

  Region MapRegion(const Region& r) override {
    Region out = StmtMapper::MapRegion(r);
    for (const KeptTile& k : kept_) {
      if (r.buffer != k.lag) continue;
      out.buffer = k.tile;
      out.offset[0] = last_;
    }
    return out;
  }

 private:
  const std::vector<KeptTile>& kept_;
  const ExprRef last_;
};

// One loop rewritten by its plan. Loops nested in it are rewritten already.
class LoopRewriter {
 public:
  // `warps`: that use a slot.
  LoopRewriter(Module& module, const StmtRef& stmt, const For& loop, const PlannedLoop& planned,
               Team team, int warps)
      : m_(module),
        stmt_(stmt),
        loop_(loop),
        planned_(planned),
        ring_(planned.plan.rings[0]),
        agent_(planned.plan.agents.back()),
        producer_(planned.plan.agents.size() > 1 ? &planned.plan.agents.front() : nullptr),
        team_(team),
        warps_(warps) {}

  // The statements that stand in place of the loop.
  Block Run() {
    Bound(out_);
    SplitBody();
    if (ring_.transport == Transport::kRegisters) MakeRegisters();
    if (by_mbarriers()) MakeMbarriers();
    for (BufferId tile : ring_.tiles) {
      Buffer& b = m_.buffers[tile];
      b.extents.insert(b.extents.begin(), ring_.depth);
      b.ring = true;
      b.handed_back = by_mbarriers();
    }
    Prologue();
    if (planned_.trailing != kNoId) {
      out_.push_back(MakeStmt(WgmmaSync{WgmmaSync::Op::kFence, planned_.trailing, 0}, stmt_->span));
    }
    out_.push_back(MainLoop());
    if (planned_.trailing != kNoId) {
      out_.push_back(MakeStmt(WgmmaSync{WgmmaSync::Op::kWait, planned_.trailing, 0}, stmt_->span));
    }
    return std::move(out_);
  }

  // What a producer runs instead; behind all others.
  Block ProducerLoop() {
    Block out;
    Bound(out);
    if (!ring_.again) fill_ = NewPosition("fill", 0, out);
    out.push_back(LoopOf(producer_->body, Read(fill_.slot)));
    return out;
  }

  // What a group runs instead that does not own the tile: it counts the slots as they are used.
  Block CountingLoop() {
    Block out;
    Bound(out);
    out.push_back(LoopOf({{StepKind::kNextUse}}, nullptr));
    return out;
  }

  // Statements for where the launch begins.
  const Block& at_start() const { return at_start_; }
  // The statements behind the loop, in the same block.
  Block Behind(const Block& rest) {
    Block out = rest;
    if (!planned_.kept.empty()) out = KeptReader(planned_.kept, Read(last_)).MapBlock(rest);
    Block release;
    EmitSteps(agent_.epilogue, end_of_loop(), MakeInt(0), release);
    const auto reads = [&](const StmtRef& s) { return ReadsRing(s); };
    const auto last = std::find_if(out.rbegin(), out.rend(), reads);
    out.insert(last.base(), release.begin(), release.end());
    return out;
  }

 private:
  // Slot of a counter, and the parity of the phase of its mbarriers that comes next.
  struct Position {
    VarId slot = kNoId, parity = kNoId;
  };

  bool by_mbarriers() const { return ring_.transport == Transport::kBoxes; }
  ExprRef Read(VarId v) const { return MakeVar(v, m_.var(v).type); }

  bool ReadsRing(const StmtRef& root) const {
    bool reads = false;
    VisitStmts({root}, [&](const StmtRef& s) {
      VisitRegions(*s, [&](const Region& r, bool) { reads = reads || IsRing(r.buffer); });
    });
    return reads;
  }

  // A name for a value that is fixed from here on.
  ExprRef NewLet(Block& out, std::string_view name, ExprRef value) {
    if (IntValue(value)) return value;
    const VarRef* ref = As<VarRef>(value);
    if (ref && m_.var(ref->var).role != VarRole::kMutable) return value;
    const VarId v = m_.AddVar(std::string(name), value->type, VarRole::kLet, stmt_->span);
    out.push_back(MakeStmt(Let{v, std::move(value)}));
    return Read(v);
  }

  // The loop's bounds, for what is emitted behind.
  void Bound(Block& out) {
    begin_ = NewLet(out, "begin", loop_.begin);
    end_ = NewLet(out, "end", loop_.end);
  }

  VarId NewCounter(std::string_view name, int start, Block& out) {
    const VarId v = m_.AddVar(std::string(name), ScalarType::kInt, VarRole::kMutable, stmt_->span);
    m_.vars[v].dtype = DType::kU8;  // a slot: known to be small, so that addresses stay short
    out.push_back(MakeStmt(Assign{v, MakeInt(start)}));
    return v;
  }

  // Parts the loop's statements: copies that start early, the lets that they need, the rest. Tiles
  // of the ring outlive the loop's iterations.
  void SplitBody() {
    for (const StmtRef& s : loop_.body) {
      const Copy* copy = As<Copy>(s);
      if (copy && IsRing(copy->dst.buffer)) {
        Copy early = *copy;
        early.async = ring_.transport != Transport::kRegisters;
        issue_.push_back(MakeStmt(std::move(early), s->span, s->id));
        continue;
      }
      if (copy && Keeps(*copy)) continue;
      if (const Alloc* alloc = As<Alloc>(s); alloc && IsRing(alloc->buffer)) {
        out_.push_back(s);
        continue;
      }
      if (const Let* let = As<Let>(s); let && planned_.copies.lets.contains(let->var)) {
        issue_.push_back(s);
      }
      rest_.push_back(Trails(s) ? WithTrailing(s) : s);
    }
  }

  bool Keeps(const Copy& copy) const {
    return absl::c_any_of(planned_.kept,
                          [&](const KeptTile& k) { return k.lag == copy.dst.buffer; });
  }
  bool Trails(const StmtRef& s) const {
    const Gemm* g = As<Gemm>(s);
    return g && planned_.trailing == g->c.buffer;
  }
  StmtRef WithTrailing(const StmtRef& s) const {
    Gemm g = *As<Gemm>(s);
    g.trailing = true;
    g.under_way = ring_.trailing;
    return MakeStmt(std::move(g), s->span, s->id);
  }

  bool IsRing(BufferId b) const {
    return std::find(ring_.tiles.begin(), ring_.tiles.end(), b) != ring_.tiles.end();
  }

  // The loop's index `ahead` iterations after the one with index `from`.
  ExprRef Ahead(const ExprRef& from, int ahead) const {
    return Op(loop_.down ? BinaryOp::kSub : BinaryOp::kAdd, from, MakeInt(ahead));
  }
  // Does the loop have the iteration? It is `ahead` of one that it has, or would have next.
  ExprRef Exists(const ExprRef& index, int ahead) const {
    const VarRef* now = As<VarRef>(index);
    if (now && now->var == loop_.var) return MakeBool(true);
    return loop_.down == (ahead < 0) ? Op(BinaryOp::kLt, index, end_)
                                     : Op(BinaryOp::kGe, index, begin_);
  }
  // An index that exists, so written that its bounds can be seen: nothing is read outside of a
  // tensor that is a whole number of tiles.
  ExprRef Bounded(const ExprRef& index) const {
    if (IntValue(index)) return index;
    if (loop_.down) return IntValue(begin_) ? Op(BinaryOp::kMax, index, begin_) : index;
    return IntValue(end_) ? Op(BinaryOp::kMin, index, Op(BinaryOp::kSub, end_, MakeInt(1))) : index;
  }

  void IfExists(const ExprRef& index, int ahead, Block body, Block& out) const {
    const ExprRef exists = Exists(index, ahead);
    const BoolLit* known = As<BoolLit>(exists);
    if (!known) {
      out.push_back(MakeStmt(If{exists, std::move(body), {}}, stmt_->span, stmt_->id));
    } else if (known->value) {
      out.insert(out.end(), body.begin(), body.end());
    }
  }

  // The copies of the iteration with this index to other places than the loop's own.
  void Copies(const ExprRef& index, absl::flat_hash_map<BufferId, Substitution::Tile> to,
              Block& out) {
    Substitution s;
    s.vars[loop_.var] = NewLet(out, m_.var(loop_.var).name, Bounded(index));
    s.tiles = std::move(to);
    Block copies = CloneBlock(m_, issue_, std::move(s));
    out.insert(out.end(), copies.begin(), copies.end());
  }
  void Issue(const ExprRef& index, const ExprRef& slot, Block& out) {
    absl::flat_hash_map<BufferId, Substitution::Tile> slots;
    for (BufferId tile : ring_.tiles) slots[tile] = {tile, {slot}};
    Block copies;
    Copies(index, std::move(slots), copies);
    for (StmtRef& s : copies) out.push_back(by_mbarriers() ? WithMbarrier(s, slot) : s);
  }
  StmtRef WithMbarrier(const StmtRef& s, const ExprRef& slot) const {
    if (!As<Copy>(s)) return s;
    Copy copy = *As<Copy>(s);
    copy.barriers = filled_;
    copy.barrier = slot;
    const auto together = planned_.together.find(copy.dst.buffer);
    if (together != planned_.together.end()) copy.together = together->second;
    return MakeStmt(std::move(copy), s->span, s->id);
  }
  void Fetch(const ExprRef& index, Block& out) {
    absl::flat_hash_map<BufferId, Substitution::Tile> registers;
    for (const auto& [tile, id] : registers_) registers[tile] = {id, {}};
    Copies(index, std::move(registers), out);
  }
  void Put(const ExprRef& slot, Block& out) {
    for (const auto& [tile, id] : registers_) {
      Copy put{WholeTile(m_.buffer(id), id), WholeTile(m_.buffer(id), tile), nullptr};
      put.dst.offset.insert(put.dst.offset.begin(), slot);
      for (int& d : put.dst.dims) ++d;
      out.push_back(MakeStmt(std::move(put), stmt_->span));
    }
  }

  // Two for each slot, for the whole launch, as are the counters where the loop runs again.
  void MakeMbarriers() {
    filled_ = NewMbarriers("_filled", 1);
    free_ = NewMbarriers("_free", warps_ * ring_.blocks);
  }
  BufferId NewMbarriers(std::string_view name, int arrivals) {
    const BufferId id =
        AddMbarriers(m_, absl::StrCat(m_.buffer(ring_.tiles[0]).name, name), ring_.depth, arrivals);
    at_start_.push_back(MakeStmt(Alloc{id}, stmt_->span));
    return id;
  }

  void Wait(BufferId mbarriers, const ExprRef& slot, const ExprRef& parity, Block& out) const {
    out.push_back(MakeStmt(Mbarrier{Mbarrier::Op::kWait, mbarriers, slot, parity}, stmt_->span));
  }
  void Await(Block& out) {
    slot_ = NewLet(out, "slot", Read(use_.slot));
    Wait(filled_, slot_, Read(use_.parity), out);
  }
  // A slot is free from the start: the phase before the first has ended.
  void Acquire(Block& out) const {
    Wait(free_, Read(fill_.slot), Op(BinaryOp::kBitXor, Read(fill_.parity), MakeInt(1)), out);
  }
  // The slot that is `ahead` (not above 0) of the one to use.
  void Release(int ahead, Block& out) {
    ExprRef slot = Read(use_.slot);
    if (ahead < 0) {
      const ExprRef back = Op(BinaryOp::kAdd, slot, MakeInt(ahead));
      slot = MakeSelect(Op(BinaryOp::kLt, back, MakeInt(0)),
                        Op(BinaryOp::kAdd, back, MakeInt(ring_.depth)), back);
    }
    if (ring_.blocks == 1) return Arrive(slot, nullptr, out);
    for (int block = 0; block < ring_.blocks; ++block) Arrive(slot, MakeInt(block), out);
  }
  void Arrive(const ExprRef& slot, ExprRef block, Block& out) const {
    out.push_back(MakeStmt(Mbarrier{Mbarrier::Op::kArrive, free_, slot, nullptr, std::move(block)},
                           stmt_->span));
  }

  // Fragments that hold an iteration's data on their way to a slot.
  void MakeRegisters() {
    for (BufferId tile : ring_.tiles) {
      Buffer b = m_.buffer(tile);
      b.name += "_next";
      b.scope = Scope::kFragment;
      b.swizzle = {};
      b.in_place = false;
      const BufferId id = m_.AddBuffer(std::move(b));
      out_.push_back(MakeStmt(Alloc{id}, stmt_->span));
      registers_.emplace_back(tile, id);
    }
  }

  ExprRef first_index() const { return loop_.down ? Op(BinaryOp::kSub, end_, MakeInt(1)) : begin_; }
  // Of the iteration behind the last.
  ExprRef end_of_loop() const { return loop_.down ? Op(BinaryOp::kSub, begin_, MakeInt(1)) : end_; }

  // Without an earlier run the first slots are known.
  void Prologue() {
    const bool again = by_mbarriers() && ring_.again;
    int fill = 0;
    if (again) {
      fill_ = NewPosition("fill", 0, at_start_);
      use_ = NewPosition("use", 0, at_start_);
      EmitSteps(agent_.prologue, first_index(), Read(fill_.slot), out_);
    }
    for (size_t i = 0; !again && i < agent_.prologue.size(); ++i) {
      const Step& s = agent_.prologue[i];
      if (s.kind == StepKind::kNextFill) {
        fill = fill + 1 == ring_.depth ? 0 : fill + 1;
      } else {
        EmitSteps({s}, first_index(), MakeInt(fill), out_);
      }
    }
    if (!again && !producer_) fill_ = NewPosition("fill", fill, out_);
    if (!again) use_ = NewPosition("use", 0, out_);
    if (!planned_.kept.empty()) last_ = NewCounter("last", 0, out_);
  }
  Position NewPosition(const char* name, int slot, Block& out) {
    Position at;
    at.slot = NewCounter(name, slot, out);
    if (by_mbarriers()) at.parity = NewCounter(absl::StrCat(name, "_parity"), 0, out);
    return at;
  }

  StmtRef MainLoop() { return LoopOf(agent_.body, producer_ ? nullptr : Read(fill_.slot)); }
  StmtRef LoopOf(const std::vector<Step>& steps, const ExprRef& slot) {
    For main = loop_;
    main.kind = LoopKind::kSerial;
    main.begin = begin_;
    main.end = end_;
    main.stages = 1;
    main.body.clear();
    EmitSteps(steps, Read(loop_.var), slot, main.body);
    return MakeStmt(std::move(main), stmt_->span, stmt_->id);
  }

  // Only if the iteration that it is about exists.
  bool IsConditional(const Step& s) const {
    switch (s.kind) {
      case StepKind::kIssue:
      case StepKind::kFetch:
      case StepKind::kPut:
      case StepKind::kAcquire:
      case StepKind::kRelease:
        return true;
      case StepKind::kNextFill:
        return by_mbarriers();
      default:
        return false;
    }
  }

  // Steps of the iteration with index `now`, `slot` being the one to fill. What depends on the same
  // iteration of a ring with mbarriers stands under one condition.
  void EmitSteps(const std::vector<Step>& steps, const ExprRef& now, const ExprRef& slot,
                 Block& out) {
    for (size_t i = 0; i < steps.size(); ++i) {
      const Step& s = steps[i];
      const ExprRef index = Ahead(now, s.iteration);
      if (!IsConditional(s)) {
        Emit(s, index, slot, out);
        continue;
      }
      Block body;
      Emit(s, index, slot, body);
      const auto joins = [&](const Step& next) {
        return by_mbarriers() && IsConditional(next) && next.iteration == s.iteration;
      };
      for (; i + 1 < steps.size() && joins(steps[i + 1]); ++i) {
        Emit(steps[i + 1], index, slot, body);
      }
      IfExists(index, s.iteration, std::move(body), out);
    }
  }

  void Emit(const Step& s, const ExprRef& index, const ExprRef& slot, Block& out) {
    switch (s.kind) {
      case StepKind::kIssue:
        return Issue(index, slot, out);
      case StepKind::kFetch:
        return Fetch(index, out);
      case StepKind::kPut:
        return Put(slot, out);
      case StepKind::kCommit:
        return out.push_back(MakeStmt(AsyncCommit{}, stmt_->span));
      case StepKind::kWait:
        return out.push_back(MakeStmt(AsyncWait{s.pending}, stmt_->span));
      case StepKind::kAwait:
        return Await(out);
      case StepKind::kAcquire:
        return Acquire(out);
      case StepKind::kRelease:
        return Release(s.iteration, out);
      case StepKind::kBarrier:
        return out.push_back(MakeStmt(Barrier{team_}, stmt_->span));
      case StepKind::kUse:
        return Use(out);
      case StepKind::kNextFill:
        return Next(fill_, out);
      case StepKind::kNextUse:
        return Next(use_, out);
    }
  }

  void Use(Block& out) {
    // A constant of this iteration, whatever becomes of the counter.
    const ExprRef slot = by_mbarriers() ? slot_ : NewLet(out, "slot", Read(use_.slot));
    Block uses = SlotReader(m_, ring_.tiles, slot).MapBlock(rest_);
    if (last_ != kNoId) {
      // As it was when the iteration began, whatever becomes of the variable.
      const ExprRef last = NewLet(out, "last", Read(last_));
      uses = KeptReader(planned_.kept, last).MapBlock(uses);
      uses.push_back(MakeStmt(Assign{last_, slot}, stmt_->span));
    }
    out.insert(out.end(), uses.begin(), uses.end());
  }

  // Counting with a wrap: a remainder would be a division where the depth is no power of two.
  void Next(const Position& at, Block& out) const {
    const ExprRef next = Op(BinaryOp::kAdd, Read(at.slot), MakeInt(1));
    const ExprRef wraps = Op(BinaryOp::kEq, next, MakeInt(ring_.depth));
    if (at.parity != kNoId) {
      const ExprRef parity = Read(at.parity);
      const ExprRef other = Op(BinaryOp::kBitXor, parity, MakeInt(1));
      out.push_back(MakeStmt(Assign{at.parity, MakeSelect(wraps, other, parity)}, stmt_->span));
    }
    out.push_back(MakeStmt(Assign{at.slot, MakeSelect(wraps, MakeInt(0), next)}, stmt_->span));
  }

  Module& m_;
  const StmtRef& stmt_;
  const For& loop_;
  const PlannedLoop& planned_;
  const Ring& ring_;
  const Agent& agent_;
  const Agent* const producer_;  // null: the threads fill themselves
  const Team team_;
  const int warps_;
  Block out_, issue_, rest_, at_start_;
  BufferId filled_ = kNoId, free_ = kNoId;  // mbarriers of the slots, where boxes fill them
  std::vector<std::pair<BufferId, BufferId>> registers_;  // per tile of the ring
  ExprRef begin_, end_;
  Position fill_, use_;
  ExprRef slot_;        // that the iteration uses, where it has been waited for
  VarId last_ = kNoId;  // slot that the iteration before has used
};

class Applier : public StmtMapper {
 public:
  // `warps`: that work on a tile.
  Applier(Module& module, const Launch& launch, const LaunchFacts& facts,
          const PlannedLoops& planned, int warps)
      : m_(module), launch_(launch), facts_(facts), planned_(planned), warps_(warps) {}

  Block Run() {
    VisitStmts(launch_.body, [&](const StmtRef& s) {
      const auto it = As<For>(s) ? planned_.find(As<For>(s)->var) : planned_.end();
      if (it != planned_.end() && HasProducer(it->second)) {
        EnterAtStart(it->second.plan.rings[0].tiles);
      }
    });
    const Block mapped = MapBlock(launch_.body);
    Block out = std::move(at_start_);
    const bool producer = !producer_loops_.empty();
    const bool cluster = !launch_.cluster.empty();
    // Behind this everyone knows the mbarriers, copies too; of other blocks, that they are there.
    if (cluster) {
      out.push_back(MakeStmt(MbarrierFence{}));
      out.push_back(MakeStmt(Barrier{Team::kCluster}));
    } else if (!out.empty()) {
      out.push_back(MakeStmt(ProxyFence{}));
      out.push_back(MakeStmt(Barrier{producer ? Team::kEveryone : Team::kBlock}));
    }
    if (producer) {
      out.push_back(MakeStmt(OnProducer{Slice(launch_.body, producer_loops_)}));
    }
    absl::c_copy(mapped, std::back_inserter(out));
    // A block that has ended can be told nothing: until all have given back their slots.
    if (cluster) out.push_back(MakeStmt(Barrier{Team::kCluster}));
    return out;
  }

  Block MapBlock(const Block& b) override {
    Block out, rest = b;
    for (size_t i = 0; i < rest.size(); ++i) {
      const Alloc* alloc = As<Alloc>(rest[i]);
      if (alloc && entered_.contains(alloc->buffer)) continue;
      const StmtRef inner = MapStmt(rest[i]);
      const For* loop = As<For>(inner);
      const auto it = loop ? planned_.find(loop->var) : planned_.end();
      if (it == planned_.end()) {
        out.push_back(inner);
        continue;
      }
      LoopRewriter rewriter(m_, inner, *loop, it->second, team_, warps_);
      Block rewritten = rewriter.Run();
      out.insert(out.end(), rewritten.begin(), rewritten.end());
      const auto behind = rest.begin() + static_cast<ptrdiff_t>(i) + 1;
      const Block changed = rewriter.Behind(Block(behind, rest.end()));
      rest.erase(behind, rest.end());
      absl::c_copy(changed, std::back_inserter(rest));
      absl::c_copy(rewriter.at_start(), std::back_inserter(at_start_));
      if (!HasProducer(it->second)) continue;
      producer_loops_[loop->var] = rewriter.ProducerLoop();
      if (launch_.owns != kNoId) counting_loops_[loop->var] = rewriter.CountingLoop();
    }
    return out;
  }

  StmtRef MapStmt(const StmtRef& s) override {
    if (IsPipelined(s)) {
      For serial = *As<For>(s);
      serial.kind = LoopKind::kSerial;
      serial.body = MapBlock(serial.body);
      return MakeStmt(std::move(serial), s->span, s->id);
    }
    const If* branch = As<If>(s);
    if (branch && IsOfOwner(launch_, *branch)) return MapOwner(s, *branch);
    if (const OnGroup* on = As<OnGroup>(s)) return MapGroup(s, *on);
    return StmtMapper::MapStmt(s);
  }

 private:
  StmtRef MapGroup(const StmtRef& s, OnGroup on) {
    const Team outer = std::exchange(team_, Team::kGroup);
    group_ = MakeVar(on.var, ScalarType::kInt);
    on.body = MapBlock(on.body);
    if (turns_) on.body.insert(on.body.begin(), turns_->First(group_));
    team_ = outer;
    return MakeStmt(std::move(on), s->span, s->id);
  }

  // Slots that a producer fills are used in the order of tiles, by whoever owns them.
  StmtRef MapOwner(const StmtRef& s, const If& branch) {
    If out{branch.cond, MapBlock(branch.then_body), {}};
    if (!counting_loops_.empty()) {
      turns_.emplace(m_, launch_, warps_);
      at_start_.push_back(turns_->Allocate());
      out.then_body = turns_->Take(out.then_body, group_);
      out.else_body = Slice(branch.then_body, counting_loops_);
    }
    return MakeStmt(std::move(out), s->span, s->id);
  }

  // What plans have made sure of needs no reason.
  Block Slice(const Block& body, const ProducerLoops& loops) const {
    std::string reason;
    return SliceForProducer(m_, launch_, body, facts_, loops, reason);
  }

  static bool HasProducer(const PlannedLoop& loop) { return loop.plan.agents.size() > 1; }
  // A producer fills them from then on, whatever the others are at.
  void EnterAtStart(const std::vector<BufferId>& tiles) {
    for (BufferId tile : tiles) {
      if (entered_.insert(tile).second) at_start_.push_back(MakeStmt(Alloc{tile}));
    }
  }

  Module& m_;
  const Launch& launch_;
  const LaunchFacts& facts_;
  const PlannedLoops& planned_;
  const int warps_;
  Team team_ = Team::kBlock;
  Block at_start_;
  absl::flat_hash_set<BufferId> entered_;
  ProducerLoops producer_loops_;
  // Of groups that own tiles.
  ProducerLoops counting_loops_;
  ExprRef group_;
  std::optional<OwnersTurns> turns_;
};

bool HasPipelined(const Launch& launch) {
  bool found = false;
  VisitStmts(launch.body, [&](const StmtRef& s) { found = found || IsPipelined(s); });
  return found;
}

}  // namespace

Status PlanPipelines(Module& module, const Target& target, int64_t shared_budget, int max_slots) {
  int64_t limit = target.max_shared_bytes;
  if (shared_budget > 0 && (limit == 0 || shared_budget < limit)) limit = shared_budget;
  for (Launch& launch : module.launches) {
    if (!HasPipelined(launch)) {
      if (!launch.cluster.empty()) DropCluster(module, launch, "no loop is pipelined");
      continue;
    }
    PlannedLoops planned;
    // Elsewhere copies are stores of single elements, which gain nothing by coming early.
    if (UsesRegisters(target, launch)) {
      launch.body = Unroller(module).MapBlock(launch.body);
      TL_ASSIGN_OR_RETURN(planned, PlanLoops(module, target, limit, max_slots, launch));
    }
    const LaunchFacts facts(module, launch);
    const int warps = WarpsOf(launch, target) / (launch.owns == kNoId ? 1 : launch.groups);
    launch.body = Applier(module, launch, facts, planned, warps).Run();
  }
  module.level = Level::kPlanned;
  return absl::OkStatus();
}

}  // namespace tl
