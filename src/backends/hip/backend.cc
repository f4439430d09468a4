// HIP as a backend: C++ text through clang to code objects, for machines that have a GPU of the
// kind. Launching them is not here yet.
#include "backends/backend.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "backends/c_family/emit.h"
#include "backends/hip/clang.h"
#include "backends/hip/dialect.h"
#include "backends/hip/targets.h"

namespace tl {
namespace {

Status NotHere() {
  return MakeError(absl::StatusCode::kUnimplemented,
                   "kernels for AMD GPUs can be compiled and packed, not launched: this version "
                   "has no HIP driver",
                   {.domain = Domain::kHip, .reason = Reason::kNoDevice});
}

class HipBackend : public Backend {
 public:
  explicit HipBackend(SearchPaths paths) : paths_(std::move(paths)) {}

  std::string_view name() const override { return "hip"; }
  StatusOr<Target> FindTarget(std::string_view name) const override { return FindHipTarget(name); }
  std::vector<std::string> TargetNames() const override { return HipTargetNames(); }
  StatusOr<std::vector<DeviceInfo>> Devices() override { return std::vector<DeviceInfo>(); }
  std::string CodegenIdentity() const override { return std::string(HipCodegenHash()); }
  StatusOr<std::string> CompilerIdentity() override {
    TL_ASSIGN_OR_RETURN(const std::string clang, FindClang(paths_));
    return ClangIdentity(clang);
  }

  StatusOr<Generated> Generate(const Module& module, const Target& target,
                               const GenerateOptions&) override {
    return EmitC(module, target, HipDialect());
  }
  StatusOr<Built> Build(const Generated& generated, const Target& target) override {
    TL_ASSIGN_OR_RETURN(const std::string clang, FindClang(paths_));
    TL_ASSIGN_OR_RETURN(HipCode code, CompileHip(clang, paths_, generated.source, target));
    return Built{.binary = std::move(code.object),
                 .assembly = "",
                 .log = std::move(code.log),
                 .compiler = ClangIdentity(clang)};
  }
  BuildFacts ReadLog(std::string_view log, const std::vector<Entry>& entries,
                     const Target&) const override {
    BuildFacts facts{.entries = ReadHipRemarks(log, entries), .notes = {}};
    for (size_t i = 0; i < facts.entries.size(); ++i) {
      if (facts.entries[i].stack_bytes == 0) continue;
      facts.notes.push_back(absl::StrCat(entries[i].symbol, " keeps ", facts.entries[i].stack_bytes,
                                         " bytes of each thread in scratch memory"));
    }
    return facts;
  }
  StatusOr<std::string> Disassemble(const Generated& generated, std::string_view,
                                    const Target& target, std::string_view form) override {
    if (form != "asm") {
      return absl::InvalidArgumentError(
          absl::StrCat("HIP programs are shown as asm, not as '", form, "'"));
    }
    TL_ASSIGN_OR_RETURN(const std::string clang, FindClang(paths_));
    TL_ASSIGN_OR_RETURN(HipCode code, CompileHip(clang, paths_, generated.source, target));
    return std::move(code.assembly);
  }

  StatusOr<std::unique_ptr<LoadedKernel>> Load(std::string_view, const std::vector<Entry>&,
                                               const Module&, int) override {
    return NotHere();
  }
  StatusOr<std::unique_ptr<DeviceSession>> OpenSession(int) override { return NotHere(); }

 private:
  const SearchPaths paths_;
};

}  // namespace

std::unique_ptr<Backend> MakeHipBackend(const SearchPaths& paths) {
  return std::make_unique<HipBackend>(paths);
}

}  // namespace tl
