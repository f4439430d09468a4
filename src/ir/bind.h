// From the program as written to the bound Module: gives parameters their values, resolves names,
// checks types and rules, drops what a compile-time condition leaves out.
#ifndef TILEJIT_IR_BIND_H_
#define TILEJIT_IR_BIND_H_

#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "ir/module.h"
#include "ir/syntax.h"

namespace tl {

struct BindOptions {
  // Values for dims, parameters and tune parameters, in the language's own words ("4096", "bf16",
  // "on", "full_row"). A dim that is not named stays dynamic.
  std::vector<std::pair<std::string, std::string>> values;
  // Which `tune … for X` clauses apply: names separated by spaces ("cpu", "cuda sm_90a"); "" takes
  // the general ones.
  std::string target_class;
};

StatusOr<Module> Bind(const syntax::Program& program, const BindOptions& options);

// Candidates of each tune parameter that applies to `target_class`, as text, in program order.
struct TuneSpace {
  std::vector<std::pair<std::string, std::vector<std::string>>> params;
};
TuneSpace TuneSpaceOf(const syntax::Program& program, std::string_view target_class);

}  // namespace tl

#endif  // TILEJIT_IR_BIND_H_
