// Text to object: parse, verify, optimise, generate code.

#include <memory>
#include <mutex>
#include <string>

#include "backends/cpu/module/bytes.h"
#include "backends/cpu/module/guard.h"
#include "backends/cpu/module/interface.h"
#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/Transforms/Utils/Cloning.h"

namespace tl_cpu {
namespace {

struct Job {
  llvm::StringRef ir;
  std::string cpu;
  std::string features;
  tl_cpu_compile_options options;
  std::string object;
  std::string assembly;
  std::string log;  // warnings
};

void InitializeOnce() {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
  });
}

// Errors of the back end arrive here instead of on stderr; remarks are of no interest.
class Diagnostics : public llvm::DiagnosticHandler {
 public:
  explicit Diagnostics(std::string* warnings, std::string* errors)
      : warnings_(warnings), errors_(errors) {}
  bool handleDiagnostics(const llvm::DiagnosticInfo& info) override {
    if (info.getSeverity() > llvm::DS_Warning) return true;
    std::string* out = info.getSeverity() == llvm::DS_Error ? errors_ : warnings_;
    // "loop not vectorized" is how a hint that does not apply is reported: nothing to act on.
    if (info.getKind() == llvm::DK_OptimizationFailure) return true;
    llvm::raw_string_ostream stream(*out);
    llvm::DiagnosticPrinterRawOStream printer(stream);
    info.print(printer);
    stream << '\n';
    return true;
  }

 private:
  std::string* warnings_;
  std::string* errors_;
};

std::unique_ptr<llvm::TargetMachine> MakeMachine(const Job& job, std::string* error) {
  const std::string triple = llvm::sys::getDefaultTargetTriple();
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(triple, *error);
  if (target == nullptr) return nullptr;
  llvm::TargetOptions options;
  // A multiply-add is formed only where the text carries the contract flag.
  options.AllowFPOpFusion = llvm::FPOpFusion::Standard;
  // Sections per function would only make the object larger.
  options.FunctionSections = false;
  const auto level = llvm::CodeGenOpt::getLevel(job.options.opt_level);
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(
      triple, job.cpu, job.features, options, llvm::Reloc::PIC_, llvm::CodeModel::Small,
      level.value_or(llvm::CodeGenOptLevel::Default), /*JIT=*/false));
}

llvm::OptimizationLevel LevelOf(int level) {
  switch (level) {
    case 0:
      return llvm::OptimizationLevel::O0;
    case 1:
      return llvm::OptimizationLevel::O1;
    case 2:
      return llvm::OptimizationLevel::O2;
    default:
      return llvm::OptimizationLevel::O3;
  }
}

void Optimize(llvm::Module& module, llvm::TargetMachine& machine, int opt_level) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager sccs;
  llvm::ModuleAnalysisManager modules;
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = opt_level > 1;
  // Kernels are loops over whole tiles: unrolling them before they are vectorised would only get in
  // the way, and there is no straight-line code worth packing. Loops that ask for it still unroll.
  tuning.LoopUnrolling = false;
  tuning.SLPVectorization = false;
  llvm::PassBuilder builder(&machine, tuning);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(sccs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, sccs, modules);
  const llvm::OptimizationLevel level = LevelOf(opt_level);
  llvm::ModulePassManager passes = opt_level == 0 ? builder.buildO0DefaultPipeline(level)
                                                  : builder.buildPerModuleDefaultPipeline(level);
  passes.run(module, modules);
}

std::string EmitFile(llvm::Module& module, llvm::TargetMachine& machine, llvm::CodeGenFileType type,
                     std::string* out) {
  llvm::SmallVector<char, 0> buffer;
  llvm::raw_svector_ostream stream(buffer);
  llvm::legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, stream, nullptr, type, /*DisableVerify=*/true)) {
    return "the target cannot emit this kind of file";
  }
  passes.run(module);
  out->assign(buffer.data(), buffer.size());
  return "";
}

std::unique_ptr<llvm::Module> Parse(const Job& job, llvm::LLVMContext& context,
                                    std::string* error) {
  llvm::SMDiagnostic diagnostic;
  llvm::MemoryBufferRef text(job.ir, "program");
  std::unique_ptr<llvm::Module> module = llvm::parseAssembly(text, diagnostic, context);
  llvm::raw_string_ostream stream(*error);
  if (module == nullptr) {
    diagnostic.print("program", stream, /*ShowColors=*/false);
    return nullptr;
  }
  if (llvm::verifyModule(*module, &stream)) return nullptr;
  return module;
}

std::string EmitAssembly(llvm::Module& module, llvm::TargetMachine& machine, std::string* out) {
  // The code generator changes the module, and the object is still to come.
  std::unique_ptr<llvm::Module> copy = llvm::CloneModule(module);
  return EmitFile(*copy, machine, llvm::CodeGenFileType::AssemblyFile, out);
}

std::string Compile(Job& job) {
  InitializeOnce();
  std::string error;
  llvm::LLVMContext context;
  context.setDiagnosticHandler(std::make_unique<Diagnostics>(&job.log, &error));
  std::unique_ptr<llvm::Module> module = Parse(job, context, &error);
  if (module == nullptr) return error.empty() ? "the program does not parse" : error;
  std::unique_ptr<llvm::TargetMachine> machine = MakeMachine(job, &error);
  if (machine == nullptr) return error.empty() ? "no such target" : error;
  module->setTargetTriple(machine->getTargetTriple().str());
  module->setDataLayout(machine->createDataLayout());
  Optimize(*module, *machine, job.options.opt_level);
  if (job.options.want_optimized) {
    llvm::raw_string_ostream(job.assembly) << *module;
  } else if (job.options.want_assembly) {
    error += EmitAssembly(*module, *machine, &job.assembly);
  }
  if (job.options.want_object) {
    error += EmitFile(*module, *machine, llvm::CodeGenFileType::ObjectFile, &job.object);
  }
  return error;
}

}  // namespace
}  // namespace tl_cpu

int32_t tl_cpu_compile(const char* ir, size_t ir_size, const char* cpu, const char* features,
                       const tl_cpu_compile_options* options, tl_cpu_bytes* object,
                       tl_cpu_bytes* assembly, tl_cpu_bytes* log) {
  tl_cpu::GiveBytes("", object);
  tl_cpu::GiveBytes("", assembly);
  tl_cpu::GiveBytes("", log);
  if (ir == nullptr || cpu == nullptr || options == nullptr ||
      options->struct_size < sizeof(tl_cpu_compile_options)) {
    tl_cpu::GiveBytes("invalid arguments", log);
    return 1;
  }
  std::string error = tl_cpu::Guarded([&]() -> std::string {
    // The parser wants a terminating zero byte.
    const std::string text(ir, ir_size);
    tl_cpu::Job job{text, cpu, features ? features : "", *options, {}, {}, {}};
    std::string message = tl_cpu::Compile(job);
    if (!message.empty()) return message;
    tl_cpu::GiveBytes(job.object, object);
    tl_cpu::GiveBytes(job.assembly, assembly);
    tl_cpu::GiveBytes(job.log, log);
    return "";
  });
  if (error.empty()) return 0;
  tl_cpu::GiveBytes(error, log);
  return 1;
}
