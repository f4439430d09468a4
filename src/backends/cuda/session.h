// Memory and time on a CUDA device, on a stream of its own.
#ifndef TILEJIT_BACKENDS_CUDA_SESSION_H_
#define TILEJIT_BACKENDS_CUDA_SESSION_H_

#include <memory>

#include "backends/backend.h"
#include "backends/cuda/device.h"
#include "backends/cuda/driver.h"

namespace tl::cu {

class CudaSession : public DeviceSession {
 public:
  static StatusOr<std::unique_ptr<DeviceSession>> Open(std::shared_ptr<CudaDevice> device);
  ~CudaSession() override;

  StatusOr<void*> Allocate(size_t bytes) override;
  void Free(void* p) override;
  Status CopyIn(void* device, const void* host, size_t bytes) override;
  Status CopyOut(void* host, const void* device, size_t bytes) override;
  Status Fill(void* device, uint8_t byte, size_t bytes) override;
  Status Synchronize() override;
  void* stream() override { return stream_; }
  // Several launches are put into a graph, so that the time between them is the device's and not
  // that of the enqueuing thread.
  StatusOr<double> Time(Enqueue& enqueue, int count) override;

 private:
  CudaSession(std::shared_ptr<CudaDevice> device, Context context)
      : device_(std::move(device)), api_(device_->api()), context_(context) {}
  Status Check(Result result, const char* what) const {
    return device_->driver().Check(result, what);
  }
  Status EnqueueAll(Enqueue& enqueue, int count);
  // Nanoseconds between two events around `run`.
  template <typename Run>
  StatusOr<double> Between(const Run& run);
  // Null when the launches cannot be captured.
  StatusOr<GraphExec> Capture(Enqueue& enqueue, int count);
  StatusOr<double> TimeReplay(GraphExec exec);

  const std::shared_ptr<CudaDevice> device_;
  const Api& api_;
  const Context context_;
  Stream stream_ = nullptr;
  Event from_ = nullptr;
  Event to_ = nullptr;
};

}  // namespace tl::cu

#endif  // TILEJIT_BACKENDS_CUDA_SESSION_H_
