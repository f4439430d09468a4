#include "backends/hip/compiler.h"

#include <filesystem>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "backends/hip/options.h"
#include "backends/hip/parts.h"
#include "backends/hip/targets.h"

namespace tl {
namespace {

bool Knows(const HiprtcLibrary& library, const Target& target) {
  return library.rocm >= FirstRocmFor(target);
}

std::string NewEnough(const Target& target) {
  const RocmVersion first = FirstRocmFor(target);
  return absl::StrCat("the HIPRTC of ROCm ", first.major, ".", first.minor, " or later");
}

StatusOr<HipCompiler> ChooseHiprtc(const HiprtcSearch& search, const Target& target, bool any) {
  std::vector<std::string> too_old;
  for (const HiprtcLibrary& library : search.found) {
    if (any || Knows(library, target)) return library;
    too_old.push_back(Describe(library));
  }
  const std::string what = too_old.empty()
                               ? absl::StrCat("no libhiprtc.so.* or libamdhip64.so.* was found in ",
                                              absl::StrJoin(search.places, ", "))
                               : absl::StrCat(absl::StrJoin(too_old, ", "), " does not know it");
  return MakeError(absl::StatusCode::kNotFound,
                   absl::StrCat("no HIPRTC compiles for ", target.name, ": ", what),
                   {.domain = Domain::kHip, .reason = Reason::kMissingLibrary});
}

// Adds to a failure of HIPRTC who it was that failed, and on what.
Status Blame(const HiprtcLibrary& library, const Target& target, const Status& status) {
  ErrorDetail detail = DetailOf(status);
  detail.domain = Domain::kHip;
  std::string message =
      absl::StrCat(Describe(library), ", compiling for ", target.name, ": ", status.message());
  if (absl::IsAborted(status) || absl::IsDeadlineExceeded(status)) {
    if (!Knows(library, target)) detail.reason = Reason::kUnsupported;
    absl::StrAppend(&message, "; what compiles for ", target.name, ": ", NewEnough(target),
                    ", or clang-", kOldestClang,
                    " or later with lld (Debian: clang-19, lld-19), which "
                    "TL_HIP_COMPILER=clang asks for");
  } else if (detail.reason == Reason::kMissingLibrary) {
    absl::StrAppend(&message, "; TL_HIP_COMPILER=clang compiles without it");
  }
  return MakeError(status.code(), message, std::move(detail));
}

StatusOr<HipCode> CompileByHiprtc(const HiprtcLibrary& library, const CompileElsewhere& elsewhere,
                                  std::string_view source, const Target& target) {
  StatusOr<CompiledJob> done = elsewhere({library.path, std::string(source), HipOptions(target)});
  if (!done.ok()) return Blame(library, target, done.status());
  return HipCode{std::move(done->binary), std::move(done->log)};
}

}  // namespace

StatusOr<HipCompiler> ChooseHipCompiler(const SearchPaths& paths, const Target& target) {
  const std::string& wish = paths.hip_compiler;
  if (wish == "clang") return FindClang(paths);
  if (!wish.empty() && wish != "hiprtc") {
    return MakeError(absl::StatusCode::kInvalidArgument,
                     absl::StrCat("TL_HIP_COMPILER is '", wish, "'; it may be hiprtc or clang"),
                     {.domain = Domain::kHip});
  }
  StatusOr<HipCompiler> hiprtc = ChooseHiprtc(FindHiprtc(paths), target, /*any=*/wish == "hiprtc");
  if (hiprtc.ok() || wish == "hiprtc") return hiprtc;
  StatusOr<ClangPrograms> clang = FindClang(paths);
  if (clang.ok()) return *std::move(clang);
  return MakeError(absl::StatusCode::kNotFound,
                   absl::StrCat(hiprtc.status().message(), "; ", NewEnough(target),
                                " does; without one, ", clang.status().message()),
                   {.domain = Domain::kHip, .reason = Reason::kMissingLibrary});
}

std::string HipCompilerIdentity(const HipCompiler& compiler) {
  if (const auto* clang = std::get_if<ClangPrograms>(&compiler))
    return PartsOf({clang->clang, clang->linker});
  const auto& library = std::get<HiprtcLibrary>(compiler);
  std::vector<std::string> files = {library.path};
  // It opens this one by itself.
  const std::filesystem::path dir = std::filesystem::path(library.path).parent_path();
  for (const std::string& name : EntriesOf(dir, "libamd_comgr.so.")) {
    files.push_back((dir / name).string());
  }
  return absl::StrCat("hiprtc ", library.version, ": ", PartsOf(files));
}

StatusOr<HipCode> CompileHip(const HipCompiler& compiler, const CompileElsewhere& elsewhere,
                             std::string_view source, const Target& target) {
  if (const auto* library = std::get_if<HiprtcLibrary>(&compiler))
    return CompileByHiprtc(*library, elsewhere, source, target);
  return CompileByClang(std::get<ClangPrograms>(compiler), source, target);
}

}  // namespace tl
