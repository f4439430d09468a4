#include "tests/fake_cuda/fake_cuda.h"

#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

typedef int Result;
enum {
  kOk = 0,
  kInvalidValue = 1,
  kDeinitialized = 4,
  kInvalidDevice = 101,
  kInvalidImage = 200,
  kInvalidContext = 201,
  kInvalidHandle = 400,
  kNotFound = 500,
  kCaptureUnsupported = 900,
  kCaptureImplicit = 906
};

struct Context {
  int device;
};
struct Module {
  struct Context* context;
};
struct Function {
  struct Module* module;
  char symbol[64];
};
struct Stream {
  struct Context* context;
  int capturing;
  int num_captured;
  struct FakeLaunch captured[64];
};
struct Graph {
  int num;
  struct FakeLaunch launches[64];
};
struct Event {
  int launches;
};

static struct FakeCuda state;
static struct Context contexts[kFakeMaxDevices] = {{0}, {1}};
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct Function functions[160];
static int num_functions;

enum { kMaxDepth = 16 };
static __thread struct Context* stack[kMaxDepth];
static __thread int depth;

static struct Context* Current(void) { return depth > 0 ? stack[depth - 1] : NULL; }

#define ADD(counter, n) __atomic_fetch_add(&(counter), n, __ATOMIC_RELAXED)
#define ALIVE() \
  if (state.deinitialized) return kDeinitialized
#define IN_CONTEXT() \
  ALIVE();           \
  if (Current() == NULL) return kInvalidContext

/* Objects of the driver. They go with it: a program that finds it gone can free nothing. */
enum { kMaxLive = 1024 };
static void* live[kMaxLive];
static void* New(size_t bytes) {
  void* p = calloc(1, bytes);
  pthread_mutex_lock(&mutex);
  for (int i = 0; i < kMaxLive; ++i) {
    if (live[i] != NULL) continue;
    live[i] = p;
    break;
  }
  pthread_mutex_unlock(&mutex);
  return p;
}
static void Delete(void* p) {
  pthread_mutex_lock(&mutex);
  for (int i = 0; i < kMaxLive; ++i) {
    if (live[i] == p) live[i] = NULL;
  }
  pthread_mutex_unlock(&mutex);
  free(p);
}

EXPORT struct FakeCuda* fake_cuda(void) { return &state; }
EXPORT void fake_cuda_reset(void) {
  for (int i = 0; i < kMaxLive; ++i) {
    free(live[i]);
    live[i] = NULL;
  }
  memset(&state, 0, sizeof(state));
  state.num_devices = kFakeMaxDevices;
  num_functions = 0;
  depth = 0;
}
EXPORT int fake_cuda_current_device(void) { return Current() != NULL ? 1 + Current()->device : 0; }
EXPORT void fake_cuda_set_current_device(int one_plus_device) {
  depth = 0;
  if (one_plus_device > 0) stack[depth++] = &contexts[one_plus_device - 1];
}

EXPORT Result cuInit(unsigned flags) {
  (void)flags;
  ALIVE();
  return state.init_result;
}
EXPORT Result cuDriverGetVersion(int* version) {
  *version = state.version != 0 ? state.version : 12040;
  return kOk;
}
EXPORT Result cuGetErrorName(Result error, const char** text) {
  *text = error == kDeinitialized ? "CUDA_ERROR_DEINITIALIZED" : "CUDA_ERROR_FAKE";
  return kOk;
}
EXPORT Result cuGetErrorString(Result error, const char** text) {
  (void)error;
  *text = "the driver's own words";
  return kOk;
}
EXPORT Result cuDeviceGetCount(int* count) {
  ALIVE();
  *count = state.num_devices;
  return kOk;
}
EXPORT Result cuDeviceGet(int* device, int ordinal) {
  ALIVE();
  if (ordinal < 0 || ordinal >= state.num_devices) return kInvalidDevice;
  *device = ordinal;
  return kOk;
}
EXPORT Result cuDeviceGetName(char* name, int bytes, int device) {
  ALIVE();
  strncpy(name, device == 0 ? "Fake H200" : "Fake A100", (size_t)bytes);
  return kOk;
}
EXPORT Result cuDeviceGetAttribute(int* value, int attribute, int device) {
  ALIVE();
  switch (attribute) {
    case 16:
      *value = device == 0 ? 132 : 108;
      return kOk;
    case 75:
      *value = device == 0 ? 9 : 8;
      return kOk;
    case 76:
      *value = 0;
      return kOk;
    default:
      *value = 1000 + attribute;
      return kOk;
  }
}
EXPORT Result cuDeviceTotalMem_v2(size_t* bytes, int device) {
  ALIVE();
  *bytes = (size_t)(device + 1) << 33;
  return kOk;
}
EXPORT Result cuDevicePrimaryCtxRetain(struct Context** context, int device) {
  ALIVE();
  pthread_mutex_lock(&mutex);
  ++state.retained[device];
  pthread_mutex_unlock(&mutex);
  *context = &contexts[device];
  return kOk;
}
EXPORT Result cuDevicePrimaryCtxRelease_v2(int device) {
  ALIVE();
  pthread_mutex_lock(&mutex);
  --state.retained[device];
  pthread_mutex_unlock(&mutex);
  return kOk;
}
EXPORT Result cuCtxGetCurrent(struct Context** context) {
  ALIVE();
  *context = Current();
  return kOk;
}
EXPORT Result cuCtxPushCurrent_v2(struct Context* context) {
  ALIVE();
  if (context == NULL || depth == kMaxDepth) return kInvalidContext;
  stack[depth++] = context;
  pthread_mutex_lock(&mutex);
  ++state.contexts_pushed;
  ++state.pushes;
  pthread_mutex_unlock(&mutex);
  return kOk;
}
EXPORT Result cuCtxPopCurrent_v2(struct Context** context) {
  ALIVE();
  if (depth == 0) return kInvalidContext;
  *context = stack[--depth];
  pthread_mutex_lock(&mutex);
  --state.contexts_pushed;
  pthread_mutex_unlock(&mutex);
  return kOk;
}
EXPORT Result cuModuleLoadDataEx(struct Module** module, const void* image, unsigned num_options,
                                 int* options, void** values) {
  (void)num_options;
  (void)options;
  (void)values;
  IN_CONTEXT();
  if (state.capturing) return kCaptureUnsupported;
  if (state.load_result != kOk) return state.load_result;
  if (memcmp(image, "\177ELF", 4) != 0) return kInvalidImage;
  *module = New(sizeof(**module));
  (*module)->context = Current();
  ADD(state.modules, 1);
  return kOk;
}
EXPORT Result cuModuleUnload(struct Module* module) {
  IN_CONTEXT();
  if (module->context != Current()) return kInvalidContext;
  Delete(module);
  ADD(state.modules, -1);
  return kOk;
}
EXPORT Result cuModuleGetFunction(struct Function** function, struct Module* module,
                                  const char* name) {
  IN_CONTEXT();
  if (strncmp(name, "tl_kernel_", 10) != 0 || num_functions >= 128) return kNotFound;
  *function = &functions[ADD(num_functions, 1)];
  (*function)->module = module;
  strncpy((*function)->symbol, name, sizeof((*function)->symbol) - 1);
  return kOk;
}
EXPORT Result cuFuncSetAttribute(struct Function* function, int attribute, int value) {
  (void)function;
  IN_CONTEXT();
  if (attribute != 8) return kInvalidValue;
  state.max_dynamic_shared = value;
  return kOk;
}
EXPORT Result cuFuncGetAttribute(int* value, int attribute, struct Function* function) {
  (void)function;
  IN_CONTEXT();
  *value = attribute == 4 ? 42 : 0;
  return kOk;
}

static void Record(const struct FakeLaunch* launch) {
  pthread_mutex_lock(&mutex);
  if (state.num_launches < kFakeMaxLaunches) state.launches[state.num_launches] = *launch;
  ++state.num_launches;
  pthread_mutex_unlock(&mutex);
}

static Result Start(struct Function* function, unsigned grid, unsigned block, unsigned shared,
                    struct Stream* stream, void** params, int early, unsigned cluster) {
  if (state.launch_result != kOk) return state.launch_result;
  if (function->module->context != Current()) return kInvalidContext;
  struct FakeLaunch launch = {{0},    Current()->device, grid, block, shared, stream, 0, early,
                              cluster};
  memcpy(launch.symbol, function->symbol, sizeof(launch.symbol));
  if (params != NULL) memcpy(&launch.first_param, params[0], 8);
  if (stream != NULL && stream->capturing && stream->num_captured < 64) {
    stream->captured[stream->num_captured++] = launch;
    return kOk;
  }
  Record(&launch);
  return kOk;
}

EXPORT Result cuLaunchKernel(struct Function* function, unsigned gx, unsigned gy, unsigned gz,
                             unsigned bx, unsigned by, unsigned bz, unsigned shared,
                             struct Stream* stream, void** params, void** extra) {
  IN_CONTEXT();
  if (extra != NULL || gy != 1 || gz != 1 || by != 1 || bz != 1) return kInvalidValue;
  return Start(function, gx, bx, shared, stream, params, 0, 1);
}

/* CUlaunchConfig and CUlaunchAttribute, as far as programmatic launches go. */
struct LaunchAttribute {
  int id, padding;
  union {
    char bytes[64];
    int allowed;
    unsigned cluster[3];
  } value;
};
struct LaunchConfig {
  unsigned grid[3], block[3], shared;
  struct Stream* stream;
  const struct LaunchAttribute* attributes;
  unsigned num_attributes;
};
EXPORT Result cuLaunchKernelEx(const struct LaunchConfig* c, struct Function* function,
                               void** params, void** extra) {
  IN_CONTEXT();
  if (extra != NULL || c->grid[1] != 1 || c->grid[2] != 1 || c->block[1] != 1 || c->block[2] != 1) {
    return kInvalidValue;
  }
  int early = 0;
  unsigned cluster = 1;
  for (unsigned i = 0; i < c->num_attributes; ++i) {
    const struct LaunchAttribute* a = &c->attributes[i];
    if (a->id == 6) {
      early = a->value.allowed;
    } else if (a->id == 4) {
      cluster = a->value.cluster[0];
      if (a->value.cluster[1] != 1 || a->value.cluster[2] != 1) return kInvalidValue;
    } else {
      return kInvalidValue;
    }
  }
  if (cluster == 0 || c->grid[0] % cluster != 0) return kInvalidValue;
  return Start(function, c->grid[0], c->block[0], c->shared, c->stream, params, early, cluster);
}
/* As if two of the 132 multiprocessors stood apart. */
EXPORT Result cuOccupancyMaxActiveClusters(int* clusters, struct Function* function,
                                           const struct LaunchConfig* c) {
  IN_CONTEXT();
  if (function == NULL) return kInvalidHandle;
  for (unsigned i = 0; i < c->num_attributes; ++i) {
    if (c->attributes[i].id == 4) {
      *clusters = (int)(130 / c->attributes[i].value.cluster[0]);
      return kOk;
    }
  }
  return kInvalidValue;
}

EXPORT Result cuStreamCreate(struct Stream** stream, unsigned flags) {
  IN_CONTEXT();
  if (flags != 1) return kInvalidValue; /* must not wait for the default stream */
  *stream = New(sizeof(**stream));
  (*stream)->context = Current();
  ADD(state.streams, 1);
  return kOk;
}
EXPORT Result cuStreamDestroy_v2(struct Stream* stream) {
  IN_CONTEXT();
  Delete(stream);
  ADD(state.streams, -1);
  return kOk;
}
EXPORT Result cuStreamSynchronize(struct Stream* stream) {
  IN_CONTEXT();
  return stream != NULL && stream->capturing ? kCaptureUnsupported : kOk;
}
EXPORT Result cuStreamIsCapturing(struct Stream* stream, int* status) {
  (void)stream;
  IN_CONTEXT();
  if (state.capturing == 2) return kCaptureImplicit;
  *status = state.capturing;
  return kOk;
}
EXPORT Result cuStreamBeginCapture_v2(struct Stream* stream, int mode) {
  (void)mode;
  IN_CONTEXT();
  if (state.graphs_fail) return kCaptureUnsupported;
  stream->capturing = 1;
  stream->num_captured = 0;
  return kOk;
}
EXPORT Result cuStreamEndCapture(struct Stream* stream, struct Graph** graph) {
  IN_CONTEXT();
  if (!stream->capturing) return kInvalidValue;
  stream->capturing = 0;
  *graph = New(sizeof(**graph));
  (*graph)->num = stream->num_captured;
  memcpy((*graph)->launches, stream->captured, sizeof(stream->captured));
  ADD(state.graphs, 1);
  return kOk;
}
EXPORT Result cuGraphInstantiateWithFlags(struct Graph** exec, struct Graph* graph,
                                          unsigned long long flags) {
  (void)flags;
  IN_CONTEXT();
  *exec = New(sizeof(**exec));
  **exec = *graph;
  ADD(state.graphs, 1);
  return kOk;
}
EXPORT Result cuGraphLaunch(struct Graph* exec, struct Stream* stream) {
  (void)stream;
  IN_CONTEXT();
  for (int i = 0; i < exec->num; ++i) Record(&exec->launches[i]);
  return kOk;
}
EXPORT Result cuGraphExecDestroy(struct Graph* exec) {
  IN_CONTEXT();
  Delete(exec);
  ADD(state.graphs, -1);
  return kOk;
}
EXPORT Result cuGraphDestroy(struct Graph* graph) {
  IN_CONTEXT();
  Delete(graph);
  ADD(state.graphs, -1);
  return kOk;
}
EXPORT Result cuEventCreate(struct Event** event, unsigned flags) {
  (void)flags;
  IN_CONTEXT();
  *event = New(sizeof(**event));
  ADD(state.events, 1);
  return kOk;
}
EXPORT Result cuEventDestroy_v2(struct Event* event) {
  IN_CONTEXT();
  Delete(event);
  ADD(state.events, -1);
  return kOk;
}
/* Time is counted in launches: one takes a microsecond. */
EXPORT Result cuEventRecord(struct Event* event, struct Stream* stream) {
  (void)stream;
  IN_CONTEXT();
  event->launches = state.num_launches;
  return kOk;
}
EXPORT Result cuEventSynchronize(struct Event* event) {
  (void)event;
  IN_CONTEXT();
  return kOk;
}
EXPORT Result cuEventElapsedTime(float* milliseconds, struct Event* from, struct Event* to) {
  IN_CONTEXT();
  *milliseconds = (float)(to->launches - from->launches) * 1e-3f;
  return kOk;
}
EXPORT Result cuMemAlloc_v2(uint64_t* p, size_t bytes) {
  IN_CONTEXT();
  if (bytes == 0) return kInvalidValue;
  if (bytes > (size_t)1 << 40) return 2;
  *p = (uint64_t)(uintptr_t)aligned_alloc(256, (bytes + 255) / 256 * 256);
  ADD(state.allocations, 1);
  return *p != 0 ? kOk : 2;
}
EXPORT Result cuMemFree_v2(uint64_t p) {
  IN_CONTEXT();
  free((void*)(uintptr_t)p);
  ADD(state.allocations, -1);
  return kOk;
}
EXPORT Result cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, size_t bytes,
                                   struct Stream* stream) {
  (void)stream;
  IN_CONTEXT();
  memcpy((void*)(uintptr_t)to, from, bytes);
  return kOk;
}
EXPORT Result cuMemcpyDtoHAsync_v2(void* to, uint64_t from, size_t bytes, struct Stream* stream) {
  (void)stream;
  IN_CONTEXT();
  memcpy(to, (const void*)(uintptr_t)from, bytes);
  return kOk;
}
EXPORT Result cuMemsetD8Async(uint64_t p, unsigned char byte, size_t count, struct Stream* stream) {
  (void)stream;
  IN_CONTEXT();
  memset((void*)(uintptr_t)p, byte, count);
  return kOk;
}
