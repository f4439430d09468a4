// tl_compile_options as the service takes them.
#ifndef TILEJIT_ABI_COMPILE_OPTIONS_H_
#define TILEJIT_ABI_COMPILE_OPTIONS_H_

#include "base/status.h"
#include "service/request.h"
#include "tl/tl.h"

namespace tl::abi {

// The request points into the caller's texts.
StatusOr<CompileRequest> Translate(const tl_compile_options& o);

}  // namespace tl::abi

#endif  // TILEJIT_ABI_COMPILE_OPTIONS_H_
