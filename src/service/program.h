// A compiled program: bytes that came from a compiler or from the cache, and their incarnations on
// the devices of this process. Shared by every kernel whose text means the same.
#ifndef TILEJIT_SERVICE_PROGRAM_H_
#define TILEJIT_SERVICE_PROGRAM_H_

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "backends/backend.h"
#include "cache/store.h"

namespace tl {

// Where a program came from, for the report and the counters.
enum class Origin : uint8_t { kCompiled, kCache };

class Program {
 public:
  Program(Backend* backend, Target target, std::shared_ptr<const Module> module,
          int64_t shared_budget, std::vector<Entry> entries, Artifact artifact, Origin origin)
      : backend_(backend),
        target_(std::move(target)),
        module_(std::move(module)),
        shared_budget_(shared_budget),
        entries_(std::move(entries)),
        artifact_(std::move(artifact)),
        origin_(origin) {
    for (std::atomic<LoadedKernel*>& slot : loaded_) slot.store(nullptr, std::memory_order_relaxed);
  }

  Backend* backend() const { return backend_; }
  const Target& target() const { return target_; }
  int64_t shared_budget() const { return shared_budget_; }
  const std::vector<Entry>& entries() const { return entries_; }
  const Artifact& artifact() const { return artifact_; }
  Origin origin() const { return origin_; }

  static constexpr int kMaxOrdinals = 64;

  // The kernel on device `ordinal`, or null when it has not been loaded there. No lock.
  LoadedKernel* loaded(int ordinal) const {
    return loaded_[ordinal].load(std::memory_order_acquire);
  }
  // Loads it, once.
  StatusOr<LoadedKernel*> Load(int ordinal);

 private:
  Backend* const backend_;
  const Target target_;
  const std::shared_ptr<const Module> module_;
  const int64_t shared_budget_;
  const std::vector<Entry> entries_;
  const Artifact artifact_;
  const Origin origin_;

  std::atomic<LoadedKernel*> loaded_[kMaxOrdinals];
  absl::Mutex mu_;
  std::vector<std::unique_ptr<LoadedKernel>> owned_ ABSL_GUARDED_BY(mu_);
};

// Entries as they travel in Artifact::metadata (JSON), with what people want to know of them: names
// and parameters of the program that was compiled first, while others may mean the same.
std::string WriteMetadata(const Module& module, const std::vector<Entry>& entries);
StatusOr<std::vector<Entry>> ReadMetadata(std::string_view text, size_t num_launches);

}  // namespace tl

#endif  // TILEJIT_SERVICE_PROGRAM_H_
