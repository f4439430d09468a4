#include "service/worker_process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "service/generate.h"

extern char** environ;

namespace tl {
namespace {

// Its context opens drivers, which takes seconds on some machines.
constexpr absl::Duration kStartLimit = absl::Seconds(60);
// waitid's P_PIDFD, which older headers do not have.
constexpr int kPidfd = 3;
// Bytes of what a worker prints that are kept.
constexpr off_t kMostPrinted = 16 << 10;
// A process whose socket is closed is about to end.
constexpr absl::Duration kEndLimit = absl::Seconds(2);

StatusOr<std::string> LocateWorker(const std::string& program, const std::string& library_dir) {
  std::vector<std::string> places = {program};
  if (program.empty()) {
    places = {absl::StrCat(library_dir, "/tl-worker"),
              absl::StrCat(library_dir, "/../bin/tl-worker"),
              absl::StrCat(library_dir, "/../libexec/tilejit/tl-worker")};
  }
  for (const std::string& place : places) {
    if (access(place.c_str(), X_OK) == 0) return place;
  }
  return MakeError(
      absl::StatusCode::kNotFound,
      absl::StrCat("the helper program tl-worker, which runs what may take its process down, is "
                   "not at ",
                   absl::StrJoin(places, ", "), "; install it there"),
      {.reason = Reason::kMissingLibrary, .span = {}, .log = {}});
}

Status OsError(std::string_view what, int code) {
  return MakeError(absl::StatusCode::kUnavailable, absl::StrCat(what, ": ", strerror(code)),
                   {.domain = Domain::kOs, .native_code = code, .span = {}, .log = {}});
}

// A file in memory for what a child prints, of a size that it cannot change: a child that prints
// without end costs nobody anything. -1 where the system has none.
int MakePrintFile() {
  const int file = memfd_create("tl-worker", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (file < 0) return -1;
  if (ftruncate(file, kMostPrinted) == 0 && fcntl(file, F_ADD_SEALS, F_SEAL_GROW) == 0) return file;
  close(file);
  return -1;
}

// What a child gets: the socket as its standard input, a file for what it prints, nothing else of
// ours, ordinary signals.
class SpawnSettings {
 public:
  SpawnSettings(int socket, int printed) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_adddup2(&actions_, socket, 0);
    for (const int output : {1, 2}) {
      if (printed >= 0) {
        posix_spawn_file_actions_adddup2(&actions_, printed, output);
      } else {
        posix_spawn_file_actions_addopen(&actions_, output, "/dev/null", O_WRONLY, 0);
      }
    }
    posix_spawn_file_actions_addclosefrom_np(&actions_, 3);
    posix_spawnattr_init(&attributes_);
    sigset_t signals;
    sigemptyset(&signals);
    posix_spawnattr_setsigmask(&attributes_, &signals);
    sigfillset(&signals);
    posix_spawnattr_setsigdefault(&attributes_, &signals);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  int Spawn(const std::string& path, pid_t* pid) {
    std::string name = "tl-worker";
    char* argv[] = {name.data(), nullptr};
    return posix_spawn(pid, path.c_str(), &actions_, &attributes_, argv, environ);
  }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

}  // namespace

std::string WorkerVersion() { return std::string(PassesHash()); }

StatusOr<std::unique_ptr<WorkerProcess>> WorkerProcess::Start(const std::string& program,
                                                              const std::string& library_dir) {
  TL_ASSIGN_OR_RETURN(const std::string path, LocateWorker(program, library_dir));
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return OsError("no socket for the worker process", errno);
  const int printed = MakePrintFile();
  pid_t pid = -1;
  const int error = SpawnSettings(ends[1], printed).Spawn(path, &pid);
  close(ends[1]);
  if (error != 0) {
    close(ends[0]);
    if (printed >= 0) close(printed);
    return OsError(absl::StrCat("cannot start ", path), error);
  }
  std::unique_ptr<WorkerProcess> worker(new WorkerProcess(pid, ends[0], printed));
  TL_ASSIGN_OR_RETURN(const Message hello, worker->Answer(kStartLimit, [] { return false; }));
  if (hello.head.value("version", "") == WorkerVersion()) return worker;
  return absl::FailedPreconditionError(
      absl::StrCat(path, " belongs to another version of the library"));
}

WorkerProcess::WorkerProcess(pid_t pid, int fd, int printed)
    : pid_(pid),
      pidfd_(static_cast<int>(syscall(SYS_pidfd_open, pid, 0))),
      fd_(fd),
      printed_(printed) {}

WorkerProcess::~WorkerProcess() {
  close(fd_);
  if (!ended_) {
    Kill();
    siginfo_t info;
    Wait(WEXITED, &info);
  }
  if (pidfd_ >= 0) close(pidfd_);
  if (printed_ >= 0) close(printed_);
}

std::string WorkerProcess::Printed() const {
  std::string text(kMostPrinted, '\0');
  const ssize_t got = printed_ >= 0 ? pread(printed_, text.data(), text.size(), 0) : 0;
  text.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
  const size_t end = text.find_last_not_of(std::string_view("\0\n", 2));
  text.resize(end == std::string::npos ? 0 : end + 1);
  return text;
}

void WorkerProcess::Kill() {
  if (pidfd_ >= 0) {
    syscall(SYS_pidfd_send_signal, pidfd_, SIGKILL, nullptr, 0);
  } else {
    kill(pid_, SIGKILL);
  }
}

bool WorkerProcess::Wait(int flags, siginfo_t* info) {
  const auto wait = [&](int kind, int id) {
    *info = {};
    int result = 0;
    while ((result = waitid(static_cast<idtype_t>(kind), static_cast<id_t>(id), info, flags)) < 0 &&
           errno == EINTR) {
    }
    return result == 0;
  };
  if (pidfd_ >= 0 && wait(kPidfd, pidfd_)) return true;
  // Systems that know descriptors of processes need not know how to wait for them.
  return (pidfd_ < 0 || errno == EINVAL) && wait(P_PID, pid_);
}

StatusOr<Message> WorkerProcess::Call(const Message& request, absl::Duration limit,
                                      absl::FunctionRef<bool()> cancelled) {
  const Status sent = SendMessage(fd_, request);
  if (!sent.ok()) return HowItEnded();
  return Answer(limit, cancelled);
}

StatusOr<Message> WorkerProcess::Answer(absl::Duration limit, absl::FunctionRef<bool()> cancelled) {
  StatusOr<Message> answer = ReceiveMessage(fd_, limit, cancelled);
  if (absl::IsAborted(answer.status())) return HowItEnded();
  if (!absl::IsDeadlineExceeded(answer.status())) return answer;
  return absl::DeadlineExceededError(
      absl::StrCat("it did not end within ", absl::FormatDuration(limit)));
}

Status WorkerProcess::HowItEnded() {
  const absl::Time end = absl::Now() + kEndLimit;
  siginfo_t info;
  // Somebody else in this program may have waited for it.
  bool known = Wait(WEXITED | WNOHANG, &info);
  for (; known && info.si_pid == 0 && absl::Now() < end; known = Wait(WEXITED | WNOHANG, &info))
    absl::SleepFor(absl::Milliseconds(5));
  if (known && info.si_pid == 0)
    return absl::AbortedError("the worker process closed its socket or sent what is no message");
  ended_ = true;
  if (!known) return absl::AbortedError("the worker process ended");
  ErrorDetail detail{.domain = Domain::kOs, .native_code = info.si_status, .span = {}, .log = {}};
  if (info.si_code == CLD_EXITED) {
    return MakeError(absl::StatusCode::kAborted,
                     absl::StrCat("the worker process ended with code ", info.si_status),
                     std::move(detail));
  }
  const char* name = sigdescr_np(info.si_status);
  return MakeError(absl::StatusCode::kAborted,
                   absl::StrCat("the worker process died of signal ", info.si_status, " (",
                                name ? name : "unknown", ")"),
                   std::move(detail));
}

}  // namespace tl
