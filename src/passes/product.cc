#include "passes/product.h"

#include <utility>

namespace tl {

Product ProductOf(const Gemm& g) {
  Product p{{g.a, g.transpose_a, g.c.extents[0], g.warp_rows},
            {g.b, !g.transpose_b, g.c.extents[1], g.warp_cols},
            g.a.extents[g.transpose_a ? 0 : 1]};
  if (g.swapped) std::swap(p.left, p.right);
  return p;
}

}  // namespace tl
