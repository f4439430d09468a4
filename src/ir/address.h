// Where the elements of global tensors lie, as expressions: the one place that knows strides and
// the prepacked order. Used by the lowering passes and, evaluated, by the reference interpreter.
#ifndef TILEJIT_IR_ADDRESS_H_
#define TILEJIT_IR_ADDRESS_H_

#include <vector>

#include "ir/expr.h"
#include "ir/module.h"

namespace tl {

// Element offset of buffer[index] from the start of the buffer's storage; `index` has one int
// expression per dim. For a tensor with prepacked[r, c] and last two dims i of R, j of C:
//   lead·(R'·C') + ((i/r)·(C'/c) + j/c)·r·c + (i%r)·c + j%c
// where R' and C' are R and C rounded up to whole tiles and `lead` counts the leading dims
// row-major. Tiles (scopes other than kGlobal) are row-major, with the columns of the last dim
// permuted where the tile has a swizzle.
ExprRef TensorOffset(const Module& module, BufferId buffer, const std::vector<ExprRef>& index);

// Of an element of a tile of two dims or more: where its row of its panel begins, and its column
// there, before the row's chunks are permuted. Tiles without panels have one.
struct PanelOffset {
  ExprRef row, col;
};
PanelOffset OffsetInPanels(const Buffer& tile, const std::vector<ExprRef>& index);

// Column of a tile's row, or of a panel's, after its 16-byte chunks are permuted
// (layout/shared_layout.h).
ExprRef Swizzled(const Buffer& buffer, const ExprRef& row, const ExprRef& col);

// Stride in elements of dim `dim` of a global tensor. For prepacked tensors only the leading dims
// have one; null for the last two.
ExprRef TensorStride(const Module& module, BufferId buffer, int dim);

// Elements that the tensor's storage spans: one past the offset of the last element, 0 for an empty
// tensor. Prepacked tensors include the padding.
ExprRef StorageSize(const Module& module, BufferId buffer);

}  // namespace tl

#endif  // TILEJIT_IR_ADDRESS_H_
