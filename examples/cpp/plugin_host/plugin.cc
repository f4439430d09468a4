// A plugin that loads the library at run time: it works, and says so, where the library is not
// installed. Only the header is needed to build it. (tl/tl.hpp is for programs that link.)
#include "plugin.h"

#include <dlfcn.h>

#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "../../c/device_memory.h"
#include "tl/tl.h"

namespace {

class Library {
 public:
  explicit Library(const char* path) : handle_(Open(path)) {
    if (abi_version() < TL_ABI_VERSION) throw std::runtime_error("the library is too old");
  }

 private:
  struct Close {
    void operator()(void* handle) const { dlclose(handle); }
  };
  std::unique_ptr<void, Close> handle_;

 public:
  // One member for every function in use; the header gives its type.
#define TL_FUNCTION(name) decltype(&tl_##name) name = Find<decltype(&tl_##name)>("tl_" #name)
  TL_FUNCTION(abi_version);
  TL_FUNCTION(version);
  TL_FUNCTION(last_error);
  TL_FUNCTION(context_create);
  TL_FUNCTION(context_release);
  TL_FUNCTION(device_get);
  TL_FUNCTION(compile);
  TL_FUNCTION(kernel_release);
  TL_FUNCTION(launch);
#undef TL_FUNCTION

 private:
  static void* Open(const char* path) {
    void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle) throw std::runtime_error(dlerror());
    return handle;
  }

  template <typename Function>
  Function Find(const char* symbol) const {
    void* address = dlsym(handle_.get(), symbol);
    if (!address) throw std::runtime_error(std::string("no symbol ") + symbol);
    return reinterpret_cast<Function>(address);
  }
};

void Check(const Library& tl, tl_status status) {
  if (status == TL_OK) return;
  tl_error_info error = TL_INIT(tl_error_info);
  tl.last_error(&error);
  throw std::runtime_error(error.message);
}

// Memory of a device, and copies of vectors in it.
class DeviceMemory {
 public:
  explicit DeviceMemory(const tl_device_info& device) {
    if (memory_open(&memory_, &device)) {
      throw std::runtime_error(std::string("no memory on ") + device.name);
    }
  }
  DeviceMemory(const DeviceMemory&) = delete;
  ~DeviceMemory() {
    for (void* p : copies_) memory_free(&memory_, p);
  }

  void* Upload(const std::vector<float>& values) {
    void* p = memory_upload(&memory_, values.data(), values.size() * sizeof(float));
    if (!p) throw std::runtime_error("the device has no room");
    copies_.push_back(p);
    return p;
  }

  // Waits for what was launched.
  void Download(const void* from, std::vector<float>& values) {
    if (memory_download(&memory_, values.data(), from, values.size() * sizeof(float))) {
      throw std::runtime_error("cannot read from the device");
    }
  }

 private:
  memory memory_;
  std::vector<void*> copies_;
};

// c = a + b, on the best device.
std::vector<float> Sum(const Library& tl, const std::vector<float>& a,
                       const std::vector<float>& b) {
  tl_context* raw_context = nullptr;
  Check(tl, tl.context_create(nullptr, &raw_context));
  const std::unique_ptr<tl_context, decltype(tl.context_release)> context(raw_context,
                                                                          tl.context_release);
  tl_device_info device = TL_INIT(tl_device_info);
  Check(tl, tl.device_get(context.get(), 0, &device));
  std::printf("device: %s\n", device.name);
  DeviceMemory memory(device);
  tl_compile_options options = TL_INIT(tl_compile_options);
  options.family = "vector_add";
  options.device = 0;
  tl_kernel* raw_kernel = nullptr;
  Check(tl, tl.compile(context.get(), &options, &raw_kernel));
  const std::unique_ptr<tl_kernel, decltype(tl.kernel_release)> kernel(raw_kernel,
                                                                       tl.kernel_release);
  std::vector<float> c(a.size());
  void* const tensors[] = {memory.Upload(a), memory.Upload(b), memory.Upload(c)};
  const int64_t n = static_cast<int64_t>(a.size());
  tl_launch_args args = TL_INIT(tl_launch_args);
  args.device = options.device;
  args.tensors = tensors;
  args.num_tensors = 3;
  args.dims = &n;
  args.num_dims = 1;
  Check(tl, tl.launch(kernel.get(), &args));
  memory.Download(tensors[2], c);
  return c;
}

void Run(const char* path) {
  const Library tl(path);
  std::printf("library version %u, interface %u\n", tl.version(), tl.abi_version());
  constexpr int kCount = 1000;
  std::vector<float> a(kCount), b(kCount);
  for (int i = 0; i < kCount; ++i) a[i] = static_cast<float>(i), b[i] = 0.5f;
  const std::vector<float> c = Sum(tl, a, b);
  for (int i = 0; i < kCount; ++i) {
    if (c[i] != a[i] + b[i]) throw std::runtime_error("wrong at " + std::to_string(i));
  }
  std::printf("%d sums, all right\n", kCount);
}

}  // namespace

// No exception leaves: the host may be built by another compiler.
extern "C" int plugin_run(const char* library) try {
  Run(library);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
