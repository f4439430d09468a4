// The CUDA driver's interface, as far as it is used: types, constants and functions under our own
// declarations, so that no header of the vendor is needed, and the library opened at run time.
#ifndef TILEJIT_BACKENDS_CUDA_DRIVER_H_
#define TILEJIT_BACKENDS_CUDA_DRIVER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"

namespace tl::cu {

using Result = int;  // CUresult
using Device = int;
using DevicePtr = uint64_t;
struct ContextObject;
struct ModuleObject;
struct FunctionObject;
struct StreamObject;
struct EventObject;
struct GraphObject;
struct GraphExecObject;
using Context = ContextObject*;
using Module = ModuleObject*;
using Function = FunctionObject*;
using Stream = StreamObject*;
using Event = EventObject*;
using Graph = GraphObject*;
using GraphExec = GraphExecObject*;

// CUresult values that are told apart.
inline constexpr Result kSuccess = 0;
inline constexpr Result kInvalidValue = 1;
inline constexpr Result kOutOfMemory = 2;
inline constexpr Result kNotInitialized = 3;
inline constexpr Result kDeinitialized = 4;
inline constexpr Result kStubLibrary = 34;
inline constexpr Result kNoDevice = 100;
inline constexpr Result kInvalidDevice = 101;
inline constexpr Result kInvalidImage = 200;
inline constexpr Result kInvalidContext = 201;
inline constexpr Result kNoBinaryForGpu = 209;
inline constexpr Result kInvalidPtx = 218;
inline constexpr Result kUnsupportedPtxVersion = 222;
inline constexpr Result kInvalidHandle = 400;
inline constexpr Result kNotFound = 500;
inline constexpr Result kNotReady = 600;
inline constexpr Result kIllegalAddress = 700;
inline constexpr Result kLaunchOutOfResources = 701;
inline constexpr Result kLaunchTimeout = 702;
inline constexpr Result kNotSupported = 801;
inline constexpr Result kCaptureFirst = 900;  // 900 … 907: not allowed while a stream is captured
inline constexpr Result kCaptureImplicit = 906;
inline constexpr Result kCaptureLast = 907;

// CUdevice_attribute
inline constexpr int kClockRate = 13;
inline constexpr int kMultiprocessors = 16;
inline constexpr int kMemoryClockRate = 36;
inline constexpr int kL2CacheSize = 38;
inline constexpr int kCapabilityMajor = 75;
inline constexpr int kCapabilityMinor = 76;
// CUfunction_attribute
inline constexpr int kFuncMaxThreads = 0;
inline constexpr int kFuncStaticShared = 1;
inline constexpr int kFuncLocalBytes = 3;
inline constexpr int kFuncRegisters = 4;
inline constexpr int kFuncBinaryVersion = 6;
inline constexpr int kFuncMaxDynamicShared = 8;
// CUtensorMapDataType, CUtensorMapL2promotion
inline constexpr int kMapU8 = 0, kMapU16 = 1, kMapU32 = 2, kMapU64 = 4;
inline constexpr int kPromote256 = 3;
// Flags
inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr unsigned kEventDefault = 0;
inline constexpr int kCaptureThreadLocal = 1;

// CUlaunchAttribute, CUlaunchConfig
inline constexpr int kClusterDimension = 4;
inline constexpr int kProgrammaticStreamSerialization = 6;
struct LaunchAttribute {
  int id = 0;
  int padding = 0;
  union Value {
    char bytes[64];
    int allowed;
    unsigned cluster[3];
  } value = {};
};
struct LaunchConfig {
  unsigned grid[3], block[3];
  unsigned shared_bytes;
  Stream stream;
  LaunchAttribute* attributes;
  unsigned num_attributes;
};

struct Api {
  Result (*Init)(unsigned flags) = nullptr;
  Result (*DriverGetVersion)(int* version) = nullptr;
  Result (*GetErrorName)(Result error, const char** text) = nullptr;
  Result (*GetErrorString)(Result error, const char** text) = nullptr;
  Result (*DeviceGetCount)(int* count) = nullptr;
  Result (*DeviceGet)(Device* device, int ordinal) = nullptr;
  Result (*DeviceGetName)(char* name, int bytes, Device device) = nullptr;
  Result (*DeviceGetAttribute)(int* value, int attribute, Device device) = nullptr;
  Result (*DeviceTotalMem)(size_t* bytes, Device device) = nullptr;
  Result (*DevicePrimaryCtxRetain)(Context* context, Device device) = nullptr;
  Result (*DevicePrimaryCtxRelease)(Device device) = nullptr;
  Result (*CtxGetCurrent)(Context* context) = nullptr;
  Result (*CtxPushCurrent)(Context context) = nullptr;
  Result (*CtxPopCurrent)(Context* context) = nullptr;
  Result (*ModuleLoadDataEx)(Module* module, const void* image, unsigned num_options, int* options,
                             void** values) = nullptr;
  Result (*ModuleUnload)(Module module) = nullptr;
  Result (*ModuleGetFunction)(Function* function, Module module, const char* name) = nullptr;
  Result (*FuncSetAttribute)(Function function, int attribute, int value) = nullptr;
  Result (*FuncGetAttribute)(int* value, int attribute, Function function) = nullptr;
  Result (*LaunchKernel)(Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                         unsigned block_x, unsigned block_y, unsigned block_z,
                         unsigned shared_bytes, Stream stream, void** params,
                         void** extra) = nullptr;
  // Null before CUDA 11.8, as clusters are.
  Result (*LaunchKernelEx)(const LaunchConfig* config, Function function, void** params,
                           void** extra) = nullptr;
  Result (*OccupancyMaxActiveClusters)(int* clusters, Function function,
                                       const LaunchConfig* config) = nullptr;
  // Null before CUDA 12.
  Result (*TensorMapEncodeTiled)(void* map, int type, unsigned rank, void* data,
                                 const uint64_t* dims, const uint64_t* strides, const unsigned* box,
                                 const unsigned* element_strides, int interleave, int swizzle,
                                 int l2_promotion, int fill) = nullptr;
  Result (*StreamCreate)(Stream* stream, unsigned flags) = nullptr;
  Result (*StreamDestroy)(Stream stream) = nullptr;
  Result (*StreamSynchronize)(Stream stream) = nullptr;
  Result (*StreamIsCapturing)(Stream stream, int* status) = nullptr;
  Result (*StreamBeginCapture)(Stream stream, int mode) = nullptr;
  Result (*StreamEndCapture)(Stream stream, Graph* graph) = nullptr;
  Result (*GraphInstantiateWithFlags)(GraphExec* exec, Graph graph,
                                      unsigned long long flags) = nullptr;
  Result (*GraphLaunch)(GraphExec exec, Stream stream) = nullptr;
  Result (*GraphExecDestroy)(GraphExec exec) = nullptr;
  Result (*GraphDestroy)(Graph graph) = nullptr;
  Result (*EventCreate)(Event* event, unsigned flags) = nullptr;
  Result (*EventDestroy)(Event event) = nullptr;
  Result (*EventRecord)(Event event, Stream stream) = nullptr;
  Result (*EventSynchronize)(Event event) = nullptr;
  Result (*EventElapsedTime)(float* milliseconds, Event from, Event to) = nullptr;
  Result (*MemAlloc)(DevicePtr* p, size_t bytes) = nullptr;
  Result (*MemFree)(DevicePtr p) = nullptr;
  Result (*MemcpyHtoDAsync)(DevicePtr to, const void* from, size_t bytes, Stream stream) = nullptr;
  Result (*MemcpyDtoHAsync)(void* to, DevicePtr from, size_t bytes, Stream stream) = nullptr;
  Result (*MemsetD8Async)(DevicePtr p, unsigned char byte, size_t count, Stream stream) = nullptr;
};

// An opened and initialised driver. Immutable; never unloaded.
class Driver {
 public:
  // NOT_FOUND / kNoDevice when there is no driver or no device: a machine without a GPU is no error
  // to those who only list devices.
  static StatusOr<std::shared_ptr<const Driver>> Open(const std::string& library);

  const Api& api() const { return api_; }
  int version() const { return version_; }  // 13000 = 13.0: the newest CUDA that it serves
  // May kernels start early (programmatic launches), on streams that are captured, too?
  bool starts_early() const { return api_.LaunchKernelEx != nullptr && version_ >= 12030; }

  // OK for success. Otherwise: what failed, the driver's own text and its number.
  Status Check(Result result, const char* what) const {
    return result == kSuccess ? Status() : Error(result, what);
  }
  Status Error(Result result, const std::string& what) const;

 private:
  Driver() = default;

  Api api_;
  int version_ = 0;
};

// "13.0" for 13000.
std::string VersionText(int version);

// Makes a context current for a scope, and what was current before afterwards. Nothing happens if
// it is current already, which is the case in all but the first launches of a thread.
class ContextScope {
 public:
  ContextScope(const Api& api, Context context) : api_(api) {
    Context current = nullptr;
    result_ = api.CtxGetCurrent(&current);
    if (result_ != kSuccess || current == context) return;
    result_ = api.CtxPushCurrent(context);
    pushed_ = result_ == kSuccess;
  }
  ~ContextScope() {
    Context popped = nullptr;
    if (pushed_) api_.CtxPopCurrent(&popped);
  }
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;

  Result result() const { return result_; }

 private:
  const Api& api_;
  Result result_ = kSuccess;
  bool pushed_ = false;
};

}  // namespace tl::cu

#endif  // TILEJIT_BACKENDS_CUDA_DRIVER_H_
