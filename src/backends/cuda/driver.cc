#include "backends/cuda/driver.h"

#include <dlfcn.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/dynamic_library.h"

namespace tl::cu {
namespace {

// Resolves functions of a library and remembers the first that is missing.
class Resolver {
 public:
  explicit Resolver(void* library) : library_(library) {}

  template <typename F>
  void operator()(F*& function, const char* name) {
    if (!Resolve(library_, name, function) && missing_.empty()) missing_ = name;
  }
  // One that older drivers lack: null there.
  template <typename F>
  void Optional(F*& function, const char* name) {
    Resolve(library_, name, function);
  }
  const std::string& missing() const { return missing_; }

 private:
  void* const library_;
  std::string missing_;
};

// The suffixes are versions of the calls' binary interface: the ones that 64-bit sizes came with,
// and that every driver since CUDA 11 has.
std::string ResolveAll(void* library, Api& api) {
  Resolver resolve(library);
  resolve(api.Init, "cuInit");
  resolve(api.DriverGetVersion, "cuDriverGetVersion");
  resolve(api.GetErrorName, "cuGetErrorName");
  resolve(api.GetErrorString, "cuGetErrorString");
  resolve(api.DeviceGetCount, "cuDeviceGetCount");
  resolve(api.DeviceGet, "cuDeviceGet");
  resolve(api.DeviceGetName, "cuDeviceGetName");
  resolve(api.DeviceGetAttribute, "cuDeviceGetAttribute");
  resolve(api.DeviceTotalMem, "cuDeviceTotalMem_v2");
  resolve(api.DevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain");
  resolve(api.DevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2");
  resolve(api.CtxGetCurrent, "cuCtxGetCurrent");
  resolve(api.CtxPushCurrent, "cuCtxPushCurrent_v2");
  resolve(api.CtxPopCurrent, "cuCtxPopCurrent_v2");
  resolve(api.ModuleLoadDataEx, "cuModuleLoadDataEx");
  resolve(api.ModuleUnload, "cuModuleUnload");
  resolve(api.ModuleGetFunction, "cuModuleGetFunction");
  resolve(api.FuncSetAttribute, "cuFuncSetAttribute");
  resolve(api.FuncGetAttribute, "cuFuncGetAttribute");
  resolve(api.LaunchKernel, "cuLaunchKernel");
  resolve.Optional(api.LaunchKernelEx, "cuLaunchKernelEx");
  resolve.Optional(api.OccupancyMaxActiveClusters, "cuOccupancyMaxActiveClusters");
  resolve.Optional(api.TensorMapEncodeTiled, "cuTensorMapEncodeTiled");
  resolve(api.StreamCreate, "cuStreamCreate");
  resolve(api.StreamDestroy, "cuStreamDestroy_v2");
  resolve(api.StreamSynchronize, "cuStreamSynchronize");
  resolve(api.StreamIsCapturing, "cuStreamIsCapturing");
  resolve(api.StreamBeginCapture, "cuStreamBeginCapture_v2");
  resolve(api.StreamEndCapture, "cuStreamEndCapture");
  resolve(api.GraphInstantiateWithFlags, "cuGraphInstantiateWithFlags");
  resolve(api.GraphLaunch, "cuGraphLaunch");
  resolve(api.GraphExecDestroy, "cuGraphExecDestroy");
  resolve(api.GraphDestroy, "cuGraphDestroy");
  resolve(api.EventCreate, "cuEventCreate");
  resolve(api.EventDestroy, "cuEventDestroy_v2");
  resolve(api.EventRecord, "cuEventRecord");
  resolve(api.EventSynchronize, "cuEventSynchronize");
  resolve(api.EventElapsedTime, "cuEventElapsedTime");
  resolve(api.MemAlloc, "cuMemAlloc_v2");
  resolve(api.MemFree, "cuMemFree_v2");
  resolve(api.MemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2");
  resolve(api.MemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2");
  resolve(api.MemsetD8Async, "cuMemsetD8Async");
  return resolve.missing();
}

bool MeansNoDevice(Result result) {
  return result == kNoDevice || result == kInvalidDevice || result == kStubLibrary;
}

bool MeansRejected(Result result) {
  return result == kInvalidImage || result == kNoBinaryForGpu || result == kInvalidPtx ||
         result == kUnsupportedPtxVersion;
}

bool MeansCapture(Result result) { return result >= kCaptureFirst && result <= kCaptureLast; }

absl::StatusCode CodeOf(Result result) {
  if (MeansNoDevice(result)) return absl::StatusCode::kNotFound;
  if (MeansRejected(result)) return absl::StatusCode::kFailedPrecondition;
  if (MeansCapture(result)) return absl::StatusCode::kUnavailable;
  switch (result) {
    case kInvalidValue:
    case kInvalidContext:
    case kInvalidHandle:
      return absl::StatusCode::kInvalidArgument;
    case kOutOfMemory:
    case kLaunchOutOfResources:
      return absl::StatusCode::kResourceExhausted;
    case kNotInitialized:
    case kDeinitialized:
      return absl::StatusCode::kFailedPrecondition;
    case kNotFound:
      return absl::StatusCode::kNotFound;
    case kNotReady:
      return absl::StatusCode::kUnavailable;
    case kLaunchTimeout:
      return absl::StatusCode::kDeadlineExceeded;
    case kNotSupported:
      return absl::StatusCode::kUnimplemented;
    default:
      return absl::StatusCode::kInternal;
  }
}

Reason ReasonOf(Result result) {
  if (MeansNoDevice(result)) return Reason::kNoDevice;
  if (MeansRejected(result)) return Reason::kBinaryRejected;
  return MeansCapture(result) ? Reason::kNotReady : Reason::kNone;
}

Status NoDriver(const std::string& message) {
  return MakeError(absl::StatusCode::kNotFound, message,
                   {.domain = Domain::kCuda, .reason = Reason::kNoDevice});
}

}  // namespace

StatusOr<std::shared_ptr<const Driver>> Driver::Open(const std::string& library) {
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* why = dlerror();
    return NoDriver(absl::StrCat("there is no CUDA driver: ", why != nullptr ? why : library));
  }
  std::shared_ptr<Driver> driver(new Driver());
  const std::string missing = ResolveAll(handle, driver->api_);
  if (!missing.empty()) {
    return NoDriver(absl::StrCat("the CUDA driver ", library, " is too old: it has no ", missing));
  }
  TL_RETURN_IF_ERROR(
      driver->Check(driver->api_.DriverGetVersion(&driver->version_), "cuDriverGetVersion"));
  TL_RETURN_IF_ERROR(driver->Check(driver->api_.Init(0), "cuInit"));
  return std::shared_ptr<const Driver>(std::move(driver));
}

Status Driver::Error(Result result, const std::string& what) const {
  const char* name = nullptr;
  const char* text = nullptr;
  if (api_.GetErrorName(result, &name) != kSuccess || name == nullptr) name = "unknown error";
  if (api_.GetErrorString(result, &text) != kSuccess || text == nullptr) text = "unknown error";
  return MakeError(CodeOf(result), absl::StrCat(what, ": ", text, " (", name, ", ", result, ")"),
                   {.domain = Domain::kCuda, .native_code = result, .reason = ReasonOf(result)});
}

std::string VersionText(int version) {
  return absl::StrCat(version / 1000, ".", version % 1000 / 10);
}

}  // namespace tl::cu
