// Device memory and streams, owned.
#ifndef TILEJIT_EXAMPLES_CPP_MINI_SERVER_DEVICE_H_
#define TILEJIT_EXAMPLES_CPP_MINI_SERVER_DEVICE_H_

#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>

#include "../../c/device_memory.h"
#include "tl/tl.hpp"

namespace server {

inline memory OpenMemory(const tilejit::Context& context, const tilejit::Device& device) {
  tl_device_info info = TL_INIT(tl_device_info);
  tilejit::Check(tl_device_get(context.get(), device.index, &info));
  memory m;
  if (memory_open(&m, &info)) throw std::runtime_error("no memory on " + device.name);
  return m;
}

// `m` outlives it.
class Buffer {
 public:
  Buffer(memory* m, const void* data, size_t size)
      : m_(m), size_(size), p_(memory_upload(m, data, size)) {
    if (!p_)
      throw std::runtime_error("the device has no room for " + std::to_string(size) + " bytes");
  }
  Buffer(Buffer&& other) noexcept
      : m_(other.m_), size_(other.size_), p_(std::exchange(other.p_, nullptr)) {}
  Buffer& operator=(Buffer&&) = delete;
  ~Buffer() { memory_free(m_, p_); }

  void* get() const { return p_; }
  // Waits for what was launched.
  void Download(void* data) const {
    if (memory_download(m_, data, p_, size_))
      throw std::runtime_error("cannot read from the device");
  }

 private:
  memory* m_;
  size_t size_;
  void* p_;
};

class Stream {
 public:
  explicit Stream(memory* m) : m_(m) {
    if (memory_stream_create(m, &stream_)) throw std::runtime_error("cannot make a stream");
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() { memory_stream_destroy(m_, stream_); }

  void* get() const { return stream_; }
  void Wait() const {
    if (memory_stream_wait(m_, stream_)) throw std::runtime_error("a launch failed on the device");
  }

 private:
  memory* m_;
  void* stream_ = nullptr;
};

}  // namespace server

#endif  // TILEJIT_EXAMPLES_CPP_MINI_SERVER_DEVICE_H_
