#include "backends/c_family/kernel_emitter.h"

#include <limits>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/substitute.h"
#include "ir/visit.h"

namespace tl {
namespace {

// Does the block wait, for other threads or for its own copies?
bool Waits(const Block& block) {
  bool found = false;
  VisitStmts(block, [&](const StmtRef& s) {
    const Mbarrier* m = As<Mbarrier>(s);
    found |= As<Barrier>(s) || As<AsyncWait>(s) || (m && m->op == Mbarrier::Op::kWait);
  });
  return found;
}

// Does it tell a fast form from one for whatever else the launch brings?
bool ChoosesForm(const Launch& launch, const ExprRef& cond) {
  return AnyNode(cond, [&](const ExprRef& e) {
    const VarRef* ref = As<VarRef>(e);
    const bool box = ref && absl::c_any_of(launch.boxes, [&](const TensorBox& b) {
                       return b.usable == ref->var;
                     });
    return box || As<IsAligned>(e) != nullptr;
  });
}

// Does the value of `e` stay the same while a loop's body runs, as far as one can see at a glance?
bool Stable(const Module& module, const ExprRef& e) {
  if (As<IntLit>(e)) return true;
  const VarRef* v = As<VarRef>(e);
  return v != nullptr && module.var(v->var).role != VarRole::kMutable;
}

// A mutable variable may hold anything that its type holds.
CType MutableType(const Var& v) {
  return v.type == ScalarType::kInt && RangeOf(v.dtype).Fits32() ? CType::kI32 : CTypeOf(v.type);
}

std::string_view AtomicName(AtomicOp op) {
  switch (op) {
    case AtomicOp::kAdd:
      return "tl_atomic_add";
    case AtomicOp::kMax:
      return "tl_atomic_max";
    case AtomicOp::kMin:
      return "tl_atomic_min";
  }
  return "";
}

// The compound assignment that does `op` on floats stored as they are computed; "" for none.
std::string_view Compound(StoreOp op, DType t) {
  if (t != DType::kF32 && t != DType::kF64) return "";
  switch (op) {
    case StoreOp::kAdd:
      return " += ";
    case StoreOp::kSub:
      return " -= ";
    case StoreOp::kMul:
      return " *= ";
    case StoreOp::kDiv:
      return " /= ";
    default:
      return "";
  }
}

// The last argument of a function that accesses global memory, where there is a hint.
std::string_view Hint(Eviction evict) {
  switch (evict) {
    case Eviction::kFirst:
      return ", tl_evict_first()";
    case Eviction::kLast:
      return ", tl_evict_last()";
    case Eviction::kNormal:
      break;
  }
  return "";
}

// Compilers move what sets a sum to its use behind a barrier, and so behind the fence there.
bool MaySlipBehind(const Block& block, size_t fence) {
  const WgmmaSync* sync = As<WgmmaSync>(block[fence]);
  if (!sync || sync->op != WgmmaSync::Op::kFence || fence + 1 == block.size()) return false;
  const Wgmma* product = As<Wgmma>(block[fence + 1]);
  if (!product || product->c != sync->c || !product->add) return false;
  while (fence > 0 && As<Let>(block[fence - 1])) --fence;
  return fence > 0 && As<Barrier>(block[fence - 1]);
}

}  // namespace

KernelEmitter::KernelEmitter(const Module& module, const Launch& launch, int threads,
                             const Target& target, const Dialect& dialect, WarpgroupParts& parts)
    : module_(module),
      launch_(launch),
      threads_(threads),
      target_(target),
      dialect_(dialect),
      parts_(parts),
      exprs_(module_, names_) {
  names_.vars.resize(module.vars.size());
  names_.buffers.resize(module.buffers.size());
}

StatusOr<std::string> KernelEmitter::Emit(std::string_view symbol) {
  NameParameters();
  absl::StrAppend(&out_, Signature(symbol), " {\n");
  depth_ = 1;
  DeclareTiles();
  DeclareSums();
  DeclareIndices();
  DeclareMutables();
  // Before anything touches memory; the next kernel then waits for this one.
  if (target_.early_starts) {
    Line("tl_await_kernel_before();");
    Line("tl_admit_kernel_behind();");
  }
  TL_RETURN_IF_ERROR(EmitBlock(launch_.body));
  out_ += "}\n";
  return std::move(out_);
}

void KernelEmitter::DeclareSums() {
  // Of those that come out behind a single product too, the wait may stand where there was none.
  absl::flat_hash_set<BufferId> single;
  VisitStmts(launch_.body, [&](const StmtRef& s) {
    const Wgmma* w = As<Wgmma>(s);
    if (w && !w->trailing) single.insert(w->c);
  });
  VisitStmts(launch_.body, [&](const StmtRef& s) {
    const Wgmma* w = As<Wgmma>(s);
    if (!w || single.contains(w->c) || sums_.contains(w->c)) return;
    const Buffer& c = module_.buffer(w->c);
    const WarpgroupSums sums{c.dtype, static_cast<int>(c.num_elements()),
                             static_cast<int>(parts_.sums.size())};
    parts_.sums.push_back(sums);
    sums_.emplace(w->c, sums);
    Line(absl::StrCat("TL_SUMS(", StorageName(sums.type), ", ", sums.number, ", ", sums.elements,
                      ");"));
  });
}

void KernelEmitter::NameParameters() {
  auto number = [&](const std::vector<BufferId>& ids, std::string_view letter) {
    for (size_t i = 0; i < ids.size(); ++i) names_.buffers[ids[i]] = absl::StrCat(letter, i);
  };
  number(module_.operands, "a");
  number(module_.workspaces, "w");
  for (size_t i = 0; i < module_.dims.size(); ++i) {
    names_.vars[module_.dims[i]] = {absl::StrCat("n", i), CType::kI64, {0, Range::kMax}};
  }
  for (size_t i = 0; i < module_.strides.size(); ++i) {
    // A launch refuses negative dims and strides.
    names_.vars[module_.strides[i]] = {absl::StrCat("d", i), CType::kI64, {0, Range::kMax}};
  }
  for (size_t i = 0; i < module_.scalars.size(); ++i) {
    const Var& v = module_.var(module_.scalars[i]);
    // Ints and bools travel as 64-bit integers; a bool is compared where the kernel starts.
    names_.vars[module_.scalars[i]] = {absl::StrCat("x", i), CTypeOf(v.type), RangeOf(v.dtype)};
  }
  for (size_t i = 0; i < launch_.boxes.size(); ++i) {
    names_.vars[launch_.boxes[i].usable] = {absl::StrCat("b", i), CType::kI64, {0, 1}};
  }
}

std::string KernelEmitter::Signature(std::string_view symbol) const {
  std::vector<std::string> params;
  for (BufferId id : module_.operands) {
    const Buffer& b = module_.buffer(id);
    params.push_back(absl::StrCat("TL_GLOBAL(", b.role == BufferRole::kIn ? "const " : "",
                                  StorageName(b.dtype), ") ", names_.buffers[id]));
  }
  for (BufferId id : module_.workspaces) {
    params.push_back(absl::StrCat("TL_GLOBAL(", StorageName(module_.buffer(id).dtype), ") ",
                                  names_.buffers[id]));
  }
  for (VarId id : module_.dims) params.push_back(absl::StrCat("long long ", names_.vars[id].name));
  for (VarId id : module_.strides)
    params.push_back(absl::StrCat("long long ", names_.vars[id].name));
  for (VarId id : module_.scalars) {
    const Names::Variable& v = names_.vars[id];
    const CType type = v.type == CType::kBool ? CType::kI64 : v.type;
    params.push_back(absl::StrCat(Name(type), " ", v.name));
  }
  for (size_t i = 0; i < launch_.boxes.size(); ++i) {
    params.push_back(absl::StrCat("const __grid_constant__ tl_tensor_map m", i));
    params.push_back(absl::StrCat("long long ", names_.vars[launch_.boxes[i].usable].name));
  }
  return absl::StrCat(absl::Substitute(dialect_.entry, block_threads(), launch_.blocks), " ",
                      symbol, "(", absl::StrJoin(params, ", "), ")");
}

// Tiles in the arena, in the order of their first use.
void KernelEmitter::DeclareTiles() {
  if (launch_.arena_bytes > 0) Line(dialect_.arena);
  int count = 0;
  auto declare = [&](BufferId id) {
    const Buffer& b = module_.buffer(id);
    std::string& name = names_.buffers[id];
    if (b.arena_offset < 0 || !name.empty()) return;
    name = absl::StrCat("s", count++);
    Line(absl::StrCat("TL_SHARED(", StorageName(b.dtype), ", ", name, ", ", b.arena_offset, ", ",
                      b.stored_elements(), ");"));
  };
  VisitStmts(launch_.body, [&](const StmtRef& s) {
    VisitAccesses(*s, [&](BufferId id, const ExprRef&, bool) { declare(id); });
    VisitStmtExprs(*s, [&](const ExprRef& root) {
      VisitExpr(root, [&](const ExprRef& e) {
        if (const Load* load = As<Load>(e)) declare(load->buffer);
      });
    });
  });
}

void KernelEmitter::DeclareIndex(VarId var, std::string_view name, std::string text,
                                 int64_t count) {
  if (var != kNoId) {
    names_.vars[var] = {std::string(name), CType::kI32, {0, count - 1}};
  }
  Line(absl::StrCat("const int ", name, " = ", text, ";"));
}

void KernelEmitter::DeclareIndices() {
  constexpr int64_t kMaxBlocks = std::numeric_limits<int32_t>::max();
  const bool persistent = launch_.resident != kNoId;
  DeclareIndex(persistent ? launch_.resident : launch_.block, "block",
               absl::StrCat("(int)", dialect_.block_index), kMaxBlocks);
  if (persistent) {
    DeclareIndex(launch_.grid, "grid", absl::StrCat("(int)", dialect_.grid_size), kMaxBlocks);
    names_.vars[launch_.grid].range.lo = 1;
  }
  if (launch_.rank != kNoId) {
    DeclareIndex(launch_.rank, "rank", "tl_cluster_rank()", launch_.cluster_size());
  }
  DeclareIndex(launch_.thread, "thread", absl::StrCat("(int)", dialect_.thread_index),
               block_threads());
  if (launch_.producers > 0) {
    Line(absl::StrCat("const int producer_thread = thread - ", group_threads(), ";"));
  }
  if (launch_.groups > 1) {
    DeclareIndex(launch_.group, "group", absl::StrCat("thread / ", threads_), launch_.groups);
    DeclareIndex(launch_.group_thread, "group_thread", absl::StrCat("thread % ", threads_),
                 threads_);
    return;
  }
  if (launch_.group != kNoId) names_.vars[launch_.group] = {"0", CType::kI32, {0, 0}};
  if (launch_.group_thread != kNoId) {
    names_.vars[launch_.group_thread] = {"thread", CType::kI32, {0, threads_ - 1}};
  }
}

void KernelEmitter::DeclareMutables() {
  std::vector<bool> introduced(module_.vars.size());
  VisitStmts(launch_.body, [&](const StmtRef& s) {
    if (const Let* let = As<Let>(s)) introduced[let->var] = true;
  });
  VisitStmts(launch_.body, [&](const StmtRef& s) {
    const Assign* assign = As<Assign>(s);
    if (assign == nullptr || introduced[assign->var]) return;
    introduced[assign->var] = true;
    const Var& v = module_.var(assign->var);
    Line(absl::StrCat(Declare(assign->var, MutableType(v), RangeOf(v.dtype)), ";"));
  });
}

std::string KernelEmitter::Declare(VarId var, CType type, Range range) {
  names_.vars[var] = {absl::StrCat("v", num_vars_++), type, range};
  return absl::StrCat(Name(type), " ", names_.vars[var].name);
}

Status KernelEmitter::EmitBlock(const Block& block) {
  for (size_t i = 0; i < block.size(); ++i) {
    const WgmmaSync* sync = As<WgmmaSync>(block[i]);
    if (sync && !sums_.contains(sync->c) && MaySlipBehind(block, i)) {
      TL_ASSIGN_OR_RETURN(std::string c, Address(sync->c, MakeInt(0)));
      const int64_t elements = module_.buffer(sync->c).num_elements();
      Line(absl::StrCat("tl_settle<", elements, ">(", c, ");"));
    }
    TL_RETURN_IF_ERROR(EmitStmt(*block[i]));
  }
  return absl::OkStatus();
}

Status KernelEmitter::EmitStmt(const Stmt& stmt) {
  if (const auto* s = std::get_if<Let>(&stmt.node)) return EmitLet(*s);
  if (const auto* s = std::get_if<Assign>(&stmt.node)) return EmitAssign(*s);
  if (const auto* s = std::get_if<Alloc>(&stmt.node)) return EmitAlloc(*s);
  if (const auto* s = std::get_if<Store>(&stmt.node)) return EmitStore(*s);
  if (const auto* s = std::get_if<AtomicElement>(&stmt.node)) return EmitAtomic(*s);
  if (const auto* s = std::get_if<For>(&stmt.node)) return EmitFor(*s);
  if (const auto* s = std::get_if<If>(&stmt.node)) return EmitIf(*s);
  if (const auto* s = std::get_if<ThreadFor>(&stmt.node)) return EmitThreadFor(*s);
  if (const auto* s = std::get_if<OnFirstThread>(&stmt.node)) return EmitOnFirstThread(*s);
  if (const auto* s = std::get_if<OnProducer>(&stmt.node)) return EmitOnProducer(*s);
  if (const auto* s = std::get_if<SlotFor>(&stmt.node)) return EmitSlotFor(*s);
  if (const auto* s = std::get_if<VectorMove>(&stmt.node)) return EmitVectorMove(*s);
  if (const auto* s = std::get_if<AsyncMove>(&stmt.node)) return EmitAsyncMove(*s);
  if (const auto* s = std::get_if<LoadMatrix>(&stmt.node)) return EmitLoadMatrix(*s);
  if (const auto* s = std::get_if<StoreMatrix>(&stmt.node)) return EmitStoreMatrix(*s);
  if (const auto* s = std::get_if<Mma>(&stmt.node)) return EmitMma(*s);
  if (const auto* s = std::get_if<Wgmma>(&stmt.node)) return EmitWgmma(*s);
  if (const auto* s = std::get_if<WgmmaSync>(&stmt.node)) return EmitWgmmaSync(*s);
  if (std::holds_alternative<ProxyFence>(stmt.node)) {
    Line("tl_proxy_fence();");
    return absl::OkStatus();
  }
  if (std::holds_alternative<MbarrierFence>(stmt.node)) {
    Line("tl_mbarrier_init_fence();");
    return absl::OkStatus();
  }
  if (const auto* s = std::get_if<LaneExchange>(&stmt.node)) return EmitLaneExchange(*s);
  if (const auto* s = std::get_if<Barrier>(&stmt.node)) {
    EmitBarrier(s->team);
    return absl::OkStatus();
  }
  if (std::holds_alternative<AsyncCommit>(stmt.node)) {
    Line("tl_async_commit();");
    return absl::OkStatus();
  }
  if (const auto* s = std::get_if<AsyncWait>(&stmt.node)) {
    Line(absl::StrCat("tl_async_wait<", s->pending, ">();"));
    return absl::OkStatus();
  }
  if (const auto* s = std::get_if<Mbarrier>(&stmt.node)) return EmitMbarrier(*s);
  if (const auto* s = std::get_if<BulkLoad>(&stmt.node)) return EmitBulkLoad(*s);
  if (const auto* s = std::get_if<BulkStore>(&stmt.node)) return EmitBulkStore(*s);
  if (const auto* s = std::get_if<BulkSync>(&stmt.node)) {
    EmitBulkSync(*s);
    return absl::OkStatus();
  }
  return absl::InternalError("a statement that lowering should have expanded reached the emitter");
}

// A variable holds values of its declared type; ints wrap, floats are rounded.
StatusOr<Text> KernelEmitter::Rounded(VarId var, const ExprRef& value) const {
  const Var& v = module_.var(var);
  const Cast* cast = As<Cast>(value);
  const bool already = cast != nullptr && cast->to == v.dtype;
  if (v.role != VarRole::kMutable || already) return exprs_.Emit(value);
  return exprs_.Emit(MakeCast(v.dtype, value));
}

Status KernelEmitter::EmitLet(const Let& s) {
  TL_ASSIGN_OR_RETURN(Text value, Rounded(s.var, s.value));
  const Var& v = module_.var(s.var);
  const bool is_mutable = v.role == VarRole::kMutable;
  const CType type = is_mutable ? MutableType(v) : value.type;
  const Range range = is_mutable ? RangeOf(v.dtype) : value.range;
  const std::string declared = Declare(s.var, type, range);
  const std::string text = s.pinned ? absl::StrCat("tl_keep(", value.text, ")") : value.text;
  Line(absl::StrCat(is_mutable ? "" : "const ", declared, " = ", text, ";"));
  return absl::OkStatus();
}

Status KernelEmitter::EmitAssign(const Assign& s) {
  TL_ASSIGN_OR_RETURN(Text value, Rounded(s.var, s.value));
  Line(absl::StrCat(names_.vars[s.var].name, " = ", value.text, ";"));
  return absl::OkStatus();
}

Status KernelEmitter::EmitAlloc(const Alloc& s) {
  const Buffer& b = module_.buffer(s.buffer);
  if (b.arena_offset >= 0) return absl::OkStatus();
  names_.buffers[s.buffer] = absl::StrCat("l", num_locals_++);
  // From level Mapped on a fragment has one element per register, not one per element of the tile.
  const int64_t count = b.layout ? b.layout->slots() : b.num_elements();
  Line(absl::StrCat("TL_LOCAL(", StorageName(b.dtype), ", ", names_.buffers[s.buffer], ", ", count,
                    ");"));
  return absl::OkStatus();
}

Status KernelEmitter::EmitStore(const Store& s) {
  const DType t = module_.buffer(s.buffer).dtype;
  TL_ASSIGN_OR_RETURN(std::string element, exprs_.EmitElement(s.buffer, s.index));
  const std::string_view compound = Compound(s.op, t);
  if (!compound.empty()) {
    TL_ASSIGN_OR_RETURN(std::string value, exprs_.EmitStored(s.value, t));
    Line(absl::StrCat(element, compound, value, ";"));
    return absl::OkStatus();
  }
  ExprRef value = s.value;
  if (s.op != StoreOp::kSet) {
    value = MakeBinary(OperatorOf(s.op), MakeLoad(s.buffer, t, s.index), value);
  }
  TL_ASSIGN_OR_RETURN(std::string text, exprs_.EmitStored(value, t));
  Line(absl::StrCat(element, " = ", text, ";"));
  return absl::OkStatus();
}

Status KernelEmitter::EmitAtomic(const AtomicElement& s) {
  TL_ASSIGN_OR_RETURN(std::string element, exprs_.EmitElement(s.buffer, s.index));
  TL_ASSIGN_OR_RETURN(Text value, exprs_.Emit(s.value));
  Line(absl::StrCat(AtomicName(s.op), "(&", element, ", ", value.text, ");"));
  return absl::OkStatus();
}

Status KernelEmitter::EmitFor(const For& s) {
  TL_ASSIGN_OR_RETURN(Text begin, exprs_.Emit(s.begin));
  TL_ASSIGN_OR_RETURN(Text end, exprs_.Emit(s.end));
  const bool narrow = begin.range.Fits32() && end.range.Fits32() && begin.type == CType::kI32 &&
                      end.type == CType::kI32;
  const CType type = narrow ? CType::kI32 : CType::kI64;
  const bool data = begin.range.data || end.range.data;
  Range range{begin.range.lo, end.range.hi, data};
  if (range.hi != Range::kMax && range.hi != Range::kMin) --range.hi;
  const std::string declared = Declare(s.var, type, range);
  const std::string name = names_.vars[s.var].name;
  if (s.kind == LoopKind::kUnrolled || s.kind == LoopKind::kVectorized) Line(dialect_.unroll);
  // Unrolling a loop over tiles multiplies the compile time and hides no latency.
  if (s.kind != LoopKind::kUnrolled && Waits(s.body)) Line(dialect_.no_unroll);
  // The limit is evaluated once.
  const ExprRef& limit = s.down ? s.begin : s.end;
  const Text& limit_text = s.down ? begin : end;
  const bool stable = Stable(module_, limit);
  const std::string bound = stable ? Wrap(limit_text, kShift) : absl::StrCat(name, "_end");
  const std::string extra = stable ? "" : absl::StrCat(", ", bound, " = ", limit_text.text);
  const std::string head = s.down
                               ? absl::StrCat("for (", declared, " = ", Wrap(end, kSum), " - 1",
                                              extra, "; ", name, " >= ", bound, "; --", name, ")")
                               : absl::StrCat("for (", declared, " = ", begin.text, extra, "; ",
                                              name, " < ", bound, "; ++", name, ")");
  return Braces(head, s.body);
}

std::string_view KernelEmitter::team_thread(Team t) const {
  if (t == Team::kProducer) return "producer_thread";
  return t == Team::kBlock || launch_.groups == 1 ? "thread" : "group_thread";
}

Status KernelEmitter::EmitThreadFor(const ThreadFor& s) {
  TL_ASSIGN_OR_RETURN(Text extent, exprs_.Emit(s.extent));
  const int step = team_threads(s.team);
  // The variable itself runs past the extent by up to one step.
  const Range last = Apply(BinaryOp::kAdd, extent.range, Exactly(step));
  const CType type = last.Fits32() && extent.type == CType::kI32 ? CType::kI32 : CType::kI64;
  Range range{0, extent.range.hi, extent.range.data};
  if (range.hi != Range::kMax && range.hi > 0) --range.hi;
  const std::string declared = Declare(s.var, type, range);
  const std::string name = names_.vars[s.var].name;
  const bool stable = Stable(module_, s.extent);
  const std::string bound = stable ? extent.text : absl::StrCat(name, "_end");
  const std::string extra = stable ? "" : absl::StrCat(", ", bound, " = ", extent.text);
  // Slow already; unrolled, such loops would be most of the code and of the time to compile it.
  if (fallback_) Line(dialect_.no_unroll);
  return Braces(absl::StrCat("for (", declared, " = ", team_thread(s.team), extra, "; ", name,
                             " < ", bound, "; ", name, " += ", step, ")"),
                s.body);
}

Status KernelEmitter::EmitSlotFor(const SlotFor& s) {
  const std::string declared = Declare(s.var, CType::kI32, {0, s.count - 1});
  const std::string name = names_.vars[s.var].name;
  Line(dialect_.unroll);
  return Braces(absl::StrCat("for (", declared, " = 0; ", name, " < ", s.count, "; ++", name, ")"),
                s.body);
}

StatusOr<std::string> KernelEmitter::Address(BufferId buffer, const ExprRef& offset) const {
  TL_ASSIGN_OR_RETURN(std::string element, exprs_.EmitElement(buffer, {offset}));
  return "&" + element;
}

Status KernelEmitter::EmitVectorMove(const VectorMove& s) {
  TL_ASSIGN_OR_RETURN(std::string dst, Address(s.dst, s.dst_offset));
  TL_ASSIGN_OR_RETURN(std::string src, Address(s.src, s.src_offset));
  const int64_t bytes = s.count * SizeOf(module_.buffer(s.dst).dtype);
  const bool from_tensor = module_.buffer(s.src).scope == Scope::kGlobal;
  const std::string_view how = s.evict == Eviction::kNormal ? "move"
                               : from_tensor                ? "load"
                                                            : "store";
  Line(absl::StrCat("tl_", how, "<", bytes, ">(", dst, ", ", src, Hint(s.evict), ");"));
  return absl::OkStatus();
}

Status KernelEmitter::EmitAsyncMove(const AsyncMove& s) {
  TL_ASSIGN_OR_RETURN(std::string dst, Address(s.dst, s.dst_offset));
  TL_ASSIGN_OR_RETURN(std::string src, Address(s.src, s.src_offset));
  TL_ASSIGN_OR_RETURN(Text inside, exprs_.Emit(s.inside));
  const int64_t bytes = s.count * SizeOf(module_.buffer(s.dst).dtype);
  Line(absl::StrCat("tl_async_move<", bytes, ">(", dst, ", ", src, ", ", inside.text, ");"));
  return absl::OkStatus();
}

Status KernelEmitter::EmitLoadMatrix(const LoadMatrix& s) {
  TL_ASSIGN_OR_RETURN(std::string dst, Address(s.dst, s.dst_offset));
  TL_ASSIGN_OR_RETURN(std::string src, Address(s.src, s.src_offset));
  Line(absl::StrCat("tl_load_matrix<", s.matrices, ", ", s.transpose ? "true" : "false", ">(", dst,
                    ", ", src, ");"));
  return absl::OkStatus();
}

Status KernelEmitter::EmitStoreMatrix(const StoreMatrix& s) {
  TL_ASSIGN_OR_RETURN(std::string dst, Address(s.dst, s.dst_offset));
  TL_ASSIGN_OR_RETURN(std::string src, Address(s.src, s.src_offset));
  Line(absl::StrCat("tl_store_matrix<", s.matrices, ", ", s.transpose ? "true" : "false", ">(", dst,
                    ", ", src, ");"));
  return absl::OkStatus();
}

Status KernelEmitter::EmitMma(const Mma& s) {
  if (s.atom < 0 || s.atom >= static_cast<int>(target_.matrix_atoms.size())) {
    return absl::InternalError(absl::StrCat("the target has no matrix instruction ", s.atom));
  }
  TL_ASSIGN_OR_RETURN(std::string a, Address(s.a, s.a_offset));
  TL_ASSIGN_OR_RETURN(std::string b, Address(s.b, s.b_offset));
  TL_ASSIGN_OR_RETURN(std::string c, Address(s.c, s.c_offset));
  Line(absl::StrCat(target_.matrix_atoms[s.atom].name, "(", c, ", ", a, ", ", b, ");"));
  return absl::OkStatus();
}

// "tl_descriptor(&s0[v1 * 8192], 16384, 1024, 128), 32".
StatusOr<std::string> KernelEmitter::InPlace(const MatrixInPlace& m) const {
  TL_ASSIGN_OR_RETURN(std::string at, Address(m.buffer, m.offset));
  if (m.row_bytes == 0) return at;
  return absl::StrCat("tl_descriptor(", at, ", ", m.leading, ", ", m.stride, ", ", m.row_bytes,
                      "), ", m.step);
}

Status KernelEmitter::EmitWgmma(const Wgmma& s) {
  if (s.atom < 0 || s.atom >= static_cast<int>(target_.matrix_atoms.size())) {
    return absl::InternalError(absl::StrCat("the target has no matrix instruction ", s.atom));
  }
  const MatrixAtom& atom = target_.matrix_atoms[s.atom];
  WarpgroupProduct product{
      atom.a,          atom.b,         atom.c, s.n, atom.k, s.steps, s.a.row_bytes == 0,
      s.a.depth_first, s.b.depth_first};
  TL_ASSIGN_OR_RETURN(std::string c, Address(s.c, s.c_offset));
  if (const auto sums = sums_.find(s.c); sums != sums_.end()) {
    const int64_t* first = IntValue(s.c_offset);
    if (!first) return absl::InternalError("the place of a sum among registers is not known");
    product.first = static_cast<int>(*first);
    product.sums = sums->second.number;
    c = NameOf(sums->second);
  }
  parts_.products.insert(product);
  TL_ASSIGN_OR_RETURN(std::string a, InPlace(s.a));
  TL_ASSIGN_OR_RETURN(std::string b, InPlace(s.b));
  Line(absl::StrCat("tl_wgmma<", TemplateArguments(product), ">(", c, ", ", a, ", ", b, ", ",
                    s.add ? "true" : "false", ");"));
  return absl::OkStatus();
}

// Sums are settled, or go in and come out, on the thread's side of the fence, or of the wait.
Status KernelEmitter::EmitWgmmaSync(const WgmmaSync& s) {
  if (s.op == WgmmaSync::Op::kCommit) {
    Line("tl_wgmma_commit();");
    return absl::OkStatus();
  }
  const bool fence = s.op == WgmmaSync::Op::kFence;
  const std::string order =
      fence ? "tl_wgmma_fence();" : absl::StrCat("tl_wgmma_wait<", s.pending, ">();");
  const auto sums = sums_.find(s.c);
  if (sums == sums_.end()) {
    Line(order);
    return absl::OkStatus();
  }
  TL_ASSIGN_OR_RETURN(std::string c, Address(s.c, MakeInt(0)));
  const std::string move =
      absl::StrCat("tl_sums_", fence ? "in(" : "out(", NameOf(sums->second), ", ", c, ");");
  Line(fence ? move : order);
  Line(fence ? order : move);
  return absl::OkStatus();
}

// The other lane's value lies in the same interval: intervals hold for every thread.
Status KernelEmitter::EmitLaneExchange(const LaneExchange& s) {
  TL_ASSIGN_OR_RETURN(Text value, exprs_.Emit(s.value));
  const std::string declared = Declare(s.var, value.type, value.range);
  Line(absl::StrCat("const ", declared, " = tl_lane_xor(", value.text, ", ", s.mask, ");"));
  return absl::OkStatus();
}

Status KernelEmitter::EmitMbarrier(const Mbarrier& s) {
  static constexpr std::string_view kNames[] = {"init", "arrive", "expect", "wait"};
  TL_ASSIGN_OR_RETURN(std::string barrier, Address(s.barriers, s.index));
  if (s.block) {
    TL_ASSIGN_OR_RETURN(Text block, exprs_.Emit(s.block));
    Line(absl::StrCat("tl_mbarrier_arrive_at(", barrier, ", (int)", block.text, ");"));
    return absl::OkStatus();
  }
  std::string value;
  if (s.value) {
    TL_ASSIGN_OR_RETURN(Text text, exprs_.Emit(s.value));
    value = absl::StrCat(", ", text.text);
  }
  Line(absl::StrCat("tl_mbarrier_", kNames[static_cast<size_t>(s.op)], "(", barrier, value, ");"));
  return absl::OkStatus();
}

// Named from the innermost dim on.
StatusOr<std::string> KernelEmitter::BoxPlaces(const std::vector<ExprRef>& at) const {
  std::vector<std::string> places;
  for (size_t d = at.size(); d-- > 0;) {
    TL_ASSIGN_OR_RETURN(Text text, exprs_.Emit(at[d]));
    const std::string_view as_int = text.range.Fits32() ? "(int)(" : "tl_box_place(";
    places.push_back(absl::StrCat(as_int, text.text, ")"));
  }
  return absl::StrCat("{", absl::StrJoin(places, ", "), "}");
}

Status KernelEmitter::EmitBulkLoad(const BulkLoad& s) {
  TL_ASSIGN_OR_RETURN(std::string dst, Address(s.dst, s.dst_offset));
  TL_ASSIGN_OR_RETURN(std::string barrier, Address(s.barriers, s.barrier));
  TL_ASSIGN_OR_RETURN(std::string at, BoxPlaces(s.at));
  std::string blocks;
  if (s.blocks) {
    TL_ASSIGN_OR_RETURN(Text text, exprs_.Emit(s.blocks));
    blocks = absl::StrCat(", (int)(", text.text, ")");
  }
  Line(absl::StrCat("tl_bulk_load", s.blocks ? "_to" : "", "<", s.at.size(), ">(", dst, ", m",
                    s.box, ", ", at, ", ", barrier, blocks, Hint(s.evict), ");"));
  return absl::OkStatus();
}

Status KernelEmitter::EmitBulkStore(const BulkStore& s) {
  TL_ASSIGN_OR_RETURN(std::string src, Address(s.src, s.src_offset));
  TL_ASSIGN_OR_RETURN(std::string at, BoxPlaces(s.at));
  Line(absl::StrCat("tl_bulk_store<", s.at.size(), ">(m", s.box, ", ", at, ", ", src, Hint(s.evict),
                    ");"));
  return absl::OkStatus();
}

void KernelEmitter::EmitBulkSync(const BulkSync& s) {
  if (s.op == BulkSync::Op::kCommit) return Line("tl_bulk_commit();");
  const bool whole = s.op == BulkSync::Op::kWait;
  Line(absl::StrCat(whole ? "tl_bulk_wait<" : "tl_bulk_wait_read<", s.pending, ">();"));
}

Status KernelEmitter::EmitIf(const If& s) {
  TL_ASSIGN_OR_RETURN(Text cond, exprs_.Emit(s.cond));
  TL_RETURN_IF_ERROR(Braces(absl::StrCat("if (", cond.text, ")"), s.then_body));
  if (s.else_body.empty()) return absl::OkStatus();
  const bool outer = std::exchange(fallback_, fallback_ || ChoosesForm(launch_, s.cond));
  TL_RETURN_IF_ERROR(Braces("else", s.else_body));
  fallback_ = outer;
  return absl::OkStatus();
}

Status KernelEmitter::EmitOnFirstThread(const OnFirstThread& s) {
  if (s.team == Team::kWarp) {
    return Braces(absl::StrCat("if (thread % ", target_.warp_size, " == 0)"), s.body);
  }
  return Braces(absl::StrCat("if (", team_thread(s.team), " == 0)"), s.body);
}

// Their end is here: what comes behind is for the others.
Status KernelEmitter::EmitOnProducer(const OnProducer& s) {
  Line(absl::StrCat("if (thread >= ", group_threads(), ") {"));
  ++depth_;
  if (launch_.producer_registers > 0) {
    Line(absl::Substitute(dialect_.fewer_registers, launch_.producer_registers));
  }
  TL_RETURN_IF_ERROR(EmitBlock(s.body));
  Line("return;");
  --depth_;
  Line("}");
  if (launch_.registers > 0) Line(absl::Substitute(dialect_.more_registers, launch_.registers));
  return absl::OkStatus();
}

void KernelEmitter::EmitBarrier(Team team) {
  if (team == Team::kCluster) return Line("tl_cluster_barrier();");
  if (team == Team::kWarp) return Line(dialect_.warp_barrier);
  if (team == Team::kProducer) {
    return Line(absl::Substitute(dialect_.group_barrier, launch_.groups, launch_.producers));
  }
  if (team == Team::kGroup && launch_.groups > 1) {
    return Line(absl::Substitute(dialect_.group_barrier, "group", threads_));
  }
  if (team == Team::kEveryone || launch_.producers == 0) return Line(dialect_.barrier);
  Line(absl::Substitute(dialect_.block_barrier, group_threads()));
}

void KernelEmitter::Line(std::string_view text) {
  if (text.empty()) return;
  out_.append(2 * depth_, ' ');
  absl::StrAppend(&out_, text, "\n");
}

Status KernelEmitter::Braces(std::string_view head, const Block& block) {
  Line(absl::StrCat(head, " {"));
  ++depth_;
  TL_RETURN_IF_ERROR(EmitBlock(block));
  --depth_;
  Line("}");
  return absl::OkStatus();
}

}  // namespace tl
