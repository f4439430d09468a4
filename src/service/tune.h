// Tuning: which values of its tune parameters make a program fastest on a device.
#ifndef TILEJIT_SERVICE_TUNE_H_
#define TILEJIT_SERVICE_TUNE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "service/context.h"
#include "service/trial.h"
#include "tuner/search.h"

namespace tl {

struct TuneEvent {
  const Configuration* configuration = nullptr;
  Progress progress;
  size_t total = 0;       // combinations in all
  double best_ns = 0;     // so far; 0: none
  double default_ns = 0;  // 0: not measured
  double seconds = 0;
};

struct TuneOptions {
  // Tune parameters that it gives narrow the space: "64", or several as "64,128". The target, if
  // any, must be the device's.
  CompileRequest compile;
  // Dims, strides and scalars of the launches that are timed, for the bound program.
  std::function<StatusOr<TrialArguments>(const Module&)> arguments;
  double max_seconds = 0;
  size_t max_candidates = 0;     // 0: no limit
  int jobs = 0;                  // 0: one per processor
  double candidate_seconds = 0;  // that a candidate may take; 0: by the default's time
  uint64_t seed = 0;
  bool in_process = false;
  std::string worker;               // path of the helper program; empty: beside the library
  std::function<bool()> cancelled;  // any thread; may be empty
  std::function<bool(const TuneEvent&)> progress;  // false: stop; may be empty
};

struct TuneResult {
  std::shared_ptr<Kernel> kernel;  // the winner
  TunedRecord tuned;
  Outcome outcome;
  size_t space = 0;
  bool recorded = false;
  double seconds = 0;
  std::string report;  // JSON
};

Status Tune(Context& context, const TuneOptions& options, TuneResult& result);

}  // namespace tl

#endif  // TILEJIT_SERVICE_TUNE_H_
