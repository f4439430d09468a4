// Does a module keep the rules of its level? Run after every pass: a fault shows where it is made
// and not as strange code three stages later.
#ifndef TILEJIT_IR_VERIFY_H_
#define TILEJIT_IR_VERIFY_H_

#include "base/status.h"
#include "ir/module.h"

namespace tl {

// INTERNAL with the launch, the statement and what is wrong. Checked are: statements of the level
// only; ids in range; types of operands agree; an index has one entry per dim (level Thread: one);
// names and tiles are defined before, and in scope at, every use; windows fit their operations.
//
// `finished`: at level Thread, nothing is left of the steps between the levels: no `on`, every tile
// placed.
Status Verify(const Module& module, Level level, bool finished = true);

}  // namespace tl

#endif  // TILEJIT_IR_VERIFY_H_
