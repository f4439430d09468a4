#include "passes/expand_persistent.h"

#include <utility>

namespace tl {
namespace {

ExprRef Op(BinaryOp op, ExprRef a, ExprRef b) { return MakeBinary(op, std::move(a), std::move(b)); }

void Expand(Module& m, Launch& launch) {
  const auto index = [&](const char* name) {
    return m.AddVar(name, ScalarType::kInt, VarRole::kThread, launch.span);
  };
  const auto read = [](VarId v) { return MakeVar(v, ScalarType::kInt); };
  launch.resident = index("resident");
  launch.grid = index("grid");
  launch.block = m.AddVar("block", ScalarType::kInt, VarRole::kLet, launch.span);

  ExprRef tiles = MakeInt(1);
  for (const GridAxis& axis : launch.axes) tiles = Op(BinaryOp::kMul, tiles, axis.extent);
  const ExprRef left = Op(BinaryOp::kSub, tiles, read(launch.resident));
  const VarId i = m.AddVar("tile", ScalarType::kInt, VarRole::kLoop, launch.span);
  // A grid has fewer than 2^31 blocks.
  const ExprRef block =
      Op(BinaryOp::kAdd, read(launch.resident), Op(BinaryOp::kMul, read(i), read(launch.grid)));
  Block body{MakeStmt(Let{launch.block, MakeCast(DType::kI32, block)})};
  body.insert(body.end(), launch.body.begin(), launch.body.end());
  launch.body = {
      MakeStmt(For{LoopKind::kSerial, i, MakeInt(0),
                   Op(BinaryOp::kCeilDiv, left, read(launch.grid)), false, 1, std::move(body)})};
}

}  // namespace

Status ExpandPersistent(Module& module, const Target& target) {
  if (!target.simt) return absl::OkStatus();
  for (Launch& launch : module.launches) {
    if (launch.persistent) Expand(module, launch);
  }
  return absl::OkStatus();
}

}  // namespace tl
