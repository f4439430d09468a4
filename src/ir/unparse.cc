#include "ir/unparse.h"

#include <memory>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"

namespace tl {
namespace {

using syntax::ExprKind;
using SExpr = syntax::ExprRef;

SExpr New(syntax::Expr e) { return std::make_shared<const syntax::Expr>(std::move(e)); }

SExpr IntText(int64_t v) {
  // The smallest int has no literal of its own.
  if (v == INT64_MIN) {
    return New({.kind = ExprKind::kBinary, .text = "-", .args = {IntText(v + 1), IntText(1)}});
  }
  if (v < 0) return New({.kind = ExprKind::kUnary, .text = "-", .args = {IntText(-v)}});
  return New({.kind = ExprKind::kInt, .int_value = v});
}

SExpr NameText(std::string name) { return New({.kind = ExprKind::kName, .text = std::move(name)}); }
SExpr BoolText(bool v) { return New({.kind = ExprKind::kBool, .int_value = v}); }

SExpr CallText(std::string_view fn, std::vector<SExpr> args) {
  return New({.kind = ExprKind::kCall, .text = std::string(fn), .args = std::move(args)});
}

SExpr BinaryText(std::string_view op, SExpr a, SExpr b) {
  return New(
      {.kind = ExprKind::kBinary, .text = std::string(op), .args = {std::move(a), std::move(b)}});
}

// Walks a Module and writes the syntax tree. Names come from `VarName` and `BufferName`.
class Unparser {
 public:
  Unparser(const Module& module, bool canonical)
      : m_(module),
        canonical_(canonical),
        vars_(module.vars.size()),
        buffers_(module.buffers.size()) {
    for (VarId v : m_.dims) taken_.insert(m_.var(v).name);
    for (VarId v : m_.scalars) taken_.insert(m_.var(v).name);
    for (BufferId b : m_.operands) taken_.insert(m_.buffer(b).name);
    for (BufferId b : m_.workspaces) taken_.insert(m_.buffer(b).name);
  }

  syntax::Program Run() {
    syntax::Program p;
    p.name = {canonical_ ? "k" : m_.name, {}};
    for (VarId dim : m_.dims) p.dims.push_back({VarName(dim), {}});
    for (VarId scalar : m_.scalars) p.decls.push_back(ScalarDecl(scalar));
    for (BufferId id : m_.operands) p.decls.push_back(TensorDecl(id));
    for (BufferId id : m_.workspaces) p.decls.push_back(TensorDecl(id));
    for (const InitClause& init : m_.inits) {
      if (!canonical_) p.decls.push_back(InitDecl(init));
    }
    for (const Launch& launch : m_.launches) p.launches.push_back(LaunchText(launch));
    return p;
  }

  SExpr Expression(const ExprRef& e) const { return Text(e); }

 private:
  // Canonical numbers count the names in the order in which they are written, which is that of
  // their definitions.
  const std::string& VarName(VarId id) const {
    const Var& v = m_.var(id);
    const bool signature = v.role == VarRole::kDim || v.role == VarRole::kScalar;
    return NameOf(vars_[id], 'v', v.name, signature, id);
  }
  const std::string& BufferName(BufferId id) const {
    const Buffer& b = m_.buffer(id);
    return NameOf(buffers_[id], 'b', b.name, b.scope == Scope::kGlobal, id);
  }
  // Names that two siblings share in the source may meet in one scope once a compile-time branch is
  // inlined, so every name but the signature's gets its number.
  const std::string& NameOf(std::string& slot, char kind, const std::string& name, bool signature,
                            int id) const {
    if (!slot.empty()) return slot;
    if (canonical_) return slot = absl::StrCat(std::string(1, kind), num_names_++);
    return slot = signature ? name : Fresh(absl::StrCat(name, "_", id));
  }
  std::string Fresh(std::string name) const {
    while (!taken_.insert(name).second) name += "_";
    return name;
  }
  syntax::Name Binder(VarId id) const { return {VarName(id), {}}; }

  // ---- expressions
  SExpr Text(const ExprRef& e) const {
    struct Visitor {
      const Unparser& u;
      const Expr& e;
      SExpr operator()(const IntLit& x) const { return IntText(x.value); }
      // A bare literal is f32 where nothing else says so; the cast pins f64.
      SExpr operator()(const FloatLit& x) const {
        SExpr lit = New({.kind = ExprKind::kFloat, .float_value = x.value});
        return e.type == ScalarType::kF64 ? CallText("f64", {lit}) : CallText("f32", {lit});
      }
      SExpr operator()(const BoolLit& x) const { return BoolText(x.value); }
      SExpr operator()(const VarRef& x) const { return NameText(u.VarName(x.var)); }
      SExpr operator()(const Unary& x) const {
        return New(
            {.kind = ExprKind::kUnary, .text = std::string(Symbol(x.op)), .args = {u.Text(x.arg)}});
      }
      SExpr operator()(const Binary& x) const {
        if (IsCallLike(x.op)) return CallText(Symbol(x.op), {u.Text(x.lhs), u.Text(x.rhs)});
        return BinaryText(Symbol(x.op), u.Text(x.lhs), u.Text(x.rhs));
      }
      SExpr operator()(const Select& x) const {
        return New({.kind = ExprKind::kIf, .args = {u.Text(x.cond), u.Text(x.yes), u.Text(x.no)}});
      }
      SExpr operator()(const Call& x) const { return CallText(Name(x.fn), u.Texts(x.args)); }
      SExpr operator()(const Cast& x) const { return CallText(Name(x.to), {u.Text(x.arg)}); }
      SExpr operator()(const Load& x) const {
        return New(
            {.kind = ExprKind::kIndex, .text = u.BufferName(x.buffer), .args = u.Texts(x.index)});
      }
      SExpr operator()(const PartsBound& x) const { return CallText("parts", {u.Text(x.item)}); }
      SExpr operator()(const IsAligned& x) const {
        return CallText("aligned", {NameText(u.BufferName(x.buffer)), u.Text(MakeInt(x.bytes))});
      }
    };
    return std::visit(Visitor{*this, *e}, e->node);
  }

  std::vector<SExpr> Texts(const std::vector<ExprRef>& list) const {
    std::vector<SExpr> out;
    for (const ExprRef& e : list) out.push_back(Text(e));
    return out;
  }

  // ---- declarations
  syntax::Decl ScalarDecl(VarId id) const {
    syntax::Operand operand{.kind = syntax::Operand::Kind::kIn, .name = Binder(id)};
    operand.dtype = Name(m_.var(id).dtype);
    syntax::Decl decl;
    decl.operands.push_back(std::move(operand));
    return decl;
  }

  syntax::Decl TensorDecl(BufferId id) const {
    const Buffer& b = m_.buffer(id);
    using Kind = syntax::Operand::Kind;
    syntax::Operand operand{.kind = b.role == BufferRole::kIn      ? Kind::kIn
                                    : b.role == BufferRole::kOut   ? Kind::kOut
                                    : b.role == BufferRole::kInOut ? Kind::kInOut
                                                                   : Kind::kWorkspace,
                            .name = {BufferName(id), {}}};
    operand.dtype = Name(b.dtype);
    operand.is_tensor = true;
    operand.shape = Texts(b.shape);
    operand.is_const = b.is_const;
    if (b.stands_for != kNoId) operand.stands_for = {BufferName(b.stands_for), {}};
    for (int64_t extent : b.packed) operand.packed.push_back(IntText(extent));
    if (!Contiguous(b)) {
      for (const ExprRef& stride : b.strides) {
        const VarRef* ref = As<VarRef>(stride);
        const bool dynamic = ref && m_.var(ref->var).role == VarRole::kStride;
        operand.strides.push_back(dynamic ? New({.kind = ExprKind::kAny}) : Text(stride));
      }
    }
    syntax::Decl decl;
    decl.operands.push_back(std::move(operand));
    return decl;
  }

  static bool Contiguous(const Buffer& b) {
    if (!b.packed.empty()) return true;
    ExprRef stride = MakeInt(1);
    for (size_t d = b.shape.size(); d-- > 0;) {
      if (!Equal(b.strides[d], stride)) return false;
      stride = MakeBinary(BinaryOp::kMul, stride, b.shape[d]);
    }
    return true;
  }

  syntax::Decl InitDecl(const InitClause& init) const {
    static constexpr std::string_view kNames[] = {"uniform", "normal",      "constant",
                                                  "offsets", "permutation", "pages"};
    syntax::Init out;
    out.operand = {init.buffer != kNoId ? BufferName(init.buffer) : VarName(init.scalar), {}};
    out.kind = {std::string(kNames[static_cast<int>(init.kind)]), {}};
    out.args = Texts(init.args);
    syntax::Decl decl;
    decl.init.push_back(std::move(out));
    return decl;
  }

  // ---- statements
  // A window of a tile that is not a side of copy needs a view before the statement.
  SExpr TileText(const Region& r, std::vector<syntax::Stmt>& before) {
    const Buffer& b = m_.buffer(r.buffer);
    if (IsWhole(b, r)) return NameText(BufferName(r.buffer));
    // Canonical names are all numbers of their own and cannot meet the signature's.
    const std::string number = absl::StrCat("w", ++num_views_);
    const std::string name = canonical_ ? number : Fresh(number);
    syntax::Stmt view{.op = "view"};
    view.names.push_back({name, {}});
    view.operands.push_back(WindowText(r));
    for (int64_t extent : r.extents) view.targets.push_back(IntText(extent));
    before.push_back(std::move(view));
    return NameText(name);
  }

  SExpr WindowText(const Region& r) const {
    syntax::Expr e{.kind = ExprKind::kIndex, .text = BufferName(r.buffer), .args = Texts(r.offset)};
    e.marks.assign(r.offset.size(), false);
    if (r.dims.size() < r.offset.size()) {
      for (int d : r.dims) e.marks[d] = true;
    }
    return New(std::move(e));
  }

  static syntax::Attr Flag(std::string name) { return {std::move(name), nullptr, {}}; }
  static syntax::Attr Attribute(std::string name, SExpr value) {
    return {std::move(name), std::move(value), {}};
  }

  std::vector<syntax::Stmt> BlockText(const Block& block) {
    std::vector<syntax::Stmt> out;
    for (const StmtRef& s : block) std::visit([&](const auto& node) { Write(node, out); }, s->node);
    return out;
  }

  using Out = std::vector<syntax::Stmt>;

  void Write(const Let& x, Out& out) {
    syntax::Stmt s{.op = "let"};
    s.names.push_back(Binder(x.var));
    s.operands.push_back(Text(x.value));
    out.push_back(std::move(s));
  }
  void Write(const Assign& x, Out& out) {
    const bool first = declared_.insert(x.var).second;
    syntax::Stmt s{.op = first ? "alloc_var" : "let"};
    s.names.push_back(Binder(x.var));
    if (first) s.type_args.push_back(std::string(Name(m_.var(x.var).dtype)));
    s.operands.push_back(Text(x.value));
    out.push_back(std::move(s));
  }
  void Write(const Alloc& x, Out& out) {
    const Buffer& b = m_.buffer(x.buffer);
    static constexpr std::string_view kNames[] = {"", "alloc_shared", "alloc_fragment",
                                                  "alloc_local", "alloc_chan"};
    syntax::Stmt s{.op = std::string(kNames[static_cast<int>(b.scope)])};
    if (b.accumulator) s.op = "alloc_acc";
    s.type_args.push_back(std::string(Name(b.dtype)));
    if (b.role == BufferRole::kReducer) {
      s.op = "alloc_reducer";
      s.type_args.push_back(b.reduce_op == ReduceOp::kSum   ? "sum"
                            : b.reduce_op == ReduceOp::kMax ? "max"
                                                            : "min");
    }
    s.names.push_back({BufferName(x.buffer), {}});
    for (int64_t extent : b.extents) s.targets.push_back(IntText(extent));
    if (b.boxes) s.attrs.push_back(Attribute("boxes", IntText(b.boxes)));
    if (b.scope == Scope::kChannel && b.depth != 1)
      s.attrs.push_back(Attribute("depth", IntText(b.depth)));
    out.push_back(std::move(s));
  }
  void Write(const Store& x, Out& out) {
    static constexpr std::string_view kOps[] = {"=", "+=", "-=", "*=", "/="};
    syntax::Stmt s{.op = "store"};
    s.assign = kOps[static_cast<int>(x.op)];
    s.targets.push_back(
        New({.kind = ExprKind::kIndex, .text = BufferName(x.buffer), .args = Texts(x.index)}));
    s.operands.push_back(Text(x.value));
    out.push_back(std::move(s));
  }
  static std::string AtomicName(AtomicOp op) {
    return op == AtomicOp::kAdd ? "atomic_add" : op == AtomicOp::kMax ? "atomic_max" : "atomic_min";
  }
  void Write(const AtomicElement& x, Out& out) {
    syntax::Stmt s{.op = AtomicName(x.op)};
    s.operands.push_back(Text(x.value));
    s.targets.push_back(
        New({.kind = ExprKind::kIndex, .text = BufferName(x.buffer), .args = Texts(x.index)}));
    out.push_back(std::move(s));
  }
  void Write(const For& x, Out& out) {
    static constexpr std::string_view kNames[] = {"serial", "unrolled", "vectorized", "pipelined"};
    syntax::Stmt s{.op = std::string(kNames[static_cast<int>(x.kind)])};
    s.names.push_back(Binder(x.var));
    if (!IsInt(x.begin, 0) && !As<PartsBound>(x.begin)) s.operands.push_back(Text(x.begin));
    s.operands.push_back(Text(x.end));
    if (x.down) s.attrs.push_back(Flag("down"));
    if (x.kind == LoopKind::kPipelined) s.attrs.push_back(Attribute("stages", IntText(x.stages)));
    if (x.partition) s.attrs.push_back(Flag("partition"));
    s.body = BlockText(x.body);
    out.push_back(std::move(s));
  }
  void Write(const If& x, Out& out) {
    syntax::Stmt s{.op = "if"};
    s.operands.push_back(Text(x.cond));
    s.body = BlockText(x.then_body);
    s.else_body = BlockText(x.else_body);
    s.has_else = !s.else_body.empty();
    out.push_back(std::move(s));
  }
  void Write(const Copy& x, Out& out) {
    if (x.async) return WriteAsync(x, out);
    syntax::Stmt s{.op = "copy"};
    // One side must be a whole tile or a view.
    const bool dst_is_tile = m_.buffer(x.dst.buffer).scope != Scope::kGlobal;
    s.operands.push_back(dst_is_tile ? SideText(x.src) : TileText(x.src, out));
    s.targets.push_back(dst_is_tile ? TileText(x.dst, out) : WindowText(x.dst));
    if (x.rows) s.attrs.push_back(Attribute("rows", Text(x.rows)));
    if (x.transpose) s.attrs.push_back(Flag("transpose"));
    if (x.evict != Eviction::kNormal) {
      s.attrs.push_back(Attribute("evict", NameText(std::string(Name(x.evict)))));
    }
    out.push_back(std::move(s));
  }
  // Of pseudo-operations, which have no attributes.
  void WriteEviction(Eviction evict, syntax::Stmt& s) const {
    if (evict == Eviction::kNormal) return;
    s.operands.push_back(NameText(absl::StrCat("evict_", Name(evict))));
  }
  // For reading, not for parsing.
  void WriteAsync(const Copy& x, Out& out) const {
    syntax::Stmt s{.op = "copy_async"};
    s.operands.push_back(WindowText(x.src));
    if (x.rows) s.operands.push_back(Text(x.rows));
    s.targets.push_back(WindowText(x.dst));
    WriteEviction(x.evict, s);
    out.push_back(std::move(s));
  }
  SExpr SideText(const Region& r) const {
    return IsWhole(m_.buffer(r.buffer), r) ? NameText(BufferName(r.buffer)) : WindowText(r);
  }
  void Write(const Fill& x, Out& out) {
    syntax::Stmt s{.op = "fill"};
    s.operands.push_back(TileText(x.dst, out));
    s.operands.push_back(Text(x.value));
    out.push_back(std::move(s));
  }
  void Write(const Gemm& x, Out& out) {
    syntax::Stmt s{.op = "gemm"};
    s.operands.push_back(TileText(x.a, out));
    s.operands.push_back(TileText(x.b, out));
    s.targets.push_back(TileText(x.c, out));
    if (x.transpose_a) s.attrs.push_back(Flag("transpose_a"));
    if (x.transpose_b) s.attrs.push_back(Flag("transpose_b"));
    if (x.clear) s.attrs.push_back(Flag("clear"));
    if (x.policy != GemmPolicy::kSquare) {
      s.attrs.push_back(Attribute(
          "policy", NameText(x.policy == GemmPolicy::kFullRow ? "full_row" : "full_col")));
    }
    if (x.precision != GemmPrecision::kExact)
      s.attrs.push_back(Attribute("precision", NameText(std::string(Name(x.precision)))));
    if (x.orientation != GemmOrientation::kAuto) {
      s.attrs.push_back(
          Attribute("orientation",
                    NameText(x.orientation == GemmOrientation::kSwapped ? "swapped" : "straight")));
    }
    out.push_back(std::move(s));
  }
  syntax::Stmt AlongDim(std::string op, const Region& src, const Region& dst, int dim, Out& out) {
    syntax::Stmt s{.op = std::move(op)};
    s.operands.push_back(TileText(src, out));
    s.targets.push_back(TileText(dst, out));
    s.attrs.push_back(Attribute("dim", IntText(dim)));
    return s;
  }
  void Write(const Reduce& x, Out& out) {
    static constexpr std::string_view kNames[] = {"sum",  "max", "min", "absmax",
                                                  "prod", "any", "all"};
    syntax::Stmt s =
        AlongDim(absl::StrCat("reduce_", kNames[static_cast<int>(x.op)]), x.src, x.dst, x.dim, out);
    if (x.clear) s.attrs.push_back(Flag("clear"));
    out.push_back(std::move(s));
  }
  void Write(const ArgMax& x, Out& out) {
    out.push_back(AlongDim("argmax", x.src, x.dst, x.dim, out));
  }
  void Write(const CumSum& x, Out& out) {
    syntax::Stmt s = AlongDim("cumsum", x.src, x.dst, x.dim, out);
    if (x.reverse) s.attrs.push_back(Flag("reverse"));
    out.push_back(std::move(s));
  }
  void Write(const Finish& x, Out& out) {
    syntax::Stmt s{.op = "finish"};
    s.operands.push_back(NameText(BufferName(x.reducer)));
    out.push_back(std::move(s));
  }
  void Write(const Atomic& x, Out& out) {
    syntax::Stmt s{.op = AtomicName(x.op)};
    s.operands.push_back(TileText(x.src, out));
    s.targets.push_back(WindowText(x.dst));
    out.push_back(std::move(s));
  }
  void Write(const Parallel& x, Out& out) {
    syntax::Stmt s{.op = "parallel"};
    for (VarId var : x.vars) s.names.push_back(Binder(var));
    for (int64_t extent : x.extents) s.targets.push_back(IntText(extent));
    s.body = BlockText(x.body);
    out.push_back(std::move(s));
  }
  void Write(const OnGroup& x, Out& out) {
    syntax::Stmt s{.op = "on"};
    s.names.push_back(Binder(x.var));
    s.operands.push_back(IntText(x.count));
    s.body = BlockText(x.body);
    out.push_back(std::move(s));
  }
  void Write(const Lag& x, Out& out) {
    syntax::Stmt s{.op = "lag"};
    s.operands.push_back(IntText(x.distance));
    s.body = BlockText(x.body);
    out.push_back(std::move(s));
  }
  void Write(const InTurn& x, Out& out) {
    syntax::Stmt s{.op = "in_turn"};
    s.operands.push_back(BoolText(x.enabled));
    s.body = BlockText(x.body);
    out.push_back(std::move(s));
  }
  void Write(const Turn& x, Out& out) {
    syntax::Stmt s{.op = x.begins ? "begin_turn" : "end_turn"};
    if (x.barriers != kNoId) s.operands.push_back(NameText(BufferName(x.barriers)));
    out.push_back(std::move(s));
  }
  void Write(const Send& x, Out& out) {
    syntax::Stmt s{.op = "send"};
    s.operands.push_back(TileText(x.src, out));
    s.targets.push_back(NameText(BufferName(x.channel)));
    out.push_back(std::move(s));
  }
  void Write(const Recv& x, Out& out) {
    syntax::Stmt s{.op = "recv"};
    s.operands.push_back(NameText(BufferName(x.channel)));
    s.targets.push_back(TileText(x.dst, out));
    out.push_back(std::move(s));
  }
  // Statements of level Thread print as pseudo-operations; they are for reading, not for parsing.
  void Write(const ThreadFor& x, Out& out) {
    syntax::Stmt s{.op = x.team == Team::kBlock   ? "for_threads"
                         : x.team == Team::kGroup ? "for_group_threads"
                                                  : "for_producer_threads"};
    s.names.push_back(Binder(x.var));
    s.operands.push_back(Text(x.extent));
    s.body = BlockText(x.body);
    out.push_back(std::move(s));
  }
  void Write(const Barrier& x, Out& out) {
    out.push_back({.op = x.team == Team::kBlock      ? "barrier"
                         : x.team == Team::kGroup    ? "group_barrier"
                         : x.team == Team::kWarp     ? "warp_barrier"
                         : x.team == Team::kProducer ? "producer_barrier"
                         : x.team == Team::kCluster  ? "cluster_barrier"
                                                     : "barrier_of_all"});
  }
  void Write(const OnFirstThread& x, Out& out) {
    syntax::Stmt s{.op = x.team == Team::kWarp ? "on_first_lane" : "on_first_thread"};
    s.body = BlockText(x.body);
    out.push_back(std::move(s));
  }
  void Write(const OnProducer& x, Out& out) {
    syntax::Stmt s{.op = "on_producer"};
    s.body = BlockText(x.body);
    out.push_back(std::move(s));
  }
  void Write(const ChannelAcquire& x, Out& out) {
    syntax::Stmt s{.op = x.send ? "acquire_free" : "acquire_full"};
    s.operands.push_back(NameText(BufferName(x.channel)));
    s.targets.push_back(NameText(VarName(x.slot)));
    out.push_back(std::move(s));
  }
  void Write(const ChannelRelease& x, Out& out) {
    syntax::Stmt s{.op = x.send ? "release_full" : "release_free"};
    s.operands.push_back(NameText(BufferName(x.channel)));
    out.push_back(std::move(s));
  }

  void Write(const SlotFor& x, Out& out) {
    syntax::Stmt s{.op = "for_slots"};
    s.names.push_back(Binder(x.var));
    s.operands.push_back(IntText(x.count));
    s.body = BlockText(x.body);
    out.push_back(std::move(s));
  }
  SExpr ElementText(BufferId id, const ExprRef& offset) const {
    return New({.kind = ExprKind::kIndex, .text = BufferName(id), .args = {Text(offset)}});
  }
  void Write(const VectorMove& x, Out& out) {
    syntax::Stmt s{.op = "move_vector"};
    s.operands = {ElementText(x.src, x.src_offset), IntText(x.count)};
    s.targets.push_back(ElementText(x.dst, x.dst_offset));
    WriteEviction(x.evict, s);
    out.push_back(std::move(s));
  }
  void Write(const AsyncMove& x, Out& out) {
    syntax::Stmt s{.op = "move_async"};
    s.operands = {ElementText(x.src, x.src_offset), IntText(x.count), Text(x.inside)};
    s.targets.push_back(ElementText(x.dst, x.dst_offset));
    out.push_back(std::move(s));
  }
  void Write(const AsyncCommit&, Out& out) { out.push_back({.op = "async_commit"}); }
  void Write(const AsyncWait& x, Out& out) {
    syntax::Stmt s{.op = "async_wait"};
    s.operands.push_back(IntText(x.pending));
    out.push_back(std::move(s));
  }
  void Write(const LoadMatrix& x, Out& out) {
    syntax::Stmt s{.op = x.transpose ? "load_matrix_trans" : "load_matrix"};
    s.operands = {ElementText(x.src, x.src_offset), IntText(x.matrices)};
    s.targets.push_back(ElementText(x.dst, x.dst_offset));
    out.push_back(std::move(s));
  }
  void Write(const StoreMatrix& x, Out& out) {
    syntax::Stmt s{.op = x.transpose ? "store_matrix_trans" : "store_matrix"};
    s.operands = {ElementText(x.src, x.src_offset), IntText(x.matrices)};
    s.targets.push_back(ElementText(x.dst, x.dst_offset));
    out.push_back(std::move(s));
  }
  void Write(const Mma& x, Out& out) {
    syntax::Stmt s{.op = "mma"};
    s.operands = {IntText(x.atom), ElementText(x.a, x.a_offset), ElementText(x.b, x.b_offset)};
    s.targets.push_back(ElementText(x.c, x.c_offset));
    out.push_back(std::move(s));
  }
  void Write(const Wgmma& x, Out& out) {
    syntax::Stmt s{.op = x.add ? "wgmma" : "wgmma_clear"};
    s.operands = {IntText(x.atom), IntText(x.n), IntText(x.steps)};
    for (const MatrixInPlace* m : {&x.a, &x.b}) {
      s.operands.push_back(ElementText(m->buffer, m->offset));
      if (m->row_bytes == 0) continue;
      for (int v : {m->row_bytes, m->leading, m->stride, m->step}) s.operands.push_back(IntText(v));
    }
    s.targets.push_back(ElementText(x.c, x.c_offset));
    out.push_back(std::move(s));
  }
  void Write(const WgmmaSync& x, Out& out) {
    static constexpr std::string_view kNames[] = {"wgmma_fence", "wgmma_commit", "wgmma_wait"};
    syntax::Stmt s{.op = std::string(kNames[static_cast<size_t>(x.op)])};
    if (x.op == WgmmaSync::Op::kWait) s.operands.push_back(IntText(x.pending));
    out.push_back(std::move(s));
  }
  void Write(const ProxyFence&, Out& out) { out.push_back({.op = "proxy_fence"}); }
  void Write(const MbarrierFence&, Out& out) { out.push_back({.op = "mbarrier_fence"}); }
  void Write(const LaneExchange& x, Out& out) {
    syntax::Stmt s{.op = "exchange_lanes"};
    s.operands = {Text(x.value), IntText(x.mask)};
    s.targets.push_back(NameText(VarName(x.var)));
    out.push_back(std::move(s));
  }

  void Write(const Mbarrier& x, Out& out) {
    static constexpr std::string_view kNames[] = {"mbarrier_init", "mbarrier_arrive",
                                                  "mbarrier_expect", "mbarrier_wait"};
    syntax::Stmt s{.op = std::string(kNames[static_cast<size_t>(x.op)])};
    s.operands.push_back(ElementText(x.barriers, x.index));
    if (x.value) s.operands.push_back(Text(x.value));
    if (x.block) s.operands.push_back(Text(x.block));
    out.push_back(std::move(s));
  }

  void Write(const BulkLoad& x, Out& out) {
    syntax::Stmt s{.op = "load_box"};
    s.operands.push_back(IntText(x.box));
    for (const ExprRef& e : x.at) s.operands.push_back(Text(e));
    s.operands.push_back(ElementText(x.barriers, x.barrier));
    if (x.blocks) s.operands.push_back(Text(x.blocks));
    s.targets.push_back(ElementText(x.dst, x.dst_offset));
    WriteEviction(x.evict, s);
    out.push_back(std::move(s));
  }

  void Write(const BulkStore& x, Out& out) {
    syntax::Stmt s{.op = "store_box"};
    s.operands.push_back(ElementText(x.src, x.src_offset));
    s.operands.push_back(IntText(x.box));
    for (const ExprRef& e : x.at) s.operands.push_back(Text(e));
    WriteEviction(x.evict, s);
    out.push_back(std::move(s));
  }

  void Write(const BulkSync& x, Out& out) {
    static constexpr std::string_view kNames[] = {"bulk_commit", "bulk_wait_read", "bulk_wait"};
    syntax::Stmt s{.op = std::string(kNames[static_cast<size_t>(x.op)])};
    if (x.op != BulkSync::Op::kCommit) s.operands.push_back(IntText(x.pending));
    out.push_back(std::move(s));
  }

  // ---- launches
  syntax::Launch LaunchText(const Launch& launch) {
    syntax::Launch out;
    for (const GridAxis& axis : launch.axes) {
      syntax::Axis a;
      a.name = Binder(axis.var);
      a.extent = Text(axis.extent);
      out.axes.push_back(std::move(a));
    }
    if (launch.split) {
      const SplitAxis& split = *launch.split;
      syntax::Axis a;
      a.is_segment = true;
      for (VarId v : {split.item, split.begin, split.end, split.part, split.whole})
        a.segment.push_back(Binder(v));
      a.item = Binder(split.item);
      a.items = Text(split.items);
      a.count = Text(split.count);
      a.parts = Text(split.parts);
      out.axes.push_back(std::move(a));
    }
    if (launch.persistent) out.attrs.push_back(Flag("persistent"));
    if (launch.groups != 1) out.attrs.push_back(Attribute("groups", IntText(launch.groups)));
    if (launch.threads) out.attrs.push_back(Attribute("threads", IntText(launch.threads)));
    if (launch.blocks != 1) out.attrs.push_back(Attribute("blocks", IntText(launch.blocks)));
    if (launch.order == Order::kLongest) {
      out.attrs.push_back(
          Attribute("order", CallText("longest", {NameText(VarName(launch.longest))})));
    } else if (launch.panel || launch.order == Order::kCol) {
      const std::string_view name = launch.order == Order::kCol ? "col" : "row";
      out.attrs.push_back(Attribute("order", launch.panel ? CallText(name, {IntText(launch.panel)})
                                                          : NameText(std::string(name))));
    }
    if (launch.producer != Producer::kAuto) {
      out.attrs.push_back(
          Attribute("producer", NameText(launch.producer == Producer::kWarp ? "warp" : "self")));
    }
    if (launch.stores != Stores::kAuto) {
      out.attrs.push_back(
          Attribute("stores", NameText(launch.stores == Stores::kBulk ? "bulk" : "threads")));
    }
    if (launch.owner == Owner::kGroup) out.attrs.push_back(Attribute("owner", NameText("group")));
    for (int extent : launch.cluster) out.cluster.push_back(IntText(extent));
    out.body = BlockText(launch.body);
    return out;
  }

  const Module& m_;
  const bool canonical_;
  // By id, empty until first asked for.
  mutable std::vector<std::string> vars_, buffers_;
  mutable absl::flat_hash_set<std::string> taken_;
  mutable int num_names_ = 0;
  absl::flat_hash_set<VarId> declared_;  // mutable vars whose alloc_var has been written
  int num_views_ = 0;
};

}  // namespace

syntax::Program Unparse(const Module& module) { return Unparser(module, false).Run(); }

std::string CanonicalText(const Module& module) {
  return syntax::Print(Unparser(module, true).Run());
}

std::string ToText(const Module& module) { return syntax::Print(Unparse(module)); }

std::string ToText(const Module& module, const ExprRef& expr) {
  return syntax::Print(Unparser(module, false).Expression(expr));
}

}  // namespace tl
