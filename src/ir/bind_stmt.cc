// Scalars, control flow, groups. Operations on tiles are in bind_tile.cc.
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ir/binder.h"

namespace tl {

namespace {

constexpr int kMaxStatements = 100000;
constexpr int64_t kMaxStages = 32;

StoreOp ParseAssign(std::string_view text) {
  return text == "+="   ? StoreOp::kAdd
         : text == "-=" ? StoreOp::kSub
         : text == "*=" ? StoreOp::kMul
         : text == "/=" ? StoreOp::kDiv
                        : StoreOp::kSet;
}

// Sets a member for the duration of a scope.
template <typename T>
class Restore {
 public:
  Restore(T& slot, T value) : slot_(slot), old_(slot) { slot = value; }
  ~Restore() { slot_ = old_; }
  Restore(const Restore&) = delete;
  Restore& operator=(const Restore&) = delete;

 private:
  T& slot_;
  T old_;
};

}  // namespace

StatusOr<Block> Binder::BindBlock(const std::vector<syntax::Stmt>& body) {
  PushScope();
  Block out;
  for (const syntax::Stmt& s : body) TL_RETURN_IF_ERROR(BindStmt(s, out));
  PopScope();
  return out;
}

Status Binder::BindStmt(const syntax::Stmt& s, Block& out) {
  if (num_stmts_ >= kMaxStatements) {
    return LimitError(s.span,
                      absl::StrCat("the program has more than ", kMaxStatements, " statements"));
  }
  const std::string& op = s.op;
  const bool scalar_op = op == "let" || op == "store" || op == "if" || op == "serial" ||
                         op == "unrolled" || op == "vectorized" || op == "alloc_local" ||
                         absl::StartsWith(op, "atomic_");
  if (in_parallel_ && !scalar_op) {
    return SemanticError(
        s.span, absl::StrCat("'", op,
                             "' works on whole tiles and cannot stand inside 'parallel'; there, "
                             "write element stores, if, serial, atomics and local arrays"));
  }
  if (op == "let") return BindLet(s, out);
  if (op == "alloc_var") return BindAllocVar(s, out);
  if (absl::StartsWith(op, "alloc_")) return BindAlloc(s, out);
  if (op == "view") return BindView(s, out);
  if (op == "store") return BindStore(s, out);
  if (op == "copy") return BindCopy(s, out);
  if (op == "clear" || op == "fill") return BindFill(s, out);
  if (op == "gemm") return BindGemm(s, out);
  if (absl::StartsWith(op, "reduce_")) return BindReduce(s, out);
  if (op == "argmax") return BindArgMax(s, out);
  if (op == "cumsum") return BindCumSum(s, out);
  if (op == "finish") return BindFinish(s, out);
  if (op == "atomic_add") return BindAtomic(s, AtomicOp::kAdd, out);
  if (op == "atomic_max") return BindAtomic(s, AtomicOp::kMax, out);
  if (op == "atomic_min") return BindAtomic(s, AtomicOp::kMin, out);
  if (op == "parallel") return BindParallel(s, out);
  if (op == "serial") return BindFor(s, LoopKind::kSerial, out);
  if (op == "unrolled") return BindFor(s, LoopKind::kUnrolled, out);
  if (op == "vectorized") return BindFor(s, LoopKind::kVectorized, out);
  if (op == "pipelined") return BindFor(s, LoopKind::kPipelined, out);
  if (op == "if") return BindIfStmt(s, out);
  if (op == "on") return BindOnGroup(s, out);
  if (op == "lag") return BindLag(s, out);
  if (op == "in_turn") return BindInTurn(s, out);
  if (op == "send") return BindSend(s, out);
  if (op == "recv") return BindRecv(s, out);
  return SemanticError(s.span, absl::StrCat("unknown operation '", op, "'"));
}

const syntax::Attr* Binder::FindAttr(const syntax::Stmt& s, std::string_view name) {
  for (const syntax::Attr& a : s.attrs) {
    if (a.name == name) return &a;
  }
  return nullptr;
}

StatusOr<bool> Binder::Flag(const syntax::Stmt& s, std::string_view name) {
  const syntax::Attr* attr = FindAttr(s, name);
  if (!attr) return false;
  if (!attr->value) return true;
  return BindConstBool(attr->value, name);
}

// ---- scalars -----------------------------------------------------------------------------------

Status Binder::BindLet(const syntax::Stmt& s, Block& out) {
  const syntax::Name& name = s.names[0];
  const StoreOp op = ParseAssign(s.assign);
  const Binding* symbol = Lookup(name.text);
  if (symbol && symbol->kind == Binding::Kind::kMutable) {
    if (in_parallel_) {
      return SemanticError(
          s.span, absl::StrCat("'", name.text,
                               "' is one value of the whole block; inside 'parallel' use a "
                               "local array or a reduction"));
    }
    const VarId var = symbol->var;
    const ScalarType type = module_.var(var).type;
    TL_ASSIGN_OR_RETURN(ExprRef value, BindExprAs(s.operands[0], type));
    if (op != StoreOp::kSet) value = MakeBinary(OperatorOf(op), MakeVar(var, type), value, s.span);
    Emit(out, Assign{var, MakeCast(module_.var(var).dtype, value)}, s);
    return absl::OkStatus();
  }
  if (op != StoreOp::kSet) {
    if (!symbol) return UnknownName(name.text, name.span);
    return SemanticError(
        s.span,
        absl::StrCat("'", name.text, "' never changes; declare it with alloc_var to assign it"));
  }
  TL_ASSIGN_OR_RETURN(Typed value, BindTyped(s.operands[0]));
  const bool literal = value.expr->node.index() <= 2;  // IntLit, FloatLit, BoolLit
  if (literal)
    return Define(name, {.kind = Binding::Kind::kValue,
                         .span = name.span,
                         .value = value.expr,
                         .loose = value.loose});
  const ExprRef settled = Settle(value);
  const VarId var = module_.AddVar(name.text, settled->type, VarRole::kLet, name.span);
  TL_RETURN_IF_ERROR(DefineVar(name, var));
  Emit(out, Let{var, settled}, s);
  return absl::OkStatus();
}

Status Binder::BindAllocVar(const syntax::Stmt& s, Block& out) {
  TL_ASSIGN_OR_RETURN(DType dtype, BindDType(s.type_args[0], s.span));
  const ScalarType type = ComputeType(dtype);
  ExprRef value = type == ScalarType::kBool  ? MakeBool(false)
                  : type == ScalarType::kInt ? MakeInt(0)
                                             : MakeFloat(0, type);
  if (!s.operands.empty()) {
    TL_ASSIGN_OR_RETURN(value, BindExprAs(s.operands[0], type));
  }
  const VarId var = module_.AddVar(s.names[0].text, type, VarRole::kMutable, s.names[0].span);
  module_.vars[var].dtype = dtype;
  TL_RETURN_IF_ERROR(
      Define(s.names[0], {.kind = Binding::Kind::kMutable, .span = s.names[0].span, .var = var}));
  Emit(out, Assign{var, MakeCast(dtype, value)}, s);
  return absl::OkStatus();
}

Status Binder::BindStore(const syntax::Stmt& s, Block& out) {
  TL_ASSIGN_OR_RETURN(Element element, BindElement(s.targets[0]));
  const Buffer& b = buffer(element.buffer);
  if (b.role == BufferRole::kIn) {
    return SemanticError(s.targets[0]->span,
                         absl::StrCat("'", b.name, "' is an input; declare it inout to write it"));
  }
  if (b.scope == Scope::kChannel) return SemanticError(s.span, "channels are written by send");
  if (b.accumulator) {
    return SemanticError(
        s.span, absl::StrCat("'", b.name,
                             "' is an alloc_acc tile: only gemm, clear, fill and copy touch it"));
  }
  if (!in_parallel_ && b.scope != Scope::kLocal) {
    return SemanticError(s.span,
                         absl::StrCat("elements of '", b.name, "' are stored inside 'parallel'"));
  }
  const StoreOp op = ParseAssign(s.assign);
  const bool partial = b.role == BufferRole::kReducer && !finished_.contains(element.buffer);
  if (partial && !(op == StoreOp::kMul && b.reduce_op == ReduceOp::kSum)) {
    return SemanticError(s.span,
                         absl::StrCat("before 'finish ", b.name,
                                      "' a reducer is filled, reduced into, and, if it sums, "
                                      "scaled with '*='"));
  }
  if (b.dtype == DType::kBool && op != StoreOp::kSet)
    return SemanticError(s.span, "a bool element takes '=' only");
  TL_ASSIGN_OR_RETURN(ExprRef value, BindExprAs(s.operands[0], ComputeType(b.dtype)));
  Emit(out, Store{element.buffer, std::move(element.index), op, std::move(value)}, s);
  return absl::OkStatus();
}

// ---- control -----------------------------------------------------------------------------------

Status Binder::BindParallel(const syntax::Stmt& s, Block& out) {
  Parallel parallel;
  if (s.names.size() != s.targets.size()) {
    return SemanticError(s.span, absl::StrCat("'parallel' has ", s.names.size(), " indices and ",
                                              s.targets.size(), " extents"));
  }
  PushScope();
  int64_t iterations = 1;
  for (size_t i = 0; i < s.names.size(); ++i) {
    TL_ASSIGN_OR_RETURN(int64_t extent,
                        BindConstInt(s.targets[i], "an extent of 'parallel'", 1, kMaxElements));
    parallel.extents.push_back(extent);
    iterations *= extent;
    if (iterations > kMaxElements) {
      return LimitError(s.span,
                        absl::StrCat("'parallel' has more than ", kMaxElements, " iterations"));
    }
    parallel.vars.push_back(
        module_.AddVar(s.names[i].text, ScalarType::kInt, VarRole::kLoop, s.names[i].span));
    TL_RETURN_IF_ERROR(DefineVar(s.names[i], parallel.vars.back()));
  }
  {
    Restore inside(in_parallel_, true);
    Restore lag(lag_allowed_, false);
    TL_ASSIGN_OR_RETURN(parallel.body, BindBlock(s.body));
  }
  PopScope();
  Emit(out, std::move(parallel), s);
  return absl::OkStatus();
}

Status Binder::BindFor(const syntax::Stmt& s, LoopKind kind, Block& out) {
  For loop;
  loop.kind = kind;
  const syntax::ExprRef& first = s.operands[0];
  const bool parts =
      s.operands.size() == 1 && first->kind == syntax::ExprKind::kCall && first->text == "parts";
  if (parts) {
    if (split_launch_ == kNoId || split_launch_ == static_cast<int>(module_.launches.size())) {
      return SemanticError(
          first->span,
          "parts(…) names the pieces of a split axis of an earlier launch, and there is none");
    }
    if (first->args.size() != 1)
      return SemanticError(first->span, "'parts' takes 1 argument, the item");
    TL_ASSIGN_OR_RETURN(ExprRef item, BindInt(first->args[0], "the item of parts"));
    loop.begin = MakePartsBound(split_launch_, item, false, first->span);
    loop.end = MakePartsBound(split_launch_, item, true, first->span);
  } else if (s.operands.size() == 2) {
    TL_ASSIGN_OR_RETURN(loop.begin, BindInt(s.operands[0], "the start of a loop"));
    TL_ASSIGN_OR_RETURN(loop.end, BindInt(s.operands[1], "the end of a loop"));
  } else {
    loop.begin = MakeInt(0);
    TL_ASSIGN_OR_RETURN(loop.end, BindInt(first, "the number of iterations"));
  }
  TL_ASSIGN_OR_RETURN(loop.down, Flag(s, "down"));
  TL_ASSIGN_OR_RETURN(loop.partition, Flag(s, "partition"));
  if (const syntax::Attr* stages = FindAttr(s, "stages")) {
    TL_ASSIGN_OR_RETURN(int64_t n, BindConstInt(stages->value, "stages", 0, kMaxStages));
    loop.stages = static_cast<int>(n);
  }
  PushScope();
  loop.var = module_.AddVar(s.names[0].text, ScalarType::kInt, VarRole::kLoop, s.names[0].span);
  TL_RETURN_IF_ERROR(DefineVar(s.names[0], loop.var));
  {
    Restore lag(lag_allowed_, kind == LoopKind::kPipelined);
    TL_ASSIGN_OR_RETURN(loop.body, BindBlock(s.body));
  }
  PopScope();
  Emit(out, std::move(loop), s);
  return absl::OkStatus();
}

Status Binder::BindIfStmt(const syntax::Stmt& s, Block& out) {
  TL_ASSIGN_OR_RETURN(ExprRef cond, BindCondition(s.operands[0]));
  if (const BoolLit* known = As<BoolLit>(cond)) {
    TL_ASSIGN_OR_RETURN(Block taken, BindBlock(known->value ? s.body : s.else_body));
    out.insert(out.end(), taken.begin(), taken.end());
    return absl::OkStatus();
  }
  If branch{.cond = std::move(cond), .then_body = {}, .else_body = {}};
  Restore lag(lag_allowed_, false);
  TL_ASSIGN_OR_RETURN(branch.then_body, BindBlock(s.body));
  TL_ASSIGN_OR_RETURN(branch.else_body, BindBlock(s.else_body));
  Emit(out, std::move(branch), s);
  return absl::OkStatus();
}

Status Binder::BindOnGroup(const syntax::Stmt& s, Block& out) {
  OnGroup on;
  TL_ASSIGN_OR_RETURN(int64_t count, BindConstInt(s.operands[0], "the number of groups", 1, 16));
  if (in_group_) return SemanticError(s.span, "'on' cannot be nested");
  if (groups_own_) {
    return SemanticError(s.span,
                         "with owner=group each group runs the body for a tile of its own: "
                         "there is nothing to share out by 'on'");
  }
  if (count != groups_) {
    return SemanticError(s.span, absl::StrCat("'on ", s.names[0].text, " in ", count,
                                              "' needs a launch with groups=", count,
                                              ", and this one has ", groups_));
  }
  on.count = static_cast<int>(count);
  PushScope();
  on.var = module_.AddVar(s.names[0].text, ScalarType::kInt, VarRole::kGroup, s.names[0].span);
  TL_RETURN_IF_ERROR(DefineVar(s.names[0], on.var));
  {
    Restore inside(in_group_, true);
    Restore lag(lag_allowed_, false);
    TL_ASSIGN_OR_RETURN(on.body, BindBlock(s.body));
  }
  PopScope();
  Emit(out, std::move(on), s);
  return absl::OkStatus();
}

Status Binder::BindLag(const syntax::Stmt& s, Block& out) {
  if (!lag_allowed_) {
    return SemanticError(s.span,
                         "'lag' replays an earlier iteration and stands directly inside a "
                         "'pipelined' loop, or in an "
                         "'in_turn' of it");
  }
  Lag lag;
  TL_ASSIGN_OR_RETURN(int64_t distance, BindConstInt(s.operands[0], "the distance of lag", 1, 16));
  lag.distance = static_cast<int>(distance);
  Restore nested(lag_allowed_, false);
  TL_ASSIGN_OR_RETURN(lag.body, BindBlock(s.body));
  Emit(out, std::move(lag), s);
  return absl::OkStatus();
}

Status Binder::BindInTurn(const syntax::Stmt& s, Block& out) {
  InTurn turn;
  turn.enabled = true;
  if (!s.operands.empty()) {
    TL_ASSIGN_OR_RETURN(turn.enabled, BindConstBool(s.operands[0], "in_turn"));
  }
  TL_ASSIGN_OR_RETURN(turn.body, BindBlock(s.body));
  if (!turn.enabled) {
    out.insert(out.end(), turn.body.begin(), turn.body.end());
    return absl::OkStatus();
  }
  Emit(out, std::move(turn), s);
  return absl::OkStatus();
}

StatusOr<Region> Binder::BindMessage(const syntax::ExprRef& tile, const syntax::ExprRef& channel,
                                     BufferId& id) {
  if (!in_group_)
    return SemanticError(tile->span, "send and recv connect groups and stand inside 'on g in n'");
  TL_ASSIGN_OR_RETURN(const Binding* symbol, LookupBuffer(channel));
  if (symbol->kind != Binding::Kind::kBuffer || buffer(symbol->buffer).scope != Scope::kChannel) {
    return SemanticError(channel->span, absl::StrCat("'", channel->text,
                                                     "' is no channel; make one with alloc_chan"));
  }
  id = symbol->buffer;
  TL_ASSIGN_OR_RETURN(Region region, BindTile(tile));
  if (region.extents != buffer(id).extents) {
    return SemanticError(
        tile->span,
        absl::StrCat("channel '", channel->text, "' carries ", ExtentsText(buffer(id).extents),
                     ", but '", tile->text, "' has ", ExtentsText(region.extents)));
  }
  return region;
}

Status Binder::BindSend(const syntax::Stmt& s, Block& out) {
  Send send;
  TL_ASSIGN_OR_RETURN(send.src, BindMessage(s.operands[0], s.targets[0], send.channel));
  TL_RETURN_IF_ERROR(CheckReadable(send.src, "send"));
  Emit(out, std::move(send), s);
  return absl::OkStatus();
}

Status Binder::BindRecv(const syntax::Stmt& s, Block& out) {
  Recv recv;
  TL_ASSIGN_OR_RETURN(recv.dst, BindMessage(s.targets[0], s.operands[0], recv.channel));
  TL_RETURN_IF_ERROR(CheckWritable(recv.dst, "recv"));
  Emit(out, std::move(recv), s);
  return absl::OkStatus();
}

}  // namespace tl
