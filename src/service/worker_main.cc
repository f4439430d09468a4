#include "service/worker_main.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <thread>

#include "absl/strings/str_cat.h"
#include "backends/hip/hiprtc.h"
#include "service/context.h"
#include "service/remote_runner.h"
#include "service/runner.h"
#include "service/worker_process.h"

namespace tl {
namespace {

using Json = nlohmann::json;

class Server {
 public:
  // Throws Json::exception for a request that is none.
  Message Handle(const Message& request) {
    const std::string op = request.head.at("op").get<std::string>();
    if (op == "compile") return Compile(request);
    if (op == "open") return Answer(Open(request.head));
    if (!runner_) return Answer(absl::FailedPreconditionError("no device is open"));
    if (op == "load") return Answer(Measured{Load(request), 0});
    if (op == "prepare") return Answer(Prepare(request.head.at("id").get<int64_t>()));
    if (op == "time") {
      return Answer(runner_->Time({request.head.at("round_ns").get<double>(),
                                   request.head.at("give_up_ns").get<double>()}));
    }
    if (op == "check") return Answer(runner_->Validate(request.head.at("seed").get<uint64_t>()));
    return Answer(absl::UnimplementedError(absl::StrCat("no request is called ", op)));
  }

 private:
  static Message Answer(const Status& error) {
    if (error.ok()) return {};
    return {{{"error", StatusJson(error)}}, {}};
  }
  static Message Answer(const Measured& measured) {
    if (measured.fault.ok()) return {{{"ns", measured.ns}}, {}};
    return {{{"fault", StatusJson(measured.fault)}}, {}};
  }

  // Needs neither device nor context.
  static Message Compile(const Message& request) {
    if (request.blobs.size() != 1)
      return Answer(absl::InvalidArgumentError("a source is one blob"));
    // What the compiler leaves behind lies where the parent removes it.
    setenv("TMPDIR", request.head.at("temporary").get<std::string>().c_str(), 1);
    StatusOr<CompiledJob> compiled =
        CompileByHiprtc({request.head.at("library").get<std::string>(), request.blobs[0],
                         request.head.at("options").get<std::vector<std::string>>()});
    if (!compiled.ok()) return Answer(compiled.status());
    return {{}, {std::move(compiled->binary), std::move(compiled->log)}};
  }

  Status Open(const Json& head) {
    ContextOptions options;
    options.cache_mode = CacheMode::kMemory;
    options.cpu_threads = head.at("cpu_threads").get<int>();
    TL_ASSIGN_OR_RETURN(context_, Context::Create(std::move(options)));
    number_ = head.at("device").get<int>();
    TL_ASSIGN_OR_RETURN(const Device* device, context_->FindDevice(number_));
    const std::string identity = DeviceIdentity(device->info);
    const std::string wanted = head.at("device_identity").get<std::string>();
    if (identity != wanted) {
      return MakeError(
          absl::StatusCode::kUnavailable,
          absl::StrCat("in a second process, device ", number_, " is ", identity, " and not ",
                       wanted, "; where that cannot be helped, tune in this process"),
          {.reason = Reason::kNoDevice, .span = {}, .log = {}});
    }
    const int threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
    runner_.emplace(*device, ReadTrialArguments(head.at("arguments")), threads);
    return absl::OkStatus();
  }

  Status Load(const Message& message) {
    if (message.blobs.size() != 5) return absl::InvalidArgumentError("a candidate has five blobs");
    Artifact artifact;
    artifact.binary = message.blobs[1];
    artifact.metadata = message.blobs[2];
    artifact.log = message.blobs[3];
    artifact.compiler = message.blobs[4];
    TL_ASSIGN_OR_RETURN(
        kernels_[message.head.at("id").get<int64_t>()],
        context_->Adopt(message.blobs[0], number_, message.head.at("shared_budget").get<int64_t>(),
                        std::move(artifact)));
    return absl::OkStatus();
  }

  Status Prepare(int64_t id) {
    const auto found = kernels_.find(id);
    if (found == kernels_.end() || !found->second)
      return absl::NotFoundError(absl::StrCat("candidate ", id, " is not loaded"));
    return runner_->Prepare(found->second);
  }

  std::shared_ptr<Context> context_;
  int number_ = 0;
  std::map<int64_t, std::shared_ptr<Kernel>> kernels_;
  std::optional<Runner> runner_;  // of the context's device: goes first
};

// A worker outlives nobody (not the thread that started it, which waits for it), and leaves no core
// file of a candidate behind.
void SettleIn() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
}

}  // namespace

int WorkerMain(int fd) {
  SettleIn();
  if (!SendMessage(fd, {{{"version", WorkerVersion()}}, {}}).ok()) return 1;
  Server server;
  for (;;) {
    const StatusOr<Message> request =
        ReceiveMessage(fd, absl::InfiniteDuration(), [] { return false; });
    if (!request.ok()) return 0;
    Message answer;
    try {
      answer = server.Handle(*request);
    } catch (const Json::exception& e) {
      answer.head["error"] = StatusJson(absl::InvalidArgumentError(e.what()));
    }
    if (!SendMessage(fd, answer).ok()) return 0;
  }
}

}  // namespace tl
