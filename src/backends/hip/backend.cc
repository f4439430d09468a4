// HIP as a backend: C++ text through HIPRTC or clang to code objects, for machines that have a GPU
// of the kind. Launching them is not here yet.
#include "backends/backend.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "backends/c_family/emit.h"
#include "backends/hip/code_object.h"
#include "backends/hip/compiler.h"
#include "backends/hip/dialect.h"
#include "backends/hip/objdump.h"
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
  HipBackend(SearchPaths paths, CompileElsewhere elsewhere)
      : paths_(std::move(paths)), elsewhere_(std::move(elsewhere)) {}

  std::string_view name() const override { return "hip"; }
  StatusOr<Target> FindTarget(std::string_view name) const override { return FindHipTarget(name); }
  std::vector<std::string> TargetNames() const override { return HipTargetNames(); }
  StatusOr<std::vector<DeviceInfo>> Devices() override { return std::vector<DeviceInfo>(); }
  std::string CodegenIdentity() const override { return std::string(HipCodegenHash()); }
  StatusOr<std::string> CompilerIdentity(const Target& target) override {
    TL_ASSIGN_OR_RETURN(const HipCompiler compiler, ChooseHipCompiler(paths_, target));
    return HipCompilerIdentity(compiler);
  }

  StatusOr<Generated> Generate(const Module& module, const Target& target,
                               const GenerateOptions&) override {
    return EmitC(module, target, HipDialect());
  }
  StatusOr<Built> Build(const Generated& generated, const Target& target) override {
    TL_ASSIGN_OR_RETURN(const HipCompiler compiler, ChooseHipCompiler(paths_, target));
    TL_ASSIGN_OR_RETURN(HipCode code, CompileHip(compiler, elsewhere_, generated.source, target));
    return Built{.binary = std::move(code.object),
                 .assembly = "",
                 .log = std::move(code.log),
                 .compiler = HipCompilerIdentity(compiler)};
  }
  BuildFacts ReadBuild(std::string_view binary, std::string_view, const std::vector<Entry>& entries,
                       const Target&) const override {
    BuildFacts facts{.entries = ReadCodeObject(binary, entries), .notes = {}};
    for (size_t i = 0; i < facts.entries.size(); ++i) {
      if (facts.entries[i].stack_bytes == 0) continue;
      facts.notes.push_back(absl::StrCat(entries[i].symbol, " keeps ", facts.entries[i].stack_bytes,
                                         " bytes of each thread in scratch memory"));
    }
    return facts;
  }
  // Of the binary, since a compiler's own text would be another one's wherever it gives none.
  StatusOr<std::string> Disassemble(const Generated&, std::string_view binary, const Target& target,
                                    std::string_view form) override {
    if (form == "asm") return DisassembleCodeObject(paths_, binary, target);
    return absl::InvalidArgumentError(
        absl::StrCat("HIP programs are shown as asm, not as '", form, "'"));
  }

  StatusOr<std::unique_ptr<LoadedKernel>> Load(std::string_view, const std::vector<Entry>&,
                                               const Module&, int) override {
    return NotHere();
  }
  StatusOr<std::unique_ptr<DeviceSession>> OpenSession(int) override { return NotHere(); }

 private:
  const SearchPaths paths_;
  const CompileElsewhere elsewhere_;
};

}  // namespace

std::unique_ptr<Backend> MakeHipBackend(const SearchPaths& paths, CompileElsewhere elsewhere) {
  return std::make_unique<HipBackend>(paths, std::move(elsewhere));
}

}  // namespace tl
