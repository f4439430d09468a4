#include "backends/cuda/nvdisasm.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace tl {
namespace {

class Fd {
 public:
  explicit Fd(int fd) : fd_(fd) {}
  ~Fd() { Close(); }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  int get() const { return fd_; }
  void Close() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }

 private:
  int fd_;
};

Status OsError(const char* what, int error) {
  return MakeError(absl::StatusCode::kInternal, absl::StrCat(what, ": ", std::strerror(error)),
                   {.domain = Domain::kOs, .native_code = error});
}

StatusOr<std::string> FindProgram(const SearchPaths& paths) {
  std::vector<std::string> dirs;
  for (const std::string& root : paths.cuda_roots) dirs.push_back(root + "/bin");
  for (const std::string& root : paths.wheel_roots) {
    dirs.push_back(root + "/nvidia/cu13/bin");
    dirs.push_back(root + "/nvidia/cuda_nvdisasm/bin");
  }
  dirs.insert(dirs.end(), paths.program_dirs.begin(), paths.program_dirs.end());
  for (const std::string& root : paths.system_roots) dirs.push_back(root + "/cuda/bin");
  for (const std::string& dir : dirs) {
    const std::string path = dir + "/nvdisasm";
    if (access(path.c_str(), X_OK) == 0) return path;
  }
  return MakeError(absl::StatusCode::kNotFound,
                   absl::StrCat("nvdisasm was not found in ", absl::StrJoin(dirs, ", "),
                                "; the Python wheel nvidia-cuda-nvdisasm has it"),
                   {.reason = Reason::kMissingLibrary});
}

bool WriteAll(int fd, std::string_view data) {
  while (!data.empty()) {
    const ssize_t n = write(fd, data.data(), data.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    data.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

std::string ReadAll(int fd) {
  std::string text;
  char buffer[1 << 16];
  for (;;) {
    const ssize_t n = read(fd, buffer, sizeof(buffer));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return text;
    text.append(buffer, static_cast<size_t>(n));
  }
}

// Starts `program` with `input` as descriptor 3 and `output` as its standard output and error.
int Spawn(const std::string& program, int input, int output, pid_t* pid) {
  posix_spawn_file_actions_t actions;
  if (const int error = posix_spawn_file_actions_init(&actions)) return error;
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO);
  posix_spawn_file_actions_adddup2(&actions, input, 3);
  const char* const argv[] = {program.c_str(), "-c", "/proc/self/fd/3", nullptr};
  char* const environment[] = {nullptr};
  const int error = posix_spawn(pid, program.c_str(), &actions, nullptr,
                                const_cast<char* const*>(argv), environment);
  posix_spawn_file_actions_destroy(&actions);
  return error;
}

}  // namespace

StatusOr<std::string> DisassembleCubin(const SearchPaths& paths, std::string_view cubin) {
  TL_ASSIGN_OR_RETURN(const std::string program, FindProgram(paths));
  const Fd input(memfd_create("cubin", MFD_CLOEXEC));
  if (input.get() < 0 || !WriteAll(input.get(), cubin)) return OsError("memfd_create", errno);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return OsError("pipe", errno);
  const Fd from(ends[0]);
  Fd to(ends[1]);
  pid_t pid = 0;
  if (const int error = Spawn(program, input.get(), to.get(), &pid)) {
    return OsError(program.c_str(), error);
  }
  to.Close();
  std::string text = ReadAll(from.get());
  int state = 0;
  while (waitpid(pid, &state, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(state) && WEXITSTATUS(state) == 0) return text;
  return MakeError(absl::StatusCode::kInternal, absl::StrCat(program, " failed"), {.log = text});
}

}  // namespace tl
