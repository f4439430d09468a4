#include "passes/own_tiles.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "ir/visit.h"
#include "passes/mbarriers.h"
#include "passes/notes.h"

namespace tl {
namespace {

ExprRef Op(BinaryOp op, ExprRef a, ExprRef b) { return MakeBinary(op, std::move(a), std::move(b)); }

bool AwaitsSlot(const StmtRef& root) {
  bool found = false;
  VisitStmts({root}, [&](const StmtRef& s) {
    const Mbarrier* m = As<Mbarrier>(s);
    found = found || (m && m->op == Mbarrier::Op::kWait);
  });
  return found;
}

}  // namespace

void SettleOwner(Module& module, const Target& target, Launch& launch) {
  if (launch.owner != Owner::kGroup) return;
  if (!target.simt) launch.groups = 1;
  if (launch.groups > target.max_groups) {
    module.notes.push_back(
        absl::StrCat("launch", At(launch.span), ": blocks of one group own the tiles: a block of ",
                     target.name, " has barriers for groups up to ", target.max_groups));
    launch.groups = 1;
  }
  if (launch.groups == 1) launch.owner = Owner::kBlock;
}

void GiveTilesToGroups(Module& module, Launch& launch) {
  const VarId group = module.AddVar("owner", ScalarType::kInt, VarRole::kGroup, launch.span);
  launch.owns = module.AddVar("owns", ScalarType::kBool, VarRole::kLet, launch.span);
  For tiles = *As<For>(launch.body[0]);
  const ExprRef turn =
      Op(BinaryOp::kMod, MakeVar(tiles.var, ScalarType::kInt), MakeInt(launch.groups));
  const ExprRef owns = Op(BinaryOp::kEq, turn, MakeVar(group, ScalarType::kInt));
  Block tile(tiles.body.begin() + 1, tiles.body.end());
  tiles.body.resize(1);  // the block's number
  tiles.body.push_back(MakeStmt(Let{launch.owns, owns}));
  tiles.body.push_back(
      MakeStmt(If{MakeVar(launch.owns, ScalarType::kBool), std::move(tile), {}}, launch.span));
  launch.body = {MakeStmt(OnGroup{group, launch.groups, {MakeStmt(std::move(tiles))}})};
}

bool IsOfOwner(const Launch& launch, const If& branch) {
  const VarRef* cond = As<VarRef>(branch.cond);
  return cond && launch.owns != kNoId && cond->var == launch.owns;
}

// ---- Turns

OwnersTurns::OwnersTurns(Module& module, const Launch& launch, int warps) : groups_(launch.groups) {
  barriers_ = AddMbarriers(module, "turns", groups_, warps);
  parity_ = module.AddVar("turn", ScalarType::kInt, VarRole::kMutable, launch.span);
  module.vars[parity_].dtype = DType::kU8;
}

StmtRef OwnersTurns::Allocate() const { return MakeStmt(Alloc{barriers_}); }

// The first tile's owner comes as if another had passed it the turn.
StmtRef OwnersTurns::First(const ExprRef& group) const {
  const ExprRef first = Op(BinaryOp::kEq, group, MakeInt(0));
  return MakeStmt(Assign{parity_, MakeSelect(first, MakeInt(1), MakeInt(0))});
}

Block OwnersTurns::Take(const Block& tile, const ExprRef& group) const {
  const auto first = absl::c_find_if(tile, AwaitsSlot);
  if (first == tile.end()) return tile;
  const auto behind = std::find_if(tile.rbegin(), tile.rend(), AwaitsSlot).base();
  const Block wait = Wait(group), pass = Pass(group);
  Block out(tile.begin(), first);
  out.insert(out.end(), wait.begin(), wait.end());
  out.insert(out.end(), first, behind);
  out.insert(out.end(), pass.begin(), pass.end());
  out.insert(out.end(), behind, tile.end());
  return out;
}

ExprRef OwnersTurns::Parity() const { return MakeVar(parity_, ScalarType::kInt); }

Block OwnersTurns::Wait(const ExprRef& group) const {
  return {MakeStmt(Mbarrier{Mbarrier::Op::kWait, barriers_, group, Parity()}),
          MakeStmt(Assign{parity_, Op(BinaryOp::kBitXor, Parity(), MakeInt(1))})};
}

// One lane arrives for its warp: another one that still waited would miss its phase once the next
// turns are over.
Block OwnersTurns::Pass(const ExprRef& group) const {
  const ExprRef last = Op(BinaryOp::kEq, group, MakeInt(groups_ - 1));
  const ExprRef next = MakeSelect(last, MakeInt(0), Op(BinaryOp::kAdd, group, MakeInt(1)));
  return {MakeStmt(Barrier{Team::kWarp}),
          MakeStmt(Mbarrier{Mbarrier::Op::kArrive, barriers_, next, nullptr})};
}

}  // namespace tl
