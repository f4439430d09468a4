#include "backends/emulate/elements.h"

#include <array>
#include <cstdint>
#include <vector>

namespace tl::emulate {
namespace {

// Element values by their bits, for the types of at most 16 bits.
const std::vector<float>& Values(DType t) {
  static const auto tables = [] {
    std::array<std::vector<float>, kNumDTypes> all;
    for (DType u :
         {DType::kI8, DType::kU8, DType::kE4M3, DType::kE5M2, DType::kF16, DType::kBF16}) {
      std::vector<float>& table = all[static_cast<size_t>(u)];
      table.resize(size_t{1} << (8 * SizeOf(u)));
      for (uint32_t bits = 0; bits < table.size(); ++bits) {
        table[bits] = static_cast<float>(LoadElement(u, &bits));
      }
    }
    return all;
  }();
  return tables[static_cast<size_t>(t)];
}

}  // namespace

double ElementValue(DType t, const void* p, int i) {
  if (t == DType::kF64) return static_cast<const double*>(p)[i];
  if (t == DType::kI32) return static_cast<const int32_t*>(p)[i];
  if (t == DType::kF32) return static_cast<const float*>(p)[i];
  const uint32_t bits =
      SizeOf(t) == 1 ? static_cast<const uint8_t*>(p)[i] : static_cast<const uint16_t*>(p)[i];
  return Values(t)[bits];
}

void AddToElement(DType t, void* p, int i, double sum) {
  if (t == DType::kI32) {  // wraps
    auto* c = static_cast<uint32_t*>(p) + i;
    *c += static_cast<uint32_t>(static_cast<int64_t>(sum));
  } else if (t == DType::kF64) {
    static_cast<double*>(p)[i] += sum;
  } else if (t == DType::kF32) {
    auto* c = static_cast<float*>(p) + i;
    *c = static_cast<float>(*c + sum);
  } else {
    auto* c = static_cast<uint16_t*>(p) + i;
    StoreElement(t, c, Values(t)[*c] + sum);
  }
}

}  // namespace tl::emulate
