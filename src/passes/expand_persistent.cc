#include "passes/expand_persistent.h"

#include <cstdint>
#include <limits>
#include <utility>

#include "passes/own_tiles.h"

namespace tl {
namespace {

ExprRef Op(BinaryOp op, ExprRef a, ExprRef b) { return MakeBinary(op, std::move(a), std::move(b)); }

ExprRef LastTile(const Launch& launch) {
  ExprRef tiles = MakeInt(1);
  for (const GridAxis& axis : launch.axes) tiles = Op(BinaryOp::kMul, tiles, axis.extent);
  return Op(BinaryOp::kSub, tiles, MakeInt(1));
}

void Expand(Module& m, Launch& launch) {
  const auto index = [&](const char* name) {
    return m.AddVar(name, ScalarType::kInt, VarRole::kThread, launch.span);
  };
  const auto read = [](VarId v) { return MakeVar(v, ScalarType::kInt); };
  launch.resident = index("resident");
  launch.grid = index("grid");
  launch.block = m.AddVar("block", ScalarType::kInt, VarRole::kLet, launch.span);

  // The limits always hold: no more blocks are resident than there are tiles, and a grid has fewer
  // than 2^31 blocks. They are there for those who ask how large an index can be; without them, the
  // arithmetic of the axes takes 64 bits and a fifth of the time to compile.
  const ExprRef last =
      Op(BinaryOp::kMin, LastTile(launch), MakeInt(std::numeric_limits<int32_t>::max()));
  const ExprRef left =
      Op(BinaryOp::kMax, Op(BinaryOp::kSub, last, read(launch.resident)), MakeInt(0));
  const ExprRef trips = Op(BinaryOp::kAdd, Op(BinaryOp::kDiv, left, read(launch.grid)), MakeInt(1));
  const VarId i = m.AddVar("tile", ScalarType::kInt, VarRole::kLoop, launch.span);
  const ExprRef block =
      Op(BinaryOp::kAdd, read(launch.resident), Op(BinaryOp::kMul, read(i), read(launch.grid)));
  Block body{MakeStmt(Let{launch.block, MakeCast(DType::kI32, Op(BinaryOp::kMin, block, last))})};
  body.insert(body.end(), launch.body.begin(), launch.body.end());
  launch.body = {MakeStmt(For{LoopKind::kSerial, i, MakeInt(0), trips, false, 1, std::move(body)})};
}

}  // namespace

Status ExpandPersistent(Module& module, const Target& target) {
  for (Launch& launch : module.launches) {
    SettleOwner(module, target, launch);
    if (!target.simt || !launch.persistent) continue;
    Expand(module, launch);
    if (launch.owner == Owner::kGroup) GiveTilesToGroups(module, launch);
  }
  return absl::OkStatus();
}

}  // namespace tl
