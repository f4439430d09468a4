#include "backends/hip/objdump.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "backends/hip/clang.h"
#include "base/program.h"

namespace tl {
namespace {

StatusOr<std::string> FindObjdump(const SearchPaths& paths) {
  std::string path;
  for (int version = kNewestClang; version >= kOldestClang && path.empty(); --version) {
    path = FindProgram(paths, absl::StrCat("llvm-objdump-", version));
  }
  if (path.empty()) path = FindProgram(paths, "llvm-objdump");
  if (!path.empty()) return path;
  return MakeError(absl::StatusCode::kNotFound,
                   absl::StrCat("no llvm-objdump-", kOldestClang, " to llvm-objdump-", kNewestClang,
                                " was found in ", absl::StrJoin(paths.program_dirs, ", "),
                                "; Debian's package llvm-19 has one"),
                   {.domain = Domain::kHip, .reason = Reason::kMissingLibrary});
}

}  // namespace

StatusOr<std::string> DisassembleCodeObject(const SearchPaths& paths, std::string_view binary,
                                            const Target& target) {
  TL_ASSIGN_OR_RETURN(const std::string objdump, FindObjdump(paths));
  const TemporaryDirectory dir("tl-hip-");
  const std::string object = (dir / "kernel.co").string();
  if (!dir.ok() || !WriteFile(object, binary)) {
    return absl::InternalError("no temporary file can be written for the disassembler");
  }
  const int exit_status =
      RunProgram({objdump, "-d", absl::StrCat("--mcpu=", target.name), object}, dir / "text");
  std::string text = absl::StrReplaceAll(ReadFile(dir / "text"), {{object, "kernel.co"}});
  if (exit_status == 0) return text;
  return MakeError(absl::StatusCode::kInternal,
                   absl::StrCat(objdump, " failed with exit status ", exit_status),
                   {.domain = Domain::kHip, .native_code = exit_status, .log = std::move(text)});
}

}  // namespace tl
