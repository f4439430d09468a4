#include "service/tune.h"

#include <algorithm>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "service/generate.h"
#include "service/remote_runner.h"
#include "service/runner.h"
#include "service/tune_report.h"
#include "service/tune_space.h"

namespace tl {
namespace {

// Of a candidate, unless the caller says otherwise: so many times the default's launch, and never
// less than what a busy machine may need.
constexpr double kTimesDefault = 20;
constexpr double kLeastSeconds = 2;
// Besides, for validating one: the reference and its inputs.
constexpr double kReferenceSeconds = 60;

// The library's side of the search.
class ServiceLab : public Lab {
 public:
  ServiceLab(Context& context, const TuneOptions& options, const RequestedSpace& space,
             const Device& device, const TrialArguments& arguments)
      : context_(context),
        options_(options),
        space_(space),
        candidates_(space.combinations.size()) {
    if (options.in_process) {
      const int threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
      local_.emplace(device, arguments, threads);
    } else {
      remote_.emplace(RemoteRunner::Options{options.worker, context.library_dir(),
                                            options.compile.device, DeviceIdentity(device.info),
                                            context.cpu_threads(), arguments,
                                            [this] { return cancelled(); }});
    }
  }

  Status Admit(size_t i) override {
    TL_ASSIGN_OR_RETURN(candidates_[i].prepared, Prepare(i));
    const Context::Prepared& prepared = candidates_[i].prepared;
    return LowerFor(*prepared.module, prepared.destination.target, options_.compile.shared_budget)
        .status();
  }

  Status Build(size_t i) override {
    Built& candidate = candidates_[i];
    // Not loaded here: what is wrong with it is the worker's trouble.
    candidate.prepared.destination.ordinal = -1;
    TL_ASSIGN_OR_RETURN(
        std::shared_ptr<Program> program,
        context_.FindOrBuild(candidate.prepared.module, candidate.prepared.destination,
                             options_.compile, /*keep=*/false));
    TL_ASSIGN_OR_RETURN(candidate.kernel,
                        Kernel::Create(candidate.prepared.module, std::move(program)));
    return absl::OkStatus();
  }

  StatusOr<Measured> Time(size_t i, const Effort& effort) override {
    if (local_) {
      TL_RETURN_IF_ERROR(local_->Prepare(candidates_[i].kernel));
      return local_->Time(effort);
    }
    const absl::Duration limit = Limit(i) + absl::Nanoseconds(effort.round_ns);
    return remote_->Time(i, *candidates_[i].kernel, effort, limit);
  }

  StatusOr<Measured> Validate(size_t i, uint64_t seed) override {
    if (local_) {
      TL_RETURN_IF_ERROR(local_->Prepare(candidates_[i].kernel));
      return local_->Validate(seed);
    }
    const absl::Duration limit = Limit(i) + absl::Seconds(kReferenceSeconds);
    return remote_->Validate(i, *candidates_[i].kernel, seed, limit);
  }

  double Seconds() override { return absl::ToDoubleSeconds(absl::Now() - start_); }
  bool cancelled() override { return stopped_ || (options_.cancelled && options_.cancelled()); }

  void Report(const Progress& progress) override {
    if (progress.ns > 0) {
      if (progress.candidate == 0) default_ns_ = progress.ns;
      if (best_ns_ == 0 || progress.ns < best_ns_) best_ns_ = progress.ns;
    }
    if (!options_.progress) return;
    const Configuration configuration = space_.configuration(progress.candidate);
    const bool go_on = options_.progress(
        {&configuration, progress, space_.combinations.size(), best_ns_, default_ns_, Seconds()});
    stopped_ = stopped_ || !go_on;
  }

  // The winner on the device, in this process.
  StatusOr<std::shared_ptr<Kernel>> Ready(size_t i, Choice choice) {
    TL_ASSIGN_OR_RETURN(const Context::Prepared prepared, Prepare(i));
    TL_ASSIGN_OR_RETURN(std::shared_ptr<Program> program,
                        context_.FindOrBuild(prepared.module, prepared.destination,
                                             options_.compile, /*keep=*/true));
    return Kernel::Create(prepared.module, std::move(program), std::move(choice));
  }

 private:
  struct Built {
    Context::Prepared prepared;
    std::shared_ptr<Kernel> kernel;
  };

  StatusOr<Context::Prepared> Prepare(size_t i) const {
    CompileRequest request = options_.compile;
    space_.DropTuned(request);
    const Configuration configuration = space_.configuration(i);
    for (const auto& [name, value] : configuration) request.params.emplace_back(name, value);
    return context_.Prepare(request);
  }

  absl::Duration Limit(size_t i) const {
    const double own = options_.candidate_seconds;
    // With nothing to compare it with, the default may take as long as the caller would wait.
    if (i == 0) return absl::Seconds(std::max({own, options_.max_seconds, kLeastSeconds}));
    if (own > 0) return absl::Seconds(own);
    return absl::Seconds(std::max(kLeastSeconds, kTimesDefault * default_ns_ / 1e9));
  }

  Context& context_;
  const TuneOptions& options_;
  const RequestedSpace& space_;
  const absl::Time start_ = absl::Now();
  std::vector<Built> candidates_;
  std::optional<Runner> local_;
  std::optional<RemoteRunner> remote_;
  double best_ns_ = 0, default_ns_ = 0;
  std::atomic<bool> stopped_{false};
};

Status CheckBudget(const TuneOptions& options) {
  // Not a number is neither.
  if (!(options.max_seconds > 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("max_seconds is ", options.max_seconds,
                     "; it is the seconds that tuning may take, and more than 0"));
  }
  if (!(options.candidate_seconds >= 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("candidate_seconds is ", options.candidate_seconds,
                     "; it is the seconds that one candidate may take, or 0"));
  }
  return absl::OkStatus();
}

// The device's own target under any of its names.
Status CheckTarget(const Context& context, const CompileRequest& request, const Device& device) {
  if (request.target.empty()) return absl::OkStatus();
  TL_ASSIGN_OR_RETURN(const Target target, context.FindTarget(request.target));
  if (target.identity == device.info.target.identity) return absl::OkStatus();
  return MakeError(
      absl::StatusCode::kFailedPrecondition,
      absl::StrCat("tuning measures on a device, and device ", request.device, " (",
                   device.info.name, ") is ", device.info.target.name, ", not ", request.target),
      {.reason = Reason::kNoDevice, .span = {}, .log = {}});
}

TunedRecord Summarize(const RequestedSpace& space, const Outcome& outcome) {
  TunedRecord tuned;
  tuned.configuration = space.configuration(outcome.winner);
  tuned.time = SpreadOf(outcome.winner_times);
  if (!outcome.default_times.empty()) {
    tuned.default_configuration = space.configuration(0);
    tuned.default_time = SpreadOf(outcome.default_times);
  }
  if (outcome.runner_up) {
    tuned.runner_up = space.configuration(*outcome.runner_up);
    tuned.runner_up_time = SpreadOf(outcome.runner_up_times);
  }
  tuned.candidates = static_cast<int64_t>(outcome.measured);
  tuned.library = LibraryVersion();
  return tuned;
}

// The dims with the values that they were timed with.
std::vector<TunedDim> DimsWith(std::vector<TunedDim> dims, const TrialArguments& arguments) {
  size_t next = 0;
  for (TunedDim& dim : dims) {
    if (dim.dynamic) dim.value = arguments.dims[next++];
  }
  return dims;
}

// What is tuned, and on what.
struct Subject {
  TuneOptions options;  // as given, but for the target, which is the device's
  const Device* device = nullptr;
  syntax::Program program;
  RequestedSpace space;
  Module bound;  // with the values of the first candidate
  TrialArguments arguments;

  Context::Destination destination() const {
    return {device->backend, device->info.target, -1, device, {}};
  }
};

StatusOr<Subject> MakeSubject(const Context& context, const TuneOptions& options) {
  Subject s;
  s.options = options;
  s.options.compile.target = {};
  TL_ASSIGN_OR_RETURN(s.device, context.FindDevice(options.compile.device));
  TL_RETURN_IF_ERROR(CheckTarget(context, options.compile, *s.device));
  const Target& target = s.device->info.target;
  TL_ASSIGN_OR_RETURN(s.program, context.Parse(options.compile));
  TL_ASSIGN_OR_RETURN(s.space, SpaceOf(s.program, options.compile, target));
  TL_ASSIGN_OR_RETURN(s.bound, Bind(s.program, s.space.OptionsFor(0, options.compile, target)));
  TL_ASSIGN_OR_RETURN(s.arguments, options.arguments(s.bound));
  return s;
}

TunedRecord MakeRecord(const Subject& s, const Outcome& outcome) {
  TunedRecord tuned = Summarize(s.space, outcome);
  tuned.dims = DimsWith(DimsOf(s.program, s.bound), s.arguments);
  tuned.device = s.device->info.name;
  tuned.device_identity = DeviceIdentity(s.device->info);
  return tuned;
}

// A record is taken for the best of all, and for no worse than the default: so the default was
// among those that were tried, and was not alone unless there is nothing else.
bool ProvesEnough(const Subject& s, const Outcome& outcome) {
  return s.space.has_default && (outcome.measured > 1 || s.space.combinations.size() == 1);
}

// The candidate that an earlier search found best.
std::optional<size_t> Incumbent(const Context& context, const Subject& s) {
  const std::optional<FoundRecord> earlier =
      context.FindRecord(s.program, s.bound, s.destination(), s.options.compile);
  return earlier ? s.space.Find(earlier->tuned.configuration) : std::nullopt;
}

}  // namespace

Status Tune(Context& context, const TuneOptions& options, TuneResult& result) {
  TL_RETURN_IF_ERROR(context.CheckProcess());
  if (context.sealed())
    return absl::FailedPreconditionError("this context is sealed, and tuning compiles");
  TL_RETURN_IF_ERROR(CheckBudget(options));
  TL_ASSIGN_OR_RETURN(const Subject subject, MakeSubject(context, options));
  result.space = subject.space.combinations.size();
  ServiceLab lab(context, subject.options, subject.space, *subject.device, subject.arguments);
  const SearchOptions search{options.max_seconds, options.max_candidates, options.jobs,
                             options.seed, Incumbent(context, subject)};
  TL_ASSIGN_OR_RETURN(result.outcome, Search(subject.space.combinations, lab, search));
  result.tuned = MakeRecord(subject, result.outcome);
  if (ProvesEnough(subject, result.outcome)) {
    const std::string scope = RecordScope(subject.program, subject.bound, *subject.device->backend,
                                          subject.device->info.target, options.compile);
    result.recorded = context.PutRecord(ToRecord(scope, result.tuned)).ok();
  }
  TL_ASSIGN_OR_RETURN(
      result.kernel,
      lab.Ready(result.outcome.winner,
                {Choice::From::kRecord, std::make_shared<const TunedRecord>(result.tuned)}));
  result.seconds = lab.Seconds();
  result.report = TuneReport(subject.program.name.text, subject.space, result);
  return absl::OkStatus();
}

}  // namespace tl
