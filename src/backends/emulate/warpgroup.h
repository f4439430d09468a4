// The matrix products of four warps: issued together, computed in their order at some moment, and
// waited for by each warp.
#ifndef TILEJIT_BACKENDS_EMULATE_WARPGROUP_H_
#define TILEJIT_BACKENDS_EMULATE_WARPGROUP_H_

#include <array>
#include <cstdint>
#include <deque>
#include <list>
#include <vector>

#include "backends/emulate/api.h"
#include "backends/emulate/wgmma.h"

namespace tl::emulate {

inline constexpr int kWarpsOfGroup = 4;

// Sums under way. The threads' registers hold NaNs from the first product until their warp has
// waited for the last one.
struct Accumulator {
  std::array<void*, kWarpgroup> at;
  size_t bytes;  // of a thread
  std::vector<unsigned char> values;
  uint32_t last;  // product
  std::array<bool, kWarpsOfGroup> returned;

  unsigned char* of(int thread) { return values.data() + static_cast<size_t>(thread) * bytes; }
};

struct Product {
  TlWgmma call;
  uint32_t number;  // from 1 on
  Accumulator* sums;
  std::array<const void*, kWarpgroup> a;
  std::vector<unsigned char> factors;  // what `a` held
  std::array<int64_t, kWarpsOfGroup> group;
  std::array<bool, kWarpsOfGroup> waited;
  bool computed;
};

struct Warpgroup {
  // A call that threads gather for.
  TlWgmma call;
  int arrived = 0;
  std::array<void*, kWarpgroup> c;
  std::array<const void*, kWarpgroup> a;

  uint32_t issued = 0;
  std::array<int64_t, kWarpsOfGroup> groups = {};  // committed
  std::deque<Product> products;                    // not waited for by all
  std::list<Accumulator> accumulators;
  int reader = -1;  // of Shadow
  std::array<int, kWarpsOfGroup> counters;
};

// Registers of a thread that products have used, and what they held at its last fence.
struct Registers {
  const void* at;
  size_t bytes;
  std::vector<unsigned char> fenced;
  bool is_fenced;
};

}  // namespace tl::emulate

#endif  // TILEJIT_BACKENDS_EMULATE_WARPGROUP_H_
