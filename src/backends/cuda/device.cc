#include "backends/cuda/device.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "backends/cuda/targets.h"

namespace tl::cu {
namespace {

// 0 where the driver does not know.
int Attribute(const Api& api, int attribute, Device device) {
  int value = 0;
  return api.DeviceGetAttribute(&value, attribute, device) == kSuccess ? value : 0;
}

StatusOr<DeviceInfo> Describe(const Driver& driver, Device device, int ordinal) {
  const Api& api = driver.api();
  DeviceInfo info;
  char name[256] = {};
  TL_RETURN_IF_ERROR(
      driver.Check(api.DeviceGetName(name, sizeof(name) - 1, device), "cuDeviceGetName"));
  info.name = name;
  TL_ASSIGN_OR_RETURN(info.target,
                      CudaTargetOfCapability(Attribute(api, kCapabilityMajor, device),
                                             Attribute(api, kCapabilityMinor, device)));
  size_t bytes = 0;
  TL_RETURN_IF_ERROR(driver.Check(api.DeviceTotalMem(&bytes, device), "cuDeviceTotalMem"));
  info.ordinal = ordinal;
  info.units = Attribute(api, kMultiprocessors, device);
  info.memory_bytes = static_cast<int64_t>(bytes);
  info.l2_bytes = Attribute(api, kL2CacheSize, device);
  info.clock_khz = Attribute(api, kClockRate, device);
  info.memory_clock_khz = Attribute(api, kMemoryClockRate, device);
  info.driver_version = driver.version();
  return info;
}

}  // namespace

CudaDevice::~CudaDevice() {
  absl::MutexLock lock(&mutex_);
  // When the process ends the driver may be gone already; then this fails and nothing is lost.
  if (context_ != nullptr) api().DevicePrimaryCtxRelease(device_);
}

StatusOr<Context> CudaDevice::context() {
  absl::MutexLock lock(&mutex_);
  if (context_ == nullptr) {
    Context context = nullptr;
    TL_RETURN_IF_ERROR(driver_->Check(api().DevicePrimaryCtxRetain(&context, device_),
                                      "cuDevicePrimaryCtxRetain"));
    context_ = context;
  }
  return context_;
}

StatusOr<std::vector<std::shared_ptr<CudaDevice>>> ListDevices(
    std::shared_ptr<const Driver> driver) {
  int count = 0;
  TL_RETURN_IF_ERROR(driver->Check(driver->api().DeviceGetCount(&count), "cuDeviceGetCount"));
  std::vector<std::shared_ptr<CudaDevice>> devices;
  for (int i = 0; i < count; ++i) {
    Device device = 0;
    TL_RETURN_IF_ERROR(driver->Check(driver->api().DeviceGet(&device, i), "cuDeviceGet"));
    StatusOr<DeviceInfo> info = Describe(*driver, device, i);
    // A device that is too old does not keep others from being used.
    if (DetailOf(info.status()).reason == Reason::kUnsupported) continue;
    if (!info.ok()) return std::move(info).status();
    devices.push_back(std::make_shared<CudaDevice>(driver, device, *std::move(info)));
  }
  return devices;
}

}  // namespace tl::cu
