#include "backends/cuda/loaded_module.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "backends/cuda/occupancy.h"

namespace tl::cu {
namespace {

// The release that a binary names as its maker: "13.0"; "" where it names none.
std::string ToolsRelease(std::string_view binary) {
  constexpr std::string_view kBefore = "Cuda compilation tools, release ";
  const size_t at = binary.find(kBefore);
  if (at == std::string_view::npos) return "";
  std::string_view rest = binary.substr(at + kBefore.size(), 16);
  return std::string(rest.substr(0, rest.find_first_not_of("0123456789.")));
}

Status Rejected(const CudaDevice& device, Result result, std::string_view binary) {
  const Driver& driver = device.driver();
  const Status error = driver.Error(result, "cuModuleLoadDataEx");
  const ErrorDetail detail = DetailOf(error);
  if (detail.reason != Reason::kBinaryRejected) return error;
  const std::string release = ToolsRelease(binary);
  return MakeError(error.code(),
                   absl::StrCat(error.message(), ": ", device.info().name, " (",
                                device.info().target.name, ") with a driver for CUDA ",
                                VersionText(driver.version()), " refused a binary made by ",
                                release.empty() ? "unknown tools" : "CUDA " + release),
                   detail);
}

Status NoClusters(const Driver& driver) {
  return MakeError(absl::StatusCode::kFailedPrecondition,
                   absl::StrCat("the kernel's blocks run in clusters, which a driver for CUDA ",
                                VersionText(driver.version()), " does not know: 11.8 does"),
                   {.domain = Domain::kCuda, .reason = Reason::kBinaryRejected});
}

}  // namespace

StatusOr<std::unique_ptr<LoadedKernel>> LoadedModule::Load(std::shared_ptr<CudaDevice> device,
                                                           std::string_view binary,
                                                           const std::vector<Entry>& entries) {
  TL_ASSIGN_OR_RETURN(const Context context, device->context());
  std::unique_ptr<LoadedModule> loaded(new LoadedModule(std::move(device), context));
  const Driver& driver = loaded->device_->driver();
  const ContextScope scope(loaded->api_, context);
  TL_RETURN_IF_ERROR(driver.Check(scope.result(), "cuCtxPushCurrent"));
  // The driver wants the image aligned and reads its size from its header.
  const std::string image(binary);
  const Result result =
      loaded->api_.ModuleLoadDataEx(&loaded->module_, image.c_str(), 0, nullptr, nullptr);
  if (result != kSuccess) return Rejected(*loaded->device_, result, binary);
  loaded->facts_ = "{\"entries\": [";
  for (const Entry& e : entries) TL_RETURN_IF_ERROR(loaded->AddKernel(e));
  loaded->facts_ += "]}";
  return std::unique_ptr<LoadedKernel>(std::move(loaded));
}

// Of its attributes `Attributes` names as many as there are.
struct LoadedModule::Config {
  std::array<LaunchAttribute, 2> attributes;
  LaunchConfig launch;

  Config(const Kernel& kernel, unsigned blocks, Stream stream)
      : launch{{blocks, 1, 1}, {kernel.threads, 1, 1}, kernel.shared_bytes,
               stream,         attributes.data(),      0} {
    if (kernel.early) {
      LaunchAttribute& early = Add(kProgrammaticStreamSerialization);
      early.value.allowed = 1;
    }
    if (kernel.cluster > 1) {
      LaunchAttribute& cluster = Add(kClusterDimension);
      cluster.value.cluster[0] = kernel.cluster;
      cluster.value.cluster[1] = cluster.value.cluster[2] = 1;
    }
  }
  Config(const Config&) = delete;  // points into itself
  Config& operator=(const Config&) = delete;

  LaunchAttribute& Add(int id) {
    LaunchAttribute& a = attributes[launch.num_attributes++];
    a.id = id;
    return a;
  }
};

StatusOr<int64_t> LoadedModule::Residents(const Kernel& kernel, const Entry& entry, int registers,
                                          int static_shared) const {
  const DeviceInfo& info = device_->info();
  if (kernel.cluster == 1) {
    const int blocks =
        OccupancyOf(info.target, registers, entry.threads, static_shared + entry.shared_bytes)
            .blocks;
    return std::max<int64_t>(1, int64_t{info.units} * blocks);
  }
  // Which multiprocessors can share a cluster is the driver's knowledge.
  if (!api_.OccupancyMaxActiveClusters) return NoClusters(device_->driver());
  const Config config(kernel, kernel.cluster, nullptr);
  int clusters = 0;
  TL_RETURN_IF_ERROR(device_->driver().Check(
      api_.OccupancyMaxActiveClusters(&clusters, kernel.function, &config.launch),
      "cuOccupancyMaxActiveClusters"));
  return int64_t{std::max(clusters, 1)} * kernel.cluster;
}

Status LoadedModule::AddKernel(const Entry& entry) {
  const Driver& driver = device_->driver();
  Kernel kernel;
  TL_RETURN_IF_ERROR(
      driver.Check(api_.ModuleGetFunction(&kernel.function, module_, entry.symbol.c_str()),
                   "cuModuleGetFunction"));
  kernel.threads = static_cast<unsigned>(entry.threads);
  kernel.shared_bytes = static_cast<unsigned>(entry.shared_bytes);
  kernel.early = entry.early && driver.starts_early();
  kernel.cluster = static_cast<unsigned>(entry.cluster);
  if (entry.cluster > 1 && !api_.LaunchKernelEx) return NoClusters(driver);
  if (entry.shared_bytes > 0) {
    TL_RETURN_IF_ERROR(driver.Check(api_.FuncSetAttribute(kernel.function, kFuncMaxDynamicShared,
                                                          static_cast<int>(kernel.shared_bytes)),
                                    "cuFuncSetAttribute"));
  }
  // Asking also makes the driver load the function now, instead of at the first launch, which might
  // be captured into a graph.
  int registers = 0, local = 0, shared = 0;
  TL_RETURN_IF_ERROR(driver.Check(
      api_.FuncGetAttribute(&registers, kFuncRegisters, kernel.function), "cuFuncGetAttribute"));
  api_.FuncGetAttribute(&local, kFuncLocalBytes, kernel.function);
  api_.FuncGetAttribute(&shared, kFuncStaticShared, kernel.function);
  if (entry.persistent) {
    TL_ASSIGN_OR_RETURN(kernel.most_blocks, Residents(kernel, entry, registers, shared));
  }
  absl::StrAppend(&facts_, kernels_.empty() ? "" : ", ", "{\"symbol\": \"", entry.symbol,
                  "\", \"registers\": ", registers, ", \"local_bytes\": ", local,
                  ", \"static_shared_bytes\": ", shared,
                  ", \"dynamic_shared_bytes\": ", entry.shared_bytes,
                  ", \"threads\": ", entry.threads, "}");
  kernels_.push_back(kernel);
  return absl::OkStatus();
}

LoadedModule::~LoadedModule() {
  if (module_ == nullptr) return;
  // Fails harmlessly when the driver has shut down before us.
  const ContextScope scope(api_, context_);
  if (scope.result() == kSuccess) api_.ModuleUnload(module_);
}

Status LoadedModule::Launch(int entry, int64_t blocks, const LaunchParams& params) {
  if (blocks < 1 || blocks > std::numeric_limits<int32_t>::max()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a launch has 1 to 2147483647 blocks, not ", blocks));
  }
  const Kernel& kernel = kernels_[entry];
  const ContextScope scope(api_, context_);
  if (scope.result() != kSuccess)
    return device_->driver().Error(scope.result(), "cuCtxPushCurrent");
  return Start(kernel, static_cast<unsigned>(std::min(blocks, kernel.most_blocks)), params);
}

Status LoadedModule::Start(const Kernel& kernel, unsigned blocks,
                           const LaunchParams& params) const {
  const auto stream = static_cast<Stream>(params.stream);
  if (!kernel.early && kernel.cluster == 1) {
    return device_->driver().Check(
        api_.LaunchKernel(kernel.function, blocks, 1, 1, kernel.threads, 1, 1, kernel.shared_bytes,
                          stream, params.params, nullptr),
        "cuLaunchKernel");
  }
  const Config config(kernel, blocks, stream);
  return device_->driver().Check(
      api_.LaunchKernelEx(&config.launch, kernel.function, params.params, nullptr),
      "cuLaunchKernelEx");
}

Status LoadedModule::Describe(const TensorMapRecipe& r, TensorMap& map) const {
  constexpr size_t kMostDims = 5;
  if (!api_.TensorMapEncodeTiled) return absl::UnimplementedError("the driver has no tensor maps");
  uint64_t dims[kMostDims], strides[kMostDims];
  unsigned box[kMostDims], steps[kMostDims];
  const size_t rank = r.dims.size();
  if (rank < 1 || rank > kMostDims)
    return absl::InvalidArgumentError("a tensor map has 1 to 5 dims");
  for (size_t d = 0; d < rank; ++d) {
    dims[d] = static_cast<uint64_t>(r.dims[d]);
    if (d > 0) strides[d - 1] = static_cast<uint64_t>(r.strides[d - 1]);
    box[d] = static_cast<unsigned>(r.box[d]);
    steps[d] = 1;
  }
  const ContextScope scope(api_, context_);
  if (scope.result() != kSuccess)
    return device_->driver().Error(scope.result(), "cuCtxPushCurrent");
  const size_t size = SizeOf(r.dtype);
  const int type = size == 1 ? kMapU8 : size == 2 ? kMapU16 : size == 4 ? kMapU32 : kMapU64;
  const int swizzle = r.swizzle == 128 ? 3 : r.swizzle == 64 ? 2 : r.swizzle == 32 ? 1 : 0;
  const Result result =
      api_.TensorMapEncodeTiled(&map, type, static_cast<unsigned>(rank), const_cast<void*>(r.data),
                                dims, strides, box, steps, 0, swizzle, kPromote256, 0);
  return result == kSuccess ? Status() : device_->driver().Error(result, "cuTensorMapEncodeTiled");
}

}  // namespace tl::cu
