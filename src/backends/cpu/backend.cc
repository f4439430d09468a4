// The CPU backend: tile programs as LLVM IR, compiled by libtilejit_cpu.so, run on a thread pool.

#include "backends/backend.h"

#include <unistd.h>

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "backends/cpu/codegen_hash.h"
#include "backends/cpu/compiler_module.h"
#include "backends/cpu/emit_llvm.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/processor.h"
#include "backends/host_session.h"
#include "base/thread_pool.h"

namespace tl {
namespace {

Status CheckOrdinal(int ordinal) {
  if (ordinal == 0) return absl::OkStatus();
  return MakeError(absl::StatusCode::kNotFound,
                   absl::StrCat("no CPU device ", ordinal, ": there is one, number 0"),
                   {.reason = Reason::kNoDevice});
}

int64_t Positive(long value) { return value > 0 ? value : 0; }

class CpuBackend : public Backend {
 public:
  CpuBackend(const SearchPaths& paths, int threads)
      : pool_(std::make_shared<ThreadPool>(threads)),
        compiler_(std::make_shared<cpu::CompilerModule>(paths)) {}

  std::string_view name() const override { return "cpu"; }

  StatusOr<Target> FindTarget(std::string_view name) const override {
    return cpu::FindCpuTarget(name);
  }
  std::vector<std::string> TargetNames() const override { return cpu::CpuTargetNames(); }

  StatusOr<std::vector<DeviceInfo>> Devices() override {
    DeviceInfo device;
    device.name = cpu::HostName();
    TL_ASSIGN_OR_RETURN(device.target, cpu::FindCpuTarget("cpu"));
    device.units = pool_->threads();
    device.memory_bytes = Positive(sysconf(_SC_PHYS_PAGES)) * Positive(sysconf(_SC_PAGESIZE));
    device.l2_bytes = Positive(sysconf(_SC_LEVEL2_CACHE_SIZE));
    return std::vector<DeviceInfo>{std::move(device)};
  }

  std::string CodegenIdentity() const override { return absl::StrCat("cpu ", CpuCodegenHash()); }
  StatusOr<std::string> CompilerIdentity(const Target&) override { return compiler_->Identity(); }

  StatusOr<Generated> Generate(const Module& module, const Target& target,
                               const GenerateOptions&) override {
    TL_ASSIGN_OR_RETURN(const cpu::Processor processor, cpu::ProcessorOf(target));
    Generated generated;
    generated.language = "llvm";
    TL_ASSIGN_OR_RETURN(generated.source,
                        cpu::EmitLlvm(module, cpu::FactsOf(processor), processor.Text()));
    for (size_t i = 0; i < module.launches.size(); ++i) {
      const Launch& launch = module.launches[i];
      Entry entry;
      entry.symbol = cpu::EntrySymbol(static_cast<int>(i));
      entry.threads = launch.groups;
      entry.groups = launch.groups;
      entry.shared_bytes = launch.arena_bytes;
      generated.entries.push_back(std::move(entry));
    }
    return generated;
  }

  StatusOr<Built> Build(const Generated& generated, const Target& target) override {
    TL_ASSIGN_OR_RETURN(cpu::Compiled compiled,
                        Compile(generated, target, cpu::CompileOutput::kObject));
    Built built;
    built.binary = std::move(compiled.object);
    built.log = std::move(compiled.log);
    TL_ASSIGN_OR_RETURN(built.compiler, CompilerIdentity(target));
    return built;
  }

  // "asm": what the processor runs; "llvm": the source; "llvm-opt": the source after optimisation.
  // The text is made anew: it differs from the binary where another compiler made that.
  StatusOr<std::string> Disassemble(const Generated& generated, std::string_view,
                                    const Target& target, std::string_view form) override {
    if (form == "llvm") return generated.source;
    if (form != "asm" && form != "llvm-opt") {
      return absl::InvalidArgumentError(
          absl::StrCat("a CPU program has no form '", form, "'; it has asm, llvm, llvm-opt"));
    }
    const auto output =
        form == "asm" ? cpu::CompileOutput::kAssembly : cpu::CompileOutput::kOptimizedIr;
    TL_ASSIGN_OR_RETURN(cpu::Compiled compiled, Compile(generated, target, output));
    return std::move(compiled.assembly);
  }

  StatusOr<std::unique_ptr<LoadedKernel>> Load(std::string_view binary,
                                               const std::vector<Entry>& entries,
                                               const Module& module, int ordinal) override {
    TL_RETURN_IF_ERROR(CheckOrdinal(ordinal));
    return cpu::LoadKernel(binary, entries, module, pool_, compiler_);
  }

  StatusOr<std::unique_ptr<DeviceSession>> OpenSession(int ordinal) override {
    TL_RETURN_IF_ERROR(CheckOrdinal(ordinal));
    return MakeHostSession();
  }

 private:
  StatusOr<cpu::Compiled> Compile(const Generated& generated, const Target& target,
                                  cpu::CompileOutput output) {
    TL_ASSIGN_OR_RETURN(const cpu::Processor processor, cpu::ProcessorOf(target));
    return compiler_->Compile(generated.source, processor.level, processor.FeatureText(), output);
  }

  std::shared_ptr<ThreadPool> pool_;
  std::shared_ptr<cpu::CompilerModule> compiler_;
};

}  // namespace

std::unique_ptr<Backend> MakeCpuBackend(const SearchPaths& paths, int threads) {
  return std::make_unique<CpuBackend>(paths, threads);
}

}  // namespace tl
