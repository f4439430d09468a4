// The emulator as a backend: CUDA's source, run on the host. Development builds have the module
// that does the work; without it, or unasked (TL_EMULATE), there are no emulated devices.
#include "backends/backend.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "backends/c_family/emit.h"
#include "backends/cuda/dialect.h"
#include "backends/cuda/targets.h"
#include "backends/emulate/client/emulate_module.h"
#include "backends/emulate/client/tensor_map.h"
#include "backends/hip/dialect.h"
#include "backends/hip/targets.h"
#include "backends/host_session.h"
#include "ir/host_eval.h"

namespace tl {
namespace {

using emulate::EmulateModule;

constexpr std::string_view kPrefix = "emulate:";
constexpr char kCompiler[] = "clang++-19";
// One of each set of instructions.
constexpr std::array kArchs = {"sm_80",  "sm_75",  "sm_86",  "sm_89",
                               "sm_90a", "gfx90a", "gfx942", "gfx1100"};

// "1", or words: seed=N; random, eager or lazy (when asynchronous copies arrive).
StatusOr<tl_emulate_options> ParseOptions(std::string_view text) {
  tl_emulate_options options = {.seed = 1, .arrival = 0, .warp_size = 32};
  for (std::string_view word : absl::StrSplit(text, ',', absl::SkipEmpty())) {
    std::string_view seed = word;
    if (absl::ConsumePrefix(&seed, "seed=") && absl::SimpleAtoi(seed, &options.seed)) continue;
    if (word == "1") continue;
    const std::array<std::string_view, 3> arrivals = {"random", "eager", "lazy"};
    const auto found = std::find(arrivals.begin(), arrivals.end(), word);
    if (found == arrivals.end()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "TL_EMULATE is 1 or a list of seed=N and one of random, eager, lazy; not '", word, "'"));
    }
    options.arrival = static_cast<int>(found - arrivals.begin());
  }
  return options;
}

StatusOr<Target> TargetOf(std::string_view arch) {
  StatusOr<Target> found = FindCudaTarget(arch);
  if (!found.ok()) found = FindHipTarget(arch);
  TL_ASSIGN_OR_RETURN(Target target, std::move(found));
  target.identity = absl::StrCat(kPrefix, target.identity);
  target.code_of = std::exchange(target.backend, "emulate");
  return target;
}

const Dialect& DialectOf(const Target& target) {
  return target.code_of == HipDialect().language ? HipDialect() : CudaDialect();
}

// The bytes of a global tensor for given dims and strides; -1 where the shape does not tell.
int64_t BytesOf(const Module& module, const Buffer& b, const HostArgs& args) {
  if (!b.packed.empty()) return -1;
  int64_t last = 0;
  for (int i = 0; i < b.rank(); ++i) {
    const StatusOr<int64_t> extent = EvalHost(module, b.shape[i], args);
    const StatusOr<int64_t> stride = EvalHost(module, b.strides[i], args);
    if (!extent.ok() || !stride.ok()) return -1;
    if (*extent <= 0) return 0;
    last += (*extent - 1) * *stride;
  }
  return (last + 1) * static_cast<int64_t>(SizeOf(b.dtype));
}

class EmulatedKernel : public LoadedKernel {
 public:
  EmulatedKernel(const EmulateModule::Functions* functions, tl_emulate_program* program,
                 Module module, tl_emulate_options options)
      : functions_(functions), program_(program), module_(std::move(module)), options_(options) {}
  ~EmulatedKernel() override { functions_->free(program_); }

  Status Launch(int entry, int64_t blocks, const LaunchParams& params) override {
    const size_t pointers = module_.operands.size() + module_.workspaces.size();
    std::vector<int64_t> dims, strides;
    for (size_t i = 0; i < module_.dims.size(); ++i) dims.push_back(Int(params, pointers + i));
    for (size_t i = 0; i < module_.strides.size(); ++i) {
      strides.push_back(Int(params, pointers + dims.size() + i));
    }
    const HostArgs args = {.dims = dims, .strides = strides};
    std::vector<tl_emulate_operand> operands;
    for (const std::vector<BufferId>* ids : {&module_.operands, &module_.workspaces}) {
      for (BufferId id : *ids) {
        const Buffer& b = module_.buffer(id);
        void* data = nullptr;
        std::memcpy(&data, params.params[operands.size()], sizeof(data));
        operands.push_back({b.name.c_str(), data, BytesOf(module_, b, args)});
      }
    }
    char* error = nullptr;
    const int failed = functions_->run(program_, entry, blocks, params.params, operands.data(),
                                       static_cast<int>(operands.size()), &options_, &error);
    return failed != 0 ? functions_->Take(error) : absl::OkStatus();
  }

  Status Describe(const TensorMapRecipe& recipe, TensorMap& map) const override {
    return emulate::DescribeBox(recipe, map);
  }

 private:
  static int64_t Int(const LaunchParams& params, size_t i) {
    int64_t value = 0;
    std::memcpy(&value, params.params[i], sizeof(value));
    return value;
  }

  const EmulateModule::Functions* const functions_;
  tl_emulate_program* const program_;
  const Module module_;
  const tl_emulate_options options_;
};

class EmulateBackend : public Backend {
 public:
  EmulateBackend(const SearchPaths& paths, std::string wish)
      : module_(paths), wish_(std::move(wish)) {}

  std::string_view name() const override { return "emulate"; }

  StatusOr<Target> FindTarget(std::string_view name) const override {
    if (absl::ConsumePrefix(&name, kPrefix)) return TargetOf(name);
    return absl::NotFoundError(absl::StrCat("'", name, "' is no emulated target"));
  }
  std::vector<std::string> TargetNames() const override { return {}; }

  StatusOr<std::vector<DeviceInfo>> Devices() override {
    std::vector<DeviceInfo> devices;
    if (wish_.empty() || wish_ == "0" || !module_.Present()) return devices;
    TL_RETURN_IF_ERROR(ParseOptions(wish_).status());
    for (const char* arch : kArchs) {
      TL_ASSIGN_OR_RETURN(Target target, TargetOf(arch));
      DeviceInfo info;
      info.name = absl::StrCat("emulated ", arch);
      info.target = std::move(target);
      info.ordinal = static_cast<int>(devices.size());
      devices.push_back(std::move(info));
    }
    return devices;
  }

  std::string CodegenIdentity() const override {
    return absl::StrCat("emulate ", CudaCodegenHash(), " ", HipCodegenHash());
  }
  StatusOr<std::string> CompilerIdentity(const Target&) override { return module_.Identity(); }

  StatusOr<Generated> Generate(const Module& module, const Target& target,
                               const GenerateOptions&) override {
    return EmitC(module, target, DialectOf(target));
  }
  // The source is the binary: the host's compiler runs where it is loaded.
  StatusOr<Built> Build(const Generated& generated, const Target& target) override {
    TL_ASSIGN_OR_RETURN(std::string compiler, CompilerIdentity(target));
    return Built{.binary = generated.source, .compiler = std::move(compiler)};
  }
  StatusOr<std::string> Disassemble(const Generated&, std::string_view, const Target&,
                                    std::string_view form) override {
    return absl::InvalidArgumentError(absl::StrCat("emulated programs have no ", form));
  }

  StatusOr<std::unique_ptr<LoadedKernel>> Load(std::string_view binary,
                                               const std::vector<Entry>& entries,
                                               const Module& module, int ordinal) override {
    TL_ASSIGN_OR_RETURN(tl_emulate_options options, ParseOptions(wish_));
    TL_ASSIGN_OR_RETURN(const Target target, TargetOf(kArchs[static_cast<size_t>(ordinal)]));
    options.warp_size = target.warp_size;
    TL_ASSIGN_OR_RETURN(const EmulateModule::Functions* functions, module_.Open());
    std::vector<tl_emulate_entry> list;
    for (const Entry& e : entries) {
      list.push_back({e.symbol.c_str(), e.threads, e.groups, e.shared_bytes, e.producers,
                      e.persistent ? 1 : 0, e.cluster});
    }
    char* error = nullptr;
    tl_emulate_program* program = functions->build(
        std::string(DialectOf(target).language).c_str(), binary.data(), binary.size(), list.data(),
        static_cast<int>(list.size()), kCompiler, &error);
    if (program == nullptr) return functions->Take(error);
    return std::make_unique<EmulatedKernel>(functions, program, module, options);
  }
  StatusOr<std::unique_ptr<DeviceSession>> OpenSession(int) override { return MakeHostSession(); }

 private:
  EmulateModule module_;
  const std::string wish_;
};

}  // namespace

std::unique_ptr<Backend> MakeEmulateBackend(const SearchPaths& paths, std::string wish) {
  return std::make_unique<EmulateBackend>(paths, std::move(wish));
}

}  // namespace tl
