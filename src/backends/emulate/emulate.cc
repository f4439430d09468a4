#include "backends/emulate/emulate.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "backends/c_family/prelude.h"

extern char** environ;

namespace tl {
namespace {

namespace fs = std::filesystem;

// A directory that disappears with the object.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::error_code error;
    std::string name = (fs::temp_directory_path(error) / "tl-emulate-XXXXXX").string();
    if (!error && mkdtemp(name.data()) != nullptr) path_ = name;
  }
  ~TemporaryDirectory() {
    std::error_code error;
    if (!path_.empty()) fs::remove_all(path_, error);
  }
  bool ok() const { return !path_.empty(); }
  fs::path operator/(std::string_view name) const { return path_ / name; }

 private:
  fs::path path_;
};

std::string ReadFile(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

// The exit status of a program, or -1; what it prints goes to `log`.
int RunProgram(const std::vector<std::string>& args, const fs::path& log) {
  std::vector<char*> argv;
  for (const std::string& a : args) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  if (posix_spawn_file_actions_init(&actions) != 0) return -1;
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log.c_str(), O_WRONLY | O_CREAT, 0600);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  pid_t pid = 0;
  const int error = posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return -1;
  int state = 0;
  while (waitpid(pid, &state, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(state) ? WEXITSTATUS(state) : -1;
}

std::string HostSource(const Generated& generated) {
  std::string text = WithPrelude(EmulatedPrimitives(), WithoutPrelude(generated.source));
  absl::StrAppend(&text, EmulatorEntry(), "const TlKernel tl_kernels[] = {\n");
  for (const Entry& e : generated.entries)
    absl::StrAppend(&text, "    {tl_body<&", e.symbol, ">},\n");
  return text + "};\n";
}

}  // namespace

StatusOr<std::unique_ptr<EmulatedProgram>> EmulatedProgram::Build(const Generated& generated,
                                                                  const std::string& compiler) {
  const std::string text = HostSource(generated);
  const TemporaryDirectory dir;
  if (!dir.ok()) return absl::InternalError("no temporary directory can be made");
  std::ofstream(dir / "kernel.cc", std::ios::binary) << text;
  const int exit_status =
      RunProgram({compiler, "-std=c++17", "-O1", "-w", "-fPIC", "-shared", "-Wl,-Bsymbolic",
                  "-fno-strict-aliasing", "-fwrapv", "-ffp-contract=off",
                  (dir / "kernel.cc").string(), "-o", (dir / "kernel.so").string()},
                 dir / "log");
  if (exit_status != 0) {
    return MakeError(absl::StatusCode::kInternal,
                     absl::StrCat(compiler, " cannot compile the generated source for the host"),
                     {.native_code = exit_status, .log = ReadFile(dir / "log")});
  }
  void* library = dlopen((dir / "kernel.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return absl::InternalError(dlerror());
  const auto launch = reinterpret_cast<Launch>(dlsym(library, "tl_emulate"));
  return std::unique_ptr<EmulatedProgram>(new EmulatedProgram(library, launch, generated.entries));
}

EmulatedProgram::~EmulatedProgram() { dlclose(library_); }

Status EmulatedProgram::Run(int entry, int64_t blocks, void** params, uint64_t seed) {
  if (blocks < 1 || blocks > std::numeric_limits<int32_t>::max()) {
    return absl::InvalidArgumentError("a launch has at least one block");
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  const Entry& e = entries_[static_cast<size_t>(entry)];
  const char* error = launch_(entry, static_cast<unsigned>(blocks), e.threads, e.groups,
                              static_cast<int>(e.shared_bytes), params, seed);
  if (error == nullptr) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(e.symbol, ": ", error));
}

}  // namespace tl
