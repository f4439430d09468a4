// Programs lowered for a GPU, run by the emulator, compared with the reference interpreter.
#ifndef TILEJIT_TESTS_EMULATE_EMULATE_TESTING_H_
#define TILEJIT_TESTS_EMULATE_EMULATE_TESTING_H_

#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "backends/emulate/client/tensor_map.h"
#include "backends/emulate/emulate.h"
#include "tests/unit/cuda_programs.h"

namespace tl::testing {

// Storage of the pointer arguments of a program's kernels, in their order.
inline std::vector<EmulatedOperand> OperandsOf(const reference::GeneratedInputs& inputs) {
  std::vector<EmulatedOperand> operands;
  const auto add = [&](const std::vector<reference::GuardedMemory>& memories,
                       std::string_view letter) {
    int number = 0;
    for (const auto& m : memories) {
      operands.push_back({absl::StrCat(letter, number++), m.data(), m.bytes()});
    }
  };
  add(inputs.operands, "a");
  add(inputs.workspaces, "w");
  return operands;
}

// All launches of a program, in order.
inline Status RunEmulated(const Module& thread, EmulatedProgram& emulated,
                          const std::vector<EmulatedOperand>& operands, const HostArgs& args,
                          const EmulateOptions& options, EmulateStats* stats = nullptr) {
  std::vector<void*> pointers;
  for (const EmulatedOperand& o : operands) pointers.push_back(const_cast<void*>(o.data));
  Params params(thread, std::move(pointers), args);
  for (size_t i = 0; i < thread.launches.size(); ++i) {
    TL_ASSIGN_OR_RETURN(const int64_t blocks, NumBlocks(thread, thread.launches[i], args));
    if (blocks == 0) continue;
    TL_RETURN_IF_ERROR(params.SetBoxes(thread, thread.launches[i], args, emulate::DescribeBox));
    TL_RETURN_IF_ERROR(
        emulated.Run(static_cast<int>(i), blocks, params.data(), options, operands, stats));
  }
  return absl::OkStatus();
}

struct CheckOptions {
  std::vector<uint64_t> seeds = {1, 2};
  std::vector<Arrival> arrivals = {Arrival::kRandom};
  EmulateStats* stats = nullptr;
};

// Builds and runs a case on every row of its dims and expects the reference's numbers.
inline void ExpectRightNumbers(const CudaCase& c, const Target& target,
                               const CheckOptions& options = {}) {
  SCOPED_TRACE(absl::StrCat(c.name, " for ", target.name,
                            target.register_fragments ? ", fragments in registers" : ""));
  const StatusOr<Lowered> program = LowerText(c.text, c.values, target);
  ASSERT_TRUE(program.ok()) << FormatSpan(DetailOf(program.status()).span) << " "
                            << program.status();
  auto emulated = EmulatedProgram::Build(program->generated, TL_HOST_COMPILER);
  ASSERT_TRUE(emulated.ok()) << emulated.status() << DetailOf(emulated.status()).log;
  for (const std::vector<int64_t>& dims : c.dims) {
    for (uint64_t seed : options.seeds) {
      for (Arrival arrival : options.arrivals) {
        SCOPED_TRACE(::testing::PrintToString(dims));
        auto inputs = reference::MakeInputs(program->tile, dims, c.strides, std::nullopt, seed);
        ASSERT_TRUE(inputs.ok()) << inputs.status();
        const auto exact = reference::RunExact(program->tile, inputs->arguments);
        ASSERT_TRUE(exact.ok()) << FormatSpan(DetailOf(exact.status()).span) << exact.status();
        const Status run =
            RunEmulated(program->thread, **emulated, OperandsOf(*inputs), inputs->arguments.host(),
                        {.seed = seed, .arrival = arrival}, options.stats);
        ASSERT_TRUE(run.ok()) << run << "\n" << program->generated.source;
        if (!ExpectExact(*program, *inputs, *exact)) {
          GTEST_FAIL() << KernelText(program->generated);
        }
      }
    }
  }
}

// The program as NVRTC builds it: nothing serialises its warpgroups' products, nothing spills. Its
// PTX is for the caller.
inline void ExpectBuilds(Backend& backend, const Generated& generated, const Target& target,
                         std::string& ptx) {
  const auto built = backend.Build(generated, target);
  ASSERT_TRUE(built.ok()) << built.status() << DetailOf(built.status()).log;
  EXPECT_FALSE(absl::StrContains(built->log, "C75")) << built->log;  // serialised
  const BuildFacts facts = backend.ReadBuild(built->binary, built->log, generated.entries, target);
  ASSERT_EQ(facts.entries.size(), generated.entries.size()) << built->log;
  for (const auto& entry : facts.entries) {
    EXPECT_EQ(entry.spill_store_bytes, 0);
    EXPECT_EQ(entry.stack_bytes, 0);
    EXPECT_GE(entry.blocks_per_unit, 1);
  }
  const auto text = backend.Disassemble(generated, "", target, "ptx");
  ASSERT_TRUE(text.ok()) << text.status();
  ptx = *text;
}

// A program of tests/programs/table.
inline std::string TableText(std::string_view program) {
  std::ifstream file(absl::StrCat(TL_SOURCE_DIR, "/tests/programs/table/", program, ".tl"));
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

inline std::string NameOf(std::string_view program, const Values& values) {
  return absl::StrCat(program, " ", absl::StrJoin(values, " ", absl::PairFormatter("=")));
}

// An architecture, its fragments in registers or not.
inline Target TargetFor(std::string_view name, bool registers) {
  Target target = *FindCudaTarget(name);
  target.register_fragments = registers;
  return target;
}

}  // namespace tl::testing

#endif  // TILEJIT_TESTS_EMULATE_EMULATE_TESTING_H_
