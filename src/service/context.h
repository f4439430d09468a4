// One client of the library: its devices, its cache, its kernels.
#ifndef TILEJIT_SERVICE_CONTEXT_H_
#define TILEJIT_SERVICE_CONTEXT_H_

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "backends/backend.h"
#include "base/process.h"
#include "cache/pack.h"
#include "cache/process_flight.h"
#include "cache/single_flight.h"
#include "cache/store.h"
#include "service/cache_contents.h"
#include "service/choice.h"
#include "service/kernel.h"
#include "service/request.h"

namespace tl {

enum class CacheMode : int32_t { kDefault = 0, kMemory = 1, kReadOnly = 2 };
enum class LogLevel : int32_t { kInfo = 0, kWarning = 1, kError = 2 };

struct ContextOptions {
  std::string cache_dir;  // empty: from the environment
  CacheMode cache_mode = CacheMode::kDefault;
  int cpu_threads = 0;
  int64_t cache_max_bytes = 0;
  bool own_builds_only = false;
  std::vector<std::string> packs;                       // read below the cache
  std::function<void(LogLevel, std::string_view)> log;  // may be empty
};

struct Device {
  Backend* backend = nullptr;
  DeviceInfo info;
};

struct CacheStats {
  uint64_t memory_hits = 0, hits = 0, misses = 0, compiles = 0, waits = 0;
  double compile_ns = 0;
  StoreStats store;
};

class Context {
 public:
  static StatusOr<std::shared_ptr<Context>> Create(ContextOptions options);

  const std::vector<Device>& devices() const { return devices_; }
  StatusOr<const Device*> FindDevice(int number) const;

  // What a request is compiled for.
  struct Destination {
    Backend* backend = nullptr;
    Target target;
    int ordinal = -1;  // device to load on at once; -1: none
    // Whose records count: a device, or all of the target whose names have this in them.
    const Device* device = nullptr;
    std::string device_name;
  };
  // A request as far as it goes before the store is asked for a binary.
  struct Prepared {
    Destination destination;
    std::shared_ptr<const Module> module;
    Choice choice;
  };
  // The program of a request as written.
  StatusOr<syntax::Program> Parse(const CompileRequest& request) const;
  // Whether a tuned configuration may be taken where the request gives none.
  enum class Records : uint8_t { kUse, kIgnore };
  StatusOr<Prepared> Prepare(const CompileRequest& request, Records records = Records::kUse) const;
  // In memory, in the store, or compiled. Kept in memory if `keep` says so.
  StatusOr<std::shared_ptr<Program>> FindOrBuild(const std::shared_ptr<const Module>& module,
                                                 const Destination& destination,
                                                 const CompileRequest& request, bool keep);
  // A kernel that another process compiled, from the text of the bound program, on a device.
  StatusOr<std::shared_ptr<Kernel>> Adopt(std::string_view printed, int device,
                                          int64_t shared_budget, Artifact artifact);
  // What was tuned for dims that are these or near; `bound` is what the request comes to.
  std::optional<FoundRecord> FindRecord(const syntax::Program& program, const Module& bound,
                                        const Destination& destination,
                                        const CompileRequest& request) const;
  // Keeps a tuned configuration where the cache may be written.
  Status PutRecord(const Record& record);

  // memory -> store -> compiler.
  StatusOr<std::shared_ptr<Kernel>> Compile(const CompileRequest& request);

  // The same for the store's sake: the kernel is not kept in memory, nor loaded on a device unless
  // the request names one.
  StatusOr<Origin> WarmUp(const CompileRequest& request);
  // What a request would compile to, as JSON: query.cc.
  StatusOr<std::string> Query(const CompileRequest& request);
  // NOT_FOUND lists the targets that there are.
  StatusOr<Target> FindTarget(std::string_view name) const;

  // From now on nothing compiles.
  void Seal() { sealed_.store(true, std::memory_order_release); }
  bool sealed() const { return sealed_.load(std::memory_order_acquire); }

  // The entries of the cache, or of a pack where one is named.
  Status ListCache(const std::string& pack, absl::FunctionRef<bool(const CacheEntry&)> visit);
  StatusOr<VerifyReport> VerifyCache(const std::string& pack);
  // Entries that this version of the library may use, for these targets only if any are named.
  StatusOr<PackContents> ExportPack(const std::string& path,
                                    const std::vector<std::string>& targets);
  StatusOr<ImportCounts> ImportPack(const std::string& path);

  // Whether what is put now is meant to stay and can.
  Status CheckPersistent() const;
  // UNAVAILABLE if the store has failed since it had that many errors.
  Status CheckWritten(int64_t errors_before) const;

  CacheStats Stats();
  const std::string& cache_location() const { return location_; }
  // Where the library lies, and what belongs to it.
  const std::string& library_dir() const { return library_dir_; }
  int cpu_threads() const { return options_.cpu_threads; }
  void Log(LogLevel level, std::string_view message) const;

  // FAILED_PRECONDITION in a child that inherited the context by fork.
  Status CheckProcess() const {
    if (generation_ == ForkGeneration()) return absl::OkStatus();
    return ForkedError();
  }

 private:
  static Status ForkedError();
  explicit Context(ContextOptions options) : options_(std::move(options)) {}
  ~Context() = default;
  void OpenBackends(const struct Environment& environment);
  void OpenStore(const struct Environment& environment);

  // cache_contents.cc
  bool IsCurrent(std::string_view document) const;
  StatusOr<std::unique_ptr<ArtifactStore>> OpenPackFile(const std::string& path) const;

  // compile.cc
  StatusOr<Destination> Resolve(const CompileRequest& request) const;
  StatusOr<Destination> ResolveTarget(std::string_view name) const;
  StatusOr<std::shared_ptr<Kernel>> CompileCold(const CompileRequest& request,
                                                const std::string& text);
  // Builds what was prepared, and what the default rule gives where a record's cannot be had.
  StatusOr<std::shared_ptr<Program>> BuildPrepared(const CompileRequest& request,
                                                   Prepared& prepared, bool keep);
  FindOptions MatchOptions() const;
  StatusOr<std::shared_ptr<Program>> FindOrCompile(const std::shared_ptr<const Module>& module,
                                                   const Destination& destination,
                                                   const ArtifactKey& key,
                                                   const CompileRequest& request);
  Status SealedMiss(const Module& module, const Target& target, const ArtifactKey& key,
                    const CompileRequest& request) const;
  StatusOr<std::shared_ptr<Program>> FindInStore(const std::shared_ptr<const Module>& module,
                                                 const Destination& destination,
                                                 const ArtifactKey& key, int64_t shared_budget,
                                                 FindOptions& options);
  StatusOr<std::shared_ptr<Program>> Build(const std::shared_ptr<const Module>& module,
                                           const Destination& destination, const ArtifactKey& key,
                                           int64_t shared_budget);
  std::shared_ptr<Program> FindProgram(const std::string& document) const;

  const ContextOptions options_;
  const uint32_t generation_ = ForkGeneration();
  std::atomic<bool> sealed_{false};
  std::vector<std::unique_ptr<Backend>> backends_;
  std::vector<Device> devices_;
  std::unique_ptr<ArtifactStore> store_;
  std::optional<ProcessFlight> process_flight_;  // where the store is shared with others
  std::string location_;
  std::string library_dir_;
  std::vector<std::string> packs_left_out_;

  mutable absl::Mutex mu_;
  // By the whole request, as it came; by what it means.
  absl::flat_hash_map<std::string, std::shared_ptr<Kernel>> kernels_ ABSL_GUARDED_BY(mu_);
  absl::flat_hash_map<std::string, std::shared_ptr<Program>> programs_ ABSL_GUARDED_BY(mu_);
  SingleFlight<std::shared_ptr<Program>> flights_;

  std::atomic<uint64_t> memory_hits_{0}, hits_{0}, misses_{0}, compiles_{0}, waits_{0},
      compile_ns_{0};
};

}  // namespace tl

#endif  // TILEJIT_SERVICE_CONTEXT_H_
