// Kernels by hand for the instructions of a warpgroup and the async proxy.
#ifndef TILEJIT_TESTS_EMULATE_HOPPER_TESTING_H_
#define TILEJIT_TESTS_EMULATE_HOPPER_TESTING_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "backends/c_family/prelude.h"
#include "backends/emulate/emulate.h"

namespace tl::testing {

inline constexpr int kSharedBytes = 64 * 1024;

struct HopperKernel {
  std::string parameters, body;
  int threads = 128, groups = 1;
};

// One program of them all: starting the host's compiler takes longer than what it does.
inline Generated HopperSource(const std::vector<HopperKernel>& kernels) {
  Generated g;
  g.source = absl::StrCat("// a prelude\n", kProgramMark);
  for (size_t i = 0; i < kernels.size(); ++i) {
    const std::string symbol = absl::StrCat("tl_kernel_", i);
    absl::StrAppend(&g.source, "extern \"C\" __global__ void ", symbol, "(", kernels[i].parameters,
                    ") {\n  const int thread = (int)threadIdx.x, warp = thread / 32 % 4, "
                    "lane = thread % 32;\n",
                    kernels[i].body, "\n}\n");
    g.entries.push_back({.symbol = symbol,
                         .threads = kernels[i].threads,
                         .groups = kernels[i].groups,
                         .shared_bytes = kSharedBytes});
  }
  return g;
}

// Every arrival with several seeds.
template <typename F>
void ForEachOrder(F run) {
  for (Arrival arrival : {Arrival::kRandom, Arrival::kEager, Arrival::kLazy}) {
    for (uint64_t seed = 1; seed <= 4; ++seed) {
      run(EmulateOptions{.seed = seed, .arrival = arrival, .switch_every = 20});
    }
  }
}

}  // namespace tl::testing

#endif  // TILEJIT_TESTS_EMULATE_HOPPER_TESTING_H_
