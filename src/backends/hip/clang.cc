#include "backends/hip/clang.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "backends/hip/options.h"
#include "base/program.h"

namespace tl {
namespace {

// No headers, no bitcode of the vendor's: the source brings all it needs.
std::vector<std::string> ToAssembly(const std::string& clang, const Target& target) {
  std::vector<std::string> args = {clang,
                                   "-x",
                                   "hip",
                                   "--offload-device-only",
                                   "--no-gpu-bundle-output",
                                   "-nogpulib",
                                   "-nogpuinc",
                                   "-mcode-object-version=4",
                                   "-fno-caret-diagnostics",
                                   "-S"};
  for (std::string& option : HipOptions(target)) args.push_back(std::move(option));
  return args;
}

Status Missing(std::string_view what) {
  return MakeError(absl::StatusCode::kNotFound, absl::StrCat("compiling for AMD GPUs needs ", what),
                   {.domain = Domain::kHip, .reason = Reason::kMissingLibrary});
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
    log_ += absl::StrReplaceAll(ReadFile(dir_ / absl::StrCat(output, ".log")), {{File(""), ""}});
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

}  // namespace

StatusOr<ClangPrograms> FindClang(const SearchPaths& paths) {
  std::string clang;
  for (int version = kNewestClang; version >= kOldestClang && clang.empty(); --version) {
    clang = FindProgram(paths, absl::StrCat("clang-", version));
  }
  const std::string places = absl::StrJoin(paths.program_dirs, ", ");
  if (clang.empty()) {
    return Missing(absl::StrCat("clang with its amdgpu target and lld; no clang-", kOldestClang,
                                " to clang-", kNewestClang, " was found in ", places,
                                "; Debian's packages clang-19 and lld-19 have them"));
  }
  const std::string own = absl::StrCat("ld.lld", clang.substr(clang.rfind('-')));
  std::string linker = FindProgram(paths, own);
  if (linker.empty()) linker = FindProgram(paths, "ld.lld");
  if (!linker.empty()) return ClangPrograms{std::move(clang), std::move(linker)};
  return Missing(absl::StrCat("besides ", clang, " a linker; no ", own, " or ld.lld was found in ",
                              places, "; Debian's package lld has it"));
}

StatusOr<HipCode> CompileByClang(const ClangPrograms& programs, std::string_view source,
                                 const Target& target) {
  const TemporaryDirectory dir("tl-hip-");
  if (!dir.ok() || !WriteFile(dir / "kernel.hip", source)) {
    return absl::InternalError("no temporary file can be written for the compiler");
  }
  Steps steps(dir);
  TL_RETURN_IF_ERROR(steps.Run(ToAssembly(programs.clang, target), "kernel.hip", "kernel.s"));
  TL_RETURN_IF_ERROR(
      steps.Run({programs.clang, "--target=amdgcn-amd-amdhsa", absl::StrCat("-mcpu=", target.name),
                 "-mcode-object-version=4", "-c"},
                "kernel.s", "kernel.o"));
  TL_RETURN_IF_ERROR(steps.Run({programs.linker, "-shared"}, "kernel.o", "kernel.co"));
  return HipCode{ReadFile(dir / "kernel.co"), std::move(steps.log())};
}

}  // namespace tl
