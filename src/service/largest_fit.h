// What to suggest where a configuration needs more than the target has.
#ifndef TILEJIT_SERVICE_LARGEST_FIT_H_
#define TILEJIT_SERVICE_LARGEST_FIT_H_

#include "base/target.h"
#include "ir/syntax.h"
#include "service/request.h"

namespace tl {

// `status`, and where it is about a limit or a condition of the tune parameters, besides: of the
// combinations that the program lists for the request's dims and parameters, the one whose blocks
// take the most on-chip memory of those that the target and the request's budget have room for.
Status WithLargestFit(const Status& status, const syntax::Program& program,
                      const CompileRequest& request, const Target& target);

}  // namespace tl

#endif  // TILEJIT_SERVICE_LARGEST_FIT_H_
