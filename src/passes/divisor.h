// What whole numbers are known to be multiples of.
#ifndef TILEJIT_PASSES_DIVISOR_H_
#define TILEJIT_PASSES_DIVISOR_H_

#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "ir/expr.h"

namespace tl {

using Divisors = absl::flat_hash_map<VarId, int64_t>;

// A number that divides every value of `e`; 0: everything does. `known`: of variables.
int64_t DivisorOf(const ExprRef& e, const Divisors& known);

}  // namespace tl

#endif  // TILEJIT_PASSES_DIVISOR_H_
