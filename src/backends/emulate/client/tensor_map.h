// Tensor maps for emulated kernels: what cuTensorMapEncodeTiled makes of the same arguments, for
// the emulator to read.
#ifndef TILEJIT_BACKENDS_EMULATE_CLIENT_TENSOR_MAP_H_
#define TILEJIT_BACKENDS_EMULATE_CLIENT_TENSOR_MAP_H_

#include "backends/backend.h"
#include "backends/emulate/api.h"
#include "base/status.h"

namespace tl::emulate {

// The value of a parameter `const __grid_constant__ tl_tensor_map`. What the driver refuses is an
// error, and so is a box whose rows are shorter than the swizzle's or dims beyond the storage.
static_assert(sizeof(TensorMap) == kTlMapBytes);
using TensorMapBytes = decltype(TensorMap::bytes);
StatusOr<TensorMapBytes> MakeTensorMap(const TensorMapRecipe& recipe);
// The same as LoadedKernel::Describe.
Status DescribeBox(const TensorMapRecipe& recipe, TensorMap& map);

}  // namespace tl::emulate

#endif  // TILEJIT_BACKENDS_EMULATE_CLIENT_TENSOR_MAP_H_
