// What compile, check and bench have in common: a program, its parameters, where it runs, the dims
// of a launch.
#ifndef TILEJIT_BINDINGS_CLI_PROGRAM_H_
#define TILEJIT_BINDINGS_CLI_PROGRAM_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "library.h"

namespace cli {

using NamedValues = std::vector<std::pair<std::string, std::string>>;

struct Program {
  // As given on the command line.
  std::string name;
  std::vector<std::string> param_texts;
  std::vector<std::string> dim_texts;
  std::string backend, target;
  int64_t shared_budget = 0;
  std::vector<std::string> packs;
  bool sealed = false;

  // After Resolve().
  bool is_family = false;
  std::string file;    // as errors name it
  std::string source;  // the text, also of a family
  NamedValues params, dims;
};

// The program and its parameters.
void AddProgramOptions(CLI::App& app, Program& program);
// Besides, what a command that runs kernels needs: --backend, --dim.
void AddRunOptions(CLI::App& app, Program& program);

// --target NAME,NAME... (repeatable).
void AddTargetsOption(CLI::App& app, std::vector<std::string>& targets, const std::string& help);

// What is wrong with the text of --target or --gpu, as CLI11 wants it; "": nothing.
std::string CheckTargetName(const std::string& name);

// A file, or standard input for "-"; "" if it cannot be read.
std::string ReadText(const std::string& path);

// A plan takes the place of a program, for messages that point into it; UsageError if it cannot be
// read.
void ReadPlan(const std::string& path, Program& program);
// Where files lie that it names by relative paths.
std::string DirectoryOf(const std::string& path);

// Reads the text and takes NAME=VALUE apart; UsageError if that cannot be done.
void Resolve(Program& program);

// With the program's packs, sealed if it says so.
Context MakeContext(const Program& program);

// The device that the options name, the best one if they name none.
int32_t ChooseDevice(tl_context* context, const Program& program);
// The program as tl.h takes it. Points into the program.
struct CompileOptions {
  CompileOptions(tl_context* context, const Program& program, int32_t device);
  CompileOptions(const CompileOptions&) = delete;
  CompileOptions& operator=(const CompileOptions&) = delete;
  tl_compile_options options = Sized<tl_compile_options>();
  std::vector<tl_param> params;
};
// Compiles for the target if one is given, else for `device`.
Kernel Compile(tl_context* context, const Program& program, int32_t device);

// Dims of a launch, in the kernel's order. Those that --dim leaves out get a small default, noted
// on stderr.
std::vector<int64_t> LaunchDims(const tl_kernel* kernel, const Program& program);
// "M=128 N=72": the dims of a launch and those fixed when compiling.
std::string DimsText(const tl_kernel* kernel, const std::vector<int64_t>& dims,
                     const Program& program);

}  // namespace cli

#endif  // TILEJIT_BINDINGS_CLI_PROGRAM_H_
