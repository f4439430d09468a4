// The helper program's side: serves the process that started it.
#ifndef TILEJIT_SERVICE_WORKER_MAIN_H_
#define TILEJIT_SERVICE_WORKER_MAIN_H_

namespace tl {

// Answers requests on a socket until the other side is gone. Requests, by "op":
//   compile  library, options, temporary; blob   source by HIPRTC, to blobs: code object and log
//   open     device, cpu_threads, arguments      a context without a cache, for one device
//   load     id, params, shared_budget; blobs    a candidate: source and what was built from it
//   prepare  id                                  inputs for it
//   time     round_ns, give_up_ns                of the one prepared last
//   check    seed                                the same
// Answers have "error", a failure of the compiler or of nobody; for time and check also "fault" and
// "ns".
int WorkerMain(int fd);

}  // namespace tl

#endif  // TILEJIT_SERVICE_WORKER_MAIN_H_
