// Tidies what the other passes leave: names of literals are replaced by them (and fold), names that
// nothing reads and loops and branches that do nothing go.
#ifndef TILEJIT_PASSES_SIMPLIFY_H_
#define TILEJIT_PASSES_SIMPLIFY_H_

#include "base/status.h"
#include "base/target.h"
#include "ir/module.h"

namespace tl {

Status Simplify(Module& module, const Target& target);

}  // namespace tl

#endif  // TILEJIT_PASSES_SIMPLIFY_H_
