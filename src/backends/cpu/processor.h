// Which x86-64 processor code is for: what this machine has, and the levels that can be named.
#ifndef TILEJIT_BACKENDS_CPU_PROCESSOR_H_
#define TILEJIT_BACKENDS_CPU_PROCESSOR_H_

#include <string>
#include <string_view>
#include <vector>

#include "backends/cpu/helpers.h"
#include "base/status.h"
#include "base/target.h"

namespace tl::cpu {

// A level ("x86-64-v3") and features beyond it ("avx512bf16"), as LLVM names them. The exact model
// is left out on purpose: machines of one kind share cached code.
struct Processor {
  std::string level;
  std::vector<std::string> features;  // sorted

  // "x86-64-v4:+avx512bf16,+avx512vnni"
  std::string Text() const;
  // "+avx512bf16,+avx512vnni"
  std::string FeatureText() const;
};

// Of this machine, by its own instructions; never loads LLVM.
const Processor& HostProcessor();
// "Intel(R) Xeon(R) ..."
std::string HostName();

// Inverse of Text(). INVALID_ARGUMENT for anything else.
StatusOr<Processor> ParseProcessor(std::string_view text);
// What code for `needed` uses and `host` lacks; empty: it runs.
std::string Missing(const Processor& needed, const Processor& host);

CpuFacts FactsOf(const Processor& processor);

// "cpu" (this machine) or "cpu:x86-64-v3"; NOT_FOUND otherwise.
StatusOr<Target> FindCpuTarget(std::string_view name);
std::vector<std::string> CpuTargetNames();
// The processor of a target made by FindCpuTarget.
StatusOr<Processor> ProcessorOf(const Target& target);

}  // namespace tl::cpu

#endif  // TILEJIT_BACKENDS_CPU_PROCESSOR_H_
