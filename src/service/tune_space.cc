#include "service/tune_space.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace tl {
namespace {

// What the request says of dims and parameters; nothing of tune parameters.
BindOptions WithoutTuned(const CompileRequest& request, const Target& target,
                         const std::vector<std::string_view>& tuned) {
  BindOptions options;
  options.target_class = target.tune_class();
  for (const auto& [name, value] : request.params) {
    if (!absl::c_linear_search(tuned, name))
      options.values.emplace_back(std::string(name), std::string(value));
  }
  return options;
}

std::vector<std::string> Values(std::string_view text) {
  std::vector<std::string> values;
  for (std::string_view value : absl::StrSplit(text, ','))
    values.emplace_back(absl::StripAsciiWhitespace(value));
  return values;
}

// The first combination of the whole space: what is compiled untuned.
std::vector<std::string> Untuned(const syntax::Program& program, const BindOptions& options) {
  std::vector<std::string> values;
  const StatusOr<Module> bound = Bind(program, options);
  if (!bound.ok()) return values;
  for (const BoundParam& param : bound->params) {
    if (param.tuned) values.push_back(param.value);
  }
  return values;
}

}  // namespace

Configuration RequestedSpace::configuration(size_t candidate) const {
  Configuration out;
  for (size_t i = 0; i < names.size(); ++i) out.emplace_back(names[i], combinations[candidate][i]);
  return out;
}

void RequestedSpace::DropTuned(CompileRequest& request) const {
  std::erase_if(request.params,
                [&](const auto& param) { return absl::c_linear_search(names, param.first); });
}

BindOptions RequestedSpace::OptionsFor(size_t candidate, const CompileRequest& request,
                                       const Target& target) const {
  BindOptions options = WithoutTuned(request, target, {names.begin(), names.end()});
  for (auto& value : configuration(candidate)) options.values.push_back(std::move(value));
  return options;
}

std::optional<size_t> RequestedSpace::Find(const Configuration& wanted) const {
  for (size_t i = 0; i < combinations.size(); ++i) {
    const Configuration own = configuration(i);
    // Records know no order of parameters.
    if (std::is_permutation(own.begin(), own.end(), wanted.begin(), wanted.end())) return i;
  }
  return std::nullopt;
}

StatusOr<RequestedSpace> SpaceOf(const syntax::Program& program, const CompileRequest& request,
                                 const Target& target) {
  const std::vector<std::string_view> tuned = TuneNames(program, target.tune_class());
  if (tuned.empty()) {
    return SemanticError({}, absl::StrCat("'", program.name.text, "' has no tune clause for ",
                                          target.tune_class(), ": there is nothing to tune"));
  }
  const BindOptions whole = WithoutTuned(request, target, tuned);
  BindOptions narrowed = whole;
  for (const auto& [name, value] : request.params) {
    if (absl::c_linear_search(tuned, name))
      narrowed.choices.emplace_back(std::string(name), Values(value));
  }
  TL_ASSIGN_OR_RETURN(TuneSpace space, TuneSpaceOf(program, narrowed));
  RequestedSpace out{std::move(space.names), std::move(space.combinations), space.complete};
  const auto found = absl::c_find(out.combinations, Untuned(program, whole));
  if (found != out.combinations.end()) {
    std::rotate(out.combinations.begin(), found, found + 1);
    out.has_default = true;
  }
  return out;
}

}  // namespace tl
