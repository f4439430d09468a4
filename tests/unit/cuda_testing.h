// What the tests of the CUDA backend share: tile programs taken all the way to CUDA C++, launches
// made of them, and results compared with the reference interpreter.
#ifndef TILEJIT_TESTS_UNIT_CUDA_TESTING_H_
#define TILEJIT_TESTS_UNIT_CUDA_TESTING_H_

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "backends/backend.h"
#include "backends/c_family/emit.h"
#include "backends/c_family/prelude.h"
#include "backends/cuda/dialect.h"
#include "backends/cuda/targets.h"
#include "backends/reference/compare.h"
#include "backends/reference/inputs.h"
#include "backends/reference/reference.h"
#include "ir/bind.h"
#include "ir/host_eval.h"
#include "ir/syntax.h"
#include "passes/pipeline.h"
#include "tests/unit/launch_params.h"

namespace tl::testing {

using Values = std::vector<std::pair<std::string, std::string>>;

// A program and the dims to run it with, one row per run.
struct CudaCase {
  std::string name;
  std::string text;
  Values values;
  std::vector<std::vector<int64_t>> dims;
  std::vector<int64_t> strides;
};

inline StatusOr<Module> BindText(std::string_view text, const Values& values) {
  TL_ASSIGN_OR_RETURN(const syntax::Program program, syntax::Parse(text));
  return Bind(program, BindOptions{.values = values, .target_class = "cuda"});
}

struct Lowered {
  Module tile;
  Module thread;
  Generated generated;
};

inline StatusOr<Lowered> LowerText(std::string_view text, const Values& values,
                                   const Target& target) {
  TL_ASSIGN_OR_RETURN(Module tile, BindText(text, values));
  TL_ASSIGN_OR_RETURN(Module thread, Lower(tile, target));
  TL_ASSIGN_OR_RETURN(Generated generated, EmitC(thread, target, CudaDialect()));
  return Lowered{std::move(tile), std::move(thread), std::move(generated)};
}

// The kernels alone, without the prelude.
inline std::string KernelText(const Generated& generated) {
  return std::string(WithoutPrelude(generated.source));
}

// Compares the outputs in host memory with the exact ones.
inline bool ExpectExact(const Lowered& program, const reference::GeneratedInputs& inputs,
                        const reference::Outputs& exact) {
  const Status guards = inputs.CheckGuards(program.tile);
  EXPECT_TRUE(guards.ok()) << guards;
  bool ok = guards.ok();
  for (const reference::Output& out : exact.tensors) {
    size_t at = 0;
    while (program.tile.operands[at] != out.id()) ++at;
    const Buffer& b = program.tile.buffer(out.id());
    const reference::Comparison c =
        reference::Compare(out, inputs.operands[at].data(), b.role == BufferRole::kOut);
    EXPECT_TRUE(c.ok()) << b.name << "+" << c.worst_at << ": " << c.actual << " instead of "
                        << c.expected << ", bound " << c.bound << "; " << c.mismatches
                        << " mismatches, " << c.strays << " strays of " << c.compared;
    ok = ok && c.ok();
  }
  return ok;
}

// Where the tests look for the compiler: TL_CUDA_PATH, TL_WHEEL_PATH and the usual places.
inline SearchPaths TestPaths() {
  SearchPaths paths;
  if (const char* root = std::getenv("TL_CUDA_PATH")) paths.cuda_roots.push_back(root);
  if (const char* roots = std::getenv("TL_WHEEL_PATH")) {
    for (std::string_view root : absl::StrSplit(roots, ':')) paths.wheel_roots.emplace_back(root);
  }
  if (const char* dirs = std::getenv("PATH")) {
    for (std::string_view dir : absl::StrSplit(dirs, ':')) paths.program_dirs.emplace_back(dir);
  }
  return paths;
}

}  // namespace tl::testing

#endif  // TILEJIT_TESTS_UNIT_CUDA_TESTING_H_
