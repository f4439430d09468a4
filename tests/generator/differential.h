// One program through everything that can read or run it, compared with the reference interpreter.
#ifndef TILEJIT_TESTS_GENERATOR_DIFFERENTIAL_H_
#define TILEJIT_TESTS_GENERATOR_DIFFERENTIAL_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backends/backend.h"
#include "backends/reference/inputs.h"
#include "backends/reference/reference.h"
#include "base/status.h"
#include "ir/module.h"
#include "tests/generator/generator.h"

namespace tl::generator {

enum class Verdict : uint8_t {
  kAgrees,
  kRefused,  // the front end or a backend says that it cannot: not a fault, but counted
  kDiffers,  // other numbers, a crash avoided by a check, a text that reads back as another program
};

struct Outcome {
  Verdict verdict = Verdict::kAgrees;
  std::string where;    // "parse" "bind" "text" "reference" "nested" "cpu" "thread" "emulate"
  std::string message;  // for people
  std::string kind;     // of a refusal: the message without its names and numbers
  int64_t compared = 0;
  int64_t unbounded = 0;  // elements of which the error model says nothing
};

// Changes a module before (level Tile) and after (level Thread) the passes; false: there is nothing
// to change at that level.
using Mutation = std::function<bool(Module& module)>;

class Differential {
 public:
  // Of "nested" and "thread" (level Thread as a CPU and as a GPU gets it, interpreted: wild
  // accesses and races are reported), "cpu" (compiled) and "emulate" (CUDA source on the host, for
  // sm_80; "emulate:sm_90a": for another architecture). The
  // reference always runs, in both modes. Put "nested" before "cpu", whose wild accesses corrupt
  // the process. "cuda" needs a GPU.
  struct Places {
    std::string compiler, library;  // for "emulate" and "cpu"; empty: those of the build
  };
  explicit Differential(std::vector<std::string> backends, Places places = Places());

  Outcome Run(const Program& program) { return Run(program, nullptr); }
  // kRefused, with where "mutation", if no backend's code had anything to change.
  Outcome Run(const Program& program, const Mutation& mutation);

  // The module of the last program that bound.
  const Module* module() const { return module_.get(); }

 private:
  Outcome Texts(const Program& program);
  Outcome Reference(const Program& program);
  Outcome RunOn(const std::string& backend, const Program& program, const Mutation& mutation);
  StatusOr<std::string> RunCpu(const Module& thread, const reference::GeneratedInputs& inputs);
  StatusOr<std::string> RunCuda(const Module& thread, const reference::GeneratedInputs& inputs);
  StatusOr<std::string> RunThreads(const Module& thread, const reference::GeneratedInputs& inputs,
                                   int threads, uint64_t seed);
  StatusOr<std::string> RunEmulated(const Module& thread, const Target& target,
                                    const reference::GeneratedInputs& inputs, uint64_t seed);
  StatusOr<Target> TargetOf(const std::string& backend) const;
  StatusOr<reference::GeneratedInputs> Inputs(const Program& program) const;
  // Empty if the outputs are right.
  std::string CompareAll(const reference::GeneratedInputs& inputs, Outcome* outcome) const;

  std::vector<std::string> backends_;
  const std::string compiler_;
  std::unique_ptr<Backend> cpu_, cuda_;
  Target cpu_target_, thread_target_, nested_target_, cuda_target_, gpu_target_;
  std::unique_ptr<Module> module_;
  std::unique_ptr<reference::Outputs> exact_;
};

// The program with as many statements and declarations left out as still give an outcome of the
// same verdict at the same place.
Program Minimize(const Program& program, const Outcome& outcome,
                 const std::function<Outcome(const Program&)>& run);

// "`-p`s, dims and the text", to be pasted into a report.
std::string Describe(const Program& program);

}  // namespace tl::generator

#endif  // TILEJIT_TESTS_GENERATOR_DIFFERENTIAL_H_
