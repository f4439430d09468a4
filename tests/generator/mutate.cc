#include "tests/generator/mutate.h"

#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/match.h"
#include "ir/visit.h"

namespace tl::generator {
namespace {

// Offers every statement and expression to a bug; the chosen one of those that it takes is changed.
class Planter : public StmtMapper {
 public:
  // A replacement, or nothing where the bug has no place.
  using OnStmt = absl::FunctionRef<std::optional<Block>(const StmtRef&)>;
  using OnExpr = absl::FunctionRef<ExprRef(const ExprRef&)>;

  Planter(OnStmt on_stmt, OnExpr on_expr, int64_t chosen)
      : stmt_(on_stmt), expr_(on_expr), left_(chosen) {}

  Block MapBlock(const Block& b) override {
    Block out;
    for (const StmtRef& s : b) {
      std::optional<Block> replacement = stmt_(s);
      if (replacement && Take()) {
        out.insert(out.end(), replacement->begin(), replacement->end());
      } else {
        out.push_back(MapStmt(s));
      }
    }
    return out;
  }
  ExprRef MapExpr(const ExprRef& e) override {
    const ExprRef replacement = expr_(e);
    if (replacement && Take()) return replacement;
    return MapChildren(e, [&](const ExprRef& child) { return MapExpr(child); });
  }

  int64_t places() const { return places_; }

 private:
  bool Take() {
    ++places_;
    return left_-- == 0;
  }

  OnStmt stmt_;
  OnExpr expr_;
  int64_t left_;
  int64_t places_ = 0;
};

std::optional<Block> NoStmt(const StmtRef&) { return std::nullopt; }
ExprRef NoExpr(const ExprRef&) { return nullptr; }

int64_t Apply(Module& m, Planter::OnStmt on_stmt, Planter::OnExpr on_expr, int64_t chosen) {
  Planter planter(on_stmt, on_expr, chosen);
  for (Launch& launch : m.launches) launch.body = planter.MapBlock(launch.body);
  return planter.places();
}

bool Plant(Module& m, uint64_t seed, Planter::OnStmt on_stmt, Planter::OnExpr on_expr) {
  const int64_t places = Apply(m, on_stmt, on_expr, -1);
  if (places == 0) return false;
  Apply(m, on_stmt, on_expr, static_cast<int64_t>(seed % static_cast<uint64_t>(places)));
  return true;
}

template <typename T>
Block With(const StmtRef& s, T node) {
  return {MakeStmt(std::move(node), s->span, s->id)};
}

// i * 24 becomes i * 25.
bool WrongStride(Module& m, uint64_t seed) {
  const auto index = [](const ExprRef& e) -> ExprRef {
    const Load* load = As<Load>(e);
    if (!load || load->index.size() != 1) return nullptr;
    bool done = false;
    const ExprRef wrong = RewriteExpr(load->index[0], [&](const ExprRef& x) -> ExprRef {
      const Binary* b = As<Binary>(x);
      const int64_t* by = b && b->op == BinaryOp::kMul ? IntValue(b->rhs) : nullptr;
      if (done || by == nullptr || *by < 2) return nullptr;
      done = true;
      return MakeBinary(BinaryOp::kMul, b->lhs, MakeInt(*by + 1));
    });
    return done ? RewriteExpr(
                      e,
                      [&](const ExprRef& x) { return Equal(x, load->index[0]) ? wrong : nullptr; })
                : nullptr;
  };
  return Plant(m, seed, NoStmt, index);
}

bool StoresToTensor(const Module& m, const Block& body) {
  bool found = false;
  VisitStmts(body, [&](const StmtRef& s) {
    const Store* store = As<Store>(s);
    found = found || (store && m.buffer(store->buffer).scope == Scope::kGlobal);
  });
  return found;
}

bool MissingGuard(Module& m, uint64_t seed) {
  const auto guard = [&](const StmtRef& s) -> std::optional<Block> {
    const If* branch = As<If>(s);
    if (!branch || !branch->else_body.empty() || !StoresToTensor(m, branch->then_body))
      return std::nullopt;
    return branch->then_body;
  };
  const auto select = [&](const ExprRef& e) -> ExprRef {
    const Select* x = As<Select>(e);
    const Load* load = x ? As<Load>(x->yes) : nullptr;
    return load && m.buffer(load->buffer).scope == Scope::kGlobal ? x->yes : nullptr;
  };
  return Plant(m, seed, guard, select);
}

bool LostBarrier(Module& m, uint64_t seed) {
  return Plant(
      m, seed,
      [](const StmtRef& s) {
        return As<Barrier>(s) ? std::optional<Block>(Block()) : std::nullopt;
      },
      NoExpr);
}

bool IsSquare(const Region& r) {
  return r.rank() == 2 && r.extents[0] == r.extents[1] && r.extents[0] > 1;
}

bool SwappedTranspose(Module& m, uint64_t seed) {
  const auto swap = [](const StmtRef& s) -> std::optional<Block> {
    if (const Gemm* gemm = As<Gemm>(s); gemm && (IsSquare(gemm->a) || IsSquare(gemm->b))) {
      Gemm wrong = *gemm;
      (IsSquare(gemm->a) ? wrong.transpose_a : wrong.transpose_b) ^= true;
      return With(s, wrong);
    }
    if (const Copy* copy = As<Copy>(s); copy && IsSquare(copy->src)) {
      Copy wrong = *copy;
      wrong.transpose = !copy->transpose;
      return With(s, wrong);
    }
    return std::nullopt;
  };
  return Plant(m, seed, swap, NoExpr);
}

// Narrow floats cut off instead of rounded, or ints rounded instead of cut off.
bool WrongRounding(Module& m, uint64_t seed) {
  const auto truncate = [&](const StmtRef& s) -> std::optional<Block> {
    const Store* store = As<Store>(s);
    if (!store) return std::nullopt;
    const DType t = m.buffer(store->buffer).dtype;
    const ScalarType type = store->value->type;
    if (!IsFloat(t) || Epsilon(t) < 1e-5 || !IsFloat(type)) return std::nullopt;
    Store wrong = *store;
    wrong.value = MakeBinary(BinaryOp::kMul, store->value, MakeFloat(1 - Epsilon(t) * 0.4, type));
    return With(s, wrong);
  };
  const auto round = [](const ExprRef& e) -> ExprRef {
    const Cast* cast = As<Cast>(e);
    if (!cast || IsFloat(cast->to) || !IsFloat(cast->arg->type)) return nullptr;
    return MakeCast(cast->to, MakeCall(MathFn::kRound, {cast->arg}));
  };
  return Plant(m, seed, truncate, round);
}

bool WrongPredicate(Module& m, uint64_t seed) {
  return Plant(m, seed, NoStmt, [](const ExprRef& e) -> ExprRef {
    const Binary* b = As<Binary>(e);
    if (!b || b->op != BinaryOp::kLt || b->lhs->type != ScalarType::kInt) return nullptr;
    return MakeBinary(BinaryOp::kLe, b->lhs, b->rhs);
  });
}

bool StaleSlot(Module& m, uint64_t seed) {
  return Plant(m, seed, NoStmt, [&](const ExprRef& e) -> ExprRef {
    const Load* load = As<Load>(e);
    if (!load || !absl::EndsWith(m.buffer(load->buffer).name, "_lag")) return nullptr;
    const int64_t slots = m.buffer(load->buffer).extents[0];
    const int64_t size = m.buffer(load->buffer).num_elements() / slots;
    if (slots < 2) return nullptr;
    const ExprRef next = MakeBinary(BinaryOp::kAdd, load->index[0], MakeInt(size));
    return MakeLoad(load->buffer, m.buffer(load->buffer).dtype,
                    {MakeBinary(BinaryOp::kMod, next, MakeInt(size * slots))});
  });
}

bool OffByOneTrip(Module& m, uint64_t seed) {
  const auto shorten = [](const StmtRef& s) -> std::optional<Block> {
    const For* loop = As<For>(s);
    if (!loop) return std::nullopt;
    For wrong = *loop;
    wrong.end = MakeBinary(BinaryOp::kSub, loop->end, MakeInt(1));
    return With(s, wrong);
  };
  return Plant(m, seed, shorten, NoExpr);
}

// A tile where another one lies.
bool WrongArenaOffset(Module& m, uint64_t seed) {
  std::vector<BufferId> tiles;
  for (size_t i = 0; i < m.buffers.size(); ++i) {
    if (m.buffers[i].arena_offset >= 0) tiles.push_back(static_cast<BufferId>(i));
  }
  if (tiles.size() < 2) return false;
  const size_t a = seed % tiles.size(), b = (a + 1 + seed / 7 % (tiles.size() - 1)) % tiles.size();
  Buffer& moved = m.buffers[static_cast<size_t>(tiles[a])];
  const int64_t at = m.buffer(tiles[b]).arena_offset;
  const int64_t end = at + moved.num_elements() * static_cast<int64_t>(SizeOf(moved.dtype));
  for (const Launch& launch : m.launches) {
    if (end > launch.arena_bytes) return false;
  }
  if (moved.arena_offset == at) return false;
  moved.arena_offset = at;
  return true;
}

bool WrongIdentity(Module& m, uint64_t seed) {
  const auto start = [&](const StmtRef& s) -> std::optional<Block> {
    const Assign* assign = As<Assign>(s);
    if (!assign || m.var(assign->var).name != "acc") return std::nullopt;
    Assign wrong = *assign;
    if (const FloatLit* lit = As<FloatLit>(assign->value)) {
      wrong.value = MakeFloat(std::isinf(lit->value) ? 0 : 1 - lit->value, assign->value->type);
    } else if (const int64_t* lit = IntValue(assign->value)) {
      wrong.value = MakeInt(*lit == 0 ? 1 : 0);
    } else if (const BoolLit* lit = As<BoolLit>(assign->value)) {
      wrong.value = MakeBool(!lit->value);
    } else {
      return std::nullopt;
    }
    return With(s, wrong);
  };
  return Plant(m, seed, start, NoExpr);
}

// A loop reads another slot of its ring than the one that was waited for.
bool WrongPhase(Module& m, uint64_t seed) {
  const auto slot = [&](const StmtRef& s) -> std::optional<Block> {
    const Let* let = As<Let>(s);
    if (!let || m.var(let->var).name != "slot") return std::nullopt;
    Let wrong = *let;
    const ExprRef first = MakeBinary(BinaryOp::kEq, let->value, MakeInt(0));
    wrong.value = MakeSelect(first, MakeInt(1), MakeInt(0));
    return With(s, wrong);
  };
  return Plant(m, seed, slot, NoExpr);
}

// Index arithmetic in too few bits: 8 here, so that small tensors show it.
bool NarrowIndex(Module& m, uint64_t seed) {
  const auto index = [&](const ExprRef& e) -> ExprRef {
    const Load* load = As<Load>(e);
    if (!load || m.buffer(load->buffer).scope != Scope::kGlobal || As<IntLit>(load->index[0])) {
      return nullptr;
    }
    return MakeLoad(load->buffer, m.buffer(load->buffer).dtype,
                    {MakeCast(DType::kI8, load->index[0])});
  };
  return Plant(m, seed, NoStmt, index);
}

// A lane takes its own part of a line for that of the lane beside it.
bool WrongReplication(Module& m, uint64_t seed) {
  const auto exchange = [](const StmtRef& s) -> std::optional<Block> {
    const LaneExchange* x = As<LaneExchange>(s);
    if (!x) return std::nullopt;
    return With(s, Let{x->var, x->value});
  };
  return Plant(m, seed, exchange, NoExpr);
}

constexpr Bug kBugs[] = {
    {"wrong stride", Level::kThread, WrongStride},
    {"missing guard", Level::kThread, MissingGuard},
    {"lost barrier", Level::kThread, LostBarrier},
    {"swapped transpose", Level::kTile, SwappedTranspose},
    {"wrong rounding", Level::kThread, WrongRounding},
    {"wrong predicate", Level::kThread, WrongPredicate},
    {"stale slot of a lag ring", Level::kThread, StaleSlot},
    {"one trip less", Level::kThread, OffByOneTrip},
    {"tile over another tile", Level::kThread, WrongArenaOffset},
    {"wrong identity of a reduction", Level::kThread, WrongIdentity},
    {"wrong phase of a ring", Level::kThread, WrongPhase},
    {"index in too few bits", Level::kThread, NarrowIndex},
    {"wrong replication", Level::kThread, WrongReplication},
};

}  // namespace

absl::Span<const Bug> Bugs() { return kBugs; }

}  // namespace tl::generator
