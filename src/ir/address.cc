#include "ir/address.h"

#include <utility>

namespace tl {
namespace {

ExprRef Add(ExprRef a, ExprRef b) { return MakeBinary(BinaryOp::kAdd, std::move(a), std::move(b)); }
ExprRef Sub(ExprRef a, ExprRef b) { return MakeBinary(BinaryOp::kSub, std::move(a), std::move(b)); }
ExprRef Mul(ExprRef a, ExprRef b) { return MakeBinary(BinaryOp::kMul, std::move(a), std::move(b)); }
ExprRef Div(ExprRef a, int64_t b) { return MakeBinary(BinaryOp::kDiv, std::move(a), MakeInt(b)); }
ExprRef Mod(ExprRef a, int64_t b) { return MakeBinary(BinaryOp::kMod, std::move(a), MakeInt(b)); }
ExprRef CeilDiv(ExprRef a, int64_t b) {
  return MakeBinary(BinaryOp::kCeilDiv, std::move(a), MakeInt(b));
}

// Elements of one padded matrix of a prepacked tensor.
ExprRef PackedMatrixSize(const Buffer& b) {
  const int rank = b.rank();
  const int64_t r = b.packed[0], c = b.packed[1];
  return Mul(Mul(CeilDiv(b.shape[rank - 2], r), CeilDiv(b.shape[rank - 1], c)), MakeInt(r * c));
}

ExprRef OffsetInPackedMatrix(const Buffer& b, const ExprRef& i, const ExprRef& j) {
  const int64_t r = b.packed[0], c = b.packed[1];
  const ExprRef tile = Add(Mul(Div(i, r), CeilDiv(b.shape[b.rank() - 1], c)), Div(j, c));
  return Add(Add(Mul(tile, MakeInt(r * c)), Mul(Mod(i, r), MakeInt(c))), Mod(j, c));
}

bool IsContiguous(const Buffer& b) {
  ExprRef expected = MakeInt(1);
  for (int d = b.rank() - 1; d >= 0; --d) {
    if (!Equal(b.strides[d], expected)) return false;
    expected = Mul(b.shape[d], expected);
  }
  return true;
}

ExprRef Product(const std::vector<ExprRef>& factors) {
  ExprRef product = MakeInt(1);
  for (const ExprRef& f : factors) product = Mul(product, f);
  return product;
}

}  // namespace

ExprRef Swizzled(const Buffer& b, const ExprRef& row, const ExprRef& col) {
  if (b.swizzle.bits == 0) return col;
  const auto op = [](BinaryOp o, ExprRef x, int64_t y) {
    return MakeBinary(o, std::move(x), MakeInt(y));
  };
  const ExprRef turn = op(BinaryOp::kBitAnd, op(BinaryOp::kShr, row, b.swizzle.row_shift),
                          (int64_t{1} << b.swizzle.bits) - 1);
  const int64_t chunk = 16 / static_cast<int64_t>(SizeOf(b.dtype));
  return MakeBinary(BinaryOp::kBitXor, col, Mul(turn, MakeInt(chunk)));
}

PanelOffset OffsetInPanels(const Buffer& b, const std::vector<ExprRef>& index) {
  const int64_t rows = b.extents[b.rank() - 2], cols = b.extents.back();
  ExprRef lead = MakeInt(0);
  for (int d = 0; d + 2 < b.rank(); ++d) lead = Add(Mul(lead, MakeInt(b.extents[d])), index[d]);
  lead = Mul(lead, MakeInt(rows * cols));
  const ExprRef &row = index[b.rank() - 2], &col = index.back();
  const int64_t panel = b.PanelElements();
  if (panel == cols) return {Add(lead, Mul(row, MakeInt(cols))), col};
  lead = Add(lead, Mul(Div(col, panel), MakeInt(rows * panel)));
  return {Add(lead, Mul(row, MakeInt(panel))), Mod(col, panel)};
}

ExprRef TensorStride(const Module& module, BufferId buffer, int dim) {
  const Buffer& b = module.buffer(buffer);
  if (b.packed.empty()) return b.strides[dim];
  if (dim >= b.rank() - 2) return nullptr;
  ExprRef stride = PackedMatrixSize(b);
  for (int d = b.rank() - 3; d > dim; --d) stride = Mul(b.shape[d], stride);
  return stride;
}

ExprRef TensorOffset(const Module& module, BufferId buffer, const std::vector<ExprRef>& index) {
  const Buffer& b = module.buffer(buffer);
  const int rank = b.rank();
  ExprRef offset = MakeInt(0);
  if (b.scope != Scope::kGlobal) {
    if (rank < 2) return rank == 0 ? offset : index[0];
    const auto [row, col] = OffsetInPanels(b, index);
    return Add(row, Swizzled(b, index[rank - 2], col));
  }
  const int plain = b.packed.empty() ? rank : rank - 2;
  for (int d = 0; d < plain; ++d)
    offset = Add(offset, Mul(index[d], TensorStride(module, buffer, d)));
  if (!b.packed.empty())
    offset = Add(offset, OffsetInPackedMatrix(b, index[rank - 2], index[rank - 1]));
  return offset;
}

ExprRef StorageSize(const Module& module, BufferId buffer) {
  const Buffer& b = module.buffer(buffer);
  if (b.scope != Scope::kGlobal) return MakeInt(b.num_elements());
  if (!b.packed.empty()) {
    const std::vector<ExprRef> lead(b.shape.begin(), b.shape.end() - 2);
    return Mul(Product(lead), PackedMatrixSize(b));
  }
  if (IsContiguous(b)) return Product(b.shape);
  ExprRef last = MakeInt(0);
  ExprRef empty = MakeBool(false);
  for (int d = 0; d < b.rank(); ++d) {
    last = Add(last, Mul(Sub(b.shape[d], MakeInt(1)), b.strides[d]));
    empty = MakeBinary(BinaryOp::kOr, empty, MakeBinary(BinaryOp::kLe, b.shape[d], MakeInt(0)));
  }
  return MakeSelect(empty, MakeInt(0), Add(last, MakeInt(1)));
}

}  // namespace tl
