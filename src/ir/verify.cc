#include "ir/verify.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ir/visit.h"

namespace tl {
namespace {

std::string_view NameOf(const Stmt& s) {
  static constexpr std::string_view kNames[] = {"let",
                                                "assign",
                                                "alloc",
                                                "store",
                                                "atomic element",
                                                "for",
                                                "if",
                                                "turn",
                                                "copy",
                                                "fill",
                                                "gemm",
                                                "reduce",
                                                "argmax",
                                                "cumsum",
                                                "finish",
                                                "atomic",
                                                "parallel",
                                                "on",
                                                "lag",
                                                "in_turn",
                                                "send",
                                                "recv",
                                                "thread for",
                                                "barrier",
                                                "on first thread",
                                                "acquire",
                                                "release",
                                                "slot for",
                                                "vector move",
                                                "async move",
                                                "async commit",
                                                "async wait",
                                                "load matrix",
                                                "mma",
                                                "wgmma",
                                                "wgmma sync",
                                                "proxy fence",
                                                "lane exchange",
                                                "mbarrier",
                                                "bulk load",
                                                "on producer",
                                                "mbarrier fence",
                                                "store matrix",
                                                "bulk store",
                                                "bulk sync"};
  static_assert(std::size(kNames) == std::variant_size_v<Stmt::Node>);
  return kNames[s.node.index()];
}

bool IsTileOnly(const Stmt& s) {
  const size_t i = s.node.index();
  return i >= Stmt::Node(Copy{}).index() && i < Stmt::Node(ThreadFor{}).index();
}
bool IsThreadOnly(const Stmt& s) { return s.node.index() >= Stmt::Node(ThreadFor{}).index(); }
// What a plan puts among tile operations.
bool IsPlan(const Stmt& s) {
  return std::holds_alternative<Barrier>(s.node) || std::holds_alternative<AsyncCommit>(s.node) ||
         std::holds_alternative<AsyncWait>(s.node) || std::holds_alternative<WgmmaSync>(s.node) ||
         std::holds_alternative<Mbarrier>(s.node) || std::holds_alternative<ProxyFence>(s.node) ||
         std::holds_alternative<OnProducer>(s.node) ||
         std::holds_alternative<MbarrierFence>(s.node);
}

bool IsBoolOp(BinaryOp op) { return op == BinaryOp::kAnd || op == BinaryOp::kOr; }
bool IsIntOp(BinaryOp op) {
  return op == BinaryOp::kMod || op == BinaryOp::kCeilDiv ||
         (op >= BinaryOp::kBitAnd && op <= BinaryOp::kShr);
}

class Verifier {
 public:
  Verifier(const Module& module, Level level, bool finished)
      : m_(module),
        level_(level),
        finished_(finished),
        var_defined_(module.vars.size()),
        tile_entered_(module.buffers.size()) {}

  Status Run() {
    for (const std::vector<VarId>* list : {&m_.dims, &m_.strides, &m_.scalars}) {
      for (VarId v : *list) Define(v);
    }
    for (size_t i = 0; i < m_.launches.size() && status_.ok(); ++i) {
      where_ = absl::StrCat("launch ", i);
      CheckLaunch(m_.launches[i]);
    }
    return status_;
  }

 private:
  void Fail(std::string_view what) {
    if (status_.ok()) status_ = absl::InternalError(absl::StrCat(where_, ": ", what));
  }
  void Require(bool ok, std::string_view what) {
    if (!ok) Fail(what);
  }

  // ---- Scopes

  bool IsVar(VarId v) const { return v >= 0 && static_cast<size_t>(v) < m_.vars.size(); }
  bool IsBuffer(BufferId b) const { return b >= 0 && static_cast<size_t>(b) < m_.buffers.size(); }

  void Define(VarId v) {
    if (!IsVar(v)) return Fail("variable id out of range");
    if (var_defined_[v]) return Fail(absl::StrCat("'", m_.var(v).name, "' is defined twice"));
    var_defined_[v] = true;
    scope_vars_.push_back(v);
  }

  // What the block defines ends with it.
  void CheckBlock(const Block& block) {
    const size_t vars = scope_vars_.size(), tiles = scope_tiles_.size();
    for (const StmtRef& s : block) {
      if (!status_.ok()) return;
      const std::string outer = where_;
      where_ =
          absl::StrCat(outer.substr(0, outer.find(',')), ", statement ", s->id, " (", NameOf(*s),
                       FormatSpan(s->span).empty() ? "" : " at ", FormatSpan(s->span), ")");
      CheckStmt(*s);
      where_ = outer;
    }
    for (; scope_vars_.size() > vars; scope_vars_.pop_back()) {
      var_defined_[scope_vars_.back()] = false;
    }
    for (; scope_tiles_.size() > tiles; scope_tiles_.pop_back()) {
      tile_entered_[scope_tiles_.back()] = false;
    }
  }

  void CheckBlockWith(std::initializer_list<VarId> vars, const Block& block) {
    const size_t before = scope_vars_.size();
    for (VarId v : vars) Define(v);
    CheckBlock(block);
    for (; scope_vars_.size() > before; scope_vars_.pop_back()) {
      var_defined_[scope_vars_.back()] = false;
    }
  }

  // ---- Launches

  void CheckLaunch(const Launch& launch) {
    launch_ = &launch;
    Block none;
    const size_t before = scope_vars_.size();
    for (const GridAxis& axis : launch.axes) {
      CheckInt(axis.extent, "extent of an axis");
      if (level_ != Level::kThread) Define(axis.var);
    }
    if (launch.split) {
      Require(level_ != Level::kThread, "a split axis is left");
      CheckSplit(*launch.split);
    }
    if (launch.resident != kNoId) {
      for (VarId v : {launch.resident, launch.grid}) Define(v);
    }
    if (level_ == Level::kThread) {
      if (launch.resident == kNoId) Define(launch.block);
      if (launch.rank != kNoId) Define(launch.rank);
      for (VarId v : {launch.thread, launch.group, launch.group_thread}) Define(v);
      for (const TensorBox& box : launch.boxes) Define(box.usable);
    }
    CheckBlock(launch.body);
    for (; scope_vars_.size() > before; scope_vars_.pop_back()) {
      var_defined_[scope_vars_.back()] = false;
    }
  }

  void CheckSplit(const SplitAxis& split) {
    CheckInt(split.items, "number of items");
    CheckInt(split.parts, "number of runs");
    Define(split.item);
    CheckInt(split.count, "count of a split axis");
    for (VarId v : {split.begin, split.end, split.part, split.whole}) Define(v);
  }

  // ---- Expressions

  void CheckInt(const ExprRef& e, std::string_view what) { CheckTyped(e, ScalarType::kInt, what); }

  void CheckTyped(const ExprRef& e, ScalarType type, std::string_view what) {
    CheckExpr(e);
    if (e && e->type != type) {
      Fail(absl::StrCat(what, " is ", Name(e->type), ", not ", Name(type)));
    }
  }

  void CheckExpr(const ExprRef& e) {
    if (!e) return Fail("an expression is missing");
    VisitExpr(e, [&](const ExprRef& node) { CheckNode(node); });
  }

  void CheckNode(const ExprRef& e) {
    if (!status_.ok()) return;
    if (const VarRef* x = As<VarRef>(e)) return CheckVarRef(*x, e->type);
    if (const Unary* x = As<Unary>(e)) {
      const bool is_not = x->op == UnaryOp::kNot;
      Require((x->arg->type == ScalarType::kBool) == is_not, "operand of a unary operator");
      return Require(e->type == x->arg->type, "type of a unary operator");
    }
    if (const Binary* x = As<Binary>(e)) return CheckBinary(*x, e->type);
    if (const Select* x = As<Select>(e)) {
      Require(x->cond->type == ScalarType::kBool, "condition of if-then-else is no bool");
      return Require(x->yes->type == x->no->type && e->type == x->yes->type,
                     "sides of if-then-else differ in type");
    }
    if (const Call* x = As<Call>(e)) return CheckCall(*x, e->type);
    if (const Cast* x = As<Cast>(e)) {
      return Require(e->type == ComputeType(x->to), "type of a cast");
    }
    if (const Load* x = As<Load>(e)) {
      CheckElement(x->buffer, x->index);
      if (status_.ok()) {
        Require(e->type == ComputeType(m_.buffer(x->buffer).dtype), "type of a load");
      }
    }
    if (const PartsBound* x = As<PartsBound>(e)) {
      Require(level_ != Level::kThread, "parts() is left");
      Require(x->launch >= 0 && static_cast<size_t>(x->launch) < m_.launches.size(),
              "launch of parts()");
    }
  }

  void CheckVarRef(const VarRef& x, ScalarType type) {
    if (!IsVar(x.var)) return Fail("variable id out of range");
    const Var& v = m_.var(x.var);
    Require(v.type == type, absl::StrCat("'", v.name, "' is read as ", Name(type)));
    Require(var_defined_[x.var], absl::StrCat("'", v.name, "' is not defined here"));
  }

  void CheckBinary(const Binary& x, ScalarType type) {
    const ScalarType side = x.lhs->type;
    const std::string op(Symbol(x.op));
    Require(side == x.rhs->type, absl::StrCat("sides of '", op, "' differ in type"));
    if (IsBoolOp(x.op)) Require(side == ScalarType::kBool, absl::StrCat("'", op, "' of no bool"));
    if (IsIntOp(x.op)) Require(side == ScalarType::kInt, absl::StrCat("'", op, "' of no int"));
    const bool equality = x.op == BinaryOp::kEq || x.op == BinaryOp::kNe;
    Require(side != ScalarType::kBool || IsBoolOp(x.op) || equality,
            absl::StrCat("'", op, "' of bools"));
    Require(type == (IsComparison(x.op) ? ScalarType::kBool : side),
            absl::StrCat("type of '", op, "'"));
  }

  void CheckCall(const Call& x, ScalarType type) {
    Require(x.args.size() == (x.fn == MathFn::kPow ? 2u : 1u),
            absl::StrCat("number of arguments of ", Name(x.fn)));
    for (const ExprRef& arg : x.args) {
      Require(arg->type == type, absl::StrCat("argument of ", Name(x.fn)));
    }
    Require(IsFloat(type) || (x.fn == MathFn::kAbs && type == ScalarType::kInt),
            absl::StrCat("type of ", Name(x.fn)));
  }

  // ---- Buffers

  void CheckElement(BufferId buffer, const std::vector<ExprRef>& index) {
    CheckReachable(buffer);
    if (!status_.ok()) return;
    const size_t want = level_ != Level::kThread ? m_.buffer(buffer).rank() : 1;
    Require(index.size() == want,
            absl::StrCat("'", m_.buffer(buffer).name, "' takes ", want, " indices"));
    for (const ExprRef& e : index) Require(e && e->type == ScalarType::kInt, "an index is no int");
  }

  void CheckReachable(BufferId id) {
    if (!IsBuffer(id)) return Fail("buffer id out of range");
    const Buffer& b = m_.buffer(id);
    if (b.scope == Scope::kGlobal) return;
    const bool placed =
        level_ == Level::kThread && b.scope == Scope::kShared && b.arena_offset >= 0;
    if (placed) {
      const int64_t bytes = b.num_elements() * static_cast<int64_t>(SizeOf(b.dtype));
      return Require(b.arena_offset + bytes <= launch_->arena_bytes,
                     absl::StrCat("'", b.name, "' reaches beyond the arena"));
    }
    Require(tile_entered_[id], absl::StrCat("'", b.name, "' is not allocated here"));
    if (level_ == Level::kThread && finished_) {
      Require(b.scope == Scope::kLocal || b.scope == Scope::kChannel,
              absl::StrCat("'", b.name, "' has no place in the arena"));
    }
  }

  void CheckAlloc(BufferId id) {
    if (!IsBuffer(id)) return Fail("buffer id out of range");
    const Buffer& b = m_.buffer(id);
    Require(b.scope != Scope::kGlobal, absl::StrCat("tensor '", b.name, "' is allocated"));
    if (level_ == Level::kThread && finished_) {
      Require(b.scope == Scope::kLocal || b.scope == Scope::kChannel,
              absl::StrCat("tile '", b.name, "' is still allocated by a statement"));
    }
    if (tile_entered_[id]) return Fail(absl::StrCat("'", b.name, "' is allocated twice"));
    tile_entered_[id] = true;
    scope_tiles_.push_back(id);
  }

  void CheckRegion(const Region& r) {
    CheckReachable(r.buffer);
    if (!status_.ok()) return;
    const Buffer& b = m_.buffer(r.buffer);
    const std::string name = absl::StrCat("window of '", b.name, "'");
    Require(r.offset.size() == static_cast<size_t>(b.rank()), absl::StrCat(name, ": offsets"));
    Require(r.dims.size() == r.extents.size(), absl::StrCat(name, ": dims"));
    for (size_t i = 0; i < r.dims.size(); ++i) {
      const int above = i == 0 ? -1 : r.dims[i - 1];
      Require(r.dims[i] > above && r.dims[i] < b.rank(), absl::StrCat(name, ": order of dims"));
      Require(r.extents[i] >= 0, absl::StrCat(name, ": extents"));
    }
    for (const ExprRef& e : r.offset) CheckInt(e, name);
  }

  // ---- Statements

  void CheckStmt(const Stmt& s) {
    if (level_ != Level::kThread) {
      const bool planned = level_ >= Level::kPlanned && IsPlan(s);
      Require(!IsThreadOnly(s) || planned, "belongs to level Thread");
    }
    if (level_ == Level::kThread) {
      const bool between = !finished_ && std::holds_alternative<OnGroup>(s.node);
      Require(!IsTileOnly(s) || between, "belongs to level Tile");
    }
    if (!status_.ok()) return;
    VisitRegions(s, [&](const Region& r, bool) { CheckRegion(r); });
    if (!status_.ok()) return;
    std::visit([&](const auto& x) { Check(x); }, s.node);
  }

  void Check(const Let& x) {
    if (!IsVar(x.var)) return Fail("variable id out of range");
    CheckTyped(x.value, m_.var(x.var).type, "value of a let");
    Require(m_.var(x.var).role != VarRole::kMutable, "a mutable variable is let");
    Define(x.var);
  }
  void Check(const Assign& x) {
    if (!IsVar(x.var)) return Fail("variable id out of range");
    CheckTyped(x.value, m_.var(x.var).type, "value assigned");
    Require(m_.var(x.var).role == VarRole::kMutable, "only mutable variables are assigned");
    if (!var_defined_[x.var]) Define(x.var);
  }
  void Check(const Alloc& x) { CheckAlloc(x.buffer); }
  void Check(const Store& x) {
    CheckElement(x.buffer, x.index);
    for (const ExprRef& e : x.index) CheckExpr(e);
    if (!status_.ok()) return;
    CheckTyped(x.value, ComputeType(m_.buffer(x.buffer).dtype), "value stored");
    Require(level_ != Level::kThread || x.op == StoreOp::kSet, "only plain stores");
  }
  void Check(const AtomicElement& x) {
    CheckElement(x.buffer, x.index);
    for (const ExprRef& e : x.index) CheckExpr(e);
    if (status_.ok()) {
      CheckTyped(x.value, ComputeType(m_.buffer(x.buffer).dtype), "value of an atomic");
    }
  }
  void Check(const For& x) {
    CheckInt(x.begin, "begin of a loop");
    CheckInt(x.end, "end of a loop");
    Require(level_ < Level::kPlanned || x.kind != LoopKind::kPipelined, "a pipelined loop is left");
    CheckBlockWith({x.var}, x.body);
  }
  void Check(const If& x) {
    CheckTyped(x.cond, ScalarType::kBool, "condition");
    CheckBlock(x.then_body);
    CheckBlock(x.else_body);
  }
  void Check(const Copy& x) {
    std::vector<int64_t> src = x.src.extents;
    if (x.transpose) {
      Require(src.size() == 2, "transpose of a window that is no matrix");
      std::reverse(src.begin(), src.end());
    }
    Require(src == x.dst.extents, "extents of source and destination differ");
    if (x.rows) CheckInt(x.rows, "rows");
    CheckEviction(x.evict, x.src.buffer, x.dst.buffer);
  }
  void CheckEviction(Eviction evict, BufferId a, BufferId b) {
    if (!status_.ok() || evict == Eviction::kNormal) return;
    Require((m_.buffer(a).scope == Scope::kGlobal) != (m_.buffer(b).scope == Scope::kGlobal),
            "a hint for the L2 cache of what does not move between a tensor and a tile");
  }
  void Check(const Fill& x) {
    CheckTyped(x.value, ComputeType(m_.buffer(x.dst.buffer).dtype), "value of a fill");
  }
  void Check(const Gemm& x) {
    if (x.a.rank() != 2 || x.b.rank() != 2 || x.c.rank() != 2) return Fail("gemm of no matrices");
    const int ta = x.transpose_a, tb = x.transpose_b;
    Require(x.a.extents[ta] == x.c.extents[0] && x.b.extents[1 - tb] == x.c.extents[1] &&
                x.a.extents[1 - ta] == x.b.extents[tb],
            "extents of a gemm do not agree");
    Require(x.a.buffer != x.c.buffer && x.b.buffer != x.c.buffer,
            "the result of a gemm is one of its operands");
  }
  // The extents of `src` without `dim`; a rank-1 source leaves [1].
  void CheckReduced(const Region& src, const Region& dst, int dim) {
    if (dim < 0 || dim >= src.rank()) return Fail("dim out of range");
    std::vector<int64_t> want = src.extents;
    want.erase(want.begin() + dim);
    const bool single = want.empty() && dst.num_elements() == 1;
    Require(single || want == dst.extents, "extents of the result are not those of the other dims");
  }
  void Check(const Reduce& x) { CheckReduced(x.src, x.dst, x.dim); }
  void Check(const ArgMax& x) { CheckReduced(x.src, x.dst, x.dim); }
  void Check(const CumSum& x) {
    Require(x.dim >= 0 && x.dim < x.src.rank(), "dim out of range");
    Require(x.src.extents == x.dst.extents, "extents of source and destination differ");
  }
  void Check(const Finish& x) {
    CheckReachable(x.reducer);
    if (status_.ok()) Require(m_.buffer(x.reducer).role == BufferRole::kReducer, "is no reducer");
  }
  void Check(const Atomic& x) {
    Require(x.src.extents == x.dst.extents, "extents of source and destination differ");
  }
  void Check(const Parallel& x) {
    if (x.vars.size() != x.extents.size() || x.vars.empty()) return Fail("indices and extents");
    const size_t before = scope_vars_.size();
    for (VarId v : x.vars) Define(v);
    CheckBlock(x.body);
    for (; scope_vars_.size() > before; scope_vars_.pop_back()) {
      var_defined_[scope_vars_.back()] = false;
    }
  }
  void Check(const OnGroup& x) {
    Require(x.count == launch_->groups, "count of `on` is not the launch's groups");
    CheckBlockWith({x.var}, x.body);
  }
  void Check(const Lag& x) {
    Require(level_ < Level::kSelected, "a lag is left");
    Require(x.distance >= 1, "distance of a lag");
    CheckBlock(x.body);
  }
  void Check(const InTurn& x) { CheckBlock(x.body); }
  void Check(const Turn& x) {
    Require(!finished_, "a turn that no pass has ended");
    if (level_ >= Level::kMapped) Require(IsBuffer(x.barriers), "a turn without mbarriers");
  }
  void Check(const Send& x) { CheckMessage(x.src, x.channel); }
  void Check(const Recv& x) { CheckMessage(x.dst, x.channel); }
  void CheckMessage(const Region& tile, BufferId channel) {
    CheckReachable(channel);
    if (!status_.ok()) return;
    const Buffer& b = m_.buffer(channel);
    Require(b.scope == Scope::kChannel && b.extents == tile.extents, "message and channel differ");
  }
  void Check(const ThreadFor& x) {
    CheckInt(x.extent, "extent of a loop");
    CheckBlockWith({x.var}, x.body);
  }
  void Check(const Barrier&) {}
  void Check(const OnFirstThread& x) { CheckBlock(x.body); }
  void Check(const ChannelAcquire& x) {
    CheckReachable(x.channel);
    Define(x.slot);
  }
  void Check(const ChannelRelease& x) { CheckReachable(x.channel); }
  void Check(const SlotFor& x) {
    Require(x.count >= 0, "count of a loop over slots");
    CheckBlockWith({x.var}, x.body);
  }
  void CheckVector(BufferId dst, const ExprRef& dst_offset, BufferId src, const ExprRef& src_offset,
                   int64_t bytes) {
    CheckElement(dst, {dst_offset});
    CheckElement(src, {src_offset});
    Require(bytes >= 1 && bytes <= 16 && (bytes & (bytes - 1)) == 0, "width of a vector");
  }
  int64_t BytesOf(BufferId id) const {
    return IsBuffer(id) ? static_cast<int64_t>(SizeOf(m_.buffer(id).dtype)) : 0;
  }
  void Check(const VectorMove& x) {
    CheckVector(x.dst, x.dst_offset, x.src, x.src_offset, x.count * BytesOf(x.src));
    Require(BytesOf(x.dst) == BytesOf(x.src), "element sizes of a vector move differ");
    CheckEviction(x.evict, x.src, x.dst);
  }
  void Check(const AsyncMove& x) {
    const int64_t bytes = x.count * BytesOf(x.src);
    CheckVector(x.dst, x.dst_offset, x.src, x.src_offset, bytes);
    if (!status_.ok()) return;
    Require(bytes >= 4, "width of an asynchronous move");
    CheckTyped(x.inside, ScalarType::kBool, "condition of an asynchronous move");
    Require(m_.buffer(x.src).scope == Scope::kGlobal && m_.buffer(x.dst).scope != Scope::kLocal &&
                m_.buffer(x.dst).scope != Scope::kGlobal,
            "an asynchronous move goes from global to shared memory");
  }
  void Check(const AsyncCommit&) {}
  void Check(const AsyncWait& x) { Require(x.pending >= 0, "groups of an asynchronous wait"); }
  void Check(const LoadMatrix& x) {
    CheckElement(x.dst, {x.dst_offset});
    CheckElement(x.src, {x.src_offset});
    Require(x.matrices == 1 || x.matrices == 2 || x.matrices == 4, "matrices of a matrix load");
    Require(!x.transpose || BytesOf(x.src) == 2, "a transposing matrix load takes 16-bit elements");
  }
  void Check(const StoreMatrix& x) {
    CheckElement(x.dst, {x.dst_offset});
    CheckElement(x.src, {x.src_offset});
    Require(x.matrices == 1 || x.matrices == 2 || x.matrices == 4, "matrices of a matrix store");
    Require(BytesOf(x.src) == 2 && BytesOf(x.dst) == 2, "a matrix store takes 16-bit elements");
  }
  void Check(const Mma& x) {
    CheckElement(x.a, {x.a_offset});
    CheckElement(x.b, {x.b_offset});
    CheckElement(x.c, {x.c_offset});
    Require(x.atom >= 0, "matrix instruction");
  }
  void Check(const Wgmma& x) {
    CheckElement(x.a.buffer, {x.a.offset});
    CheckElement(x.b.buffer, {x.b.offset});
    CheckElement(x.c, {x.c_offset});
    if (!status_.ok()) return;
    Require(x.atom >= 0 && x.n % 8 == 0 && x.n >= 8 && x.n <= 256 && x.steps >= 1,
            "shape of an instruction of four warps");
    Require(m_.buffer(x.c).scope == Scope::kLocal, "its result is no array of the thread");
    for (const MatrixInPlace* m : {&x.a, &x.b}) {
      Require(m_.buffer(m->buffer).in_place || (m == &x.a && m->row_bytes == 0),
              "a matrix that is read in place does not lie so");
    }
  }
  void Check(const WgmmaSync& x) {
    Require(x.pending >= 0, "groups of a wait for matrix instructions");
    Require(x.c == kNoId || IsBuffer(x.c), "registers of a fence or a wait");
  }
  void Check(const ProxyFence&) {}
  void Check(const MbarrierFence&) {}
  void Check(const LaneExchange& x) {
    CheckExpr(x.value);
    Define(x.var);
    Require(x.mask > 0, "mask of a lane exchange");
  }
  void Check(const Mbarrier& x) {
    CheckElement(x.barriers, {x.index});
    if (!status_.ok()) return;
    Require(m_.buffer(x.barriers).role == BufferRole::kMbarriers, "holds no mbarriers");
    Require(!x.block || x.op == Mbarrier::Op::kArrive, "only arrivals are at other blocks");
    if (x.block) CheckInt(x.block, "block of an arrival");
    if (x.op == Mbarrier::Op::kArrive) return Require(!x.value, "an arrival has no value");
    CheckInt(x.value, "arrivals, bytes or parity of an mbarrier");
  }
  void Check(const OnProducer& x) {
    Require(launch_->producers > 0, "there are no producers");
    CheckBlock(x.body);
  }
  void Check(const BulkLoad& x) {
    for (const ExprRef& e : x.at) CheckInt(e, "place of a box");
    CheckElement(x.dst, {x.dst_offset});
    CheckElement(x.barriers, {x.barrier});
    if (x.blocks) CheckInt(x.blocks, "blocks of a box");
    if (!status_.ok()) return;
    CheckBox(x.box, x.at.size());
    Require(m_.buffer(x.dst).in_place, "a box lands in a tile whose rows lie otherwise");
  }
  void Check(const BulkStore& x) {
    for (const ExprRef& e : x.at) CheckInt(e, "place of a box");
    CheckElement(x.src, {x.src_offset});
    if (!status_.ok()) return;
    CheckBox(x.box, x.at.size());
    Require(m_.buffer(x.src).in_place, "a box leaves from a tile whose rows lie otherwise");
  }
  void Check(const BulkSync& x) { Require(x.pending >= 0, "groups of a wait for bulk stores"); }
  void CheckBox(int box, size_t rank) {
    const bool known = box >= 0 && box < static_cast<int>(launch_->boxes.size());
    Require(known && rank == launch_->boxes[box].extents.size(), "box of a bulk copy");
  }

  const Module& m_;
  const Level level_;
  const bool finished_;
  const Launch* launch_ = nullptr;
  Status status_;
  std::string where_;
  std::vector<bool> var_defined_, tile_entered_;  // in scope
  std::vector<VarId> scope_vars_;
  std::vector<BufferId> scope_tiles_;
};

}  // namespace

Status Verify(const Module& module, Level level, bool finished) {
  if (module.level != level) return absl::InternalError("the module is of another level");
  return Verifier(module, level, finished).Run();
}

}  // namespace tl
