// The helper program's side: serves the process that started it.
#ifndef TILEJIT_SERVICE_WORKER_MAIN_H_
#define TILEJIT_SERVICE_WORKER_MAIN_H_

namespace tl {

// Answers requests on a socket until the other side is gone. Requests, by "op":
//   open     device, cpu_threads, arguments      a context without a cache, for one device
//   load     id, params, shared_budget; blobs    a candidate: source and what was built from it
//   prepare  id                                  inputs for it
//   time     round_ns, give_up_ns                of the one prepared last
//   check    seed                                the same
// Answers have "error", a failure that is nobody's fault; for time and check also "fault" and "ns".
// Another kind of work, such as compiling with a compiler that may crash, is another op.
int WorkerMain(int fd);

}  // namespace tl

#endif  // TILEJIT_SERVICE_WORKER_MAIN_H_
