// The few functions of the CUDA driver that the benchmarks call besides the library, opened at run
// time: they build and start without a toolkit or a GPU.
#ifndef TILEJIT_PERF_CUDA_DRIVER_H_
#define TILEJIT_PERF_CUDA_DRIVER_H_

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace perf {

class CudaDriver {
 public:
  // Makes the primary context of device `ordinal` current.
  explicit CudaDriver(int ordinal) : handle_(dlopen("libcuda.so.1", RTLD_NOW)) {
    if (!handle_) throw std::runtime_error(dlerror());
    int device = 0;
    void* context = nullptr;
    Check(Find<int(unsigned)>("cuInit")(0));
    Check(Find<int(int*, int)>("cuDeviceGet")(&device, ordinal));
    Check(Find<int(void**, int)>("cuDevicePrimaryCtxRetain")(&context, device));
    context_ = context;
    MakeCurrent();
  }

  // For the calling thread.
  void MakeCurrent() { Check(Find<int(void*)>("cuCtxSetCurrent")(context_)); }

  uint64_t Alloc(size_t size) {
    uint64_t pointer = 0;
    Check(Find<int(uint64_t*, size_t)>("cuMemAlloc_v2")(&pointer, size));
    return pointer;
  }

  void* NewStream() {
    constexpr unsigned kNonBlocking = 1;
    void* stream = nullptr;
    Check(Find<int(void**, unsigned)>("cuStreamCreate")(&stream, kNonBlocking));
    return stream;
  }

  // `image`: PTX or a cubin.
  void* LoadFunction(const char* image, const char* name) {
    void *module = nullptr, *function = nullptr;
    Check(Find<int(void**, const void*)>("cuModuleLoadData")(&module, image));
    Check(Find<int(void**, void*, const char*)>("cuModuleGetFunction")(&function, module, name));
    return function;
  }

  using LaunchFunction = int(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                             unsigned, void*, void**, void**);
  LaunchFunction* launch_kernel() { return Find<LaunchFunction>("cuLaunchKernel"); }
  using SynchronizeFunction = int(void*);
  SynchronizeFunction* stream_synchronize() {
    return Find<SynchronizeFunction>("cuStreamSynchronize");
  }

  static void Check(int result) {
    if (result != 0) throw std::runtime_error("CUDA error " + std::to_string(result));
  }

 private:
  template <typename Function>
  Function* Find(const char* name) {
    void* symbol = dlsym(handle_, name);
    if (!symbol) throw std::runtime_error(std::string("no ") + name + " in libcuda.so.1");
    return reinterpret_cast<Function*>(symbol);
  }

  void* handle_;
  void* context_ = nullptr;
};

}  // namespace perf

#endif  // TILEJIT_PERF_CUDA_DRIVER_H_
