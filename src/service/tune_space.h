// The combinations that a request for tuning spans.
#ifndef TILEJIT_SERVICE_TUNE_SPACE_H_
#define TILEJIT_SERVICE_TUNE_SPACE_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/target.h"
#include "ir/bind.h"
#include "service/record.h"
#include "service/request.h"
#include "tuner/order.h"

namespace tl {

struct RequestedSpace {
  std::vector<std::string> names;  // of the tune parameters
  Combinations combinations;       // the default first
  bool complete = true;            // false: only the first so many combinations
  // Whether the first is what the program is compiled to untuned, so that the search can say that
  // its winner is no slower. A space that was narrowed may not have that one.
  bool has_default = false;

  Configuration configuration(size_t candidate) const;
  // How it is bound.
  BindOptions OptionsFor(size_t candidate, const CompileRequest& request,
                         const Target& target) const;
  // Leaves out what the request says of tune parameters.
  void DropTuned(CompileRequest& request) const;
  // The candidate with this configuration.
  std::optional<size_t> Find(const Configuration& configuration) const;
};

// Fails where a parameter is unknown or its values contradict the program's conditions.
StatusOr<RequestedSpace> SpaceOf(const syntax::Program& program, const CompileRequest& request,
                                 const Target& target);

}  // namespace tl

#endif  // TILEJIT_SERVICE_TUNE_SPACE_H_
