#include "backends/cuda/session.h"

#include <algorithm>
#include <utility>

namespace tl::cu {
namespace {

DevicePtr Address(const void* p) { return reinterpret_cast<DevicePtr>(p); }

}  // namespace

StatusOr<std::unique_ptr<DeviceSession>> CudaSession::Open(std::shared_ptr<CudaDevice> device) {
  TL_ASSIGN_OR_RETURN(const Context context, device->context());
  std::unique_ptr<CudaSession> s(new CudaSession(std::move(device), context));
  const ContextScope scope(s->api_, context);
  TL_RETURN_IF_ERROR(s->Check(scope.result(), "cuCtxPushCurrent"));
  TL_RETURN_IF_ERROR(
      s->Check(s->api_.StreamCreate(&s->stream_, kStreamNonBlocking), "cuStreamCreate"));
  TL_RETURN_IF_ERROR(s->Check(s->api_.EventCreate(&s->from_, kEventDefault), "cuEventCreate"));
  TL_RETURN_IF_ERROR(s->Check(s->api_.EventCreate(&s->to_, kEventDefault), "cuEventCreate"));
  return std::unique_ptr<DeviceSession>(std::move(s));
}

CudaSession::~CudaSession() {
  const ContextScope scope(api_, context_);
  if (scope.result() != kSuccess) return;  // the driver is gone, and everything with it
  if (from_ != nullptr) api_.EventDestroy(from_);
  if (to_ != nullptr) api_.EventDestroy(to_);
  if (stream_ != nullptr) api_.StreamDestroy(stream_);
}

StatusOr<void*> CudaSession::Allocate(size_t bytes) {
  const ContextScope scope(api_, context_);
  TL_RETURN_IF_ERROR(Check(scope.result(), "cuCtxPushCurrent"));
  DevicePtr p = 0;
  // The driver refuses to allocate nothing; its blocks are aligned to 256 bytes or more.
  TL_RETURN_IF_ERROR(Check(api_.MemAlloc(&p, std::max<size_t>(bytes, 1)), "cuMemAlloc"));
  return reinterpret_cast<void*>(p);
}

void CudaSession::Free(void* p) {
  if (p == nullptr) return;
  const ContextScope scope(api_, context_);
  if (scope.result() == kSuccess) api_.MemFree(Address(p));
}

Status CudaSession::CopyIn(void* device, const void* host, size_t bytes) {
  if (bytes == 0) return absl::OkStatus();
  const ContextScope scope(api_, context_);
  TL_RETURN_IF_ERROR(Check(scope.result(), "cuCtxPushCurrent"));
  TL_RETURN_IF_ERROR(
      Check(api_.MemcpyHtoDAsync(Address(device), host, bytes, stream_), "cuMemcpyHtoDAsync"));
  return Check(api_.StreamSynchronize(stream_), "cuStreamSynchronize");
}

Status CudaSession::CopyOut(void* host, const void* device, size_t bytes) {
  if (bytes == 0) return absl::OkStatus();
  const ContextScope scope(api_, context_);
  TL_RETURN_IF_ERROR(Check(scope.result(), "cuCtxPushCurrent"));
  TL_RETURN_IF_ERROR(
      Check(api_.MemcpyDtoHAsync(host, Address(device), bytes, stream_), "cuMemcpyDtoHAsync"));
  return Check(api_.StreamSynchronize(stream_), "cuStreamSynchronize");
}

Status CudaSession::Fill(void* device, uint8_t byte, size_t bytes) {
  if (bytes == 0) return absl::OkStatus();
  const ContextScope scope(api_, context_);
  TL_RETURN_IF_ERROR(Check(scope.result(), "cuCtxPushCurrent"));
  return Check(api_.MemsetD8Async(Address(device), byte, bytes, stream_), "cuMemsetD8Async");
}

Status CudaSession::Synchronize() {
  const ContextScope scope(api_, context_);
  TL_RETURN_IF_ERROR(Check(scope.result(), "cuCtxPushCurrent"));
  return Check(api_.StreamSynchronize(stream_), "cuStreamSynchronize");
}

Status CudaSession::EnqueueAll(Enqueue& enqueue, int count) {
  for (int i = 0; i < count; ++i) TL_RETURN_IF_ERROR(enqueue(i));
  return absl::OkStatus();
}

template <typename Run>
StatusOr<double> CudaSession::Between(const Run& run) {
  TL_RETURN_IF_ERROR(Check(api_.EventRecord(from_, stream_), "cuEventRecord"));
  TL_RETURN_IF_ERROR(run());
  TL_RETURN_IF_ERROR(Check(api_.EventRecord(to_, stream_), "cuEventRecord"));
  TL_RETURN_IF_ERROR(Check(api_.EventSynchronize(to_), "cuEventSynchronize"));
  float milliseconds = 0;
  TL_RETURN_IF_ERROR(Check(api_.EventElapsedTime(&milliseconds, from_, to_), "cuEventElapsedTime"));
  return double{milliseconds} * 1e6;
}

StatusOr<GraphExec> CudaSession::Capture(Enqueue& enqueue, int count) {
  if (api_.StreamBeginCapture(stream_, kCaptureThreadLocal) != kSuccess) return nullptr;
  const Status enqueued = EnqueueAll(enqueue, count);
  Graph graph = nullptr;
  // Capturing has to end in any case.
  const Result ended = api_.StreamEndCapture(stream_, &graph);
  GraphExec exec = nullptr;
  if (enqueued.ok() && ended == kSuccess) api_.GraphInstantiateWithFlags(&exec, graph, 0);
  if (graph != nullptr) api_.GraphDestroy(graph);
  TL_RETURN_IF_ERROR(enqueued);
  return exec;
}

StatusOr<double> CudaSession::TimeReplay(GraphExec exec) {
  auto replay = [&] { return Check(api_.GraphLaunch(exec, stream_), "cuGraphLaunch"); };
  TL_RETURN_IF_ERROR(replay());  // the first one uploads the graph
  TL_RETURN_IF_ERROR(Check(api_.StreamSynchronize(stream_), "cuStreamSynchronize"));
  return Between(replay);
}

StatusOr<double> CudaSession::Time(Enqueue& enqueue, int count) {
  const ContextScope scope(api_, context_);
  TL_RETURN_IF_ERROR(Check(scope.result(), "cuCtxPushCurrent"));
  GraphExec exec = nullptr;
  if (count > 1) {
    TL_ASSIGN_OR_RETURN(exec, Capture(enqueue, count));
  }
  if (exec == nullptr) return Between([&] { return EnqueueAll(enqueue, count); });
  StatusOr<double> time = TimeReplay(exec);
  api_.GraphExecDestroy(exec);
  return time;
}

}  // namespace tl::cu
