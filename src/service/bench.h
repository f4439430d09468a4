// The profiler: device time of a kernel on random inputs.
#ifndef TILEJIT_SERVICE_BENCH_H_
#define TILEJIT_SERVICE_BENCH_H_

#include <cstdint>

#include "service/context.h"
#include "service/trial.h"

namespace tl {

struct BenchOptions {
  TrialArguments arguments;
  int rounds = 5;
  double min_round_ns = 20e6;
  int64_t rotate_bytes = 0;  // 0: twice the L2 cache
};

struct BenchResult {
  double median_ns = 0, min_ns = 0, max_ns = 0;  // of one launch
  double bytes = 0;
  int64_t launches_per_round = 0;
  int64_t input_sets = 0;
  int rounds = 0;
};

// Launches on as many sets of inputs as exceed the L2 cache, in turn, back to back.
StatusOr<BenchResult> Bench(const Kernel& kernel, const Device& device,
                            const BenchOptions& options);

}  // namespace tl

#endif  // TILEJIT_SERVICE_BENCH_H_
