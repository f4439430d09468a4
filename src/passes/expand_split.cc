#include "passes/expand_split.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/visit.h"

namespace tl {
namespace {

ExprRef Op(BinaryOp op, ExprRef a, ExprRef b) { return MakeBinary(op, std::move(a), std::move(b)); }
ExprRef Add(ExprRef a, ExprRef b) { return Op(BinaryOp::kAdd, std::move(a), std::move(b)); }
ExprRef Sub(ExprRef a, ExprRef b) { return Op(BinaryOp::kSub, std::move(a), std::move(b)); }
ExprRef Mul(ExprRef a, ExprRef b) { return Op(BinaryOp::kMul, std::move(a), std::move(b)); }
ExprRef Clamp(ExprRef x, ExprRef lo, ExprRef hi) {
  return Op(BinaryOp::kMin, Op(BinaryOp::kMax, std::move(x), std::move(lo)), std::move(hi));
}

// Makes statements for one module.
class Builder {
 public:
  explicit Builder(Module& module) : m(module) {}

  ExprRef Read(VarId v) const { return MakeVar(v, ScalarType::kInt); }
  ExprRef Let(Block& out, const char* name, ExprRef value) {
    const VarId v = m.AddVar(name, ScalarType::kInt, VarRole::kLet);
    out.push_back(MakeStmt(tl::Let{v, std::move(value)}));
    return Read(v);
  }
  VarId Sum(Block& out, const char* name) {
    const VarId v = m.AddVar(name, ScalarType::kInt, VarRole::kMutable);
    out.push_back(MakeStmt(Assign{v, MakeInt(0)}));
    return v;
  }
  // Units of item `item`, not negative.
  ExprRef Count(const SplitAxis& split, const ExprRef& item) {
    Substitution s;
    s.vars[split.item] = item;
    return Op(BinaryOp::kMax, Substitute(m, split.count, s), MakeInt(0));
  }
  // Units of all items.
  ExprRef Total(Block& out, const SplitAxis& split) {
    const VarId total = Sum(out, "total");
    const VarId q = m.AddVar("q", ScalarType::kInt, VarRole::kLoop);
    Block body{MakeStmt(Assign{total, Add(Read(total), Count(split, Read(q)))})};
    out.push_back(
        MakeStmt(For{LoopKind::kSerial, q, MakeInt(0), split.items, false, 1, std::move(body)}));
    return Let(out, "units", Read(total));
  }

  Module& m;
};

// First unit of run p.
ExprRef RunStart(const ExprRef& p, const ExprRef& total, const ExprRef& parts) {
  return Op(BinaryOp::kDiv, Mul(p, total), parts);
}

// The launch's body, once for every piece of run p.
void ExpandAxis(Module& module, Launch& launch) {
  const SplitAxis split = *launch.split;
  launch.split.reset();
  Builder b(module);
  const VarId run = module.AddVar("run", ScalarType::kInt, VarRole::kGrid, launch.span);
  launch.axes.push_back({run, split.parts});
  if (!launch.cluster.empty()) launch.cluster.push_back(1);

  Block out;
  const ExprRef p = b.Read(run);
  const ExprRef total = b.Total(out, split);
  const ExprRef begin = b.Let(out, "run_begin", RunStart(p, total, split.parts));
  const ExprRef end = b.Let(out, "run_end", RunStart(Add(p, MakeInt(1)), total, split.parts));
  const VarId before = b.Sum(out, "before");

  Block body;
  const ExprRef item = b.Read(split.item);
  const ExprRef count = b.Let(body, "count", b.Count(split, item));
  const auto cut = [&](const ExprRef& at) {
    return Clamp(Sub(at, b.Read(before)), MakeInt(0), count);
  };
  body.push_back(MakeStmt(Let{split.begin, cut(begin)}));
  body.push_back(MakeStmt(Let{split.end, cut(end)}));
  body.push_back(MakeStmt(Assign{before, Add(b.Read(before), count)}));
  Block piece;
  piece.push_back(MakeStmt(Let{split.part, Add(item, p)}));
  piece.push_back(MakeStmt(
      Let{split.whole, Op(BinaryOp::kEq, Sub(b.Read(split.end), b.Read(split.begin)), count)}));
  piece.insert(piece.end(), launch.body.begin(), launch.body.end());
  body.push_back(MakeStmt(
      If{Op(BinaryOp::kLt, b.Read(split.begin), b.Read(split.end)), std::move(piece), {}}));
  out.push_back(MakeStmt(
      For{LoopKind::kSerial, split.item, MakeInt(0), split.items, false, 1, std::move(body)}));
  launch.body = std::move(out);
}

// Replaces loops over parts(b).
class PartsExpander : public StmtMapper {
 public:
  PartsExpander(Module& module, const std::vector<std::optional<SplitAxis>>& splits)
      : b_(module), splits_(splits) {}

  Block MapBlock(const Block& block) override {
    Block out;
    for (const StmtRef& s : block) {
      const For* loop = As<For>(s);
      const PartsBound* bound = loop ? As<PartsBound>(loop->begin) : nullptr;
      if (bound) {
        ExpandLoop(s, *loop, *bound, out);
      } else {
        out.push_back(MapStmt(s));
      }
    }
    return out;
  }

 private:
  // Unit u lies in run ceildiv((u+1)*parts, total) - 1: the first whose end is beyond it.
  void ExpandLoop(const StmtRef& s, const For& loop, const PartsBound& bound, Block& out) {
    const SplitAxis& split = *splits_[bound.launch];
    const ExprRef item = b_.Let(out, "item", bound.item);
    const ExprRef before = UnitsBefore(out, split, item);
    const ExprRef total = b_.Total(out, split);
    const ExprRef count = b_.Let(out, "count", b_.Count(split, item));
    const ExprRef divisor = Op(BinaryOp::kMax, total, MakeInt(1));
    const auto slots_end = [&](const ExprRef& units) {
      return Add(item, Op(BinaryOp::kCeilDiv, Mul(units, split.parts), divisor));
    };
    For copy = loop;
    copy.begin = b_.Let(out, "first", Sub(slots_end(Add(before, MakeInt(1))), MakeInt(1)));
    const ExprRef empty = Op(BinaryOp::kEq, count, MakeInt(0));
    copy.end = b_.Let(out, "last", MakeSelect(empty, copy.begin, slots_end(Add(before, count))));
    // With fewer units than runs, some runs between the first and the last have none.
    const ExprRef p = Sub(b_.Read(loop.var), item);
    const ExprRef filled = Op(BinaryOp::kLt, RunStart(p, total, split.parts),
                              RunStart(Add(p, MakeInt(1)), total, split.parts));
    copy.body = {MakeStmt(If{filled, MapBlock(loop.body), {}})};
    out.push_back(MakeStmt(std::move(copy), s->span, s->id));
  }

  ExprRef UnitsBefore(Block& out, const SplitAxis& split, const ExprRef& item) {
    const VarId before = b_.Sum(out, "before");
    const VarId q = b_.m.AddVar("q", ScalarType::kInt, VarRole::kLoop);
    Block body{MakeStmt(Assign{before, Add(b_.Read(before), b_.Count(split, b_.Read(q)))})};
    out.push_back(MakeStmt(For{LoopKind::kSerial, q, MakeInt(0), item, false, 1, std::move(body)}));
    return b_.Let(out, "units_before", b_.Read(before));
  }

  Builder b_;
  const std::vector<std::optional<SplitAxis>>& splits_;
};

}  // namespace

Status ExpandSplit(Module& module, const Target&) {
  std::vector<std::optional<SplitAxis>> splits;
  for (const Launch& launch : module.launches) splits.push_back(launch.split);
  PartsExpander parts(module, splits);
  for (Launch& launch : module.launches) {
    launch.body = parts.MapBlock(launch.body);
    if (launch.split) ExpandAxis(module, launch);
  }
  return absl::OkStatus();
}

}  // namespace tl
