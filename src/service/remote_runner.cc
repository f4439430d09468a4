#include "service/remote_runner.h"

#include <bit>

#include "absl/strings/str_cat.h"
#include "ir/unparse.h"

namespace tl {
namespace {

using Json = nlohmann::json;

// Opening a device, making inputs, loading: work of ours, whose end nobody doubts.
constexpr absl::Duration kOwnLimit = absl::Minutes(5);

}  // namespace

Json TrialArgumentsJson(const TrialArguments& arguments) {
  Json out = {{"dims", arguments.dims}, {"seed", arguments.seed}};
  if (arguments.strides) out["strides"] = *arguments.strides;
  if (arguments.scalars) {
    out["scalars"] = Json::array();
    for (const ScalarValue& value : *arguments.scalars)
      out["scalars"].push_back(std::bit_cast<int64_t>(value));
  }
  return out;
}

TrialArguments ReadTrialArguments(const Json& json) {
  TrialArguments arguments;
  arguments.dims = json.at("dims").get<std::vector<int64_t>>();
  arguments.seed = json.at("seed").get<uint64_t>();
  if (json.contains("strides")) arguments.strides = json["strides"].get<std::vector<int64_t>>();
  if (json.contains("scalars")) {
    arguments.scalars.emplace();
    for (const Json& value : json["scalars"])
      arguments.scalars->push_back(std::bit_cast<ScalarValue>(value.get<int64_t>()));
  }
  return arguments;
}

Status RemoteRunner::Open() {
  if (worker_) return absl::OkStatus();
  loaded_.clear();
  StatusOr<std::unique_ptr<WorkerProcess>> started =
      WorkerProcess::Start(options_.program, options_.library_dir);
  if (absl::IsNotFound(started.status())) {
    return MakeError(absl::StatusCode::kNotFound,
                     absl::StrCat(started.status().message(), ", or tune in this process"),
                     DetailOf(started.status()));
  }
  TL_ASSIGN_OR_RETURN(worker_, std::move(started));
  ++workers_started_;
  const Message request{{{"op", "open"},
                         {"device", options_.device},
                         {"device_identity", options_.device_identity},
                         {"cpu_threads", options_.cpu_threads},
                         {"arguments", TrialArgumentsJson(options_.arguments)}},
                        {}};
  return Ask(request, kOwnLimit).status();
}

StatusOr<Measured> RemoteRunner::Ask(const Message& request, absl::Duration limit) {
  TL_ASSIGN_OR_RETURN(const Message answer,
                      worker_->Call(request, limit, [this] { return Cancelled(); }));
  try {
    if (answer.head.contains("error")) return StatusFromJson(answer.head["error"]);
    Measured measured;
    if (answer.head.contains("fault")) measured.fault = StatusFromJson(answer.head["fault"]);
    measured.ns = answer.head.value("ns", 0.0);
    return measured;
  } catch (const Json::exception& e) {
    return absl::AbortedError(absl::StrCat("the worker process' answer is none: ", e.what()));
  }
}

StatusOr<Measured> RemoteRunner::Load(size_t id, const Kernel& kernel) {
  const Program& program = kernel.program();
  const Artifact& artifact = program.artifact();
  // The bound program, which needs no parameters: tune parameters and all else are literals in it.
  const Message request{{{"op", "load"}, {"id", id}, {"shared_budget", program.shared_budget()}},
                        {ToText(kernel.module()), artifact.binary, artifact.metadata, artifact.log,
                         artifact.compiler}};
  return Ask(request, kOwnLimit);
}

StatusOr<Measured> RemoteRunner::Run(size_t id, const Kernel& kernel, const Message& request,
                                     absl::Duration limit) {
  TL_RETURN_IF_ERROR(Open());
  const auto died = [&](const Status& status) {
    worker_.reset();
    return absl::IsAborted(status) || absl::IsDeadlineExceeded(status);
  };
  if (!loaded_.contains(id)) {
    StatusOr<Measured> loaded = Load(id, kernel);
    if (!loaded.ok() && died(loaded.status())) return Measured{loaded.status(), 0};
    TL_RETURN_IF_ERROR(loaded.status());
    if (!loaded->fault.ok()) return loaded;
    loaded_.insert(id);
  }
  const StatusOr<Measured> prepared = Ask({{{"op", "prepare"}, {"id", id}}, {}}, kOwnLimit);
  if (!prepared.ok()) {
    worker_.reset();
    return prepared.status();
  }
  StatusOr<Measured> measured = Ask(request, limit);
  if (!measured.ok() && died(measured.status())) return Measured{measured.status(), 0};
  // What else it has done to its process, nobody knows.
  if (!measured.ok() || !measured->fault.ok()) worker_.reset();
  return measured;
}

StatusOr<Measured> RemoteRunner::Time(size_t id, const Kernel& kernel, const Effort& effort,
                                      absl::Duration limit) {
  return Run(
      id, kernel,
      {{{"op", "time"}, {"round_ns", effort.round_ns}, {"give_up_ns", effort.give_up_ns}}, {}},
      limit);
}

StatusOr<Measured> RemoteRunner::Validate(size_t id, const Kernel& kernel, uint64_t seed,
                                          absl::Duration limit) {
  return Run(id, kernel, {{{"op", "check"}, {"seed", seed}}, {}}, limit);
}

}  // namespace tl
