// A loop over independent rows on all cores.
#ifndef TILEJIT_TESTS_ORACLE_PARALLEL_H_
#define TILEJIT_TESTS_ORACLE_PARALLEL_H_

#include <cstdint>
#include <functional>

namespace oracle {

void ParallelFor(int64_t count, const std::function<void(int64_t)>& body);

}  // namespace oracle

#endif  // TILEJIT_TESTS_ORACLE_PARALLEL_H_
