// `parallel` and the element statements inside it.
#include <algorithm>
#include <array>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "backends/reference/agent.h"
#include "backends/reference/error_model.h"

namespace tl::reference {
namespace {

BinaryOp OperatorOf(AtomicOp op) {
  switch (op) {
    case AtomicOp::kAdd:
      return BinaryOp::kAdd;
    case AtomicOp::kMin:
      return BinaryOp::kMin;
    default:
      return BinaryOp::kMax;
  }
}

// Iterations of one `parallel` are told apart by the low bits of a stamp.
constexpr int kIterationBits = 40;

}  // namespace

bool Agent::Exec(const Stmt&, const Parallel& parallel) {
  const int rank = static_cast<int>(parallel.vars.size());
  Index extent{};
  std::copy(parallel.extents.begin(), parallel.extents.end(), extent.begin());
  // Stamps never repeat in a block: shared tiles see those of all groups.
  parallel_ = static_cast<uint64_t>(++block_->parallels);
  iteration_ = 0;
  ForEachCoordinate(rank, extent, [&](const Index& c) {
    if (failed()) return;
    for (int d = 0; d < rank; ++d) vars_[parallel.vars[d]] = IntOf(c[d]);
    ++iteration_;
    Run(parallel.body);
  });
  block_->work += static_cast<int64_t>(iteration_);
  parallel_ = 0;
  return !failed();
}

bool Agent::Exec(const Stmt& s, const Store& store) {
  Index index;
  bool uncertain = false;
  if (!EvalIndex(store.index, store.buffer, "write", s.span, &index, &uncertain)) return false;
  Value value = Eval(store.value);
  if (failed()) return false;
  if (uncertain) value.err = std::numeric_limits<double>::infinity();
  const Buffer& b = buffer(store.buffer);
  if (b.scope == Scope::kGlobal) {
    Tensor& tensor = machine_->tensor(store.buffer);
    return StoreTo(s, store, nullptr, tensor.Offset(index), value);
  }
  Tile* tile = FindTile(store.buffer, s.span);
  if (tile == nullptr) return false;
  int64_t at = 0;
  for (size_t d = 0; d < b.extents.size(); ++d) at = at * b.extents[d] + index[d];
  return StoreTo(s, store, tile, at, value);
}

// `tile` null: the global tensor at offset `at`.
bool Agent::StoreTo(const Stmt& s, const Store& store, Tile* tile, int64_t at, Value value) {
  const Buffer& b = buffer(store.buffer);
  const ScalarType type = ComputeType(b.dtype);
  Tensor* tensor = tile == nullptr ? &machine_->tensor(store.buffer) : nullptr;
  Value old;
  if (store.op != StoreOp::kSet || doubt_ != Doubt::kNone) {
    old = tensor != nullptr ? tensor->Get(at) : Value{.c = tile->data.cell[at]};
    if (tile != nullptr && exact_) {
      old.err = tile->data.err[at];
      if (!tile->data.def[at]) old.undefined = store.buffer;
    }
    if (tile != nullptr && exact_ && !CheckRace(*tile, at, s.span, "updates")) return false;
  }
  value = arith_.Convert(b.dtype, type, Combine(store.op, b.dtype, old, value));
  if (doubt_ == Doubt::kNotTaken) {
    if (old.undefined != kNoId) return true;
    value = WidenByOther(old, value, type);
  } else if (doubt_ == Doubt::kTaken && old.undefined == kNoId) {
    value = WidenByOther(value, old, type);
  }
  if (tensor != nullptr) {
    if (value.undefined != kNoId && exact_ && b.role != BufferRole::kWorkspace) {
      Fail(s.span, absl::StrCat("writes to '", b.name, "' a value that depends on an element of ",
                                Quoted(value.undefined), " that nothing has written"));
      return false;
    }
    tensor->Set(at, value);
    return true;
  }
  if (exact_ && parallel_ != 0 && !tile->writer.empty()) {
    // Two iterations may store the same value to one place, not different ones.
    const uint64_t stamp = parallel_ << kIterationBits | iteration_;
    const bool same = tile->data.cell[at].i == value.c.i;
    if (!same && !CheckRace(*tile, at, s.span, "overwrites")) return false;
    tile->writer[at] = stamp;
  }
  tile->data.cell[at] = value.c;
  if (exact_) {
    tile->data.err[at] = value.err;
    tile->data.def[at] = value.undefined == kNoId;
  }
  return true;
}

Value Agent::Combine(StoreOp op, DType t, const Value& old, const Value& value) const {
  if (op == StoreOp::kSet) return value;
  return arith_.Binary(OperatorOf(op), ComputeType(t), old, value);
}

// Whether another iteration of the running `parallel` has stored the element.
bool Agent::CheckRace(const Tile& tile, int64_t at, const Span& span, std::string_view action) {
  if (parallel_ == 0 || tile.writer.empty()) return true;
  const uint64_t stamp = tile.writer[at];
  if (stamp >> kIterationBits != parallel_ || stamp == (parallel_ << kIterationBits | iteration_)) {
    return true;
  }
  Fail(span, absl::StrCat("iterations of 'parallel' depend on each other: one ", action,
                          " an element of ", Quoted(tile.id), " that another one has stored"));
  return false;
}

// The condition lies within its error: run both sides; stores then cover both outcomes.
bool Agent::ExecDoubtful(const If& branch, bool taken) {
  const Doubt outer = doubt_;
  doubt_ = outer == Doubt::kNotTaken ? outer : Doubt::kTaken;
  const bool ok = Run(taken ? branch.then_body : branch.else_body);
  if (ok) {
    doubt_ = Doubt::kNotTaken;
    Run(taken ? branch.else_body : branch.then_body);
    if (failed()) block_->status = absl::OkStatus();  // what the condition was to prevent
  }
  doubt_ = outer;
  return ok;
}

bool Agent::Exec(const Stmt& s, const AtomicElement& atomic) {
  Index index;
  bool uncertain = false;
  if (!EvalIndex(atomic.index, atomic.buffer, "atomic update", s.span, &index, &uncertain)) {
    return false;
  }
  const Buffer& b = buffer(atomic.buffer);
  const Value value = arith_.Convert(b.dtype, ComputeType(b.dtype), Eval(atomic.value));
  if (failed()) return false;
  if (b.scope == Scope::kGlobal) {
    Tensor& tensor = machine_->tensor(atomic.buffer);
    AtomicAt(s, atomic.op, &tensor, tensor.Offset(index), value);
    return !failed();
  }
  Tile* tile = FindTile(atomic.buffer, s.span);
  if (tile == nullptr) return false;
  const TileView view = ViewOf(atomic.buffer, b.dtype, b.extents, &tile->data);
  const int64_t at = view.At(index);
  const ScalarType type = ComputeType(b.dtype);
  const Value old = view.Get(at);
  const Value sum = arith_.Binary(OperatorOf(atomic.op), type, old, value);
  view.Set(at, Updated(old, arith_.Convert(b.dtype, type, sum), type));
  return true;
}

// In any order of the updates: each may round at the size of what has come together.
void Agent::AtomicAt(const Stmt& s, AtomicOp op, Tensor* tensor, int64_t offset,
                     const Value& value) {
  const DType t = tensor->buffer().dtype;
  const ScalarType type = ComputeType(t);
  const Value old = tensor->Get(offset);
  if (old.undefined != kNoId && exact_) {
    Fail(s.span, absl::StrCat("atomic update of an element of '", tensor->buffer().name,
                              "' that nothing has written"));
    return;
  }
  if (value.undefined != kNoId && exact_) {
    Fail(s.span, absl::StrCat("adds a value that depends on an element of ",
                              Quoted(value.undefined), " that nothing has written"));
    return;
  }
  Value r = arith_.Convert(t, type, arith_.Binary(OperatorOf(op), type, old, value));
  if (exact_ && op == AtomicOp::kAdd && IsFloat(t)) {
    r.err += Epsilon(t) * (std::abs(old.c.f) + std::abs(value.c.f));
  }
  tensor->Set(offset, Updated(old, r, type));
}

// An update behind a condition that lies within its error happens or does not.
Value Agent::Updated(const Value& old, const Value& updated, ScalarType type) const {
  if (doubt_ == Doubt::kTaken) return WidenByOther(updated, old, type);
  if (doubt_ == Doubt::kNotTaken) return WidenByOther(old, updated, type);
  return updated;
}

}  // namespace tl::reference
