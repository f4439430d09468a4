#include "service/warm.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/thread_pool.h"
#include "service/plan_programs.h"

namespace tl {
namespace {

struct Job {
  const PlanEntry* entry;
  const ParamSet* params;
  std::string target;
};

Status AtEntry(const PlanEntry& entry, const Status& status) {
  return MakeError(status.code(), status.message(), {.span = entry.span, .log = {}});
}

class Warming {
 public:
  Warming(Context& context, const WarmOptions& options, const Plan& plan)
      : context_(context), options_(options), plan_(plan) {}

  // Texts and targets, before anything is compiled.
  Status Collect() {
    for (const PlanEntry& entry : plan_.entries) {
      TL_ASSIGN_OR_RETURN(const std::vector<std::string> targets, TargetsOf(entry));
      for (const ParamSet& params : entry.params) {
        for (const std::string& target : targets) jobs_.push_back({&entry, &params, target});
      }
      texts_.push_back(TextOf(entry, options_.directory));
    }
    if (!jobs_.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        "no kernel of the plan is for any of the targets that were asked for");
  }

  void Run() {
    ThreadPool pool(options_.jobs);
    pool.ParallelFor(static_cast<int64_t>(jobs_.size()), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) RunOne(jobs_[static_cast<size_t>(i)]);
    });
  }

  Status Finish(WarmSummary& summary) {
    absl::MutexLock lock(&mu_);
    summary_.total = jobs_.size();
    summary = summary_;
    if (cancelled_) {
      return absl::CancelledError(
          absl::StrCat("stopped after ", done_, " of ", jobs_.size(), " kernels"));
    }
    if (first_failure_.ok()) return absl::OkStatus();
    // Its place is in some program, and would be taken for one in the plan.
    ErrorDetail detail = DetailOf(first_failure_);
    detail.span = {};
    return MakeError(first_failure_.code(),
                     absl::StrCat(summary_.failed, " of ", jobs_.size(),
                                  " kernels failed; the first: ", first_failure_.message()),
                     std::move(detail));
  }

 private:
  StatusOr<std::vector<std::string>> TargetsOf(const PlanEntry& entry) const {
    const std::vector<std::string>& own = entry.targets.empty() ? plan_.targets : entry.targets;
    if (own.empty() && options_.targets.empty()) {
      return AtEntry(entry, absl::InvalidArgumentError(
                                "neither this kernel nor the plan names targets, and none were "
                                "asked for: targets = [\"sm_90a\", \"cpu\"]"));
    }
    if (options_.targets.empty()) return Resolved(entry, own);
    if (entry.targets.empty()) return options_.targets;
    TL_ASSIGN_OR_RETURN(const std::vector<std::string> resolved, Resolved(entry, own));
    std::vector<std::string> kept;
    for (const std::string& target : options_.targets) {
      if (std::any_of(resolved.begin(), resolved.end(),
                      [&](const std::string& other) { return IsSame(target, other); }))
        kept.push_back(target);
    }
    return kept;
  }

  StatusOr<std::vector<std::string>> Resolved(const PlanEntry& entry,
                                              const std::vector<std::string>& names) const {
    for (const std::string& name : names) {
      if (Status s = context_.FindTarget(name).status(); !s.ok()) return AtEntry(entry, s);
    }
    return names;
  }

  // "H200" and "sm_90a" are one target.
  bool IsSame(std::string_view a, std::string_view b) const {
    const auto first = context_.FindTarget(a), second = context_.FindTarget(b);
    return first.ok() && second.ok() && first->identity == second->identity;
  }

  StatusOr<Origin> Compile(const Job& job) {
    const size_t index = static_cast<size_t>(job.entry - plan_.entries.data());
    TL_RETURN_IF_ERROR(texts_[index].status());
    CompileRequest request;
    request.family = job.entry->family;
    request.source = *texts_[index];
    for (const auto& [name, value] : *job.params) request.params.emplace_back(name, value);
    request.target = job.target;
    request.shared_budget = job.entry->shared_budget;
    return context_.WarmUp(request);
  }

  void RunOne(const Job& job) {
    {
      absl::MutexLock lock(&mu_);
      if (cancelled_) return;
    }
    const StatusOr<Origin> origin = Compile(job);
    absl::MutexLock lock(&mu_);
    ++done_;
    if (!origin.ok()) {
      ++summary_.failed;
      if (first_failure_.ok()) first_failure_ = origin.status();
    } else {
      ++(*origin == Origin::kCompiled ? summary_.compiled : summary_.present);
    }
    if (!options_.progress) return;
    const bool compiled = origin.ok() && *origin == Origin::kCompiled;
    const bool go_on = options_.progress({done_, jobs_.size(), NameOf(*job.entry), job.params,
                                          job.target, job.entry->span, origin.status(), compiled});
    cancelled_ = cancelled_ || !go_on;
  }

  Context& context_;
  const WarmOptions& options_;
  const Plan& plan_;
  std::vector<Job> jobs_;
  std::vector<StatusOr<std::string>> texts_;  // parallel to the plan's entries

  absl::Mutex mu_;
  uint64_t done_ ABSL_GUARDED_BY(mu_) = 0;
  WarmSummary summary_ ABSL_GUARDED_BY(mu_);
  Status first_failure_ ABSL_GUARDED_BY(mu_);
  bool cancelled_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace

Status Warm(Context& context, const WarmOptions& options, WarmSummary& summary) {
  TL_RETURN_IF_ERROR(context.CheckProcess());
  if (context.sealed()) return absl::FailedPreconditionError("this context is sealed");
  TL_RETURN_IF_ERROR(context.CheckPersistent());
  const int64_t errors = context.Stats().store.errors;
  for (const std::string& target : options.targets) {
    TL_RETURN_IF_ERROR(context.FindTarget(target).status());
  }
  TL_ASSIGN_OR_RETURN(const Plan plan, ParsePlan(options.plan));
  Warming warming(context, options, plan);
  TL_RETURN_IF_ERROR(warming.Collect());
  warming.Run();
  TL_RETURN_IF_ERROR(warming.Finish(summary));
  return context.CheckWritten(errors);
}

}  // namespace tl
