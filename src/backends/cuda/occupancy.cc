#include "backends/cuda/occupancy.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "backends/cuda/targets.h"
#include "base/int_math.h"

namespace tl {
namespace {

// The same for all architectures from sm_75 to sm_120: each of four parts of a multiprocessor has
// 16384 registers and hands them to its warps 256 at a time.
constexpr int kWarpSize = 32, kParts = 4, kRegistersOfPart = 16384, kRegisterUnit = 256;

int64_t RoundUp(int64_t a, int64_t to) { return CeilDiv(a, to) * to; }

int64_t BlocksByRegisters(int registers, int64_t warps) {
  const int64_t of_warp = RoundUp(int64_t{registers} * kWarpSize, kRegisterUnit);
  return kRegistersOfPart / of_warp * kParts / RoundUp(warps, kParts);
}

int64_t BlocksByShared(const CudaUnit& unit, int number, int64_t bytes) {
  // In pieces of 256 bytes up to sm_75, of 128 later.
  const int64_t of_block = RoundUp(bytes + unit.reserved_bytes, number < 80 ? 256 : 128);
  return of_block == 0 ? unit.blocks : unit.shared_bytes / of_block;
}

}  // namespace

Occupancy OccupancyOf(const Target& target, int registers, int threads, int64_t shared_bytes) {
  const std::optional<CudaUnit> unit = UnitOf(target);
  if (!unit || registers <= 0 || threads <= 0) return {};
  const int64_t warps = CeilDiv(threads, kWarpSize);
  // Of equals, what no program can change.
  const std::pair<int64_t, std::string_view> limits[] = {
      {unit->warps / warps, "threads"},
      {unit->blocks, "blocks"},
      {BlocksByRegisters(registers, warps), "registers"},
      {BlocksByShared(*unit, ArchNumber(target), shared_bytes), "shared memory"},
  };
  const auto& least =
      *std::min_element(std::begin(limits), std::end(limits),
                        [](const auto& a, const auto& b) { return a.first < b.first; });
  return {static_cast<int>(least.first),
          static_cast<double>(least.first * warps) / static_cast<double>(unit->warps),
          least.second};
}

}  // namespace tl
