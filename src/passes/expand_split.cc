#include "passes/expand_split.h"

#include <algorithm>
#include <functional>
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
ExprRef Max(ExprRef a, ExprRef b) { return Op(BinaryOp::kMax, std::move(a), std::move(b)); }
ExprRef Clamp(ExprRef x, ExprRef lo, ExprRef hi) {
  return Op(BinaryOp::kMin, Max(std::move(x), std::move(lo)), std::move(hi));
}
ExprRef IfElse(ExprRef cond, ExprRef yes, ExprRef no) {
  return MakeSelect(std::move(cond), std::move(yes), std::move(no));
}

// Who needs a number.
enum class Who : uint8_t { kBlock, kGroup, kThread };

// Makes statements for one module.
class Builder {
 public:
  // Items are looked at in rounds of as many as keep a few warps busy, or fill vectors.
  Builder(Module& module, const Target& target)
      : m(module), round_(4 * std::max(target.warp_size, 8)) {}

  ExprRef Read(VarId v) const { return MakeVar(v, ScalarType::kInt); }
  ExprRef Let(Block& out, const char* name, ExprRef value) {
    const VarId v = m.AddVar(name, ScalarType::kInt, VarRole::kLet);
    out.push_back(MakeStmt(tl::Let{v, std::move(value)}));
    return Read(v);
  }
  VarId Variable(Block& out, const char* name, ExprRef value) {
    const VarId v = m.AddVar(name, ScalarType::kInt, VarRole::kMutable);
    out.push_back(MakeStmt(Assign{v, std::move(value)}));
    return v;
  }
  // Units of item `item`, not negative.
  ExprRef Count(const SplitAxis& split, const ExprRef& item) {
    Substitution s;
    s.vars[split.item] = item;
    return Max(Substitute(m, split.count, s), MakeInt(0));
  }

  // Sums over all items.
  struct Item {
    ExprRef index, units;
    ExprRef end;  // units up to its end, those of the items before it included
  };
  struct Sum {
    const char* name;
    std::function<ExprRef(const Item&)> value;
    bool uses_end = false;
  };
  std::vector<ExprRef> Sums(Block& out, const SplitAxis& split, const std::vector<Sum>& sums,
                            Who who) {
    return who == Who::kThread ? SumsAlone(out, split, sums) : SumsTogether(out, split, sums, who);
  }
  // Units of all items.
  static Sum Units() {
    return {"units", [](const Item& item) { return item.units; }};
  }

  Module& m;

 private:
  std::vector<ExprRef> SumsAlone(Block& out, const SplitAxis& split, const std::vector<Sum>& sums) {
    std::vector<VarId> known;
    for (const Sum& sum : sums) known.push_back(Variable(out, sum.name, MakeInt(0)));
    const VarId index = m.AddVar("item", ScalarType::kInt, VarRole::kLoop);
    Block body;
    const Item item{Read(index), Let(body, "count", Count(split, Read(index))), nullptr};
    for (size_t k = 0; k < sums.size(); ++k) {
      body.push_back(MakeStmt(Assign{known[k], Add(Read(known[k]), sums[k].value(item))}));
    }
    out.push_back(MakeStmt(
        For{LoopKind::kSerial, index, MakeInt(0), split.items, false, 1, std::move(body)}));
    std::vector<ExprRef> results;
    for (size_t k = 0; k < sums.size(); ++k) {
      results.push_back(Let(out, sums[k].name, Read(known[k])));
    }
    return results;
  }

  // The threads share the items out in rounds; each sum has a row of its own.
  std::vector<ExprRef> SumsTogether(Block& out, const SplitAxis& split,
                                    const std::vector<Sum>& sums, Who who) {
    const auto rows = static_cast<int64_t>(sums.size());
    const bool ends =
        std::any_of(sums.begin(), sums.end(), [](const Sum& s) { return s.uses_end; });
    const BufferId values = Tile(out, "values", Scope::kFragment, {rows, round_});
    const BufferId totals = Tile(out, "totals", Scope::kFragment, {rows});
    out.push_back(MakeStmt(Fill{Whole(totals), MakeInt(0)}));
    // All threads read it: it lies in shared memory, of the block or a group's own.
    const Scope scope = who == Who::kGroup ? Scope::kFragment : Scope::kShared;
    const BufferId known = Tile(out, "known", scope, {rows});

    const VarId round = m.AddVar("round", ScalarType::kInt, VarRole::kLoop);
    Block body;
    const Running running = ends ? Ends(out, body, split, round) : Running{};
    const VarId row = m.AddVar("row", ScalarType::kInt, VarRole::kLoop);
    const VarId i = m.AddVar("i", ScalarType::kInt, VarRole::kLoop);
    Block each;
    Item item = ItemOf(each, split, round, i);
    if (ends) {
      item.end = Add(Element(running.before, MakeInt(0)), Element(running.ends, Read(i)));
    }
    ExprRef value = sums.back().value(item);
    for (int64_t k = rows - 1; k-- > 0;) {
      value = IfElse(Op(BinaryOp::kEq, Read(row), MakeInt(k)), sums[k].value(item), value);
    }
    each.push_back(MakeStmt(Store{values, {Read(row), Read(i)}, StoreOp::kSet, value}));
    body.push_back(MakeStmt(Parallel{{row, i}, {rows, round_}, std::move(each), nullptr}));
    body.push_back(MakeStmt(Reduce{ReduceOp::kSum, Whole(values), Whole(totals), 1}));
    if (ends) {
      body.push_back(
          MakeStmt(Reduce{ReduceOp::kSum, Whole(running.units), Whole(running.before), 0}));
    }
    const ExprRef rounds = Op(BinaryOp::kCeilDiv, split.items, MakeInt(round_));
    out.push_back(
        MakeStmt(For{LoopKind::kSerial, round, MakeInt(0), rounds, false, 1, std::move(body)}));

    Copy tell;
    tell.src = Whole(totals);
    tell.dst = Whole(known);
    out.push_back(MakeStmt(std::move(tell)));
    std::vector<ExprRef> results;
    for (int64_t k = 0; k < rows; ++k) {
      results.push_back(Let(out, sums[k].name, Element(known, MakeInt(k))));
    }
    return results;
  }

  // Number i of a round; those behind the last one have no units.
  Item ItemOf(Block& out, const SplitAxis& split, VarId round, VarId i) {
    const ExprRef index = Let(out, "item", Add(Mul(Read(round), MakeInt(round_)), Read(i)));
    const ExprRef exists = Op(BinaryOp::kLt, index, split.items);
    return {index, Let(out, "count", IfElse(exists, Count(split, index), MakeInt(0))), nullptr};
  }

  // Of a round: the units of its items, of all before it, and from there up to each item's end.
  struct Running {
    BufferId units = kNoId, before = kNoId, ends = kNoId;
  };
  Running Ends(Block& out, Block& body, const SplitAxis& split, VarId round) {
    const Running r{Tile(out, "units", Scope::kFragment, {round_}),
                    Tile(out, "before", Scope::kFragment, {1}),
                    Tile(out, "ends", Scope::kFragment, {round_})};
    out.push_back(MakeStmt(Fill{Whole(r.before), MakeInt(0)}));
    const VarId i = m.AddVar("i", ScalarType::kInt, VarRole::kLoop);
    Block each;
    const ExprRef units = ItemOf(each, split, round, i).units;
    each.push_back(MakeStmt(Store{r.units, {Read(i)}, StoreOp::kSet, units}));
    body.push_back(MakeStmt(Parallel{{i}, {round_}, std::move(each), nullptr}));
    body.push_back(MakeStmt(CumSum{Whole(r.units), Whole(r.ends), 0, false}));
    return r;
  }

  static ExprRef Element(BufferId tile, ExprRef index) {
    return MakeLoad(tile, DType::kI64, {std::move(index)});
  }
  BufferId Tile(Block& out, const char* name, Scope scope, std::vector<int64_t> extents) {
    Buffer b;
    b.name = name;
    b.scope = scope;
    b.dtype = DType::kI64;
    b.extents = std::move(extents);
    const BufferId id = m.AddBuffer(std::move(b));
    out.push_back(MakeStmt(Alloc{id}));
    return id;
  }
  Region Whole(BufferId tile) const { return WholeTile(m.buffer(tile), tile); }

  const int64_t round_;
};

// First unit of run p.
ExprRef RunStart(const ExprRef& p, const ExprRef& total, const ExprRef& parts) {
  return Op(BinaryOp::kDiv, Mul(p, total), parts);
}

// Which items have units in [begin, end): how many end before it, their units, and how many start
// before its end. Items without units are among them.
std::vector<Builder::Sum> ItemsOf(const ExprRef& begin, const ExprRef& end) {
  const auto passed = [begin](const Builder::Item& item, ExprRef value) {
    return IfElse(Op(BinaryOp::kLe, item.end, begin), std::move(value), MakeInt(0));
  };
  const auto first = [passed](const Builder::Item& item) { return passed(item, MakeInt(1)); };
  const auto units = [passed](const Builder::Item& item) { return passed(item, item.units); };
  const auto last = [end](const Builder::Item& item) {
    const ExprRef starts = Sub(item.end, item.units);
    return IfElse(Op(BinaryOp::kLt, starts, end), MakeInt(1), MakeInt(0));
  };
  return {{"first", first, true}, {"passed", units, true}, {"last", last, true}};
}

// The launch's body, once for every piece of run p.
void ExpandAxis(Module& module, const Target& target, Launch& launch) {
  const SplitAxis split = *launch.split;
  launch.split.reset();
  Builder b(module, target);
  const VarId run = module.AddVar("run", ScalarType::kInt, VarRole::kGrid, launch.span);
  launch.axes.push_back({run, split.parts});
  if (!launch.cluster.empty()) launch.cluster.push_back(1);

  Block out;
  const ExprRef p = b.Read(run);
  const ExprRef total = b.Sums(out, split, {Builder::Units()}, Who::kBlock)[0];
  const ExprRef begin = b.Let(out, "run_begin", RunStart(p, total, split.parts));
  const ExprRef end = b.Let(out, "run_end", RunStart(Add(p, MakeInt(1)), total, split.parts));
  const std::vector<ExprRef> found = b.Sums(out, split, ItemsOf(begin, end), Who::kBlock);
  const VarId before = b.Variable(out, "before", found[1]);

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
  out.push_back(
      MakeStmt(For{LoopKind::kSerial, split.item, found[0], found[2], false, 1, std::move(body)}));
  launch.body = std::move(out);
}

// Replaces loops over parts(b).
class PartsExpander : public StmtMapper {
 public:
  PartsExpander(Module& module, const Target& target,
                const std::vector<std::optional<SplitAxis>>& splits)
      : b_(module, target), splits_(splits) {}

  Block MapBlock(const Block& block) override {
    const size_t known = known_.size();
    Block out;
    for (const StmtRef& s : block) {
      const For* loop = As<For>(s);
      const PartsBound* bound = loop ? As<PartsBound>(loop->begin) : nullptr;
      if (bound) {
        const Runs runs = RunsOf(*bound, out);
        out.push_back(Expanded(s, *loop, runs));
      } else {
        out.push_back(MapStmt(s));
      }
    }
    known_.resize(known);
    return out;
  }

  StmtRef MapStmt(const StmtRef& s) override {
    Who who = who_;
    if (As<OnGroup>(s)) who = Who::kGroup;
    if (As<Parallel>(s)) who = Who::kThread;
    const Who outer = std::exchange(who_, who);
    StmtRef out = StmtMapper::MapStmt(s);
    who_ = outer;
    return out;
  }

 private:
  // The runs that an item has units in, `count` of them.
  struct Runs {
    ExprRef item, before, total, first, count;
    int launch;
    ExprRef named;  // the item as the program names it
  };

  // Counted once for all loops of a block over the same item.
  Runs RunsOf(const PartsBound& bound, Block& out) {
    for (const Runs& runs : known_) {
      if (runs.launch == bound.launch && Equal(runs.named, bound.item)) return runs;
    }
    Runs runs = Counted(bound, out);
    const bool changes = AnyNode(bound.item, [&](const ExprRef& e) {
      const VarRef* ref = As<VarRef>(e);
      return As<Load>(e) || (ref && b_.m.var(ref->var).role == VarRole::kMutable);
    });
    if (!changes) known_.push_back(runs);
    return runs;
  }

  Runs Counted(const PartsBound& bound, Block& out) {
    const SplitAxis& split = *splits_[bound.launch];
    const ExprRef item = b_.Let(out, "item", bound.item);
    const ExprRef units = b_.Let(out, "count", b_.Count(split, item));
    const Builder::Sum before{"before", [&](const Builder::Item& other) {
                                return IfElse(Op(BinaryOp::kLt, other.index, item), other.units,
                                              MakeInt(0));
                              }};
    const std::vector<ExprRef> sums = b_.Sums(out, split, {before, Builder::Units()}, who_);
    Runs runs{item, sums[0], sums[1], nullptr, nullptr, bound.launch, bound.item};
    runs.first = b_.Let(out, "first", RunOf(split, runs, runs.before));
    const ExprRef last = RunOf(split, runs, Sub(Add(runs.before, units), MakeInt(1)));
    // With fewer units than runs each unit has a run of its own, and there are empty ones between.
    const ExprRef one_each = Op(BinaryOp::kLt, runs.total, split.parts);
    const ExprRef single = Op(BinaryOp::kOr, one_each, Op(BinaryOp::kEq, units, MakeInt(0)));
    const ExprRef between = Add(Sub(last, runs.first), MakeInt(1));
    runs.count = b_.Let(out, "pieces", IfElse(single, units, between));
    return runs;
  }

  // Of a unit: the first run whose end is beyond it.
  static ExprRef RunOf(const SplitAxis& split, const Runs& runs, const ExprRef& unit) {
    const ExprRef end = Mul(Add(unit, MakeInt(1)), split.parts);
    return Sub(Op(BinaryOp::kCeilDiv, end, Max(runs.total, MakeInt(1))), MakeInt(1));
  }

  StmtRef Expanded(const StmtRef& s, const For& loop, const Runs& runs) {
    const SplitAxis& split = *splits_[runs.launch];
    For copy = loop;
    copy.var = b_.m.AddVar("piece", ScalarType::kInt, VarRole::kLoop);
    copy.begin = MakeInt(0);
    copy.end = runs.count;
    const ExprRef piece = b_.Read(copy.var);
    const ExprRef run = IfElse(Op(BinaryOp::kLt, runs.total, split.parts),
                               RunOf(split, runs, Add(runs.before, piece)), Add(runs.first, piece));
    copy.body = {MakeStmt(Let{loop.var, Add(runs.item, run)})};
    const Block body = MapBlock(loop.body);
    copy.body.insert(copy.body.end(), body.begin(), body.end());
    return MakeStmt(std::move(copy), s->span, s->id);
  }

  Builder b_;
  const std::vector<std::optional<SplitAxis>>& splits_;
  Who who_ = Who::kBlock;
  std::vector<Runs> known_;  // where the blocks around the present place have counted
};

}  // namespace

Status ExpandSplit(Module& module, const Target& target) {
  std::vector<std::optional<SplitAxis>> splits;
  for (const Launch& launch : module.launches) splits.push_back(launch.split);
  PartsExpander parts(module, target, splits);
  for (Launch& launch : module.launches) {
    launch.body = parts.MapBlock(launch.body);
    if (launch.split) ExpandAxis(module, target, launch);
  }
  return absl::OkStatus();
}

}  // namespace tl
