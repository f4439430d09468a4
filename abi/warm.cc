// Plans, warmed or walked through, and asking what a request would become.
#define TL_EXPERIMENTAL
#include "service/warm.h"

#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "abi/compile_options.h"
#include "abi/error.h"
#include "abi/handles.h"
#include "abi/structs.h"
#include "absl/strings/str_join.h"
#include "service/plan_walk.h"

using tl::abi::Call;
using tl::abi::CheckGiven;
using tl::abi::CheckTexts;
using tl::abi::ReadStruct;
using tl::abi::WriteStruct;

namespace {

bool Forward(const tl_warm_options& o, const tl::WarmEvent& event) {
  const std::string program(event.program), target(event.target);
  const std::string params = absl::StrJoin(*event.params, " ", absl::PairFormatter("="));
  const std::string message(event.status.message());
  const tl::ErrorDetail detail = tl::DetailOf(event.status);
  tl_warm_event out{};
  out.struct_size = sizeof(out);
  out.line = event.span.line;
  out.program = program.c_str();
  out.params = params.c_str();
  out.target = target.c_str();
  out.done = event.done;
  out.total = event.total;
  out.status = static_cast<tl_status>(event.status.raw_code());
  out.compiled = event.compiled;
  out.message = message.c_str();
  out.program_line = detail.span.line;
  out.program_column = detail.span.column;
  return o.progress(o.user, &out) == 0;
}

// Of the options of either.
template <typename Options>
std::string_view PlanText(const Options& o) {
  const bool terminated = o.plan_size == 0 || o.plan_size == TL_ZERO_TERMINATED;
  return {o.plan, terminated ? std::strlen(o.plan) : o.plan_size};
}

std::vector<tl_param> Named(const std::vector<std::pair<std::string, std::string>>& values) {
  std::vector<tl_param> out;
  for (const auto& [name, value] : values) out.push_back({name.c_str(), value.c_str()});
  return out;
}

bool Forward(const tl_plan_options& o, const tl::PlanStop& stop) {
  // Views become C strings.
  const std::string program(stop.program), family(stop.request.family);
  tl::ParamSet params;
  for (const auto& [name, value] : stop.request.params) params.emplace_back(name, value);
  const std::vector<tl_param> param_list = Named(params), dims = Named(*stop.dims);
  tl_compile_options compile{};
  compile.struct_size = sizeof(compile);
  if (family.empty()) {
    compile.source = stop.request.source.data();
    compile.source_size = stop.request.source.size();
  } else {
    compile.family = family.c_str();
  }
  compile.params = param_list.data();
  compile.num_params = param_list.size();
  compile.device = stop.request.device;
  compile.shared_budget = stop.request.shared_budget;
  tl_plan_stop out{};
  out.struct_size = sizeof(out);
  out.line = stop.span.line;
  out.program = program.c_str();
  out.compile = &compile;
  out.dims = dims.data();
  out.num_dims = dims.size();
  return o.visit(o.user, &out) == 0;
}

tl::StatusOr<tl::WarmOptions> TranslateOptions(const tl_warm_options& o) {
  TL_RETURN_IF_ERROR(CheckGiven(o.plan, "plan"));
  TL_RETURN_IF_ERROR(CheckTexts("targets", o.targets, o.num_targets));
  if (o.jobs < 0 || o.jobs > 1024)
    return absl::InvalidArgumentError(absl::StrCat("jobs is ", o.jobs, "; it is 0 to 1024"));
  tl::WarmOptions options;
  options.plan = PlanText(o);
  if (o.directory) options.directory = o.directory;
  options.targets.assign(o.targets, o.targets + o.num_targets);
  options.jobs = o.jobs;
  return options;
}

tl::Status WriteSummary(tl_warm_result* to, const tl::WarmSummary& summary) {
  if (!to) return absl::OkStatus();
  tl_warm_result out{};
  out.total = summary.total;
  out.compiled = summary.compiled;
  out.present = summary.present;
  out.failed = summary.failed;
  return WriteStruct(to, out, "tl_warm_result");
}

}  // namespace

tl_status tl_warm(tl_context* context, const tl_warm_options* options, tl_warm_result* result) {
  return Call([&]() -> tl::Status {
    TL_RETURN_IF_ERROR(CheckGiven(context, "context"));
    TL_RETURN_IF_ERROR(WriteSummary(result, {}));
    TL_ASSIGN_OR_RETURN(const tl_warm_options o, ReadStruct(options, "tl_warm_options"));
    TL_ASSIGN_OR_RETURN(tl::WarmOptions translated, TranslateOptions(o));
    if (o.progress)
      translated.progress = [&o](const tl::WarmEvent& event) { return Forward(o, event); };
    tl::WarmSummary summary;
    const tl::Status status = tl::Warm(*context->impl, translated, summary);
    TL_RETURN_IF_ERROR(WriteSummary(result, summary));
    return status;
  });
}

tl_status tl_plan_each(tl_context* context, const tl_plan_options* options) {
  return Call([&]() -> tl::Status {
    TL_RETURN_IF_ERROR(CheckGiven(context, "context"));
    TL_ASSIGN_OR_RETURN(const tl_plan_options o, ReadStruct(options, "tl_plan_options"));
    TL_RETURN_IF_ERROR(CheckGiven(o.plan, "plan"));
    if (!o.visit) return absl::InvalidArgumentError("visit is NULL");
    tl::PlanWalk walk{PlanText(o), o.directory ? o.directory : "", o.device,
                      [&o](const tl::PlanStop& stop) { return Forward(o, stop); }};
    return tl::WalkPlan(*context->impl, walk);
  });
}

tl_status tl_query(tl_context* context, const tl_compile_options* options, const char** data,
                   size_t* size) {
  thread_local std::string report;
  return Call([&]() -> tl::Status {
    TL_RETURN_IF_ERROR(CheckGiven(context, "context"));
    TL_RETURN_IF_ERROR(CheckGiven(data, "data"));
    TL_RETURN_IF_ERROR(CheckGiven(size, "size"));
    *data = nullptr;
    *size = 0;
    TL_ASSIGN_OR_RETURN(const tl_compile_options o, ReadStruct(options, "tl_compile_options"));
    TL_ASSIGN_OR_RETURN(const tl::CompileRequest request, tl::abi::Translate(o));
    TL_ASSIGN_OR_RETURN(report, context->impl->Query(request));
    *data = report.c_str();
    *size = report.size();
    return absl::OkStatus();
  });
}
