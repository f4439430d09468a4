#include "tests/generator/differential.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "backends/c_family/emit.h"
#include "backends/cuda/dialect.h"
#include "backends/cuda/targets.h"
#include "backends/emulate/client/tensor_map.h"
#include "backends/emulate/emulate.h"
#include "backends/reference/compare.h"
#include "ir/bind.h"
#include "ir/host_eval.h"
#include "ir/syntax.h"
#include "ir/unparse.h"
#include "passes/pipeline.h"
#include "service/environment.h"
#include "tests/unit/launch_params.h"
#include "tests/unit/thread_eval.h"

namespace tl::generator {
namespace {

constexpr int kThreads = 8;  // of a group, in "thread"; "nested" has one

// The message without what differs from program to program: quoted names and numbers.
std::string KindOf(std::string_view message) {
  std::string kind;
  for (size_t i = 0; i < message.size() && kind.size() < 100; ++i) {
    const char c = message[i];
    const size_t end = c == '\'' ? message.find('\'', i + 1) : std::string_view::npos;
    if (end != std::string_view::npos) {
      kind += "'…'";
      i = end;
    } else if (std::isdigit(static_cast<unsigned char>(c))) {
      if (kind.empty() || kind.back() != '#') kind += '#';
    } else {
      kind += c;
    }
  }
  return kind;
}

Outcome Refused(std::string where, const Status& status) {
  Outcome o{Verdict::kRefused, std::move(where),
            absl::StrCat(FormatSpan(DetailOf(status).span), " ", status.message())};
  o.kind = KindOf(status.message());
  return o;
}

Outcome Differs(std::string where, std::string message) {
  return {Verdict::kDiffers, std::move(where), std::move(message)};
}

Outcome Differs(std::string where, const Status& status) {
  return Differs(std::move(where), absl::StrCat(FormatSpan(DetailOf(status).span), " ",
                                                status.ToString(), "\n", DetailOf(status).log));
}

// What a backend may say no to.
bool MayRefuse(const Status& s) {
  return s.code() == absl::StatusCode::kUnimplemented ||
         s.code() == absl::StatusCode::kResourceExhausted;
}

Target ThreadTarget(bool simt, int threads) {
  Target t;
  t.name = "threads";
  t.simt = simt;
  t.channels = true;
  t.default_threads = threads;
  return t;
}

}  // namespace

Differential::Differential(std::vector<std::string> backends, Places places)
    : backends_(std::move(backends)),
      compiler_(places.compiler.empty() ? TL_HOST_COMPILER : places.compiler),
      thread_target_(ThreadTarget(true, kThreads)),
      nested_target_(ThreadTarget(false, 1)) {
  SearchPaths paths = ReadEnvironment().paths;
  paths.library_dir = places.library.empty() ? TL_LIBRARY_DIR : places.library;
  cpu_ = MakeCpuBackend(paths, 2);
  if (StatusOr<Target> t = cpu_->FindTarget("cpu"); t.ok()) cpu_target_ = *std::move(t);
  if (StatusOr<Target> t = FindCudaTarget("sm_80"); t.ok()) cuda_target_ = *std::move(t);
  cuda_target_.default_threads = 32;
  cuda_ = MakeCudaBackend(paths);
  gpu_target_ = cuda_target_;
  if (auto devices = cuda_->Devices(); devices.ok() && !devices->empty()) {
    gpu_target_ = devices->front().target;
  }
}

StatusOr<reference::GeneratedInputs> Differential::Inputs(const Program& program) const {
  return reference::MakeInputs(*module_, program.dims, program.strides, std::nullopt, program.seed);
}

// Everything that turns a program into text and back.
Outcome Differential::Texts(const Program& program) {
  const StatusOr<syntax::Program> parsed = syntax::Parse(program.text);
  if (!parsed.ok()) return Refused("parse", parsed.status());
  const std::string printed = syntax::Print(*parsed);
  const StatusOr<syntax::Program> again = syntax::Parse(printed);
  if (!again.ok()) return Differs("text", again.status());
  if (syntax::Print(*again) != printed)
    return Differs("text", "printed and parsed, it prints as another text");
  StatusOr<Module> bound = Bind(*parsed, {.values = program.values});
  if (!bound.ok()) return Refused("bind", bound.status());
  module_ = std::make_unique<Module>(*std::move(bound));
  const std::string canonical = CanonicalText(*module_);
  const StatusOr<syntax::Program> unparsed = syntax::Parse(syntax::Print(Unparse(*module_)));
  if (!unparsed.ok()) return Differs("text", unparsed.status());
  const StatusOr<Module> rebound = Bind(*unparsed, {});
  if (!rebound.ok()) return Differs("text", rebound.status());
  if (CanonicalText(*rebound) != canonical)
    return Differs("text", "unparsed and bound, it is another program");
  const StatusOr<Module> of_printed = Bind(*again, {.values = program.values});
  if (!of_printed.ok() || CanonicalText(*of_printed) != canonical) {
    return Differs("text", "printed and bound, it is another program");
  }
  return {};
}

std::string Differential::CompareAll(const reference::GeneratedInputs& inputs,
                                     Outcome* outcome) const {
  if (const Status s = inputs.CheckGuards(*module_); !s.ok()) return std::string(s.message());
  for (const reference::Output& out : exact_->tensors) {
    size_t at = 0;
    while (module_->operands[at] != out.id()) ++at;
    const Buffer& b = module_->buffer(out.id());
    const reference::Comparison c =
        reference::Compare(out, inputs.operands[at].data(), b.role == BufferRole::kOut);
    outcome->compared += c.compared;
    outcome->unbounded += c.unbounded;
    if (c.ok()) continue;
    return absl::StrCat(reference::ElementName(*module_, out.id(), inputs.arguments.host(),
                                               std::max<int64_t>(c.worst_at, 0)),
                        " is ", c.actual, " instead of ", c.expected, ", bound ", c.bound, "; ",
                        c.mismatches, " of ", c.compared, " differ, ", c.strays, " strays");
  }
  return "";
}

Outcome Differential::Reference(const Program& program) {
  StatusOr<reference::GeneratedInputs> inputs = Inputs(program);
  if (!inputs.ok()) return Refused("inputs", inputs.status());
  StatusOr<reference::Outputs> exact = reference::RunExact(*module_, inputs->arguments);
  if (!exact.ok()) return Refused("reference", exact.status());
  exact_ = std::make_unique<reference::Outputs>(*std::move(exact));
  if (const Status s = reference::RunRounded(*module_, inputs->arguments); !s.ok())
    return Differs("reference", s);
  Outcome outcome;
  const std::string wrong = CompareAll(*inputs, &outcome);
  return wrong.empty() ? outcome : Differs("reference", wrong);
}

StatusOr<std::string> Differential::RunCpu(const Module& thread,
                                           const reference::GeneratedInputs& inputs) {
  TL_ASSIGN_OR_RETURN(const Generated generated, cpu_->Generate(thread, cpu_target_, {}));
  TL_ASSIGN_OR_RETURN(const Built built, cpu_->Build(generated, cpu_target_));
  TL_ASSIGN_OR_RETURN(const auto kernel, cpu_->Load(built.binary, generated.entries, thread, 0));
  testing::Params params(thread, testing::PointersOf(inputs.arguments), inputs.arguments.host());
  for (size_t i = 0; i < thread.launches.size(); ++i) {
    TL_ASSIGN_OR_RETURN(const int64_t blocks,
                        testing::NumBlocks(thread, thread.launches[i], inputs.arguments.host()));
    if (blocks == 0) continue;
    TL_RETURN_IF_ERROR(
        kernel->Launch(static_cast<int>(i), blocks, {params.data(), params.size(), nullptr}));
  }
  return std::string();
}

// On the first GPU; its results replace the host's memory, guards included.
StatusOr<std::string> Differential::RunCuda(const Module& thread,
                                            const reference::GeneratedInputs& inputs) {
  TL_ASSIGN_OR_RETURN(const Generated generated, cuda_->Generate(thread, gpu_target_, {}));
  TL_ASSIGN_OR_RETURN(const Built built, cuda_->Build(generated, gpu_target_));
  TL_ASSIGN_OR_RETURN(const auto kernel, cuda_->Load(built.binary, generated.entries, thread, 0));
  TL_ASSIGN_OR_RETURN(const auto session, cuda_->OpenSession(0));
  std::vector<const reference::GuardedMemory*> memories;
  for (const auto& m : inputs.operands) memories.push_back(&m);
  for (const auto& m : inputs.workspaces) memories.push_back(&m);
  std::vector<void*> blocks, pointers;
  for (const reference::GuardedMemory* m : memories) {
    const auto bytes = static_cast<size_t>(m->whole_bytes());
    TL_ASSIGN_OR_RETURN(void* block, session->Allocate(bytes));
    TL_RETURN_IF_ERROR(session->CopyIn(block, m->whole(), bytes));
    blocks.push_back(block);
    pointers.push_back(static_cast<uint8_t*>(block) + reference::GuardedMemory::kGuard);
  }
  testing::Params params(thread, std::move(pointers), inputs.arguments.host());
  for (size_t i = 0; i < thread.launches.size(); ++i) {
    TL_ASSIGN_OR_RETURN(const int64_t count,
                        testing::NumBlocks(thread, thread.launches[i], inputs.arguments.host()));
    if (count == 0) continue;
    TL_RETURN_IF_ERROR(params.SetBoxes(thread, thread.launches[i], inputs.arguments.host(),
                                       [&](const TensorMapRecipe& recipe, TensorMap& map) {
                                         return kernel->Describe(recipe, map);
                                       }));
    TL_RETURN_IF_ERROR(kernel->Launch(static_cast<int>(i), count,
                                      {params.data(), params.size(), session->stream()}));
  }
  TL_RETURN_IF_ERROR(session->Synchronize());
  for (size_t i = 0; i < memories.size(); ++i) {
    TL_RETURN_IF_ERROR(session->CopyOut(const_cast<uint8_t*>(memories[i]->whole()), blocks[i],
                                        static_cast<size_t>(memories[i]->whole_bytes())));
    session->Free(blocks[i]);
  }
  return std::string();
}

StatusOr<std::string> Differential::RunThreads(const Module& thread,
                                               const reference::GeneratedInputs& inputs,
                                               int threads, uint64_t seed) {
  const reference::Arguments& a = inputs.arguments;
  const testing::ThreadEvalArgs args{a.operands, a.workspaces, a.dims, a.strides, a.scalars};
  return testing::ThreadEval(thread, args, threads, seed).Run();
}

StatusOr<std::string> Differential::RunEmulated(const Module& thread, const Target& target,
                                                const reference::GeneratedInputs& inputs,
                                                uint64_t seed) {
  TL_ASSIGN_OR_RETURN(const Generated generated, EmitC(thread, target, CudaDialect()));
  TL_ASSIGN_OR_RETURN(const auto program, EmulatedProgram::Build(generated, compiler_));
  testing::Params params(thread, testing::PointersOf(inputs.arguments), inputs.arguments.host());
  for (size_t i = 0; i < thread.launches.size(); ++i) {
    TL_ASSIGN_OR_RETURN(const int64_t blocks,
                        testing::NumBlocks(thread, thread.launches[i], inputs.arguments.host()));
    if (blocks == 0) continue;
    TL_RETURN_IF_ERROR(
        params.SetBoxes(thread, thread.launches[i], inputs.arguments.host(), emulate::DescribeBox));
    const Status s = program->Run(static_cast<int>(i), blocks, params.data(), seed);
    if (!s.ok()) return std::string(s.message());
  }
  return std::string();
}

StatusOr<Target> Differential::TargetOf(const std::string& backend) const {
  if (backend == "cpu") return cpu_target_;
  if (backend == "cuda") return gpu_target_;
  if (backend == "nested") return nested_target_;
  if (backend == "thread") return thread_target_;
  if (backend == "emulate") return cuda_target_;
  std::string_view arch = backend;
  if (!absl::ConsumePrefix(&arch, "emulate:")) {
    return absl::InvalidArgumentError(absl::StrCat("there is no backend ", backend));
  }
  TL_ASSIGN_OR_RETURN(Target target, FindCudaTarget(std::string(arch)));
  target.default_threads = cuda_target_.default_threads;
  return target;
}

Outcome Differential::RunOn(const std::string& backend, const Program& program,
                            const Mutation& mutation) {
  const StatusOr<Target> found = TargetOf(backend);
  if (!found.ok()) return Differs(backend, found.status());
  const Target& target = *found;
  Module tile = *module_;
  // However many threads a program asks for, these run it: barriers in memory count them.
  if (backend == "thread") {
    for (Launch& launch : tile.launches) launch.threads = kThreads;
  }
  bool changed = mutation && mutation(tile);
  StatusOr<Module> thread = Lower(tile, target);
  if (!thread.ok())
    return MayRefuse(thread.status()) ? Refused(backend, thread.status())
                                      : Differs(backend, thread.status());
  changed = (mutation && mutation(*thread)) || changed;
  if (mutation && !changed) return {Verdict::kRefused, "mutation", "", "nothing to change"};
  StatusOr<reference::GeneratedInputs> inputs = Inputs(program);
  if (!inputs.ok()) return Refused("inputs", inputs.status());
  const StatusOr<std::string> run =
      backend == "cpu"    ? RunCpu(*thread, *inputs)
      : backend == "cuda" ? RunCuda(*thread, *inputs)
      : absl::StartsWith(backend, "emulate")
          ? RunEmulated(*thread, target, *inputs, program.seed)
          : RunThreads(*thread, *inputs, backend == "nested" ? 1 : kThreads, program.seed);
  if (!run.ok())
    return MayRefuse(run.status()) ? Refused(backend, run.status())
                                   : Differs(backend, run.status());
  if (!run->empty()) return Differs(backend, *run);
  Outcome outcome;
  const std::string wrong = CompareAll(*inputs, &outcome);
  return wrong.empty() ? outcome : Differs(backend, wrong);
}

Outcome Differential::Run(const Program& program, const Mutation& mutation) {
  Outcome outcome = Texts(program);
  if (outcome.verdict != Verdict::kAgrees) return outcome;
  outcome = Reference(program);
  if (outcome.verdict != Verdict::kAgrees) return outcome;
  Outcome refused;
  bool changed = !mutation;
  for (const std::string& backend : backends_) {
    const Outcome o = RunOn(backend, program, mutation);
    if (o.verdict == Verdict::kDiffers) return o;
    if (o.where != "mutation") changed = true;
    if (o.verdict == Verdict::kRefused && o.where != "mutation") refused = o;
  }
  if (!changed) return {Verdict::kRefused, "mutation", "", "nothing to change"};
  return refused.verdict == Verdict::kRefused ? refused : outcome;
}

std::string Describe(const Program& program) {
  std::string out = absl::StrCat("# seed ", program.seed);
  if (!program.values.empty())
    absl::StrAppend(&out, " with ", absl::StrJoin(program.values, " ", absl::PairFormatter("=")));
  absl::StrAppend(&out, " dims [", absl::StrJoin(program.dims, ", "), "] strides [",
                  absl::StrJoin(program.strides, ", "), "]\n", program.text);
  return out;
}

}  // namespace tl::generator
