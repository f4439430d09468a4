// What a first compilation costs: our own passes, and NVRTC without its cache.
//
// Run with --benchmark_repetitions on a busy machine and read the least; cpu time is what counts.
// The first use of NVRTC in a process is printed apart, before the table.
#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "backends/backend.h"
#include "backends/c_family/emit.h"
#include "backends/cuda/dialect.h"
#include "backends/cuda/targets.h"
#include "ir/bind.h"
#include "ir/syntax.h"
#include "passes/pipeline.h"
#include "service/families.h"

namespace tl {
namespace {

template <typename T>
T OrDie(StatusOr<T> value) {
  if (!value.ok()) {
    std::fprintf(stderr, "%s\n%s\n", value.status().ToString().c_str(),
                 DetailOf(value.status()).log.c_str());
    std::exit(1);
  }
  return *std::move(value);
}

Target Sm80() { return OrDie(FindCudaTarget("sm_80")); }

struct Program {
  const char* name;
  const char* family;
  std::vector<std::pair<std::string, std::string>> values;
};

// The dims of the second gemm are fixed: no bounds are left in its code.
std::vector<Program> Programs() {
  return {{"gemm", "gemm", {}},
          {"gemm_fixed", "gemm", {{"M", "4096"}, {"N", "4096"}, {"K", "4096"}}},
          {"softmax", "softmax", {}},
          {"attention", "attention", {}}};
}

Module BoundOf(const Program& p) {
  const syntax::Program program = OrDie(syntax::Parse(std::string(FindFamily(p.family)->text)));
  return OrDie(Bind(program, {.values = p.values, .target_class = "cuda"}));
}

Generated SourceOf(const Module& module) {
  const Module lowered = OrDie(Lower(module, Sm80()));
  return OrDie(EmitC(lowered, Sm80(), CudaDialect()));
}

void BM_Bind(benchmark::State& state, const Program& program) {
  for (auto _ : state) benchmark::DoNotOptimize(BoundOf(program));
}

// Passes and source text.
void BM_Generate(benchmark::State& state, const Program& program) {
  const Module module = BoundOf(program);
  for (auto _ : state) benchmark::DoNotOptimize(SourceOf(module));
}

SearchPaths Paths() {
  SearchPaths paths;
  if (const char* root = std::getenv("TL_CUDA_PATH")) paths.cuda_roots.emplace_back(root);
  if (const char* roots = std::getenv("TL_WHEEL_PATH")) {
    for (std::string_view root : absl::StrSplit(roots, ':')) paths.wheel_roots.emplace_back(root);
  }
  return paths;
}

void BM_Nvrtc(benchmark::State& state, Backend& backend, const Program& program) {
  const Generated generated = SourceOf(BoundOf(program));
  for (auto _ : state) {
    const Built built = OrDie(backend.Build(generated, Sm80()));
    state.counters["cubin_bytes"] = static_cast<double>(built.binary.size());
  }
}

// Loading the library and compiling something trivial.
void PrintFirstUse(Backend& backend) {
  Generated trivial;
  trivial.source = "extern \"C\" __global__ void k() {}";
  for (const char* which : {"first", "second"}) {
    const auto begin = std::chrono::steady_clock::now();
    OrDie(backend.Build(trivial, Sm80()));
    const auto end = std::chrono::steady_clock::now();
    std::printf("NVRTC, an empty kernel, %s time: %.1f ms\n", which,
                std::chrono::duration<double, std::milli>(end - begin).count());
  }
}

void Register(Backend* nvrtc) {
  for (const Program& program : Programs()) {
    const std::string name = program.name;
    benchmark::RegisterBenchmark(("Bind/" + name).c_str(), BM_Bind, program)
        ->Unit(benchmark::kMillisecond);
    benchmark::RegisterBenchmark(("Generate/" + name).c_str(), BM_Generate, program)
        ->Unit(benchmark::kMillisecond);
    if (nvrtc == nullptr) continue;
    const auto run = [nvrtc](benchmark::State& state, const Program& p) {
      BM_Nvrtc(state, *nvrtc, p);
    };
    benchmark::RegisterBenchmark(("Nvrtc/" + name).c_str(), run, program)
        ->Unit(benchmark::kMillisecond);
  }
}

}  // namespace
}  // namespace tl

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  const std::unique_ptr<tl::Backend> backend = tl::MakeCudaBackend(tl::Paths());
  const bool compiler = backend->CompilerIdentity(tl::Sm80()).ok();
  if (compiler) {
    tl::PrintFirstUse(*backend);
  } else {
    std::printf("no NVRTC: set TL_CUDA_PATH or TL_WHEEL_PATH\n");
  }
  tl::Register(compiler ? backend.get() : nullptr);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
