// Times and checks candidates in a worker process, which they may take down.
#ifndef TILEJIT_SERVICE_REMOTE_RUNNER_H_
#define TILEJIT_SERVICE_REMOTE_RUNNER_H_

#include <functional>
#include <memory>
#include <set>
#include <string>

#include "service/context.h"
#include "service/trial.h"
#include "service/worker_process.h"
#include "tuner/lab.h"

namespace tl {

// The arguments of a trial as the worker gets them.
nlohmann::json TrialArgumentsJson(const TrialArguments& arguments);
TrialArguments ReadTrialArguments(const nlohmann::json& json);

class RemoteRunner {
 public:
  struct Options {
    std::string program;  // the worker's; empty: beside the library
    std::string library_dir;
    int device = 0;  // number in the context
    std::string device_identity;
    int cpu_threads = 0;
    TrialArguments arguments;
    std::function<bool()> cancelled;
  };
  explicit RemoteRunner(Options options) : options_(std::move(options)) {}

  // `id` names the kernel in this runner. What is not OK here is nobody's fault and ends the
  // search; a worker that dies or does not answer within the limit is the candidate's.
  StatusOr<Measured> Time(size_t id, const Kernel& kernel, const Effort& effort,
                          absl::Duration limit);
  StatusOr<Measured> Validate(size_t id, const Kernel& kernel, uint64_t seed, absl::Duration limit);

  int64_t workers_started() const { return workers_started_; }

 private:
  StatusOr<Measured> Run(size_t id, const Kernel& kernel, const Message& request,
                         absl::Duration limit);
  Status Open();
  // The outer status: of the worker; Measured::fault: of the candidate.
  StatusOr<Measured> Load(size_t id, const Kernel& kernel);
  StatusOr<Measured> Ask(const Message& request, absl::Duration limit);
  bool Cancelled() const { return options_.cancelled && options_.cancelled(); }

  const Options options_;
  std::unique_ptr<WorkerProcess> worker_;
  std::set<size_t> loaded_;  // in this worker
  int64_t workers_started_ = 0;
};

}  // namespace tl

#endif  // TILEJIT_SERVICE_REMOTE_RUNNER_H_
