// The GPU architectures that CUDA code is generated for, and the names of GPUs that have them.
#ifndef TILEJIT_BACKENDS_CUDA_TARGETS_H_
#define TILEJIT_BACKENDS_CUDA_TARGETS_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/target.h"

namespace tl {

// "sm_90a", "H200", "NVIDIA GeForce RTX 4090"; case, blanks and the vendor's words do not count.
StatusOr<Target> FindCudaTarget(std::string_view name);
// Target for a device of compute capability major.minor: with the architecture's own features where
// it has such ("sm_90a" for 9.0); otherwise the latest architecture whose binaries run there.
StatusOr<Target> CudaTargetOfCapability(int major, int minor);
// Architectures, then GPUs.
std::vector<std::string> CudaTargetNames();
// Number of an architecture: 90 for "sm_90a".
int ArchNumber(const Target& target);

// What the blocks that one multiprocessor runs at the same time share. (Registers are the same
// everywhere: see occupancy.cc.)
struct CudaUnit {
  int shared_bytes;
  int reserved_bytes;  // of shared memory, that every block takes beside its own
  int warps, blocks;   // at most
};
std::optional<CudaUnit> UnitOf(const Target& target);

}  // namespace tl

#endif  // TILEJIT_BACKENDS_CUDA_TARGETS_H_
