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
  // Tune parameters that may take these values instead of the candidates that the program lists.
  std::vector<std::pair<std::string, std::vector<std::string>>> choices;
  // Which `tune … for X` clauses apply: names separated by spaces ("cpu", "cuda sm_90a"); "" takes
  // the general ones.
  std::string target_class;
};

StatusOr<Module> Bind(const syntax::Program& program, const BindOptions& options);

// Whether it failed because the tune parameters' values contradict a `where`.
bool IsConditionFailure(const Status& status);

// The tune parameters that apply to a class of targets, and every combination of their candidates
// that satisfies each `where`, in the order written: the first is what Bind takes.
struct TuneSpace {
  std::vector<std::string> names;
  std::vector<std::vector<std::string>> candidates;    // of each
  std::vector<std::vector<std::string>> combinations;  // a value for each name
  bool complete = true;  // false: only as many combinations as are ever looked at
};
// Fails as Bind does where no combination satisfies the conditions.
StatusOr<TuneSpace> TuneSpaceOf(const syntax::Program& program, const BindOptions& options);

// Names of the tune parameters that apply to a class of targets.
std::vector<std::string_view> TuneNames(const syntax::Program& program,
                                        std::string_view target_class);

}  // namespace tl

#endif  // TILEJIT_IR_BIND_H_
