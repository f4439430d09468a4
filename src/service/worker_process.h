// The helper program beside the library, as the process that started it sees it.
#ifndef TILEJIT_SERVICE_WORKER_PROCESS_H_
#define TILEJIT_SERVICE_WORKER_PROCESS_H_

#include <signal.h>
#include <sys/types.h>

#include <memory>
#include <string>

#include "service/message.h"

namespace tl {

// What parent and worker compare at the start: both must be of the same build of the library.
std::string WorkerVersion();

class WorkerProcess {
 public:
  // `program`: its path; empty: tl-worker, looked for beside the library. NOT_FOUND lists the
  // places tried; FAILED_PRECONDITION: it belongs to another version of the library.
  static StatusOr<std::unique_ptr<WorkerProcess>> Start(const std::string& program,
                                                        const std::string& library_dir);
  // Ends it, whatever it is doing.
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  // Its answer. After any failure the process is of no more use: ABORTED says how it ended, with
  // the signal or else the exit code as native code, DEADLINE_EXCEEDED that it did not answer
  // within `limit`, CANCELLED that the caller gave up.
  StatusOr<Message> Call(const Message& request, absl::Duration limit,
                         absl::FunctionRef<bool()> cancelled);

  // What it has printed so far: the beginning of it, where that is much.
  std::string Printed() const;

 private:
  WorkerProcess(pid_t pid, int fd, int printed);
  StatusOr<Message> Answer(absl::Duration limit, absl::FunctionRef<bool()> cancelled);
  Status HowItEnded();
  void Kill();
  // As waitid with these flags; false: there is nothing to wait for.
  bool Wait(int flags, siginfo_t* info);

  const pid_t pid_;
  // Names the process where its number may be another's by now, because somebody else in this
  // program waited for it; -1: the system has none.
  const int pidfd_;
  const int fd_;
  const int printed_;   // a file in memory; -1: the system has none
  bool ended_ = false;  // and was waited for
};

}  // namespace tl

#endif  // TILEJIT_SERVICE_WORKER_PROCESS_H_
