#include "backends/hip/clang.h"

#include <unistd.h>

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/build_id.h"
#include "base/program.h"

namespace tl {
namespace {

// Earlier ones do not know all of the targets.
constexpr int kNewest = 22, kOldest = 17;

// No headers, no bitcode of the vendor's: the source brings all it needs.
std::vector<std::string> ToAssembly(const Target& target) {
  return {"-x",
          "hip",
          "--offload-device-only",
          "--no-gpu-bundle-output",
          "-nogpulib",
          "-nogpuinc",
          "-std=c++17",
          "-O3",
          "-ffp-contract=fast",
          "-fno-strict-aliasing",
          "-mcode-object-version=4",
          absl::StrCat("--offload-arch=", target.name),
          "-Rpass-analysis=kernel-resource-usage",
          "-fno-caret-diagnostics",
          "-S"};
}

// One program of the three, with the log of all so far.
class Steps {
 public:
  explicit Steps(const TemporaryDirectory& dir) : dir_(dir) {}
  std::string File(std::string_view name) const { return (dir_ / name).string(); }

  // `input` to `output`, both in the directory.
  Status Run(std::vector<std::string> args, std::string_view input, std::string_view output) {
    const std::string program = args[0];
    for (const std::string& word : {File(input), std::string("-o"), File(output)}) {
      args.push_back(word);
    }
    const int exit_status = RunProgram(args, dir_ / absl::StrCat(output, ".log"));
    log_ += ReadFile(dir_ / absl::StrCat(output, ".log"));
    if (exit_status == 0) return absl::OkStatus();
    return MakeError(absl::StatusCode::kInternal,
                     absl::StrCat(program, " cannot make ", output, " (exit status ", exit_status,
                                  "); the compiler needs its amdgpu target"),
                     {.domain = Domain::kHip, .native_code = exit_status, .log = log_});
  }
  std::string& log() { return log_; }

 private:
  const TemporaryDirectory& dir_;
  std::string log_;
};

StatusOr<std::string> FindLinker(const std::string& clang, const SearchPaths& paths) {
  const std::string_view version = std::string_view(clang).substr(clang.rfind('-'));
  for (const std::string& name : {absl::StrCat("ld.lld", version), std::string("ld.lld")}) {
    for (const std::string& dir : paths.program_dirs) {
      std::string path = absl::StrCat(dir, "/", name);
      if (access(path.c_str(), X_OK) == 0) return path;
    }
  }
  return MakeError(
      absl::StatusCode::kNotFound,
      absl::StrCat("no linker ld.lld", version, " or ld.lld was found in ",
                   absl::StrJoin(paths.program_dirs, ", "), "; Debian's package lld has it"),
      {.domain = Domain::kHip, .reason = Reason::kMissingLibrary});
}

// "remark: file:line:col:     VGPRs: 12 [-R...]" -> 12; false if `line` has no such key.
bool Take(std::string_view line, std::string_view key, int& value) {
  const size_t at = line.find(key);
  if (at == std::string_view::npos) return false;
  std::string_view rest = line.substr(at + key.size());
  rest = rest.substr(0, rest.find_first_not_of("0123456789"));
  return absl::SimpleAtoi(rest, &value);
}

}  // namespace

StatusOr<std::string> FindClang(const SearchPaths& paths) {
  for (int version = kNewest; version >= kOldest; --version) {
    for (const std::string& dir : paths.program_dirs) {
      std::string path = absl::StrCat(dir, "/clang-", version);
      if (access(path.c_str(), X_OK) == 0) return path;
    }
  }
  return MakeError(
      absl::StatusCode::kNotFound,
      absl::StrCat("compiling for AMD GPUs needs clang with its amdgpu target and lld; "
                   "no clang-",
                   kOldest, " to clang-", kNewest, " was found in ",
                   absl::StrJoin(paths.program_dirs, ", "),
                   "; Debian's packages clang-19 and lld-19 have them"),
      {.domain = Domain::kHip, .reason = Reason::kMissingLibrary});
}

std::string ClangIdentity(const std::string& clang) {
  const StatusOr<std::string> id = ReadBuildId(clang);
  const std::string_view name = std::string_view(clang).substr(clang.rfind('/') + 1);
  return absl::StrCat(name, id.ok() ? " build-id " : "", id.ok() ? *id : "");
}

StatusOr<HipCode> CompileHip(const std::string& clang, const SearchPaths& paths,
                             std::string_view source, const Target& target) {
  TL_ASSIGN_OR_RETURN(const std::string linker, FindLinker(clang, paths));
  const TemporaryDirectory dir("tl-hip-");
  if (!dir.ok() || !WriteFile(dir / "kernel.hip", source)) {
    return absl::InternalError("no temporary file can be written for the compiler");
  }
  Steps steps(dir);
  std::vector<std::string> compile = ToAssembly(target);
  compile.insert(compile.begin(), clang);
  TL_RETURN_IF_ERROR(steps.Run(std::move(compile), "kernel.hip", "kernel.s"));
  TL_RETURN_IF_ERROR(
      steps.Run({clang, "--target=amdgcn-amd-amdhsa", absl::StrCat("-mcpu=", target.name),
                 "-mcode-object-version=4", "-c"},
                "kernel.s", "kernel.o"));
  TL_RETURN_IF_ERROR(steps.Run({linker, "-shared"}, "kernel.o", "kernel.co"));
  return HipCode{ReadFile(dir / "kernel.co"), ReadFile(dir / "kernel.s"), std::move(steps.log())};
}

std::vector<EntryResources> ReadHipRemarks(std::string_view log,
                                           const std::vector<Entry>& entries) {
  std::vector<EntryResources> all(entries.size());
  size_t known = 0;
  EntryResources* now = nullptr;
  for (std::string_view line : absl::StrSplit(log, '\n')) {
    for (size_t i = 0; i < entries.size(); ++i) {
      if (line.find(absl::StrCat("Function Name: ", entries[i].symbol, " ")) ==
          std::string_view::npos) {
        continue;
      }
      now = &all[i];
      ++known;
    }
    if (now == nullptr) continue;
    int value = 0;
    if (Take(line, " VGPRs: ", value) || Take(line, " AGPRs: ", value)) now->registers += value;
    if (Take(line, "ScratchSize [bytes/lane]: ", value)) now->stack_bytes = value;
    if (Take(line, "VGPRs Spill: ", value))
      now->spill_store_bytes = now->spill_load_bytes = 4 * value;
  }
  if (known != entries.size()) all.clear();
  return all;
}

}  // namespace tl
