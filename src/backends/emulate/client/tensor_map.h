// Tensor maps for emulated kernels: what cuTensorMapEncodeTiled makes of the same arguments, for
// the emulator to read.
#ifndef TILEJIT_BACKENDS_EMULATE_CLIENT_TENSOR_MAP_H_
#define TILEJIT_BACKENDS_EMULATE_CLIENT_TENSOR_MAP_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "backends/emulate/api.h"
#include "base/dtype.h"
#include "base/status.h"

namespace tl::emulate {

// Dim 0 is the innermost, its elements lie beside each other.
struct TensorMapRecipe {
  const void* data;
  int64_t bytes = -1;  // of the storage; -1: unknown
  DType dtype;
  std::vector<int64_t> dims;     // 1 to 5
  std::vector<int64_t> strides;  // bytes; of dims 1 and on
  std::vector<int64_t> box;      // elements in each dim
  int swizzle;                   // bytes of a swizzled row: 0, 32, 64, 128
};

// The value of a parameter `const __grid_constant__ tl_tensor_map`. What the driver refuses is an
// error, and so is a box whose rows are shorter than the swizzle's or dims beyond the storage.
using TensorMapBytes = std::array<std::byte, kTlMapBytes>;
StatusOr<TensorMapBytes> MakeTensorMap(const TensorMapRecipe& recipe);

}  // namespace tl::emulate

#endif  // TILEJIT_BACKENDS_EMULATE_CLIENT_TENSOR_MAP_H_
