// tl compile: a kernel, and any of the texts that it went through.
#include <unistd.h>

#include <cstdio>
#include <map>
#include <memory>
#include <string>

#include "command.h"

namespace cli {
namespace {

struct Emit {
  tl_text text;
  const char* target_prefix;  // the targets that have it; "" all
};
const std::map<std::string, Emit>& Emits() {
  static const auto& emits = *new std::map<std::string, Emit>{
      {"ir", {TL_TEXT_IR, ""}},           {"mapped", {TL_TEXT_MAPPED, ""}},
      {"thread", {TL_TEXT_THREAD, ""}},   {"source", {TL_TEXT_SOURCE, ""}},
      {"llvm", {TL_TEXT_SOURCE, "cpu"}},  {"asm", {TL_TEXT_ASSEMBLY, ""}},
      {"ptx", {TL_TEXT_ASSEMBLY, "sm_"}}, {"sass", {TL_TEXT_SASS, "sm_"}},
      {"binary", {TL_TEXT_BINARY, ""}},   {"report", {TL_TEXT_REPORT, ""}},
      {"log", {TL_TEXT_LOG, ""}}};
  return emits;
}

struct Options {
  std::string emit, output;
  bool stats = false;
};

const char* AccessName(tl_access access) {
  return access == TL_ACCESS_IN ? "in" : access == TL_ACCESS_OUT ? "out" : "inout";
}

tl_signature SignatureOf(tl_kernel* kernel) {
  tl_signature signature = Sized<tl_signature>();
  Check(tl_kernel_signature(kernel, &signature));
  return signature;
}

// What is printed without --emit: how to call the kernel.
std::string Summary(tl_kernel* kernel) {
  const tl_signature signature = SignatureOf(kernel);
  std::string text = std::string(signature.name) + " for " + signature.target + "\n";
  for (uint32_t i = 0; i < signature.num_tensors; ++i) {
    tl_tensor_info t = Sized<tl_tensor_info>();
    Check(tl_kernel_tensor(kernel, i, &t));
    text += std::string("  ") + AccessName(t.access) + " " + t.name + ": " +
            tl_dtype_name(t.dtype) + t.shape + "\n";
  }
  const auto names = [&](const char* what, auto name_of) {
    for (uint32_t i = 0; const char* name = name_of(kernel, i); ++i)
      text += std::string("  ") + what + " " + name + "\n";
  };
  names("dim", tl_kernel_dim_name);
  names("stride", tl_kernel_stride_name);
  names("scalar", tl_kernel_scalar_name);
  return text;
}

std::string TextFor(tl_kernel* kernel, const std::string& name) {
  if (name.empty()) return Summary(kernel);
  const Emit& emit = Emits().at(name);
  const std::string target = SignatureOf(kernel).target;
  if (target.rfind(emit.target_prefix, 0) != 0)
    throw UsageError("a kernel for '" + target + "' has no " + name);
  return KernelText(kernel, emit.text);
}

void Write(std::string text, const Options& options) {
  const bool to_stdout = options.output.empty() || options.output == "-";
  const bool binary = options.emit == "binary";
  if (to_stdout && binary && isatty(STDOUT_FILENO))
    throw UsageError("a binary on a terminal is of no use: give -o FILE");
  if (to_stdout && !binary && (text.empty() || text.back() != '\n')) text += "\n";
  WriteText(text, options.output);
}

int Run(Program& program, const Options& options) {
  Resolve(program);
  const Context context = MakeContext(program);
  const Kernel kernel = Compile(context.get(), program, 0);
  Write(TextFor(kernel.get(), options.emit), options);
  if (options.stats) std::fprintf(stderr, "%s\n", CacheStatsJson(context.get()).c_str());
  return kOk;
}

}  // namespace

void AddCompile(CLI::App& app, Session& session) {
  CLI::App* command = app.add_subcommand(
      "compile", "Compile a program (or take it from the cache) and print what it became");
  const auto options = std::make_shared<Options>();
  AddProgramOptions(*command, session.program);
  command
      ->add_option("--emit", options->emit,
                   "ir, mapped, thread, source, llvm (cpu), asm, ptx and sass (NVIDIA), binary, "
                   "report, log; without it, how the kernel is called")
      ->check(CLI::IsMember(Emits()))
      ->type_name("WHAT");
  command->add_option("-o,--output", options->output, "write there, not to standard output");
  command->add_flag("--stats", options->stats,
                    "print the cache counters of this process as JSON on stderr");
  SetExamples(*command,
              "  tl compile gemm -p t=f16 -p N=4096 -p K=4096\n"
              "  tl compile gemm --target sm_90a --emit source\n"
              "  tl compile gemm --target sm_80 --emit binary -o gemm.cubin\n"
              "  tl compile my_kernel.tl -p bm=128 --target cpu --emit llvm\n"
              "  tl compile gemm --stats 2> counters.json");
  command->callback([&session, options] {
    session.run = [&session, options] { return Run(session.program, *options); };
  });
}

}  // namespace cli
