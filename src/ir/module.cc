#include "ir/module.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace tl {

double Identity(ReduceOp op, DType t) {
  const double inf = std::numeric_limits<double>::infinity();
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kAbsMax:
    case ReduceOp::kAny:
      return 0;
    case ReduceOp::kProd:
    case ReduceOp::kAll:
      return 1;
    case ReduceOp::kMax:
      return IsFloat(t) && t != DType::kE4M3 ? -inf : MinValue(t);
    case ReduceOp::kMin:
      return IsFloat(t) && t != DType::kE4M3 ? inf : MaxValue(t);
  }
  return 0;
}

BinaryOp OperatorOf(StoreOp op) {
  switch (op) {
    case StoreOp::kSub:
      return BinaryOp::kSub;
    case StoreOp::kMul:
      return BinaryOp::kMul;
    case StoreOp::kDiv:
      return BinaryOp::kDiv;
    case StoreOp::kMin:
      return BinaryOp::kMin;
    case StoreOp::kMax:
      return BinaryOp::kMax;
    default:
      return BinaryOp::kAdd;
  }
}

std::string_view Name(Eviction e) {
  static constexpr std::string_view kNames[] = {"normal", "first", "last"};
  return kNames[static_cast<size_t>(e)];
}

std::string_view Name(GemmPrecision p) {
  static constexpr std::string_view kNames[] = {"exact", "tf32", "fast_accum"};
  return kNames[static_cast<size_t>(p)];
}

Region WholeTile(const Buffer& buffer, BufferId id) {
  Region r;
  r.buffer = id;
  r.extents = buffer.extents;
  for (int d = 0; d < buffer.rank(); ++d) {
    r.offset.push_back(MakeInt(0));
    r.dims.push_back(d);
  }
  return r;
}

bool IsWhole(const Buffer& tile, const Region& window) {
  return tile.scope != Scope::kGlobal && window.extents == tile.extents &&
         std::all_of(window.offset.begin(), window.offset.end(),
                     [](const ExprRef& e) { return IsInt(e, 0); });
}

VarId Module::AddVar(std::string name, ScalarType type, VarRole role, Span span) {
  const DType dtype = type == ScalarType::kBool  ? DType::kBool
                      : type == ScalarType::kInt ? DType::kI64
                      : type == ScalarType::kF32 ? DType::kF32
                                                 : DType::kF64;
  vars.push_back({std::move(name), type, role, dtype, span});
  return static_cast<VarId>(vars.size()) - 1;
}

BufferId Module::AddBuffer(Buffer buffer) {
  buffers.push_back(std::move(buffer));
  return static_cast<BufferId>(buffers.size()) - 1;
}

}  // namespace tl
