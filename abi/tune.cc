// tl_tune.
#define TL_EXPERIMENTAL
#include "service/tune.h"

#include <string>

#include "abi/compile_options.h"
#include "abi/error.h"
#include "abi/handles.h"
#include "abi/launch_args.h"
#include "abi/structs.h"
#include "absl/strings/str_join.h"

using tl::abi::Call;
using tl::abi::CheckGiven;
using tl::abi::ReadStruct;
using tl::abi::WriteStruct;

namespace {

std::string Text(const tl::Configuration& configuration) {
  return absl::StrJoin(configuration, " ", absl::PairFormatter("="));
}

// The values are those of tl_tune_fate.
static_assert(static_cast<int>(tl::Fate::kRefused) == TL_TUNE_REFUSED &&
              static_cast<int>(tl::Fate::kUnbuilt) == TL_TUNE_UNBUILT &&
              static_cast<int>(tl::Fate::kMeasured) == TL_TUNE_MEASURED &&
              static_cast<int>(tl::Fate::kStopped) == TL_TUNE_STOPPED &&
              static_cast<int>(tl::Fate::kDisqualified) == TL_TUNE_DISQUALIFIED);

bool Forward(const tl_tune_options& o, const tl::TuneEvent& event) {
  const std::string configuration = Text(*event.configuration);
  const std::string reason(event.progress.fault ? event.progress.fault->message() : "");
  tl_tune_event out{};
  out.struct_size = sizeof(out);
  out.fate = static_cast<tl_tune_fate>(event.progress.fate);
  out.configuration = configuration.c_str();
  out.reason = reason.c_str();
  out.median_ns = event.progress.ns;
  out.best_ns = event.best_ns;
  out.default_ns = event.default_ns;
  out.seconds = event.seconds;
  out.max_seconds = o.max_seconds;
  out.done = event.progress.done;
  out.total = event.total;
  return o.progress(o.user, &out) == 0;
}

tl::StatusOr<tl::TuneOptions> TranslateOptions(const tl_tune_options& o,
                                               const tl_compile_options& compile) {
  if (o.in_process > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("in_process is ", o.in_process, "; it is 0 or 1"));
  }
  if (o.jobs < 0 || o.jobs > 1024)
    return absl::InvalidArgumentError(absl::StrCat("jobs is ", o.jobs, "; it is 0 to 1024"));
  tl::TuneOptions options;
  TL_ASSIGN_OR_RETURN(options.compile, tl::abi::Translate(compile));
  options.arguments = [&o](const tl::Module& m) { return tl::abi::TrialArgumentsOf(o, m); };
  options.max_seconds = o.max_seconds;
  options.max_candidates = o.max_candidates;
  options.jobs = o.jobs;
  options.candidate_seconds = o.candidate_seconds;
  options.seed = o.seed;
  options.in_process = o.in_process != 0;
  if (o.worker) options.worker = o.worker;
  if (o.cancel) {
    options.cancelled = [flag = o.cancel] { return __atomic_load_n(flag, __ATOMIC_RELAXED) != 0; };
  }
  if (o.progress) options.progress = [&o](const tl::TuneEvent& event) { return Forward(o, event); };
  return options;
}

// Texts that outlive the call.
struct Texts {
  std::string configuration, report;
};

tl::Status WriteResult(tl_tune_result* to, const tl::TuneResult& r, const Texts& texts) {
  if (!to) return absl::OkStatus();
  tl_tune_result out{};
  out.recorded = r.recorded ? 1 : 0;
  out.median_ns = r.tuned.time.median_ns;
  out.min_ns = r.tuned.time.min_ns;
  out.max_ns = r.tuned.time.max_ns;
  if (r.tuned.default_time) out.default_ns = r.tuned.default_time->median_ns;
  if (r.tuned.runner_up_time) out.runner_up_ns = r.tuned.runner_up_time->median_ns;
  out.seconds = r.seconds;
  out.space = r.space;
  out.refused = r.outcome.refused;
  out.built = r.outcome.built;
  out.measured = r.outcome.measured;
  out.stopped = r.outcome.stopped;
  out.disqualified = r.outcome.disqualified;
  out.configuration = texts.configuration.c_str();
  out.report = texts.report.c_str();
  return WriteStruct(to, out, "tl_tune_result");
}

}  // namespace

tl_status tl_tune(tl_context* context, const tl_tune_options* options, tl_kernel** out,
                  tl_tune_result* result) {
  thread_local Texts texts;
  return Call([&]() -> tl::Status {
    TL_RETURN_IF_ERROR(CheckGiven(context, "context"));
    TL_RETURN_IF_ERROR(CheckGiven(out, "out"));
    *out = nullptr;
    texts = {};
    tl::TuneResult tuned;
    TL_RETURN_IF_ERROR(WriteResult(result, tuned, texts));
    TL_ASSIGN_OR_RETURN(const tl_tune_options o, ReadStruct(options, "tl_tune_options"));
    TL_ASSIGN_OR_RETURN(const tl_compile_options compile,
                        ReadStruct(o.compile, "tl_tune_options.compile"));
    TL_ASSIGN_OR_RETURN(const tl::TuneOptions translated, TranslateOptions(o, compile));
    TL_RETURN_IF_ERROR(tl::Tune(*context->impl, translated, tuned));
    texts = {Text(tuned.tuned.configuration), std::move(tuned.report)};
    TL_RETURN_IF_ERROR(WriteResult(result, tuned, texts));
    *out = tl::abi::MakeKernel(std::move(tuned.kernel), context->impl);
    return absl::OkStatus();
  });
}
