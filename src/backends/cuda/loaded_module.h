// A binary on a device.
#ifndef TILEJIT_BACKENDS_CUDA_LOADED_MODULE_H_
#define TILEJIT_BACKENDS_CUDA_LOADED_MODULE_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backends/backend.h"
#include "backends/cuda/device.h"
#include "backends/cuda/driver.h"

namespace tl::cu {

class LoadedModule : public LoadedKernel {
 public:
  static StatusOr<std::unique_ptr<LoadedKernel>> Load(std::shared_ptr<CudaDevice> device,
                                                      std::string_view binary,
                                                      const std::vector<Entry>& entries);
  ~LoadedModule() override;

  // Calls cuLaunchKernel or cuLaunchKernelEx and, where another context is current, three more
  // functions of the driver; no lock, no allocation. A thread that has no context yet gets this one
  // for the call.
  Status Launch(int entry, int64_t blocks, const LaunchParams& params) override;
  Status Describe(const TensorMapRecipe& recipe, TensorMap& map) const override;
  std::string Facts() const override { return facts_; }

 private:
  struct Kernel {
    Function function = nullptr;
    unsigned threads = 1;
    unsigned shared_bytes = 0;
    bool early = false;    // Entry::early, and the driver can
    unsigned cluster = 1;  // Entry::cluster
    // Of a persistent kernel: as many as are on the device at the same time.
    int64_t most_blocks = std::numeric_limits<int32_t>::max();
  };

  struct Config;  // of a launch

  LoadedModule(std::shared_ptr<CudaDevice> device, Context context)
      : device_(std::move(device)), api_(device_->api()), context_(context) {}
  Status AddKernel(const Entry& entry);
  // As many blocks, whole clusters of them, as are on the device at the same time.
  StatusOr<int64_t> Residents(const Kernel& kernel, const Entry& entry, int registers,
                              int static_shared) const;
  Status Start(const Kernel& kernel, unsigned blocks, const LaunchParams& params) const;

  const std::shared_ptr<CudaDevice> device_;
  const Api& api_;
  const Context context_;
  Module module_ = nullptr;
  std::vector<Kernel> kernels_;
  std::string facts_ = "{}";
};

}  // namespace tl::cu

#endif  // TILEJIT_BACKENDS_CUDA_LOADED_MODULE_H_
