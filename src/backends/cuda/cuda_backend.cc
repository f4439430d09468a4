#include "backends/cuda/cuda_backend.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "backends/c_family/emit.h"
#include "backends/cuda/compile.h"
#include "backends/cuda/dialect.h"
#include "backends/cuda/find_nvrtc.h"
#include "backends/cuda/loaded_module.h"
#include "backends/cuda/nvdisasm.h"
#include "backends/cuda/occupancy.h"
#include "backends/cuda/ptxas_info.h"
#include "backends/cuda/session.h"
#include "backends/cuda/targets.h"

namespace tl {

StatusOr<Target> CudaBackend::FindTarget(std::string_view name) const {
  return FindCudaTarget(name);
}

std::vector<std::string> CudaBackend::TargetNames() const { return CudaTargetNames(); }

std::string CudaBackend::CodegenIdentity() const { return std::string(CudaCodegenHash()); }

StatusOr<std::string> CudaBackend::CompilerIdentity(const Target&) {
  absl::MutexLock lock(&compiler_mutex_);
  if (nvrtc_ != nullptr) return nvrtc_->identity();
  if (!compiler_identity_.empty()) return compiler_identity_;
  const NvrtcSearch search = FindNvrtc(paths_);
  if (search.found.empty()) {
    // What only the loader can find has to be loaded to be known.
    TL_ASSIGN_OR_RETURN(nvrtc_, Nvrtc::Load(paths_));
    return nvrtc_->identity();
  }
  compiler_identity_ = NvrtcIdentity(search.found.front());
  return compiler_identity_;
}

StatusOr<const Nvrtc*> CudaBackend::Compiler() {
  absl::MutexLock lock(&compiler_mutex_);
  if (nvrtc_ == nullptr) {
    TL_ASSIGN_OR_RETURN(nvrtc_, Nvrtc::Load(paths_));
  }
  return nvrtc_.get();  // lives as long as the backend
}

StatusOr<Generated> CudaBackend::Generate(const Module& module, const Target& target,
                                          const GenerateOptions&) {
  return EmitC(module, target, CudaDialect());
}

StatusOr<Built> CudaBackend::Build(const Generated& generated, const Target& target) {
  TL_ASSIGN_OR_RETURN(const Nvrtc* nvrtc, Compiler());
  TL_ASSIGN_OR_RETURN(CompiledText compiled,
                      CompileCuda(*nvrtc, generated.source, target, CompileForm::kCubin));
  return Built{.binary = std::move(compiled.output),
               .assembly = "",
               .log = std::move(compiled.log),
               .compiler = nvrtc->identity()};
}

BuildFacts CudaBackend::ReadBuild(std::string_view, std::string_view log,
                                  const std::vector<Entry>& entries, const Target& target) const {
  const PtxasInfo info = ParsePtxasInfo(log);
  BuildFacts facts{.entries = {}, .notes = PtxasNotes(info)};
  for (const Entry& entry : entries) {
    const auto found = std::find_if(info.entries.begin(), info.entries.end(),
                                    [&](const PtxasEntry& e) { return e.symbol == entry.symbol; });
    // Compilers that do not tell.
    if (found == info.entries.end()) return {.entries = {}, .notes = std::move(facts.notes)};
    const Occupancy o = OccupancyOf(target, found->registers, entry.threads, entry.shared_bytes);
    facts.entries.push_back({.registers = found->registers,
                             .stack_bytes = found->stack_bytes,
                             .spill_store_bytes = found->spill_store_bytes,
                             .spill_load_bytes = found->spill_load_bytes,
                             .blocks_per_unit = o.blocks,
                             .occupancy = o.warps,
                             .limited_by = std::string(o.limited_by)});
  }
  return facts;
}

StatusOr<std::string> CudaBackend::Disassemble(const Generated& generated, std::string_view binary,
                                               const Target& target, std::string_view form) {
  if (form == "sass") return DisassembleCubin(paths_, binary);
  if (form != "ptx" && form != "asm") {
    return absl::InvalidArgumentError(
        absl::StrCat("CUDA programs are shown as ptx, asm or sass, not as '", form, "'"));
  }
  TL_ASSIGN_OR_RETURN(const Nvrtc* nvrtc, Compiler());
  TL_ASSIGN_OR_RETURN(CompiledText compiled,
                      CompileCuda(*nvrtc, generated.source, target, CompileForm::kPtx));
  return std::move(compiled.output);
}

StatusOr<CudaBackend::DeviceList> CudaBackend::OpenDevices() {
  absl::MutexLock lock(&devices_mutex_);
  if (!devices_known_) {
    TL_ASSIGN_OR_RETURN(std::shared_ptr<const cu::Driver> driver,
                        cu::Driver::Open(paths_.cuda_driver));
    TL_ASSIGN_OR_RETURN(devices_, cu::ListDevices(std::move(driver)));
    devices_known_ = true;
  }
  return devices_;
}

StatusOr<std::vector<DeviceInfo>> CudaBackend::Devices() {
  StatusOr<DeviceList> devices = OpenDevices();
  std::vector<DeviceInfo> infos;
  if (DetailOf(devices.status()).reason == Reason::kNoDevice) return infos;
  if (!devices.ok()) return std::move(devices).status();
  for (const auto& d : *devices) infos.push_back(d->info());
  return infos;
}

StatusOr<std::shared_ptr<cu::CudaDevice>> CudaBackend::DeviceAt(int ordinal) {
  TL_ASSIGN_OR_RETURN(DeviceList devices, OpenDevices());
  for (const auto& d : devices) {
    if (d->info().ordinal == ordinal) return d;
  }
  return MakeError(absl::StatusCode::kNotFound,
                   absl::StrCat("there is no CUDA device ", ordinal,
                                " that can be used; there are ", devices.size()),
                   {.domain = Domain::kCuda, .reason = Reason::kNoDevice});
}

StatusOr<std::unique_ptr<LoadedKernel>> CudaBackend::Load(std::string_view binary,
                                                          const std::vector<Entry>& entries,
                                                          const Module&, int ordinal) {
  TL_ASSIGN_OR_RETURN(std::shared_ptr<cu::CudaDevice> device, DeviceAt(ordinal));
  return cu::LoadedModule::Load(std::move(device), binary, entries);
}

StatusOr<std::unique_ptr<DeviceSession>> CudaBackend::OpenSession(int ordinal) {
  TL_ASSIGN_OR_RETURN(std::shared_ptr<cu::CudaDevice> device, DeviceAt(ordinal));
  return cu::CudaSession::Open(std::move(device));
}

Status CudaBackend::CheckNotCapturing(int ordinal, void* stream) {
  TL_ASSIGN_OR_RETURN(std::shared_ptr<cu::CudaDevice> device, DeviceAt(ordinal));
  TL_ASSIGN_OR_RETURN(const cu::Context context, device->context());
  const cu::ContextScope scope(device->api(), context);
  TL_RETURN_IF_ERROR(device->driver().Check(scope.result(), "cuCtxPushCurrent"));
  int capturing = 0;
  const cu::Result result =
      device->api().StreamIsCapturing(static_cast<cu::Stream>(stream), &capturing);
  // The default stream cannot even be asked while another stream is captured.
  if (result != cu::kCaptureImplicit) {
    TL_RETURN_IF_ERROR(device->driver().Check(result, "cuStreamIsCapturing"));
    if (capturing == 0) return absl::OkStatus();
  }
  return MakeError(absl::StatusCode::kUnavailable,
                   "the stream is being captured into a graph: compile or load the kernel before",
                   {.domain = Domain::kCuda, .native_code = result, .reason = Reason::kNotReady});
}

std::unique_ptr<Backend> MakeCudaBackend(const SearchPaths& paths) {
  return std::make_unique<CudaBackend>(paths);
}

}  // namespace tl
