// What code is generated for, as plain facts. Passes ask these facts and never for a vendor or an
// architecture's name.
#ifndef TILEJIT_BASE_TARGET_H_
#define TILEJIT_BASE_TARGET_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/matrix_atom.h"

namespace tl {

struct Target {
  // The name users write and see: "sm_90a", "gfx90a", "cpu", "reference".
  std::string name;
  // Name plus everything that changes the binary ("gfx90a:sramecc+:xnack-",
  // "cpu:sapphirerapids:+avx2,…"). Part of every cache key.
  std::string identity;
  // Identities of other targets whose binaries devices of this one run.
  std::vector<std::string> also_runs;
  bool Runs(const Target& compiled) const {
    if (identity == compiled.identity) return true;
    for (const std::string& other : also_runs) {
      if (other == compiled.identity) return true;
    }
    return false;
  }
  // The class that picks the backend: "cuda", "hip", "cpu",
  // "reference".
  std::string backend;
  // The backend whose code an emulated device runs; empty: its own.
  std::string code_of;

  // What a clause `tune … for X` may name, separated by spaces.
  std::string tune_class() const {
    const std::string& code = code_of.empty() ? backend : code_of;
    return code == name ? name : code + " " + name;
  }

  bool interprets = false;  // takes the tile program as it is, without the passes
  bool simt = false;        // threads of a block run in lockstep warps and share on-chip memory
  int warp_size = 1;
  int default_threads = 1;  // per group, where the program does not say
  int max_threads_per_block = 1;
  int max_groups = 16;           // of one block: each has a barrier of its own
  int64_t max_shared_bytes = 0;  // per block, opt-in limit; 0: no limit
  int64_t max_blocks = 0;        // of a one-dimensional grid
  int64_t max_param_bytes = 4096;
  bool channels = false;  // ChannelAcquire / ChannelRelease can be lowered

  // Fragments may live in the registers of a block's threads; else all tiles lie in shared memory.
  bool register_fragments = false;
  bool async_copies = false;     // global to shared memory without passing through registers
  bool bulk_copies = false;      // BulkLoad, BulkStore
  int max_cluster = 1;           // blocks that can run together, and load boxes for each other
  bool cache_hints = false;      // accesses may say what the L2 cache gives up first
  bool early_starts = false;     // a kernel may start while the one before it ends, and wait there
  int registers = 0;             // of a multiprocessor; 0: unknown
  int most_registers = 0;        // of a thread
  bool moves_registers = false;  // warps hand registers to each other, four by four
  bool matrix_loads = false;     // LoadMatrix
  bool matrix_stores = false;    // StoreMatrix
  std::vector<MatrixAtom> matrix_atoms;  // fastest first among those that fit one gemm
};

}  // namespace tl

#endif  // TILEJIT_BASE_TARGET_H_
