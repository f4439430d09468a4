// The interpreter behind the backend contract. Its "source" and "binary" are the bound program as
// text, so that it is cached, shown and reloaded like any other.
#include "backends/backend.h"

#include <cstdlib>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "backends/host_session.h"
#include "backends/reference/reference.h"
#include "ir/bind.h"
#include "ir/syntax.h"
#include "ir/unparse.h"

namespace tl {
namespace {

constexpr char kName[] = "reference";
constexpr char kIdentity[] = "reference interpreter 1";

Target ReferenceTarget() {
  Target target;
  target.name = target.identity = target.backend = kName;
  target.interprets = true;
  target.max_param_bytes = 0;
  return target;
}

class ReferenceKernel : public LoadedKernel {
 public:
  ReferenceKernel(Module module, int threads) : module_(std::move(module)), threads_(threads) {}

  Status Launch(int entry, int64_t blocks, const LaunchParams& params) override {
    (void)blocks;  // the interpreter knows its grid
    if (params.stream)
      return absl::InvalidArgumentError("the reference device has no streams; pass NULL");
    reference::Arguments arguments;
    void** next = params.params;
    auto pointers = [&next](std::vector<void*>& out, size_t count) {
      for (size_t i = 0; i < count; ++i) out.push_back(*static_cast<void**>(*next++));
    };
    auto ints = [&next](std::vector<int64_t>& out, size_t count) {
      for (size_t i = 0; i < count; ++i) out.push_back(*static_cast<int64_t*>(*next++));
    };
    pointers(arguments.operands, module_.operands.size());
    pointers(arguments.workspaces, module_.workspaces.size());
    ints(arguments.dims, module_.dims.size());
    ints(arguments.strides, module_.strides.size());
    for (VarId id : module_.scalars) {
      void* slot = *next++;
      switch (module_.var(id).type) {
        case ScalarType::kF32:
          arguments.scalars.emplace_back(double{*static_cast<float*>(slot)});
          break;
        case ScalarType::kF64:
          arguments.scalars.emplace_back(*static_cast<double*>(slot));
          break;
        default:
          arguments.scalars.emplace_back(*static_cast<int64_t*>(slot));
          break;
      }
    }
    return reference::RunRoundedLaunch(module_, entry, arguments, threads_);
  }

 private:
  const Module module_;
  const int threads_;
};

class ReferenceBackend : public Backend {
 public:
  explicit ReferenceBackend(int threads)
      : threads_(threads > 0 ? threads : static_cast<int>(std::thread::hardware_concurrency())) {}

  std::string_view name() const override { return kName; }
  StatusOr<Target> FindTarget(std::string_view name) const override {
    if (name == kName) return ReferenceTarget();
    return absl::NotFoundError("no target of the reference backend");
  }
  std::vector<std::string> TargetNames() const override { return {kName}; }

  StatusOr<std::vector<DeviceInfo>> Devices() override {
    DeviceInfo info;
    info.name = "reference interpreter";
    info.target = ReferenceTarget();
    info.units = threads_;
    return std::vector<DeviceInfo>{info};
  }

  std::string CodegenIdentity() const override { return kIdentity; }
  StatusOr<std::string> CompilerIdentity(const Target&) override { return std::string(kIdentity); }

  StatusOr<Generated> Generate(const Module& module, const Target&,
                               const GenerateOptions&) override {
    Generated out;
    out.language = "tl";
    out.source = ToText(module);
    for (size_t i = 0; i < module.launches.size(); ++i) {
      out.entries.push_back({absl::StrCat("launch", i), 1, module.launches[i].groups, 0});
    }
    return out;
  }

  StatusOr<Built> Build(const Generated& generated, const Target&) override {
    return Built{.binary = generated.source, .assembly = "", .log = "", .compiler = kIdentity};
  }

  StatusOr<std::string> Disassemble(const Generated&, std::string_view binary, const Target&,
                                    std::string_view form) override {
    if (form == "sass") return UnsupportedError({}, "the reference interpreter runs no GPU code");
    return std::string(binary);
  }

  // From the text and not from the caller's module: what ran once runs again from the cache.
  StatusOr<std::unique_ptr<LoadedKernel>> Load(std::string_view binary, const std::vector<Entry>&,
                                               const Module&, int) override {
    TL_ASSIGN_OR_RETURN(syntax::Program program, syntax::Parse(binary, syntax::kPrintedLimits));
    TL_ASSIGN_OR_RETURN(Module module, Bind(program, {}));
    return std::make_unique<ReferenceKernel>(std::move(module), threads_);
  }

  StatusOr<std::unique_ptr<DeviceSession>> OpenSession(int) override { return MakeHostSession(); }

 private:
  const int threads_;
};

}  // namespace

std::unique_ptr<Backend> MakeReferenceBackend(int threads) {
  return std::make_unique<ReferenceBackend>(threads);
}

}  // namespace tl
