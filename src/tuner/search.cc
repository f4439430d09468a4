#include "tuner/search.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/thread_pool.h"
#include "tuner/statistics.h"

namespace tl {
namespace {

constexpr size_t kDefault = 0;
constexpr size_t kFinalists = 3;  // besides the default
constexpr size_t kFinalRounds = 9;
constexpr size_t kFinalRoundsAlone = 3;
constexpr size_t kBuildsPerJob = 2;  // of a wave
constexpr double kHopeless = 2;      // times the best: a few launches are enough to know
constexpr double kMargin = 0.02;     // less is a tie
// Candidates that were slower than the default by this factor cannot win the finals.
constexpr double kFinalistSlack = 1.05;
// Of the wall budget, by when a stage ends.
constexpr double kExploreShare = 0.6, kHalveShare = 0.8, kValidateShare = 0.9;

class Searcher {
 public:
  Searcher(const Combinations& combinations, Lab& lab, const SearchOptions& options)
      : combinations_(combinations), lab_(lab), options_(options), pool_(options.jobs) {
    outcome_.candidates.resize(combinations.size());
    for (size_t i = 1; i < combinations.size(); ++i) untried_.push_back(i);
  }

  StatusOr<Outcome> Run() {
    TL_RETURN_IF_ERROR(Explore());
    TL_RETURN_IF_ERROR(Halve());
    TL_ASSIGN_OR_RETURN(std::vector<size_t> finalists, Validate());
    if (finalists.empty()) return NoneRuns();
    DropSlowest(finalists);
    TL_RETURN_IF_ERROR(Finals(finalists));
    finalists = Valid(finalists);
    if (finalists.empty()) return NoneRuns();
    Decide(finalists);
    Count();
    return std::move(outcome_);
  }

 private:
  Candidate& at(size_t i) { return outcome_.candidates[i]; }
  bool Past(double share) { return lab_.Seconds() >= share * options_.max_seconds; }
  // Is there time for what takes so long?
  bool Fits(double seconds) { return lab_.Seconds() + seconds <= options_.max_seconds; }
  bool built_all() const {
    return options_.max_candidates > 0 && builds_ >= options_.max_candidates;
  }
  Status CheckCancelled() {
    if (!lab_.cancelled()) return absl::OkStatus();
    return absl::CancelledError(absl::StrCat("tuning was cancelled after ", done_, " candidates"));
  }

  // That of the options, where it is not the default itself.
  std::optional<size_t> Incumbent() const {
    return options_.incumbent == kDefault ? std::nullopt : options_.incumbent;
  }

  // ---- explore

  Status Explore() {
    TL_RETURN_IF_ERROR(Try({kDefault}));
    std::vector<size_t> tried = {kDefault};
    if (const auto i = Incumbent(); i && !built_all()) {
      TL_RETURN_IF_ERROR(TryNext({*i}));
      tried.push_back(*i);
    }
    const size_t wave = kBuildsPerJob * static_cast<size_t>(pool_.threads());
    const std::vector<size_t> first = WithNewValues(combinations_, untried_, tried, kDefault);
    for (auto it = first.begin(); it != first.end() && GoesOn();) {
      const auto end =
          it + static_cast<std::ptrdiff_t>(std::min(wave, static_cast<size_t>(first.end() - it)));
      TL_RETURN_IF_ERROR(TryNext({it, end}));
      it = end;
    }
    while (!untried_.empty() && GoesOn()) {
      TL_RETURN_IF_ERROR(TryNext(Nearest(combinations_, untried_, best_, wave)));
    }
    return absl::OkStatus();
  }
  bool GoesOn() { return !built_all() && !Past(kExploreShare) && Fits(Reserve()); }

  Status TryNext(const std::vector<size_t>& next) {
    std::erase_if(untried_,
                  [&](size_t i) { return std::find(next.begin(), next.end(), i) != next.end(); });
    return Try(next);
  }

  Status Try(const std::vector<size_t>& wave) {
    ForEach(wave, Fate::kRefused, [&](size_t i) { return lab_.Admit(i); });
    std::vector<size_t> admitted = WithFate(wave, Fate::kUntried);
    if (options_.max_candidates > 0 && builds_ + admitted.size() > options_.max_candidates)
      admitted.resize(options_.max_candidates - builds_);
    TL_RETURN_IF_ERROR(CheckCancelled());
    builds_ += admitted.size();
    ForEach(admitted, Fate::kUnbuilt, [&](size_t i) { return lab_.Build(i); });
    for (size_t i : WithFate(admitted, Fate::kUntried)) {
      // What was built in vain costs nothing more.
      if (i != kDefault && Past(kExploreShare)) break;
      const double give_up = has_best_ ? kHopeless * at(best_).ns : 0;
      TL_RETURN_IF_ERROR(Time(i, {options_.round_ns, give_up}));
    }
    return absl::OkStatus();
  }

  // `step` of all these, several at a time; a candidate for which it fails gets that fate.
  template <typename Step>
  void ForEach(const std::vector<size_t>& candidates, Fate fate, const Step& step) {
    std::vector<Status> results(candidates.size());
    pool_.ParallelFor(static_cast<int64_t>(candidates.size()), 1, [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) {
        const size_t at = static_cast<size_t>(k);
        if (!lab_.cancelled()) results[at] = step(candidates[at]);
      }
    });
    for (size_t k = 0; k < candidates.size(); ++k) {
      if (!results[k].ok()) Drop(candidates[k], fate, results[k]);
    }
  }

  std::vector<size_t> WithFate(const std::vector<size_t>& candidates, Fate fate) {
    std::vector<size_t> with;
    for (size_t i : candidates) {
      if (at(i).fate == fate) with.push_back(i);
    }
    return with;
  }

  void Drop(size_t i, Fate fate, Status fault) {
    if (at(i).fate == Fate::kUntried) ++done_;
    at(i).fate = fate;
    at(i).fault = std::move(fault);
    lab_.Report({i, fate, &at(i).fault, 0, done_});
    if (has_best_ && best_ == i) FindBest();
  }

  void FindBest() {
    has_best_ = false;
    for (size_t i = 0; i < combinations_.size(); ++i) {
      if (at(i).fate == Fate::kMeasured) Consider(i);
    }
    if (!has_best_) best_ = kDefault;
  }

  void Consider(size_t i) {
    if (has_best_ && at(i).ns >= at(best_).ns) return;
    best_ = i;
    has_best_ = true;
  }

  // One round; a fault is the candidate's end.
  Status Time(size_t i, const Effort& effort) {
    TL_RETURN_IF_ERROR(CheckCancelled());
    TL_ASSIGN_OR_RETURN(Measured measured, lab_.Time(i, effort));
    if (!measured.fault.ok()) {
      Drop(i, Fate::kDisqualified, std::move(measured.fault));
      return absl::OkStatus();
    }
    Candidate& c = at(i);
    if (c.fate == Fate::kUntried) ++done_;
    c.times.push_back(measured.ns);
    c.ns = Median(c.times);
    const bool slow = effort.give_up_ns > 0 && measured.ns > effort.give_up_ns;
    c.fate = slow && i != kDefault ? Fate::kStopped : Fate::kMeasured;
    lab_.Report({i, c.fate, nullptr, c.ns, done_});
    if (c.fate == Fate::kMeasured) Consider(i);
    return absl::OkStatus();
  }

  // ---- halve

  // Those of that fate without the default, which is always in the race; the fastest first.
  std::vector<size_t> Sorted(Fate fate) {
    std::vector<size_t> sorted;
    for (size_t i = 1; i < combinations_.size(); ++i) {
      if (at(i).fate == fate) sorted.push_back(i);
    }
    std::sort(sorted.begin(), sorted.end(),
              [&](size_t a, size_t b) { return std::pair(at(a).ns, a) < std::pair(at(b).ns, b); });
    return sorted;
  }
  std::vector<size_t> Racing() { return Sorted(Fate::kMeasured); }

  Status Halve() {
    double round_ns = options_.round_ns;
    for (std::vector<size_t> racing = Racing(); racing.size() > kFinalists; racing = Racing()) {
      const auto over = [&] { return Past(kHalveShare) || !Fits(Reserve()); };
      if (over()) break;
      round_ns *= 2;
      // Rounds of all in turn: what disturbs the machine for a while disturbs them alike.
      for (size_t i : racing) {
        if (over()) break;
        TL_RETURN_IF_ERROR(Time(i, {round_ns, 0}));
      }
      racing = Racing();
      for (size_t k = std::max(kFinalists, racing.size() / 2); k < racing.size(); ++k) {
        at(racing[k]).fate = Fate::kStopped;
        lab_.Report({racing[k], Fate::kStopped, nullptr, at(racing[k]).ns, done_});
      }
    }
    return absl::OkStatus();
  }

  // ---- validate

  // The default and the fastest others that are right.
  StatusOr<std::vector<size_t>> Validate() {
    std::vector<size_t> finalists, others = Racing();
    const size_t wanted = std::min(kFinalists, others.size());
    // Whoever wins has to beat it.
    if (const auto i = Incumbent(); i && std::erase(others, *i) > 0)
      others.insert(others.begin(), *i);
    // In place of those that are wrong: what was stopped may have been slow beside one of them
    // only.
    for (size_t i : Sorted(Fate::kStopped)) others.push_back(i);
    if (at(kDefault).fate == Fate::kMeasured) {
      TL_RETURN_IF_ERROR(ValidateOne(kDefault));
      if (at(kDefault).validated) finalists.push_back(kDefault);
    }
    const size_t most = finalists.size() + wanted;
    double begun = lab_.Seconds(), took = 0;
    for (size_t i : others) {
      if (finalists.size() >= most) break;
      if (at(kDefault).validated && at(i).ns > kFinalistSlack * at(kDefault).ns) continue;
      // Somebody has to win, and be right, whatever the clock says.
      if (!finalists.empty() && (Past(kValidateShare) || !Fits(took))) break;
      TL_RETURN_IF_ERROR(ValidateOne(i));
      took = lab_.Seconds() - std::exchange(begun, lab_.Seconds());
      if (!at(i).validated) continue;
      at(i).fate = Fate::kMeasured;
      finalists.push_back(i);
    }
    return finalists;
  }

  Status ValidateOne(size_t i) {
    TL_RETURN_IF_ERROR(CheckCancelled());
    TL_ASSIGN_OR_RETURN(Measured measured, lab_.Validate(i, options_.seed + 1 + i));
    if (measured.fault.ok()) {
      at(i).validated = true;
    } else {
      Drop(i, Fate::kDisqualified, std::move(measured.fault));
    }
    return absl::OkStatus();
  }

  std::vector<size_t> Valid(const std::vector<size_t>& finalists) {
    return WithFate(finalists, Fate::kMeasured);
  }

  // ---- finals

  // As long as there is no time for a round of all; the first two are the default and the fastest.
  void DropSlowest(std::vector<size_t>& finalists) {
    while (finalists.size() > 2 && !Fits(RoundSeconds(finalists))) {
      const size_t i = finalists.back();
      at(i).fate = Fate::kStopped;
      lab_.Report({i, Fate::kStopped, nullptr, at(i).ns, done_});
      finalists.pop_back();
    }
  }

  // One round at least: who wins was measured beside the default.
  Status Finals(const std::vector<size_t>& finalists) {
    double took = 0;
    for (size_t i : finalists) at(i).times.clear();
    // Nobody to race: its time is still wanted.
    const size_t rounds = finalists.size() > 1 ? kFinalRounds : kFinalRoundsAlone;
    for (size_t round = 0; round < rounds && (round == 0 || Fits(took)); ++round) {
      const double begun = lab_.Seconds();
      // Who comes first changes, so that nobody always follows the same one.
      for (size_t k = 0; k < finalists.size(); ++k) {
        const size_t i = finalists[(k + round) % finalists.size()];
        if (at(i).fate != Fate::kMeasured) continue;
        TL_RETURN_IF_ERROR(Time(i, {2 * options_.round_ns, 0}));
      }
      took = lab_.Seconds() - begun;
    }
    return absl::OkStatus();
  }

  // For validating one, and a final round of it and the default.
  double Reserve() { return 2 * RoundSeconds({kDefault, best_}); }

  // What a final round will take: each is launched twice before it is timed.
  double RoundSeconds(const std::vector<size_t>& finalists) {
    double ns = 0;
    for (size_t i : finalists) ns += 2 * at(i).ns + std::max(at(i).ns, 2 * options_.round_ns);
    return ns * 1e-9;
  }

  void Decide(std::vector<size_t> finalists) {
    std::stable_sort(finalists.begin(), finalists.end(),
                     [&](size_t a, size_t b) { return at(a).ns < at(b).ns; });
    const bool has_default = at(kDefault).fate == Fate::kMeasured;
    size_t winner = finalists[0];
    const auto i = Incumbent();
    const bool has_incumbent =
        i && std::find(finalists.begin(), finalists.end(), *i) != finalists.end();
    if (has_incumbent && !Beats(at(winner).times, at(*i).times, kMargin)) winner = *i;
    if (has_default && !Beats(at(winner).times, at(kDefault).times, kMargin)) winner = kDefault;
    outcome_.winner = winner;
    outcome_.winner_times = at(winner).times;
    if (has_default) outcome_.default_times = at(kDefault).times;
    for (size_t i : finalists) {
      if (i == winner) continue;
      outcome_.runner_up = i;
      outcome_.runner_up_times = at(i).times;
      break;
    }
  }

  void Count() {
    outcome_.built = builds_;
    for (const Candidate& c : outcome_.candidates) {
      outcome_.refused += c.fate == Fate::kRefused ? 1 : 0;
      outcome_.measured += c.fate == Fate::kMeasured || c.fate == Fate::kStopped ? 1 : 0;
      outcome_.stopped += c.fate == Fate::kStopped ? 1 : 0;
      outcome_.disqualified += c.fate == Fate::kDisqualified ? 1 : 0;
    }
  }

  // The default's failure, which says most, or that of another.
  Status NoneRuns() {
    const Status* fault = nullptr;
    size_t failed = 0;
    for (const Candidate& c : outcome_.candidates) {
      if (c.fault.ok()) continue;
      ++failed;
      if (!fault) fault = &c.fault;
    }
    if (!fault) return absl::DeadlineExceededError("the budget was over before anything ran");
    ErrorDetail detail = DetailOf(*fault);
    const std::string_view slow =
        absl::IsDeadlineExceeded(*fault)
            ? "; it may be slow alone: a larger max_seconds, or candidate_seconds, gives it time"
            : "";
    return MakeError(fault->code(),
                     absl::StrCat("none of ", combinations_.size(),
                                  " combinations of tune parameters can be used (", failed,
                                  " were tried); the first of them: ", fault->message(), slow),
                     std::move(detail));
  }

  const Combinations& combinations_;
  Lab& lab_;
  const SearchOptions& options_;
  ThreadPool pool_;
  Outcome outcome_;
  std::vector<size_t> untried_;
  size_t builds_ = 0;
  size_t done_ = 0;
  size_t best_ = kDefault;
  bool has_best_ = false;
};

}  // namespace

StatusOr<Outcome> Search(const Combinations& combinations, Lab& lab, const SearchOptions& options) {
  return Searcher(combinations, lab, options).Run();
}

}  // namespace tl
