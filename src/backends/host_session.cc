#include "backends/host_session.h"

#include <chrono>
#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace tl {
namespace {

constexpr size_t kAlignment = 256;

class HostSession : public DeviceSession {
 public:
  StatusOr<void*> Allocate(size_t bytes) override {
    void* p = std::aligned_alloc(kAlignment, (bytes + kAlignment) / kAlignment * kAlignment);
    if (p) return p;
    return absl::ResourceExhaustedError(absl::StrCat("no host memory for ", bytes, " bytes"));
  }
  void Free(void* p) override { std::free(p); }
  Status CopyIn(void* device, const void* host, size_t bytes) override {
    if (bytes > 0) std::memcpy(device, host, bytes);
    return absl::OkStatus();
  }
  Status CopyOut(void* host, const void* device, size_t bytes) override {
    return CopyIn(host, device, bytes);
  }
  Status Fill(void* device, uint8_t byte, size_t bytes) override {
    if (bytes > 0) std::memset(device, byte, bytes);
    return absl::OkStatus();
  }
  Status Synchronize() override { return absl::OkStatus(); }
  void* stream() override { return nullptr; }
  StatusOr<double> Time(Enqueue& enqueue, int count) override {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < count; ++i) TL_RETURN_IF_ERROR(enqueue(i));
    const auto elapsed = std::chrono::steady_clock::now() - start;
    return static_cast<double>(std::chrono::nanoseconds(elapsed).count());
  }
};

}  // namespace

std::unique_ptr<DeviceSession> MakeHostSession() { return std::make_unique<HostSession>(); }

}  // namespace tl
