#include "backends/reference/agent.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"

namespace tl::reference {

Agent::Agent(Machine* machine, BlockState* block)
    : machine_(machine),
      block_(block),
      arith_(machine->arith()),
      exact_(machine->exact()),
      vars_(machine->registers()),
      tiles_(machine->module().buffers.size(), nullptr) {
  block->tiles.resize(tiles_.size());
  block->channels.resize(tiles_.size());
  block->entered.assign(tiles_.size(), false);
}

void Agent::Fail(const Span& span, std::string_view message) {
  if (!failed()) block_->status = SemanticError(span, message);
}

std::string Agent::Quoted(BufferId id) const { return absl::StrCat("'", buffer(id).name, "'"); }

Value Agent::EvalUniform(const ExprRef& e, VarId var, int64_t value) {
  vars_[var] = IntOf(value);
  const Value v = Eval(e);
  if (v.undefined != kNoId) {
    Fail(e->span, absl::StrCat("depends on an unwritten element of ", Quoted(v.undefined)));
  }
  return v;
}

void Agent::RunBlock(int l, const std::vector<int64_t>& point) {
  const Launch& launch = machine_->module().launches[l];
  for (size_t a = 0; a < launch.axes.size(); ++a) vars_[launch.axes[a].var] = IntOf(point[a]);
  if (launch.split) {
    RunSplit(launch, l, point.back());
  } else if (Run(launch.body)) {
    CheckChannelsEmpty();
  }
}

bool Agent::RunSplit(const Launch& launch, int l, int64_t run) {
  const SplitAxis& axis = *launch.split;
  for (const Piece& piece : machine_->plan(l)->PiecesOf(run)) {
    vars_[axis.item] = IntOf(piece.item);
    vars_[axis.begin] = IntOf(piece.begin);
    vars_[axis.end] = IntOf(piece.end);
    vars_[axis.part] = IntOf(piece.part);
    vars_[axis.whole] = IntOf(piece.whole);
    if (!Run(launch.body) || !CheckChannelsEmpty()) return false;
  }
  return true;
}

// A message left behind would be taken for one of the next tile's.
bool Agent::CheckChannelsEmpty() {
  for (size_t id = 0; id < block_->channels.size(); ++id) {
    Channel* c = block_->channels[id].get();
    if (c == nullptr || c->messages.empty()) continue;
    Fail(c->span, absl::StrCat("channel ", Quoted(static_cast<BufferId>(id)), " still holds ",
                               c->messages.size(), " message(s) at the end of the block"));
    return false;
  }
  return true;
}

bool Agent::Run(const Block& body) {
  for (const StmtRef& s : body) {
    if (!Exec(*s)) return false;
  }
  return true;
}

bool Agent::Exec(const Stmt& s) {
  if (failed()) return false;
  return std::visit([&](const auto& node) { return Exec(s, node); }, s.node) && !failed();
}

bool Agent::NotTileLevel(const Stmt& s) {
  Fail(s.span, "statement of a lower level");
  return false;
}

bool Agent::Exec(const Stmt&, const Let& let) {
  vars_[let.var] = Eval(let.value);
  return true;
}

bool Agent::Exec(const Stmt&, const Assign& assign) {
  const Var& var = machine_->module().var(assign.var);
  vars_[assign.var] = arith_.Convert(var.dtype, assign.value->type, Eval(assign.value));
  assigned_.insert(assign.var);
  return true;
}

bool Agent::Exec(const Stmt& s, const Alloc& alloc) {
  const BufferId id = alloc.buffer;
  const Buffer& b = buffer(id);
  const bool common = b.scope == Scope::kShared || b.scope == Scope::kChannel;
  // Several groups may come to the alloc of one common tile; the first one's counts.
  const bool again = common && group_ != kNoId && block_->entered[id];
  if (common && group_ != kNoId) block_->entered[id] = true;
  if (b.scope == Scope::kChannel) {
    if (again) return true;
    if (block_->channels[id] == nullptr) block_->channels[id] = std::make_unique<Channel>();
    *block_->channels[id] = Channel{};
    block_->channels[id]->span = s.span;
    return true;
  }
  const bool mine = group_ != kNoId && !common;
  std::unique_ptr<Tile>& tile = mine ? own_tiles_[id] : block_->tiles[id];
  if (tile == nullptr) tile = std::make_unique<Tile>();
  tiles_[id] = tile.get();
  if (!again) tile->Enter(id, b, exact_);
  return true;
}

bool Agent::Exec(const Stmt& s, const Fill& fill) {
  Value v = Eval(fill.value);
  v = arith_.Convert(buffer(fill.dst.buffer).dtype, fill.value->type, v);
  TileView dst;
  if (!View(fill.dst, s.span, &dst)) return false;
  ForEachCoordinate(dst.rank, dst.extent, [&](const Index& c) { dst.Set(dst.At(c), v); });
  block_->work += fill.dst.num_elements();
  return true;
}

bool Agent::Exec(const Stmt& s, const If& branch) {
  const Value cond = Eval(branch.cond);
  if (failed()) return false;
  if (cond.undefined != kNoId) {
    Fail(s.span, absl::StrCat("the condition depends on an element of ", Quoted(cond.undefined),
                              " that nothing has written"));
    return false;
  }
  if (cond.err > 0 && parallel_ != 0) return ExecDoubtful(branch, cond.c.i != 0);
  return Run(cond.c.i ? branch.then_body : branch.else_body);
}

// In a loop over parts(b): the slot of a run that is empty.
bool Agent::SkipsPart(const For& loop, int64_t slot) {
  const auto* parts = As<PartsBound>(loop.begin);
  return parts != nullptr &&
         machine_->plan(parts->launch)->IsEmpty(slot - EvalInt(parts->item, "item of parts()"));
}

bool Agent::Exec(const Stmt&, const For& loop) {
  const int64_t begin = EvalInt(loop.begin, "a loop bound");
  const int64_t end = EvalInt(loop.end, "a loop bound");
  if (failed()) return false;
  const LagLoop* lags = machine_->FindLags(&loop);
  if (lags != nullptr) {
    for (const LagSite& site : lags->sites) lags_[site.lag] = LagState{&site, {}};
  }
  for (int64_t i = begin; i < end; ++i) {
    if (SkipsPart(loop, i)) continue;
    vars_[loop.var] = IntOf(loop.down ? end - 1 - (i - begin) : i);
    if (!Run(loop.body)) return false;
  }
  return lags == nullptr || DrainLags(*lags, std::max<int64_t>(end - begin, 0));
}

bool Agent::Exec(const Stmt& s, const Finish& finish) {
  Tile* tile = FindTile(finish.reducer, s.span);
  if (tile == nullptr) return false;
  tile->readable = true;
  return true;
}

bool Agent::Exec(const Stmt&, const InTurn& turn) { return Run(turn.body); }

}  // namespace tl::reference
