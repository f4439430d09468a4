// What libtilejit_cpu.so exports: LLVM behind a plain C interface.
//
// The module is the only thing that links LLVM. libtilejit.so opens it with dlopen when a program
// is compiled for the CPU, never for launching. Every function is thread-safe, returns 0 for
// success, and neither prints, throws nor ends the process on bad input. Memory it hands out is
// freed by tl_cpu_free.
#ifndef TILEJIT_BACKENDS_CPU_MODULE_INTERFACE_H_
#define TILEJIT_BACKENDS_CPU_MODULE_INTERFACE_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TL_CPU_INTERFACE_VERSION 1
#define TL_CPU_EXPORT __attribute__((visibility("default")))

// Bytes owned by the module's allocator; data is followed by a zero byte that size does not count.
typedef struct tl_cpu_bytes {
  char* data;
  size_t size;
} tl_cpu_bytes;

typedef struct tl_cpu_compile_options {
  uint32_t struct_size;
  int32_t opt_level;       // 0 to 3
  int32_t want_object;     // fill *object
  int32_t want_assembly;   // fill *assembly
  int32_t want_optimized;  // assembly is LLVM IR after optimisation instead
} tl_cpu_compile_options;

// Address of an undefined symbol of an object, or null. `context` is the caller's.
typedef void* (*tl_cpu_resolver)(void* context, const char* name);

typedef struct tl_cpu_image tl_cpu_image;  // a loaded object

// TL_CPU_INTERFACE_VERSION of the module.
TL_CPU_EXPORT uint32_t tl_cpu_version(void);
// "LLVM 19.1.7"; static.
TL_CPU_EXPORT const char* tl_cpu_compiler(void);

// LLVM's name of this machine's processor and its features ("+avx2,-avx512f,...").
TL_CPU_EXPORT int32_t tl_cpu_host(tl_cpu_bytes* cpu, tl_cpu_bytes* features);

// Compiles textual IR to a relocatable ELF object for `cpu` with `features` ("+a,-b", may be
// empty). `log` receives the error, or the warnings of a success (empty if there are none).
TL_CPU_EXPORT int32_t tl_cpu_compile(const char* ir, size_t ir_size, const char* cpu,
                                     const char* features, const tl_cpu_compile_options* options,
                                     tl_cpu_bytes* object, tl_cpu_bytes* assembly,
                                     tl_cpu_bytes* log);

// Links an object into this process; undefined symbols are asked of `resolve` only.
TL_CPU_EXPORT int32_t tl_cpu_load(const char* object, size_t size, tl_cpu_resolver resolve,
                                  void* context, tl_cpu_image** image, tl_cpu_bytes* log);
// Address of a global symbol of the object, or null.
TL_CPU_EXPORT void* tl_cpu_symbol(tl_cpu_image* image, const char* name);
TL_CPU_EXPORT void tl_cpu_unload(tl_cpu_image* image);

TL_CPU_EXPORT void tl_cpu_free(tl_cpu_bytes* bytes);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TILEJIT_BACKENDS_CPU_MODULE_INTERFACE_H_
