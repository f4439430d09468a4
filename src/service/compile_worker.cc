#include "service/compile_worker.h"

#include <memory>
#include <utility>

#include "base/program.h"
#include "service/worker_process.h"

namespace tl {
namespace {

StatusOr<CompiledJob> ReadAnswer(Message answer) {
  if (answer.head.contains("error")) return StatusFromJson(answer.head["error"]);
  if (answer.blobs.size() != 2) return absl::AbortedError("the worker process' answer is none");
  return CompiledJob{std::move(answer.blobs[0]), std::move(answer.blobs[1])};
}

}  // namespace

StatusOr<CompiledJob> CompileInWorker(const CompileJob& job, const CompileWorkerOptions& options) {
  const TemporaryDirectory temporary("tl-worker-");
  if (!temporary.ok()) {
    return absl::UnavailableError("no temporary directory can be made for the compiler");
  }
  TL_ASSIGN_OR_RETURN(const std::unique_ptr<WorkerProcess> worker,
                      WorkerProcess::Start(options.program, options.library_dir));
  const Message request{{{"op", "compile"},
                         {"library", job.library},
                         {"options", job.options},
                         {"temporary", (temporary / "").string()}},
                        {job.source}};
  StatusOr<Message> answer = worker->Call(request, options.limit, [] { return false; });
  if (answer.ok()) return ReadAnswer(*std::move(answer));
  // What it said before it fell silent.
  ErrorDetail detail = DetailOf(answer.status());
  detail.log = worker->Printed();
  return MakeError(answer.status().code(), answer.status().message(), std::move(detail));
}

}  // namespace tl
