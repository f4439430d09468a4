#include "backends/emulate/emulate.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "backends/c_family/prelude.h"
#include "backends/emulate/machine.h"
#include "backends/emulate/texts.h"

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

constexpr int kMaxParams = 1024;  // of 4 bytes at least, in 4096 bytes

}  // namespace

// The lines keep their numbers. Unrolling would only cost the host's compiler time.
std::string EmulatedSource(const Generated& generated) {
  const std::string_view kernels = WithoutPrelude(generated.source);
  const std::string_view prelude(generated.source.data(), generated.source.size() - kernels.size());
  const auto first_line = std::count(prelude.begin(), prelude.end(), '\n') + 1;
  const bool atomics = absl::StrContains(kernels, "tl_atomic_");
  std::string text = absl::StrCat(atomics ? EmulatedAtomics() : "", "#line ", first_line, "\n",
                                  absl::StrReplaceAll(kernels, {{"#pragma unroll", "//"}}),
                                  EmulatorEntry(), "TlBody* const tl_bodies[] = {\n");
  for (const Entry& e : generated.entries)
    absl::StrAppend(&text, "    &tl_body<&", e.symbol, ">,\n");
  text += "};\n";
  const std::string primitives = absl::StrCat(EmulatedPrimitives(), EmulatedHopper());
  return absl::StrCat(EmulatorApi(), WithPrelude(primitives, text));
}

StatusOr<std::unique_ptr<EmulatedProgram>> EmulatedProgram::Build(const Generated& generated,
                                                                  const std::string& compiler) {
  const TemporaryDirectory dir;
  if (!dir.ok()) return absl::InternalError("no temporary directory can be made");
  std::ofstream source(dir / "kernel.cc", std::ios::binary);
  if (!(source << EmulatedSource(generated) << std::flush)) {
    return absl::InternalError(absl::StrCat((dir / "kernel.cc").string(), " cannot be written"));
  }
  const int exit_status = RunProgram(
      {compiler, "-std=c++2b", "-O1", "-w", "-fPIC", "-shared", "-Wl,-Bsymbolic",
       "-fvisibility=hidden", "-fno-exceptions", "-fno-rtti", "-fno-asynchronous-unwind-tables",
       "-fno-strict-aliasing", "-fwrapv", "-ffp-contract=off", "-fno-math-errno",
       // Registers in flight are those of arrays whose scope may have ended.
       "-mllvm", "-no-stack-coloring", (dir / "kernel.cc").string(), "-o",
       (dir / "kernel.so").string()},
      dir / "log");
  if (exit_status != 0) {
    return MakeError(absl::StatusCode::kInternal,
                     absl::StrCat(compiler, " cannot compile the generated source for the host"),
                     {.native_code = exit_status, .log = ReadFile(dir / "log")});
  }
  void* library = dlopen((dir / "kernel.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return absl::InternalError(dlerror());
  return std::unique_ptr<EmulatedProgram>(new EmulatedProgram(library, generated.entries));
}

EmulatedProgram::EmulatedProgram(void* library, std::vector<Entry> entries)
    : library_(library),
      entries_(std::move(entries)),
      machine_(std::make_unique<emulate::Machine>()) {}

EmulatedProgram::~EmulatedProgram() { dlclose(library_); }

Status EmulatedProgram::Run(int entry, int64_t blocks, void** params, const EmulateOptions& options,
                            const std::vector<EmulatedOperand>& operands, EmulateStats* stats) {
  if (blocks < 1 || blocks > std::numeric_limits<int32_t>::max()) {
    return absl::InvalidArgumentError("a launch has at least one block");
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  const Entry& e = entries_[static_cast<size_t>(entry)];
  const auto get_entry = reinterpret_cast<TlGetEntry*>(dlsym(library_, "tl_entry"));
  std::vector<TlExtent> extents(kMaxParams, {"", 0, std::numeric_limits<uint64_t>::max()});
  for (size_t i = 0; i < operands.size(); ++i) {
    const auto begin = reinterpret_cast<uintptr_t>(operands[i].data);
    if (operands[i].bytes < 0) continue;
    extents[i] = {operands[i].name.c_str(), begin,
                  begin + static_cast<uint64_t>(operands[i].bytes)};
  }
  const std::string error =
      machine_->Run(get_entry(entry, machine_->api()),
                    {blocks, e.threads, e.groups, static_cast<int>(e.shared_bytes)}, params,
                    extents.data(), options, stats);
  if (error.empty()) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(e.symbol, ", ", error));
}

}  // namespace tl
