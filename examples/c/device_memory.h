/* Memory that kernels on a device can use: the host's for the CPU and the interpreter, the GPU's
 * for CUDA. A host program has its own way to allocate; the library never does it for a launch. */
#ifndef TILEJIT_EXAMPLES_DEVICE_MEMORY_H_
#define TILEJIT_EXAMPLES_DEVICE_MEMORY_H_

#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <tl/tl.h>

/* The few functions of the CUDA driver that are needed, so that the example builds without a
 * toolkit. */
typedef uint64_t cu_pointer;
typedef struct memory {
  void* driver; /* NULL: host memory */
  void* cu_context;
  int (*alloc)(cu_pointer*, size_t);
  int (*free)(cu_pointer);
  int (*upload)(cu_pointer, const void*, size_t);
  int (*download)(void*, cu_pointer, size_t);
  int (*push)(void*);
  int (*pop)(void**);
  int (*synchronize)(void);
  int (*stream_create)(void**, unsigned);
  int (*stream_synchronize)(void*);
  int (*stream_destroy)(void*);
} memory;

/* ISO C has no conversion from what dlsym returns to a function. */
static inline int memory_symbol(void* driver, const char* name, void* function) {
  void* symbol = dlsym(driver, name);
  memcpy(function, &symbol, sizeof(symbol));
  return symbol ? 0 : -1;
}

static inline int memory_open_cuda(memory* m, int ordinal) {
  int (*init)(unsigned);
  int (*device_get)(int*, int);
  int (*retain)(void**, int);
  int device = 0;
  m->driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (!m->driver) return -1;
  if (memory_symbol(m->driver, "cuInit", &init) ||
      memory_symbol(m->driver, "cuDeviceGet", &device_get) ||
      memory_symbol(m->driver, "cuDevicePrimaryCtxRetain", &retain) ||
      memory_symbol(m->driver, "cuMemAlloc_v2", &m->alloc) ||
      memory_symbol(m->driver, "cuMemFree_v2", &m->free) ||
      memory_symbol(m->driver, "cuMemcpyHtoD_v2", &m->upload) ||
      memory_symbol(m->driver, "cuMemcpyDtoH_v2", &m->download) ||
      memory_symbol(m->driver, "cuCtxPushCurrent_v2", &m->push) ||
      memory_symbol(m->driver, "cuCtxPopCurrent_v2", &m->pop) ||
      memory_symbol(m->driver, "cuCtxSynchronize", &m->synchronize) ||
      memory_symbol(m->driver, "cuStreamCreate", &m->stream_create) ||
      memory_symbol(m->driver, "cuStreamSynchronize", &m->stream_synchronize) ||
      memory_symbol(m->driver, "cuStreamDestroy_v2", &m->stream_destroy))
    return -1;
  return init(0) || device_get(&device, ordinal) || retain(&m->cu_context, device) ? -1 : 0;
}

/* 0 if memory of this device is to be had. */
static inline int memory_open(memory* m, const tl_device_info* device) {
  memset(m, 0, sizeof(*m));
  if (!strcmp(device->backend, "cuda")) return memory_open_cuda(m, device->ordinal);
  return strcmp(device->backend, "cpu") && strcmp(device->backend, "reference") ? -1 : 0;
}

/* A copy of `data` on the device; NULL if there is no room. */
static inline void* memory_upload(memory* m, const void* data, size_t size) {
  cu_pointer p = 0;
  void* old = NULL;
  int failed;
  if (!m->driver) {
    void* host = malloc(size);
    return host ? memcpy(host, data, size) : NULL;
  }
  m->push(m->cu_context);
  failed = m->alloc(&p, size) || m->upload(p, data, size);
  m->pop(&old);
  return failed ? NULL : (void*)(uintptr_t)p;
}

/* Waits for what was launched and brings the data back; 0 if that worked. */
static inline int memory_download(memory* m, void* data, const void* from, size_t size) {
  void* old = NULL;
  int failed;
  if (!m->driver) return memcpy(data, from, size) ? 0 : -1;
  m->push(m->cu_context);
  failed = m->synchronize() || m->download(data, (cu_pointer)(uintptr_t)from, size);
  m->pop(&old);
  return failed;
}

/* A stream of the device, in order with the uploads; on the CPU NULL, the only one. 0 if it worked.
 */
static inline int memory_stream_create(memory* m, void** stream) {
  void* old = NULL;
  int failed;
  *stream = NULL;
  if (!m->driver) return 0;
  m->push(m->cu_context);
  failed = m->stream_create(stream, 0);
  m->pop(&old);
  return failed;
}

/* Waits for what was launched on the stream; 0 if all of it worked. */
static inline int memory_stream_wait(memory* m, void* stream) {
  void* old = NULL;
  int failed;
  if (!m->driver) return 0;
  m->push(m->cu_context);
  failed = m->stream_synchronize(stream);
  m->pop(&old);
  return failed;
}

static inline void memory_stream_destroy(memory* m, void* stream) {
  void* old = NULL;
  if (!m->driver || !stream) return;
  m->push(m->cu_context);
  m->stream_destroy(stream);
  m->pop(&old);
}

static inline void memory_free(memory* m, void* p) {
  void* old = NULL;
  if (!p) return;
  if (!m->driver) {
    free(p);
    return;
  }
  m->push(m->cu_context);
  m->free((cu_pointer)(uintptr_t)p);
  m->pop(&old);
}

#endif
