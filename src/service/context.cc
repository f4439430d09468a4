#include "service/context.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "cache/open_cache.h"
#include "service/compile_worker.h"
#include "service/environment.h"

namespace tl {

StatusOr<std::shared_ptr<Context>> Context::Create(ContextOptions options) {
  // In a child that inherited it by fork it is let be: its threads and locks are the parent's.
  const auto destroy = [](Context* context) {
    if (context->CheckProcess().ok()) delete context;
  };
  std::shared_ptr<Context> context(new Context(std::move(options)), destroy);
  const Environment environment = ReadEnvironment();
  context->library_dir_ = environment.paths.library_dir;
  context->OpenBackends(environment);
  context->OpenStore(environment);
  return context;
}

// The order of the backends is the order of the devices: the best first.
void Context::OpenBackends(const Environment& environment) {
  backends_.push_back(MakeCudaBackend(environment.paths));
  backends_.push_back(
      MakeHipBackend(environment.paths, [dir = library_dir_](const CompileJob& job) {
        return CompileInWorker(job, {.library_dir = dir});
      }));
  backends_.push_back(MakeCpuBackend(environment.paths, options_.cpu_threads));
  backends_.push_back(MakeReferenceBackend(options_.cpu_threads));
  backends_.push_back(MakeEmulateBackend(environment.paths, environment.emulate));
  for (const std::unique_ptr<Backend>& backend : backends_) {
    StatusOr<std::vector<DeviceInfo>> devices = backend->Devices();
    if (!devices.ok()) {
      Log(LogLevel::kWarning,
          absl::StrCat("backend ", backend->name(), ": ", devices.status().message()));
      continue;
    }
    for (DeviceInfo& info : *devices) devices_.push_back({backend.get(), std::move(info)});
  }
}

void Context::OpenStore(const Environment& environment) {
  CacheOptions options;
  options.memory_only = options_.cache_mode == CacheMode::kMemory;
  options.directory = options_.cache_dir.empty() ? environment.cache_dir
                                                 : StatusOr<std::string>(options_.cache_dir);
  if (options_.cache_max_bytes > 0) options.max_bytes = options_.cache_max_bytes;
  options.warn = [log = options_.log](std::string_view message) {
    if (log) log(LogLevel::kWarning, message);
  };
  options.packs = options_.packs;
  options.packs_left_out = &packs_left_out_;
  location_ = options.memory_only || !options.directory.ok() ? "memory" : *options.directory;
  store_ = OpenCache(options);
  const bool shared = store_->persistent() && options_.cache_mode != CacheMode::kReadOnly;
  if (shared) process_flight_.emplace(*store_);
}

StatusOr<const Device*> Context::FindDevice(int number) const {
  if (number >= 0 && number < static_cast<int>(devices_.size())) return &devices_[number];
  return MakeError(absl::StatusCode::kNotFound,
                   absl::StrCat("there is no device ", number, "; this context has ",
                                devices_.size(), ", numbered from 0"),
                   {.reason = Reason::kNoDevice, .span = {}, .log = {}});
}

void Context::Log(LogLevel level, std::string_view message) const {
  if (options_.log) options_.log(level, message);
}

Status Context::ForkedError() {
  return absl::FailedPreconditionError(
      "this context was made before fork(); the child must create its own");
}

CacheStats Context::Stats() {
  CacheStats stats;
  stats.memory_hits = memory_hits_.load(std::memory_order_relaxed);
  stats.hits = hits_.load(std::memory_order_relaxed);
  stats.misses = misses_.load(std::memory_order_relaxed);
  stats.compiles = compiles_.load(std::memory_order_relaxed);
  stats.waits = waits_.load(std::memory_order_relaxed);
  stats.compile_ns = static_cast<double>(compile_ns_.load(std::memory_order_relaxed));
  stats.store = store_->Stats();
  return stats;
}

}  // namespace tl
