// CUDA as a backend: C++ text through NVRTC to cubins, run by the driver.
#ifndef TILEJIT_BACKENDS_CUDA_CUDA_BACKEND_H_
#define TILEJIT_BACKENDS_CUDA_CUDA_BACKEND_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "backends/backend.h"
#include "backends/cuda/device.h"
#include "backends/cuda/nvrtc.h"

namespace tl {

class CudaBackend : public Backend {
 public:
  explicit CudaBackend(SearchPaths paths) : paths_(std::move(paths)) {}

  std::string_view name() const override { return "cuda"; }
  StatusOr<Target> FindTarget(std::string_view name) const override;
  std::vector<std::string> TargetNames() const override;
  StatusOr<std::vector<DeviceInfo>> Devices() override;
  std::string CodegenIdentity() const override;
  StatusOr<std::string> CompilerIdentity(const Target& target) override;
  StatusOr<Generated> Generate(const Module& module, const Target& target,
                               const GenerateOptions& options) override;
  StatusOr<Built> Build(const Generated& generated, const Target& target) override;
  BuildFacts ReadBuild(std::string_view binary, std::string_view log,
                       const std::vector<Entry>& entries, const Target& target) const override;
  StatusOr<std::string> Disassemble(const Generated& generated, std::string_view binary,
                                    const Target& target, std::string_view form) override;
  StatusOr<std::unique_ptr<LoadedKernel>> Load(std::string_view binary,
                                               const std::vector<Entry>& entries,
                                               const Module& module, int ordinal) override;
  StatusOr<std::unique_ptr<DeviceSession>> OpenSession(int ordinal) override;
  Status CheckNotCapturing(int ordinal, void* stream) override;

 private:
  using DeviceList = std::vector<std::shared_ptr<cu::CudaDevice>>;

  StatusOr<const Nvrtc*> Compiler();
  // Opens the driver at the first call. A failure is not remembered: a driver may come later.
  StatusOr<DeviceList> OpenDevices();
  StatusOr<std::shared_ptr<cu::CudaDevice>> DeviceAt(int ordinal);

  const SearchPaths paths_;
  // Opening the driver can take long and is no reason for a compilation to wait.
  absl::Mutex compiler_mutex_;
  std::unique_ptr<const Nvrtc> nvrtc_ ABSL_GUARDED_BY(compiler_mutex_);
  std::string compiler_identity_ ABSL_GUARDED_BY(compiler_mutex_);
  absl::Mutex devices_mutex_;
  bool devices_known_ ABSL_GUARDED_BY(devices_mutex_) = false;
  DeviceList devices_ ABSL_GUARDED_BY(devices_mutex_);
};

}  // namespace tl

#endif  // TILEJIT_BACKENDS_CUDA_CUDA_BACKEND_H_
