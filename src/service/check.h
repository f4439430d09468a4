// The verifier: a kernel's results against the reference or an oracle.
#ifndef TILEJIT_SERVICE_CHECK_H_
#define TILEJIT_SERVICE_CHECK_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "service/context.h"
#include "service/trial.h"

namespace tl {

// Host view of one operand, contiguous and in double.
struct OracleTensor {
  std::string name;
  BufferRole role;
  std::vector<int64_t> shape;
  std::vector<double> input;     // in, inout
  std::vector<double> expected;  // out, inout: filled by the oracle
  std::vector<double> bound;     // negative: not compared
};

// Fills expected and bound of every output; false: it could not.
using Oracle =
    std::function<bool(std::vector<OracleTensor>& tensors, const reference::Arguments& arguments)>;

struct CheckOptions {
  TrialArguments arguments;
  Oracle oracle;               // empty: the reference interpreter
  int64_t reference_work = 0;  // 0: a default
  int threads = 1;
};

struct CheckResult {
  double worst_ratio = 0, worst_error = 0, worst_bound = 0, worst_expected = 0, worst_actual = 0;
  uint64_t compared = 0, mismatches = 0;
  int worst_operand = -1;
  int64_t worst_index = -1;  // flat, row-major
};

// DATA_LOSS with reason kMismatch when results are off; *result is filled then too.
Status Check(const Kernel& kernel, const Device& device, const CheckOptions& options,
             CheckResult* result);

}  // namespace tl

#endif  // TILEJIT_SERVICE_CHECK_H_
