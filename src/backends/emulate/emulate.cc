#include "backends/emulate/emulate.h"

#include <dlfcn.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "backends/c_family/prelude.h"
#include "backends/emulate/machine.h"
#include "backends/emulate/texts.h"
#include "backends/hip/dialect.h"
#include "base/program.h"

namespace tl {
namespace {

constexpr int kMaxParams = 1024;  // of 4 bytes at least, in 4096 bytes

}  // namespace

// The lines keep their numbers. Unrolling would only cost the host's compiler time.
std::string EmulatedSource(const Generated& generated) {
  const std::string_view kernels = WithoutPrelude(generated.source);
  const std::string_view prelude(generated.source.data(), generated.source.size() - kernels.size());
  const auto first_line = std::count(prelude.begin(), prelude.end(), '\n') + 1;
  const bool atomics = absl::StrContains(kernels, "tl_atomic_");
  std::string text = absl::StrCat(atomics ? EmulatedAtomics() : "", "#line ", first_line, "\n",
                                  absl::StrReplaceAll(kernels, {{"#pragma unroll", "//"}}),
                                  EmulatorEntry(), "TlBody* const tl_bodies[] = {\n");
  for (const Entry& e : generated.entries)
    absl::StrAppend(&text, "    &tl_body<&", e.symbol, ">,\n");
  text += "};\n";
  const bool hip = generated.language == HipDialect().language;
  // The mathematical functions of HIP are the prelude's own: they are tried as well.
  const std::string primitives = absl::StrCat(EmulatedPrimitives(), hip ? EmulatedHip() : "",
                                              hip ? HipMaths() : EmulatedHopper());
  return absl::StrCat(EmulatorApi(), WithPrelude(primitives, text));
}

StatusOr<std::unique_ptr<EmulatedProgram>> EmulatedProgram::Build(const Generated& generated,
                                                                  const std::string& compiler) {
  const TemporaryDirectory dir("tl-emulate-");
  if (!dir.ok()) return absl::InternalError("no temporary directory can be made");
  if (!WriteFile(dir / "kernel.cc", EmulatedSource(generated))) {
    return absl::InternalError(absl::StrCat((dir / "kernel.cc").string(), " cannot be written"));
  }
  const int exit_status = RunProgram(
      {compiler, "-std=c++2b", "-O1", "-w", "-fPIC", "-shared", "-Wl,-Bsymbolic",
       "-fvisibility=hidden", "-fno-exceptions", "-fno-rtti", "-fno-asynchronous-unwind-tables",
       "-fno-strict-aliasing", "-fwrapv", "-ffp-contract=off", "-fno-math-errno",
       // Registers in flight are those of arrays whose scope may have ended.
       "-mllvm", "-no-stack-coloring", (dir / "kernel.cc").string(), "-o",
       (dir / "kernel.so").string()},
      dir / "log");
  if (exit_status != 0) {
    return MakeError(absl::StatusCode::kInternal,
                     absl::StrCat(compiler, " cannot compile the generated source for the host"),
                     {.native_code = exit_status, .log = ReadFile(dir / "log")});
  }
  void* library = dlopen((dir / "kernel.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return absl::InternalError(dlerror());
  return std::unique_ptr<EmulatedProgram>(new EmulatedProgram(library, generated.entries));
}

EmulatedProgram::EmulatedProgram(void* library, std::vector<Entry> entries)
    : library_(library),
      entries_(std::move(entries)),
      machine_(std::make_unique<emulate::Machine>()) {}

EmulatedProgram::~EmulatedProgram() { dlclose(library_); }

Status EmulatedProgram::Run(int entry, int64_t blocks, void** params, const EmulateOptions& options,
                            const std::vector<EmulatedOperand>& operands, EmulateStats* stats) {
  if (blocks < 1 || blocks > std::numeric_limits<int32_t>::max()) {
    return absl::InvalidArgumentError("a launch has at least one block");
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  const Entry& e = entries_[static_cast<size_t>(entry)];
  const auto get_entry = reinterpret_cast<TlGetEntry*>(dlsym(library_, "tl_entry"));
  std::vector<TlExtent> extents(kMaxParams, {"", 0, std::numeric_limits<uint64_t>::max()});
  for (size_t i = 0; i < operands.size(); ++i) {
    const auto begin = reinterpret_cast<uintptr_t>(operands[i].data);
    if (operands[i].bytes < 0) continue;
    extents[i] = {operands[i].name.c_str(), begin,
                  begin + static_cast<uint64_t>(operands[i].bytes)};
  }
  if (e.persistent) blocks = std::min<int64_t>(blocks, int64_t{options.residents} * e.cluster);
  const std::string error = machine_->Run(get_entry(entry, machine_->api()),
                                          {.blocks = blocks,
                                           .threads = e.threads,
                                           .groups = e.groups,
                                           .producers = e.producers,
                                           .shared_bytes = static_cast<int>(e.shared_bytes),
                                           .cluster = e.cluster},
                                          params, extents.data(), options, stats);
  if (error.empty()) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(e.symbol, ", ", error));
}

}  // namespace tl
