#include "passes/lowering.h"

#include <limits>
#include <string>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "ir/address.h"
#include "ir/visit.h"
#include "passes/notes.h"

namespace tl {
namespace {

// Is `term` one of those that `e` joins by `and`?
bool HasTerm(const ExprRef& e, const ExprRef& term) {
  const Binary* both = As<Binary>(e);
  if (both && both->op == BinaryOp::kAnd)
    return HasTerm(both->lhs, term) || HasTerm(both->rhs, term);
  return Equal(e, term);
}

absl::flat_hash_set<BufferId> WrittenTensors(const Module& m, const Block& body) {
  absl::flat_hash_set<BufferId> written;
  const auto add = [&](BufferId id) {
    if (m.buffer(id).scope == Scope::kGlobal) written.insert(id);
  };
  VisitStmts(body, [&](const StmtRef& s) {
    VisitRegions(*s, [&](const Region& r, bool write) {
      if (write) add(r.buffer);
    });
    if (const Store* x = As<Store>(s)) add(x->buffer);
    if (const AtomicElement* x = As<AtomicElement>(s)) add(x->buffer);
  });
  return written;
}

}  // namespace

ExprRef Add(ExprRef a, ExprRef b) { return MakeBinary(BinaryOp::kAdd, std::move(a), std::move(b)); }
ExprRef Sub(ExprRef a, ExprRef b) { return MakeBinary(BinaryOp::kSub, std::move(a), std::move(b)); }
ExprRef Mul(ExprRef a, ExprRef b) { return MakeBinary(BinaryOp::kMul, std::move(a), std::move(b)); }
ExprRef Div(ExprRef a, int64_t b) { return MakeBinary(BinaryOp::kDiv, std::move(a), MakeInt(b)); }
ExprRef Mod(ExprRef a, int64_t b) { return MakeBinary(BinaryOp::kMod, std::move(a), MakeInt(b)); }
ExprRef Min(ExprRef a, ExprRef b) { return MakeBinary(BinaryOp::kMin, std::move(a), std::move(b)); }
ExprRef Max(ExprRef a, ExprRef b) { return MakeBinary(BinaryOp::kMax, std::move(a), std::move(b)); }
ExprRef Less(ExprRef a, ExprRef b) { return MakeBinary(BinaryOp::kLt, std::move(a), std::move(b)); }
ExprRef And(ExprRef a, ExprRef b) {
  if (HasTerm(a, b)) return a;
  return MakeBinary(BinaryOp::kAnd, std::move(a), std::move(b));
}

ExprRef Zero(ScalarType type) {
  if (type == ScalarType::kBool) return MakeBool(false);
  if (type == ScalarType::kInt) return MakeInt(0);
  return MakeFloat(0, type);
}

DType WideDType(ScalarType type) {
  switch (type) {
    case ScalarType::kBool:
      return DType::kBool;
    case ScalarType::kInt:
      return DType::kI64;
    case ScalarType::kF32:
      return DType::kF32;
    case ScalarType::kF64:
      break;
  }
  return DType::kF64;
}

ExprRef IdentityOf(ReduceOp op, DType dtype) {
  const double v = Identity(op, dtype);
  const ScalarType type = ComputeType(dtype);
  if (type == ScalarType::kBool) return MakeBool(v != 0);
  if (type != ScalarType::kInt) return MakeFloat(v, type);
  // The largest i64 is no double and arrives one too large.
  return MakeInt(v >= 0x1p63 ? std::numeric_limits<int64_t>::max() : static_cast<int64_t>(v));
}

ExprRef ConvertTo(DType to, const ExprRef& v) {
  const ScalarType type = ComputeType(to);
  if (v->type == type) return v;
  if (type == ScalarType::kBool) return MakeBinary(BinaryOp::kNe, v, Zero(v->type));
  return MakeCast(to, v);
}

ExprRef ElementValue(DType to, const ExprRef& v) { return MakeCast(to, ConvertTo(to, v)); }

std::vector<int64_t> Without(const std::vector<int64_t>& extents, int dim) {
  std::vector<int64_t> out = extents;
  out.erase(out.begin() + dim);
  return out;
}

Lowering::Lowering(Module& module, const Target& target, const Launch& launch, bool may_stage)
    : m_(module),
      target_(target),
      launch_(launch),
      cooperative_(target.simt || (target.channels && launch.groups > 1)),
      may_stage_(may_stage),
      stores_(module, target, launch),
      partial_sums_(FindPartialSums(module, launch)),
      written_(WrittenTensors(module, launch.body)) {}

const std::vector<int>* Lowering::LanesOf(BufferId reducer) const {
  const auto it = partial_sums_.find(reducer);
  return it == partial_sums_.end() ? nullptr : &it->second;
}

int Lowering::Box(TensorBox box) {
  for (size_t i = 0; i < boxes_.size(); ++i) {
    box.usable = boxes_[i].usable;
    if (box == boxes_[i]) return static_cast<int>(i);
  }
  box.usable = m_.AddVar("usable", ScalarType::kInt, VarRole::kThread, launch_.span);
  intervals_.Set(box.usable, {0, 1});
  boxes_.push_back(std::move(box));
  return static_cast<int>(boxes_.size()) - 1;
}

ExprRef Lowering::PlaceInCluster(int axis) const {
  int64_t before = 1, behind = 1;
  for (int i = 0; i < static_cast<int>(launch_.cluster.size()); ++i) {
    if (i < axis) before *= launch_.cluster[i];
    if (i > axis) behind *= launch_.cluster[i];
  }
  const ExprRef rest = Div(Read(launch_.rank), before);
  return behind == 1 ? rest : Mod(rest, launch_.cluster[axis]);
}

int64_t Lowering::team_size() const {
  if (in_producer_) return launch_.producers;
  const int64_t per_group = launch_.threads > 0 ? launch_.threads : target_.default_threads;
  return in_group() ? per_group : per_group * launch_.groups;
}

void Lowering::Note(std::string_view what, std::string_view text) {
  std::string note = absl::StrCat(what, tl::At(span_), ": ", text);
  if (!absl::c_linear_search(m_.notes, note)) m_.notes.push_back(std::move(note));
}

Block Lowering::Capture(absl::FunctionRef<void()> make) {
  Block block;
  Block* const outer = std::exchange(out_, &block);
  make();
  out_ = outer;
  return block;
}

ExprRef Lowering::NewLet(std::string_view name, ExprRef value) {
  const ScalarType type = value->type;
  const VarId var = m_.AddVar(std::string(name), type, VarRole::kLet, span_);
  intervals_.Set(var, intervals_.Of(m_, value));
  if (type == ScalarType::kInt) divisors_[var] = DivisorOf(value);
  Emit(Let{var, std::move(value)});
  return MakeVar(var, type, span_);
}

ExprRef Lowering::Named(std::string_view name, ExprRef value) {
  const bool atom =
      As<IntLit>(value) || As<FloatLit>(value) || As<BoolLit>(value) || As<VarRef>(value);
  return atom ? value : NewLet(name, std::move(value));
}

ExprRef Lowering::Fixed(std::string_view name, ExprRef value) {
  const bool changes = AnyNode(value, [&](const ExprRef& node) {
    const VarRef* ref = As<VarRef>(node);
    return As<Load>(node) || (ref && m_.var(ref->var).role == VarRole::kMutable);
  });
  return changes ? NewLet(name, std::move(value)) : value;
}

VarId Lowering::Mutable(std::string_view name, DType dtype, ExprRef init) {
  const VarId var = m_.AddVar(std::string(name), ComputeType(dtype), VarRole::kMutable, span_);
  m_.vars[var].dtype = dtype;
  Set(var, std::move(init));
  return var;
}

ExprRef Lowering::Read(VarId var) const { return MakeVar(var, m_.var(var).type, span_); }

void Lowering::EmitIf(const ExprRef& cond, absl::FunctionRef<void()> body) {
  if (const BoolLit* known = As<BoolLit>(cond)) {
    if (known->value) body();
    return;
  }
  Block then_body = Capture(body);
  Emit(If{cond, std::move(then_body), {}});
}

void Lowering::EmitIfElse(const ExprRef& cond, absl::FunctionRef<void()> yes,
                          absl::FunctionRef<void()> no) {
  if (const BoolLit* known = As<BoolLit>(cond)) return known->value ? yes() : no();
  Block then_body = Capture(yes);
  Block else_body = Capture(no);
  Emit(If{cond, std::move(then_body), std::move(else_body)});
}

void Lowering::Serial(std::string_view name, ExprRef begin, ExprRef end,
                      absl::FunctionRef<void(const ExprRef&)> body, bool down) {
  const VarId var = m_.AddVar(std::string(name), ScalarType::kInt, VarRole::kLoop, span_);
  intervals_.SetLoop(m_, var, begin, end);
  Block block = Capture([&] { body(Read(var)); });
  Emit(For{LoopKind::kSerial, var, std::move(begin), std::move(end), down, 1, std::move(block)});
}

void Lowering::Threads(std::string_view name, ExprRef extent,
                       absl::FunctionRef<void(const ExprRef&)> body) {
  if (IsInt(extent, 0)) return;
  const VarId var = m_.AddVar(std::string(name), ScalarType::kInt, VarRole::kLoop, span_);
  intervals_.SetLoop(m_, var, MakeInt(0), extent);
  Block block = Capture([&] { body(Read(var)); });
  Emit(ThreadFor{team(), var, std::move(extent), std::move(block)});
}

void Lowering::ForEach(const std::vector<int64_t>& extents,
                       absl::FunctionRef<void(const Coords&)> body) {
  std::vector<VarId> vars;
  Coords coords;
  for (size_t d = 0; d < extents.size(); ++d) {
    const std::string name(1, static_cast<char>('i' + d));
    vars.push_back(m_.AddVar(name, ScalarType::kInt, VarRole::kLoop, span_));
    coords.push_back(Read(vars.back()));
  }
  ForEachVar(vars, extents, [&] { body(coords); });
}

void Lowering::ForEachVar(const std::vector<VarId>& vars, const std::vector<int64_t>& extents,
                          absl::FunctionRef<void()> body) {
  int64_t count = 1;
  for (size_t d = 0; d < vars.size(); ++d) {
    intervals_.Set(vars[d], {0, extents[d] - 1});
    count *= extents[d];
  }
  if (count == 0) return;
  const Team team = this->team();
  if (vars.size() == 1) {
    decode_ = {extents, vars, vars[0]};
    Block block = Capture(body);
    decode_ = {};
    Emit(ThreadFor{team, vars[0], MakeInt(count), std::move(block)});
    return;
  }
  if (flat() || vars.empty()) {
    Threads("e", MakeInt(count), [&](const ExprRef& e) {
      ExprRef rest = e;
      std::vector<ExprRef> values(vars.size());
      for (size_t d = vars.size(); d-- > 0;) {
        const ExprRef extent = MakeInt(extents[d]);
        values[d] = d == 0 ? rest : MakeBinary(BinaryOp::kMod, rest, extent);
        rest = MakeBinary(BinaryOp::kDiv, rest, extent);
      }
      for (size_t d = 0; d < vars.size(); ++d) Emit(Let{vars[d], values[d]});
      decode_ = {extents, vars, As<VarRef>(e)->var};
      body();
      decode_ = {};
    });
    return;
  }
  Block block = Capture(body);
  block = {MakeStmt(ThreadFor{team, vars.back(), MakeInt(extents.back()), std::move(block)}, span_,
                    id_)};
  for (size_t d = vars.size() - 1; d-- > 0;) {
    block = {MakeStmt(For{LoopKind::kSerial, vars[d], MakeInt(0), MakeInt(extents[d]), false, 1,
                          std::move(block)},
                      span_, id_)};
  }
  out_->push_back(block[0]);
}

BufferId Lowering::Scratch(std::string_view name, DType dtype, std::vector<int64_t> extents) {
  Buffer b;
  b.name = std::string(name);
  b.span = span_;
  b.scope = Scope::kFragment;
  b.role = BufferRole::kTile;
  b.dtype = dtype;
  b.extents = std::move(extents);
  const BufferId id = m_.AddBuffer(std::move(b));
  if (in_group()) MakePrivate(id);
  Emit(Alloc{id});
  return id;
}

ExprRef Lowering::Lowered(const ExprRef& e) {
  const ExprRef value = RewriteExpr(e, [&](const ExprRef& node) -> ExprRef {
    const Load* load = As<Load>(node);
    if (!load) return nullptr;
    return MakeLoad(load->buffer, buffer(load->buffer).dtype, {Offset(load->buffer, load->index)},
                    node->span);
  });
  return cooperative_ && !apart_ && MayDiffer(value) ? ByOneThread(value) : value;
}

void Lowering::Apart(absl::FunctionRef<void()> body) {
  const bool outer = std::exchange(apart_, true);
  body();
  apart_ = outer;
}

bool Lowering::MayDiffer(const ExprRef& value) const {
  return AnyNode(value, [&](const ExprRef& node) {
    const Load* load = As<Load>(node);
    return load && written_.contains(load->buffer);
  });
}

ExprRef Lowering::ByOneThread(const ExprRef& value) {
  const BufferId cell = Scratch("agreed", WideDType(value->type), {1});
  Block body = Capture([&] { StoreAt(cell, {MakeInt(0)}, value); });
  Emit(OnFirstThread{team(), std::move(body)});
  return Named("agreed", LoadAt(cell, {MakeInt(0)}));
}

Region Lowering::Prepared(const Region& r) {
  Region out = r;
  for (ExprRef& e : out.offset) e = Fixed("at", Lowered(e));
  return out;
}

bool Lowering::IsDecoded(const Buffer& b, const Coords& index) const {
  if (decode_.flat == kNoId || b.extents != decode_.extents || b.swizzle != Swizzle{}) return false;
  for (size_t d = 0; d < index.size(); ++d) {
    const VarRef* ref = As<VarRef>(index[d]);
    // A dimension of one element may be indexed by its variable or by 0.
    if (ref ? ref->var != decode_.vars[d] : b.extents[d] != 1 || !IsInt(index[d], 0)) return false;
  }
  return true;
}

ExprRef Lowering::Offset(BufferId id, const Coords& index) const {
  const Buffer& b = buffer(id);
  if (b.scope == Scope::kGlobal) return TensorOffset(m_, id, index);
  if (b.layout) return SlotOfIndex(id, index);
  ExprRef offset = IsDecoded(b, index) ? MakeVar(decode_.flat, ScalarType::kInt, span_)
                                       : TensorOffset(m_, id, index);
  return Add(GroupOffset(id), std::move(offset));
}

ExprRef Lowering::GroupOffset(BufferId id) const {
  if (!private_.contains(id)) return MakeInt(0);
  const ExprRef group = MakeVar(launch_.group, ScalarType::kInt, span_);
  return Mul(group, MakeInt(buffer(id).num_elements()));
}

ExprRef Lowering::LoadAt(BufferId id, const Coords& index) const {
  return MakeLoad(id, buffer(id).dtype, {Offset(id, index)}, span_);
}

void Lowering::StoreAt(BufferId id, const Coords& index, const ExprRef& value) {
  Emit(Store{id, {Offset(id, index)}, StoreOp::kSet, ConvertTo(buffer(id).dtype, value)});
}

Coords Lowering::Index(const Region& r, const Coords& c) {
  Coords index = r.offset;
  for (size_t i = 0; i < r.dims.size(); ++i) index[r.dims[i]] = Add(index[r.dims[i]], c[i]);
  return index;
}

Region Lowering::Whole(BufferId tile) const { return WholeTile(buffer(tile), tile); }

bool Lowering::SameWindow(const Region& a, const Region& b) {
  if (a.dims != b.dims || a.extents != b.extents) return false;
  for (size_t d = 0; d < a.offset.size(); ++d) {
    if (!Equal(a.offset[d], b.offset[d])) return false;
  }
  return true;
}

ExprRef Lowering::Inside(BufferId tensor, const Coords& index, int skip) const {
  const Buffer& b = buffer(tensor);
  ExprRef inside = MakeBool(true);
  for (int d = 0; d < b.rank(); ++d) {
    if (d == skip) continue;
    const Interval i = intervals_.Of(m_, index[d]);
    if (i.lo < 0) {
      inside = And(std::move(inside), MakeBinary(BinaryOp::kGe, index[d], MakeInt(0)));
    }
    const VarRef* ref = As<VarRef>(index[d]);
    const auto limit = ref ? limits_.find(ref->var) : limits_.end();
    if (limit != limits_.end() && Equal(limit->second, b.shape[d])) continue;
    if (i.hi == Interval::kMax || i.hi >= intervals_.Of(m_, b.shape[d]).lo) {
      inside = And(std::move(inside), Less(index[d], b.shape[d]));
    }
  }
  return inside;
}

}  // namespace tl
