#include "backends/emulate/client/tensor_map.h"

#include <cstring>

#include "absl/strings/str_cat.h"

namespace tl::emulate {
namespace {

constexpr int64_t kMaxExtent = int64_t{1} << 32, kMaxStride = int64_t{1} << 40;
constexpr int64_t kMaxBox = 256;

template <typename... Words>
Status Refuse(const Words&... words) {
  return absl::InvalidArgumentError(absl::StrCat("a tensor map: ", words...));
}

Status CheckDims(const TensorMapRecipe& r) {
  const size_t rank = r.dims.size();
  if (rank < 1 || rank > 5 || r.box.size() != rank || r.strides.size() != rank - 1) {
    return Refuse("1 to 5 dims, as many extents of the box and one stride less; not ", rank, ", ",
                  r.box.size(), ", ", r.strides.size());
  }
  for (size_t d = 0; d < rank; ++d) {
    if (r.dims[d] < 1 || r.dims[d] > kMaxExtent) {
      return Refuse("dim ", d, " has ", r.dims[d], " elements; 1 to 2^32 are possible");
    }
    if (r.box[d] < 1 || r.box[d] > kMaxBox) {
      return Refuse("the box has ", r.box[d], " elements in dim ", d, "; 1 to 256 are possible");
    }
    if (d > 0 &&
        (r.strides[d - 1] < 0 || r.strides[d - 1] >= kMaxStride || r.strides[d - 1] % 16 != 0)) {
      return Refuse("the stride of dim ", d, " is ", r.strides[d - 1],
                    " bytes; multiples of 16 below 2^40 are possible");
    }
  }
  return absl::OkStatus();
}

Status CheckRows(const TensorMapRecipe& r) {
  const int64_t row = r.box[0] * static_cast<int64_t>(SizeOf(r.dtype));
  if (row % 16 != 0) return Refuse("rows of the box have ", row, " bytes, no multiple of 16");
  const int s = r.swizzle;
  if (s != 0 && s != 32 && s != 64 && s != 128) {
    return Refuse("a swizzle of 0, 32, 64 or 128 bytes, not ", s);
  }
  if (s != 0 && row != s) return Refuse("rows of the box have ", row, " bytes, the swizzle's ", s);
  return absl::OkStatus();
}

Status CheckStorage(const TensorMapRecipe& r) {
  if (reinterpret_cast<uintptr_t>(r.data) % 16 != 0) {
    return Refuse("the tensor's address is no multiple of 16");
  }
  int64_t end = r.dims[0] * static_cast<int64_t>(SizeOf(r.dtype));
  for (size_t d = 1; d < r.dims.size(); ++d) end += (r.dims[d] - 1) * r.strides[d - 1];
  if (r.bytes >= 0 && end > r.bytes) {
    return Refuse("its dims reach to byte ", end, " of a tensor of ", r.bytes, " bytes");
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<TensorMapBytes> MakeTensorMap(const TensorMapRecipe& r) {
  TL_RETURN_IF_ERROR(CheckDims(r));
  TL_RETURN_IF_ERROR(CheckRows(r));
  TL_RETURN_IF_ERROR(CheckStorage(r));
  TlTensorMap map = {};
  map.mark = kTlTensorMap;
  map.base = reinterpret_cast<uintptr_t>(r.data);
  map.rank = static_cast<int>(r.dims.size());
  map.element_bytes = static_cast<int>(SizeOf(r.dtype));
  map.swizzle = r.swizzle;
  for (size_t d = 0; d < r.dims.size(); ++d) {
    map.extents[d] = static_cast<uint64_t>(r.dims[d]);
    map.box[d] = static_cast<unsigned>(r.box[d]);
    if (d > 0) map.strides[d - 1] = static_cast<uint64_t>(r.strides[d - 1]);
  }
  TensorMapBytes bytes = {};
  std::memcpy(bytes.data(), &map, sizeof(map));
  return bytes;
}

Status DescribeBox(const TensorMapRecipe& recipe, TensorMap& map) {
  TL_ASSIGN_OR_RETURN(map.bytes, MakeTensorMap(recipe));
  return absl::OkStatus();
}

}  // namespace tl::emulate
