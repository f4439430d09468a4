#include "backends/cpu/kernel.h"

#include <atomic>
#include <utility>

#include "absl/strings/str_cat.h"
#include "backends/cpu/arena.h"
#include "backends/cpu/emit_llvm.h"
#include "backends/cpu/float_mode.h"
#include "backends/cpu/group_team.h"
#include "backends/cpu/maths.h"
#include "backends/cpu/object_loader.h"
#include "backends/cpu/processor.h"
#include "backends/cpu/runtime.h"

namespace tl::cpu {
namespace {

// Blocks per chunk: several chunks per thread, so that threads finish together.
constexpr int64_t kChunksPerThread = 8;

// Code in memory, whichever linker put it there.
struct Code {
  std::unique_ptr<LoadedObject> object;
  std::unique_ptr<CompilerModule::Image> image;

  void* Symbol(const std::string& name) const {
    return object ? object->Symbol(name) : image->Symbol(name.c_str());
  }
};

class CpuKernel : public LoadedKernel {
 public:
  struct Function {
    KernelFunction run;
    Entry entry;
  };

  CpuKernel(Code code, std::vector<Function> functions, std::vector<int64_t> depths,
            std::shared_ptr<ThreadPool> pool, std::shared_ptr<CompilerModule> compiler)
      : compiler_(std::move(compiler)),
        code_(std::move(code)),
        functions_(std::move(functions)),
        depths_(std::move(depths)),
        pool_(std::move(pool)) {}

  Status Launch(int entry, int64_t blocks, const LaunchParams& params) override {
    if (entry < 0 || entry >= static_cast<int>(functions_.size()) || blocks < 1) {
      return absl::InternalError(
          absl::StrCat("launch of entry ", entry, " with ", blocks, " blocks"));
    }
    if (params.stream != nullptr) {
      return absl::InvalidArgumentError("a CPU kernel runs at once: the stream must be null");
    }
    const Function& f = functions_[entry];
    return f.entry.groups > 1 ? LaunchGroups(f, blocks, params) : LaunchBlocks(f, blocks, params);
  }

 private:
  Status LaunchBlocks(const Function& f, int64_t blocks, const LaunchParams& params) {
    std::atomic<bool> failed{false};
    auto run = [&](int64_t begin, int64_t end) {
      const DefaultFloatMode mode;
      void* arena = ThreadArena().Get(f.entry.shared_bytes);
      if (arena == nullptr || f.run(params.params, begin, end, arena, 0, nullptr) != 0) {
        failed.store(true, std::memory_order_relaxed);
      }
    };
    const int64_t chunks = kChunksPerThread * pool_->threads();
    pool_->ParallelFor(blocks, (blocks + chunks - 1) / chunks, run);
    if (!failed.load(std::memory_order_relaxed)) return absl::OkStatus();
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory for the tiles of a block: ", f.entry.shared_bytes, " bytes"));
  }

  Status LaunchGroups(const Function& f, int64_t blocks, const LaunchParams& params) {
    return RunGroups({.function = f.run,
                      .params = params.params,
                      .blocks = blocks,
                      .groups = f.entry.groups,
                      .arena_bytes = f.entry.shared_bytes,
                      .depths = depths_,
                      .max_threads = pool_->threads()});
  }

  std::shared_ptr<CompilerModule> compiler_;  // outlives code_
  Code code_;
  std::vector<Function> functions_;
  std::vector<int64_t> depths_;
  std::shared_ptr<ThreadPool> pool_;
};

Status Rejected(std::string_view message) {
  return MakeError(absl::StatusCode::kFailedPrecondition, message,
                   {.reason = Reason::kBinaryRejected});
}

StatusOr<Code> LoadCode(std::string_view binary, CompilerModule& compiler) {
  Code code;
  auto object = LoadObject(binary, LibraryFunction);
  if (object.ok()) {
    code.object = *std::move(object);
    return code;
  }
  if (!absl::IsUnimplemented(object.status())) {
    return Rejected(object.status().message());
  }
  TL_ASSIGN_OR_RETURN(code.image, compiler.Load(binary));
  return code;
}

// Code for a better processor would die of an illegal instruction.
Status CheckProcessor(const Code& code) {
  const auto* text = static_cast<const char*>(code.Symbol(kProcessorSymbol));
  if (text == nullptr) return Rejected("the object was not made by this library");
  TL_ASSIGN_OR_RETURN(const Processor needed, ParseProcessor(text));
  const std::string missing = Missing(needed, HostProcessor());
  if (missing.empty()) return absl::OkStatus();
  return Rejected(
      absl::StrCat("the kernel was compiled for ", text, ", but this processor lacks ", missing));
}

}  // namespace

StatusOr<std::unique_ptr<LoadedKernel>> LoadKernel(std::string_view binary,
                                                   const std::vector<Entry>& entries,
                                                   const Module& module,
                                                   std::shared_ptr<ThreadPool> pool,
                                                   std::shared_ptr<CompilerModule> compiler) {
  TL_ASSIGN_OR_RETURN(Code code, LoadCode(binary, *compiler));
  TL_RETURN_IF_ERROR(CheckProcessor(code));
  std::vector<CpuKernel::Function> functions;
  for (const Entry& entry : entries) {
    void* address = code.Symbol(entry.symbol);
    if (address == nullptr) return Rejected(absl::StrCat("the object lacks ", entry.symbol));
    functions.push_back({reinterpret_cast<KernelFunction>(address), entry});
  }
  std::vector<int64_t> depths;
  for (const Buffer& buffer : module.buffers) {
    if (buffer.scope == Scope::kChannel) depths.push_back(buffer.depth);
  }
  return std::make_unique<CpuKernel>(std::move(code), std::move(functions), std::move(depths),
                                     std::move(pool), std::move(compiler));
}

}  // namespace tl::cpu
