// A lowered program as the text of one C-like source file: prelude, then one function per launch.
//
// The text depends on the program's meaning only: operands are a0, a1 …, workspaces w0 …, dims n0
// …, strides d0 …, scalars x0 …, and within a kernel tiles are s0 …, local arrays l0 …, variables
// v0 …, so renaming a kernel and its buffers gives the same text.
#ifndef TILEJIT_BACKENDS_C_FAMILY_EMIT_H_
#define TILEJIT_BACKENDS_C_FAMILY_EMIT_H_

#include "backends/backend.h"
#include "backends/c_family/dialect.h"
#include "base/status.h"
#include "base/target.h"
#include "ir/module.h"

namespace tl {

// `module` must be at Level::kThread. Fails with LimitError where a launch asks for more threads or
// shared memory than the target has, with UnsupportedError for what the language cannot say.
StatusOr<Generated> EmitC(const Module& module, const Target& target, const Dialect& dialect);

}  // namespace tl

#endif  // TILEJIT_BACKENDS_C_FAMILY_EMIT_H_
