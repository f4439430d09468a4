#include "service/plan.h"

#include <optional>
#include <sstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/edit_distance.h"

// Otherwise toml++ throws what it finds wrong.
#define TOML_EXCEPTIONS 0
// toml++ 3.3 asserts, and with NDEBUG lets the compiler assume, what malformed keys ("[# x")
// violate; the code behind reports them. So neither: without NDEBUG it takes the macro given here.
#define TOML_ASSERT(condition) static_assert(true)
#pragma push_macro("NDEBUG")
#undef NDEBUG
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")

namespace tl {
namespace {

constexpr int64_t kPlanVersion = 1;

Span SpanOf(const toml::source_region& region) {
  return {static_cast<int>(region.begin.line), static_cast<int>(region.begin.column),
          static_cast<int>(region.end.line), static_cast<int>(region.end.column)};
}

Status Wrong(const toml::node& node, std::string_view message) {
  return SemanticError(SpanOf(node.source()), message);
}

std::string_view TypeName(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::table:
      return "a table";
    case toml::node_type::array:
      return "a list";
    case toml::node_type::string:
      return "a string";
    case toml::node_type::integer:
      return "an integer";
    case toml::node_type::floating_point:
      return "a float";
    case toml::node_type::boolean:
      return "a boolean";
    default:
      return "a date or time";
  }
}

Status WrongType(const toml::node& node, std::string_view key, std::string_view expected) {
  return Wrong(node, absl::StrCat("'", key, "' is ", TypeName(node), "; expected ", expected));
}

// Every key must be known; a misspelt one would otherwise warm something else in silence.
Status CheckKeys(const toml::table& table, std::string_view what,
                 std::initializer_list<std::string_view> known) {
  for (const auto& [key, node] : table) {
    const std::string_view name = key.str();
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    return SemanticError(SpanOf(key.source()),
                         absl::StrCat(what, " has no key '", name, "'; it has ",
                                      absl::StrJoin(known, ", "), DidYouMean(name, known)));
  }
  return absl::OkStatus();
}

StatusOr<std::string> ReadText(const toml::table& table, std::string_view key) {
  const toml::node* node = table.get(key);
  if (!node) return std::string();
  const auto* text = node->as_string();
  if (!text) return WrongType(*node, key, "a string");
  if (text->get().empty()) return Wrong(*node, absl::StrCat("'", key, "' is empty"));
  if (text->get().find('\0') != std::string::npos)
    return Wrong(*node, absl::StrCat("'", key, "' contains a NUL character"));
  return text->get();
}

StatusOr<std::vector<std::string>> ReadTargets(const toml::table& table) {
  std::vector<std::string> targets;
  const toml::node* node = table.get("targets");
  if (!node) return targets;
  const toml::array* list = node->as_array();
  if (!list || list->empty())
    return WrongType(*node, "targets", "a list like [\"sm_90a\", \"cpu\"]");
  for (const toml::node& element : *list) {
    const auto* text = element.as_string();
    if (!text || text->get().empty())
      return WrongType(element, "targets", "names of targets or GPUs");
    targets.push_back(text->get());
  }
  return targets;
}

// A value in the words of the language.
StatusOr<std::string> ReadValue(const toml::node& node, std::string_view name) {
  if (const auto* text = node.as_string()) {
    const bool good = !text->get().empty() && text->get().find('\0') == std::string::npos;
    if (good) return text->get();
    return Wrong(node, absl::StrCat("'", name, "' is empty or contains a NUL character"));
  }
  if (const auto* number = node.as_integer()) return absl::StrCat(number->get());
  if (const auto* flag = node.as_boolean()) return std::string(flag->get() ? "true" : "false");
  return WrongType(node, name, "a string, an integer, a boolean, or a list of these");
}

using Choices = std::pair<std::string, std::vector<std::string>>;

StatusOr<Choices> ReadChoices(std::string_view name, const toml::node& node) {
  Choices choices{std::string(name), {}};
  const toml::array* list = node.as_array();
  if (!list) {
    TL_ASSIGN_OR_RETURN(std::string value, ReadValue(node, name));
    choices.second.push_back(std::move(value));
    return choices;
  }
  if (list->empty()) return Wrong(node, absl::StrCat("'", name, "' is an empty list"));
  for (const toml::node& element : *list) {
    TL_ASSIGN_OR_RETURN(std::string value, ReadValue(element, name));
    choices.second.push_back(std::move(value));
  }
  return choices;
}

// All combinations, the last name's values following each other fastest.
Status MultiplyOut(const toml::table& table, size_t room, std::vector<ParamSet>& out) {
  std::vector<Choices> all;
  size_t count = 1;
  for (const auto& [key, node] : table) {
    TL_ASSIGN_OR_RETURN(Choices choices, ReadChoices(key.str(), node));
    count *= choices.second.size();
    if (count > room) {
      return LimitError(SpanOf(table.source()),
                        absl::StrCat("the plan has more than ", kMaxPlanKernels,
                                     " parameter sets, all lists multiplied out"));
    }
    all.push_back(std::move(choices));
  }
  for (size_t i = 0; i < count; ++i) {
    ParamSet set(all.size());
    size_t rest = i;
    for (size_t p = all.size(); p-- > 0; rest /= all[p].second.size()) {
      set[p] = {all[p].first, all[p].second[rest % all[p].second.size()]};
    }
    out.push_back(std::move(set));
  }
  return absl::OkStatus();
}

// A table of values, or several: the sets that `key` of a kernel stands for.
Status ReadSets(const toml::table& kernel, std::string_view key, size_t room,
                std::vector<ParamSet>& out) {
  const toml::node* node = kernel.get(key);
  if (!node) return MultiplyOut({}, room, out);
  if (const toml::table* table = node->as_table()) return MultiplyOut(*table, room, out);
  const toml::array* sets = node->as_array();
  constexpr std::string_view kExpected = "a table of values, or a list of such tables";
  if (!sets || sets->empty()) return WrongType(*node, key, kExpected);
  for (const toml::node& set : *sets) {
    const toml::table* table = set.as_table();
    if (!table) return WrongType(set, key, kExpected);
    TL_RETURN_IF_ERROR(MultiplyOut(*table, room - std::min(room, out.size()), out));
  }
  return absl::OkStatus();
}

// Dims are numbers, whatever the program: parameters may be anything.
Status CheckDims(const toml::table& kernel, const std::vector<ParamSet>& sets) {
  for (const ParamSet& set : sets) {
    for (const auto& [name, value] : set) {
      int64_t number = -1;
      if (absl::SimpleAtoi(value, &number) && number >= 0) continue;
      return Wrong(*kernel.get("dims"), absl::StrCat("the dim '", name, "' is '", value,
                                                     "'; a dim is a number from 0 up"));
    }
  }
  return absl::OkStatus();
}

StatusOr<int64_t> ReadBudget(const toml::table& kernel) {
  const toml::node* node = kernel.get("shared_budget");
  if (!node) return 0;
  const auto* bytes = node->as_integer();
  if (!bytes || bytes->get() < 0) return WrongType(*node, "shared_budget", "bytes, from 0 up");
  return bytes->get();
}

StatusOr<PlanEntry> ReadEntry(const toml::table& kernel, size_t room) {
  TL_RETURN_IF_ERROR(
      CheckKeys(kernel, "a kernel",
                {"family", "file", "source", "targets", "shared_budget", "params", "dims"}));
  PlanEntry entry;
  entry.span = SpanOf(kernel.source());
  TL_ASSIGN_OR_RETURN(entry.family, ReadText(kernel, "family"));
  TL_ASSIGN_OR_RETURN(entry.file, ReadText(kernel, "file"));
  TL_ASSIGN_OR_RETURN(entry.source, ReadText(kernel, "source"));
  if (!entry.family.empty() + !entry.file.empty() + !entry.source.empty() != 1)
    return Wrong(kernel, "a kernel names exactly one of family, file and source");
  TL_ASSIGN_OR_RETURN(entry.targets, ReadTargets(kernel));
  TL_ASSIGN_OR_RETURN(entry.shared_budget, ReadBudget(kernel));
  TL_RETURN_IF_ERROR(ReadSets(kernel, "params", room, entry.params));
  TL_RETURN_IF_ERROR(ReadSets(kernel, "dims", room / entry.params.size(), entry.dims));
  TL_RETURN_IF_ERROR(CheckDims(kernel, entry.dims));
  return entry;
}

Status CheckVersion(const toml::table& root) {
  const toml::node* node = root.get("plan");
  if (!node) return SemanticError({1, 1, 1, 1}, "a plan begins with its version, plan = 1");
  const auto* version = node->as_integer();
  if (!version) return WrongType(*node, "plan", "the version of the format, 1");
  if (version->get() == kPlanVersion) return absl::OkStatus();
  return Wrong(*node, absl::StrCat("plans of version ", version->get(),
                                   " are not known here; this library reads version 1"));
}

StatusOr<Plan> ReadPlan(const toml::table& root) {
  TL_RETURN_IF_ERROR(CheckVersion(root));
  TL_RETURN_IF_ERROR(CheckKeys(root, "a plan", {"plan", "targets", "kernel"}));
  Plan plan;
  TL_ASSIGN_OR_RETURN(plan.targets, ReadTargets(root));
  const toml::node* node = root.get("kernel");
  if (!node) return SemanticError({1, 1, 1, 1}, "the plan has no [[kernel]]");
  const toml::array* kernels = node->as_array();
  if (!kernels || kernels->empty()) return WrongType(*node, "kernel", "tables named [[kernel]]");
  size_t room = kMaxPlanKernels;
  for (const toml::node& element : *kernels) {
    const toml::table* kernel = element.as_table();
    if (!kernel) return WrongType(element, "kernel", "tables named [[kernel]]");
    TL_ASSIGN_OR_RETURN(PlanEntry entry, ReadEntry(*kernel, room));
    room -= entry.params.size() * entry.dims.size();
    plan.entries.push_back(std::move(entry));
  }
  return plan;
}

// Elsewhere than in strings and comments TOML has ASCII only, and toml++ 3.3 runs into
// __builtin_unreachable() on much of the rest. Strings can do without: "\u00e9".
Status CheckAscii(std::string_view text) {
  int line = 1, column = 1;
  for (const char c : text) {
    if (static_cast<unsigned char>(c) >= 0x80) {
      return SyntaxError({line, column, line, column + 1},
                         "a plan is ASCII text; other characters are written in strings as in "
                         "\"\\u00e9\"");
    }
    ++column;
    if (c == '\n') ++line, column = 1;
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<Plan> ParsePlan(std::string_view text) {
  if (text.size() > kMaxPlanBytes) {
    return LimitError(
        {}, absl::StrCat("the plan has ", text.size(), " bytes; the limit is ", kMaxPlanBytes));
  }
  TL_RETURN_IF_ERROR(CheckAscii(text));
  const toml::parse_result parsed = toml::parse(text);
  if (!parsed) {
    return SyntaxError(SpanOf(parsed.error().source()),
                       absl::StrCat("the plan is no TOML: ", parsed.error().description()));
  }
  return ReadPlan(parsed.table());
}

std::string PlanFor(const CompileRequest& request, std::string_view target) {
  toml::table kernel;
  const bool family = !request.family.empty();
  kernel.insert(family ? "family" : "source", family ? request.family : request.source);
  kernel.insert("targets", toml::array{target});
  if (request.shared_budget != 0) kernel.insert("shared_budget", request.shared_budget);
  toml::table params;
  for (const auto& [name, value] : request.params) params.insert(name, value);
  if (!params.empty()) kernel.insert("params", std::move(params));
  toml::table plan;
  plan.insert("plan", kPlanVersion);
  plan.insert("kernel", toml::array{std::move(kernel)});
  // A literal string ends at the first three quotes in it, and the reader drops a line's end that a
  // string of several lines begins with: toml++ 3.3 writes both.
  toml::format_flags flags = toml::toml_formatter::default_flags;
  flags &= ~(toml::format_flags::allow_literal_strings | toml::format_flags::allow_unicode_strings |
             toml::format_flags::indentation);
  if (request.source.starts_with('\n')) flags &= ~toml::format_flags::allow_multi_line_strings;
  std::ostringstream text;
  text << toml::toml_formatter(plan, flags) << "\n";
  return text.str();
}

}  // namespace tl
