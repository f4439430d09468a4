#include "backends/cuda/dialect.h"

#include "backends/cuda/wgmma_text.h"

namespace tl {

const Dialect& CudaDialect() {
  // Trivially destructible, so nothing happens when the process ends.
  static const Dialect dialect = {
      .language = "cuda",
      .primitives = CudaPrimitives(),
      .entry = "extern \"C\" __global__ __launch_bounds__($0, $1) void",
      .arena = "extern __shared__ __align__(1024) unsigned char arena[];",
      .block_index = "blockIdx.x",
      .grid_size = "gridDim.x",
      .thread_index = "threadIdx.x",
      .barrier = "__syncthreads();",
      .warp_barrier = "__syncwarp();",
      .group_barrier = "tl_group_barrier($0, $1);",
      .block_barrier = "tl_block_barrier($0);",
      .fewer_registers = "tl_fewer_registers<$0>();",
      .more_registers = "tl_more_registers<$0>();",
      .unroll = "#pragma unroll",
      .no_unroll = "#pragma unroll 1",
      .warpgroup_product = WgmmaText,
      .warpgroup_sums = SumsText,
  };
  return dialect;
}

}  // namespace tl
