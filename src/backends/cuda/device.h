// The CUDA devices of this machine and their primary contexts.
#ifndef TILEJIT_BACKENDS_CUDA_DEVICE_H_
#define TILEJIT_BACKENDS_CUDA_DEVICE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "backends/backend.h"
#include "backends/cuda/driver.h"
#include "base/status.h"

namespace tl::cu {

// One device. Its primary context, which the CUDA runtime and everyone else uses by default, is
// retained when it is first needed and released with the object.
class CudaDevice {
 public:
  CudaDevice(std::shared_ptr<const Driver> driver, Device device, DeviceInfo info)
      : driver_(std::move(driver)), device_(device), info_(std::move(info)) {}
  ~CudaDevice();
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  const Driver& driver() const { return *driver_; }
  const Api& api() const { return driver_->api(); }
  const DeviceInfo& info() const { return info_; }
  StatusOr<Context> context();

 private:
  const std::shared_ptr<const Driver> driver_;
  const Device device_;
  const DeviceInfo info_;
  absl::Mutex mutex_;
  Context context_ ABSL_GUARDED_BY(mutex_) = nullptr;
};

// All devices that code can be generated for, each with its own target.
StatusOr<std::vector<std::shared_ptr<CudaDevice>>> ListDevices(
    std::shared_ptr<const Driver> driver);

}  // namespace tl::cu

#endif  // TILEJIT_BACKENDS_CUDA_DEVICE_H_
