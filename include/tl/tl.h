/* TileJIT: compile, cache, launch, check and time tile kernels at run time.
 *
 * Conventions
 *
 *  1. C11, also valid C++. Everything exported is called tl_* and has C linkage.
 *  2. Every fallible function returns tl_status: TL_OK (0) or one of the canonical error codes.
 *     The details of the last failure of the calling thread are in tl_last_error(). Nothing
 *     aborts, prints, exits or throws.
 *  3. Handles (tl_context*, tl_kernel*) are opaque and counted: *_retain adds an owner,
 *     *_release drops one, and releasing NULL does nothing. A kernel keeps its context alive.
 *  4. Every struct that crosses the border begins with `struct_size`, which the caller sets to
 *     sizeof the struct it was compiled with (TL_INIT(type) does), and `next`, reserved for
 *     extensions, NULL today. The library accepts smaller structs (missing members are 0) and
 *     larger ones whose unknown bytes are 0. Members called `reserved` must be 0 in structs that
 *     the library reads. In structs that it fills, it writes at most struct_size bytes.
 *  5. Strings are UTF-8 and, where a length is given too, need no terminator; length
 *     TL_ZERO_TERMINATED means "up to the NUL". Strings that the library returns live as long as
 *     the object they came from, those of tl_last_error() until the thread's next failing call.
 *  6. Device and stream are named in every call that uses them; the library never asks for a
 *     "current" one and leaves the caller's current device as it found it. A stream is a
 *     CUstream (cudaStream_t) or hipStream_t, NULL the default stream; on the CPU it must be
 *     NULL and launches are synchronous.
 *  7. Threads: everything may be called from any thread at any time, except that an object may
 *     not be used while its last owner releases it. tl_launch takes no lock, allocates nothing
 *     and calls nothing but the driver. After fork() the child must create its own context;
 *     using an inherited one fails with TL_FAILED_PRECONDITION.
 *  8. Dims, strides, sizes are int64_t; strides count elements; byte sizes are size_t. Times are
 *     nanoseconds.
 *  9. The library never allocates device memory, except inside tl_check and tl_bench, which free
 *     it before they return.
 * 10. Outputs must not overlap inputs or each other unless the tile program says `inout`.
 *     Pointers must be aligned to their element size; tl_launch checks where a kernel assumes
 *     more.
 *
 * Functions are marked with the version that introduced them.
 */
#ifndef TL_TL_H_
#define TL_TL_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(TL_BUILDING_LIBRARY)
#define TL_API __attribute__((visibility("default")))
#else
#define TL_API
#endif

#define TL_VERSION_MAJOR 0
#define TL_VERSION_MINOR 1
#define TL_VERSION_PATCH 0
/* Grows when something is added to this header; the soname changes when something is removed. */
#define TL_ABI_VERSION 1

#define TL_ZERO_TERMINATED ((size_t)-1)
/* tl_context_options options = TL_INIT(tl_context_options); */
#ifdef __cplusplus
#define TL_INIT(type)                  \
  [] {                                 \
    type value{};                      \
    value.struct_size = sizeof(value); \
    return value;                      \
  }()
#else
#define TL_INIT(type) {.struct_size = sizeof(type)}
#endif

/* ---- Status
 * -------------------------------------------------------------------------------------- */

/* The canonical codes of Abseil and gRPC. */
typedef int32_t tl_status;
enum {
  TL_OK = 0,
  TL_CANCELLED = 1,
  TL_UNKNOWN = 2,
  TL_INVALID_ARGUMENT = 3,
  TL_DEADLINE_EXCEEDED = 4,
  TL_NOT_FOUND = 5,
  TL_ALREADY_EXISTS = 6,
  TL_PERMISSION_DENIED = 7,
  TL_RESOURCE_EXHAUSTED = 8,
  TL_FAILED_PRECONDITION = 9,
  TL_ABORTED = 10,
  TL_OUT_OF_RANGE = 11,
  TL_UNIMPLEMENTED = 12,
  TL_INTERNAL = 13,
  TL_UNAVAILABLE = 14,
  TL_DATA_LOSS = 15,
  TL_UNAUTHENTICATED = 16
};

/* Who reported the failure. */
typedef int32_t tl_domain;
enum {
  TL_DOMAIN_TL = 0,
  TL_DOMAIN_NVRTC = 1,
  TL_DOMAIN_CUDA = 2,
  TL_DOMAIN_HIP = 3,
  TL_DOMAIN_LLVM = 4,
  TL_DOMAIN_SQLITE = 5,
  TL_DOMAIN_OS = 6
};

/* Finer than the code, where a caller may want to branch. */
typedef int32_t tl_reason;
enum {
  TL_REASON_NONE = 0,
  TL_REASON_NOT_READY = 1,   /* would have to load or compile where that is not allowed */
  TL_REASON_SYNTAX = 2,      /* the text is no tile program */
  TL_REASON_SEMANTICS = 3,   /* it is one, but breaks a rule of the language */
  TL_REASON_LIMIT = 4,       /* a limit on size, depth, count or shared memory is exceeded */
  TL_REASON_UNSUPPORTED = 5, /* correct, but this backend or target cannot run it */
  TL_REASON_MISSING_LIBRARY =
      6, /* a vendor library or helper file was not found: the message lists the places */
  TL_REASON_NO_DEVICE = 7,       /* no such device, or no driver */
  TL_REASON_BINARY_REJECTED = 8, /* the driver refused a binary */
  TL_REASON_MISMATCH = 9         /* tl_check: results differ by more than the bound */
};

typedef struct tl_error_info {
  uint32_t struct_size;
  uint32_t reserved;
  const void* next;
  tl_status status;
  tl_domain domain;
  tl_reason reason;
  int32_t line; /* of the tile program, from 1; 0: no position */
  int32_t column;
  int32_t end_line;
  int32_t end_column;
  int32_t reserved2;
  int64_t native_code; /* CUresult, nvrtcResult, SQLite code, errno ... */
  const char* message; /* one or more sentences, never NULL */
  const char* log;     /* compiler log, "" if there is none */
} tl_error_info;

/* Fills *info with the last failure of this thread; TL_NOT_FOUND if there was none. (0.1) */
TL_API tl_status tl_last_error(tl_error_info* info);
/* "INVALID_ARGUMENT"; never NULL. (0.1) */
TL_API const char* tl_status_name(tl_status status);

/* 10203 for 1.2.3. (0.1) */
TL_API uint32_t tl_version(void);
/* TL_ABI_VERSION of the library. (0.1) */
TL_API uint32_t tl_abi_version(void);

/* ---- Types
 * --------------------------------------------------------------------------------------- */

typedef int32_t tl_dtype;
enum {
  TL_BOOL = 0, /* one byte */
  TL_I8 = 1,
  TL_U8 = 2,
  TL_I16 = 3,
  TL_U16 = 4,
  TL_I32 = 5,
  TL_U32 = 6,
  TL_I64 = 7,
  TL_E4M3 = 8, /* fp8 */
  TL_E5M2 = 9, /* fp8 */
  TL_F16 = 10,
  TL_BF16 = 11,
  TL_F32 = 12,
  TL_F64 = 13
};
/* "bf16"; NULL for no dtype. (0.1) */
TL_API const char* tl_dtype_name(tl_dtype dtype);
/* Bytes of an element; 0 for no dtype. (0.1) */
TL_API size_t tl_dtype_size(tl_dtype dtype);

/* A runtime scalar: `i` where the program declares an integer or bool, `f` where a float. */
typedef union tl_scalar {
  int64_t i;
  double f;
} tl_scalar;

/* ---- Context
 * ------------------------------------------------------------------------------------- */

typedef struct tl_context tl_context;
typedef struct tl_kernel tl_kernel;

typedef int32_t tl_log_level;
enum { TL_LOG_INFO = 0, TL_LOG_WARNING = 1, TL_LOG_ERROR = 2 };
/* Called from any thread that uses the context; must not call back into the library. */
typedef void (*tl_log_callback)(void* user, tl_log_level level, const char* message);

typedef int32_t tl_cache_mode;
enum {
  TL_CACHE_DEFAULT = 0, /* on disk */
  TL_CACHE_MEMORY = 1,  /* in this process only */
  TL_CACHE_READ_ONLY = 2
};

typedef struct tl_context_options {
  uint32_t struct_size;
  uint32_t reserved;
  const void* next;
  /* Directory of the kernel cache. NULL: $TL_CACHE_DIR, else $XDG_CACHE_HOME/tilejit, else
   * $HOME/.cache/tilejit. If it cannot be used the cache lives in memory, and the log says so once.
   */
  const char* cache_dir;
  tl_cache_mode cache_mode;
  int32_t cpu_threads;      /* of the CPU backend; 0: all cores */
  uint64_t cache_max_bytes; /* 0: no limit; else least recently used entries go */
  tl_log_callback log;      /* NULL: nothing is logged */
  void* log_user;
  /* Accept only binaries built by the compiler that is installed here. 0: any binary of the same
   * program, options and target that the driver loads. */
  uint32_t own_builds_only;
  uint32_t reserved2;
  /* Files that tl_cache_export wrote, to be read below the cache, the first one first. They are
   * neither locked nor written and must not change meanwhile. One that cannot be used is left out,
   * and the log says why. */
  const char* const* packs;
  size_t num_packs;
} tl_context_options;

/* `options` may be NULL. Needs no driver, no compiler and no writable disk. (0.1) */
TL_API tl_status tl_context_create(const tl_context_options* options, tl_context** out);
TL_API tl_status tl_context_retain(tl_context* context);
TL_API void tl_context_release(tl_context* context);

/* ---- Devices and targets
 * ------------------------------------------------------------------------- */

typedef struct tl_device_info {
  uint32_t struct_size;
  uint32_t reserved;
  const void* next;
  const char* name;    /* "NVIDIA H200" */
  const char* backend; /* "cuda", "cpu", "reference" */
  const char* target;  /* "sm_90a" */
  int32_t ordinal;     /* within its backend, as the driver numbers them */
  int32_t units;       /* multiprocessors, cores */
  uint64_t memory_bytes;
  uint64_t l2_bytes;
  int64_t max_shared_bytes; /* of a thread block */
  int32_t clock_khz;
  int32_t memory_clock_khz;
  int32_t driver_version; /* 13000 for 13.0, 0 if there is none */
  int32_t reserved2;
} tl_device_info;

/* Devices are numbered 0..count-1, the best first: GPUs, then the CPU, then the reference
 * interpreter. (0.1) */
TL_API tl_status tl_device_count(tl_context* context, int32_t* count);
TL_API tl_status tl_device_get(tl_context* context, int32_t device, tl_device_info* info);

/* ---- Compiling
 * ----------------------------------------------------------------------------------- */

/* One compile-time value: `name` of a dim, parameter or tune parameter of the program, `value` in
 * the program's words ("4096", "bf16", "on", "relu"). */
typedef struct tl_param {
  const char* name;
  const char* value;
} tl_param;

typedef struct tl_compile_options {
  uint32_t struct_size;
  uint32_t reserved;
  const void* next;
  /* Exactly one of the two: the text of a tile program, or the name of a builtin family. */
  const char* source;
  size_t source_size; /* or TL_ZERO_TERMINATED; 0 with source set means the same */
  const char* family;
  const tl_param* params; /* dims that are not given stay dynamic */
  size_t num_params;
  /* What to compile for: NULL for device `device`, else a target ("sm_90a", "cpu", "reference") or
   * a GPU's name ("H100"), which need not be present. */
  const char* target;
  int32_t device;
  uint32_t reserved2;
  int64_t
      shared_budget; /* bytes of shared memory per block to stay within; 0: the target's limit */
} tl_compile_options;

/* Gives a kernel from memory, from the cache, or by compiling, in that order. The same request from
 * several threads compiles once. When `target` names no present device, or none of the present
 * devices has that target, the kernel cannot be launched but all else works. (0.1) */
TL_API tl_status tl_compile(tl_context* context, const tl_compile_options* options,
                            tl_kernel** out);
/* From now on nothing compiles in this context. What is in memory, in the cache and in packs is
 * served as before; a tl_compile that finds it nowhere fails with TL_UNAVAILABLE /
 * TL_REASON_NOT_READY: the message says what was missing, and the log is a plan that warms it (tl
 * warm). TL_TEXT_ASSEMBLY, which compiles, fails likewise. There is no way back. (0.1) */
TL_API tl_status tl_seal(tl_context* context);
TL_API tl_status tl_kernel_retain(tl_kernel* kernel);
TL_API void tl_kernel_release(tl_kernel* kernel);

/* ---- What a kernel is
 * ---------------------------------------------------------------------------- */

typedef int32_t tl_access;
enum { TL_ACCESS_IN = 0, TL_ACCESS_OUT = 1, TL_ACCESS_INOUT = 2 };

typedef struct tl_tensor_info {
  uint32_t struct_size;
  uint32_t reserved;
  const void* next;
  const char* name;
  tl_dtype dtype;
  tl_access access;
  int32_t rank;
  int32_t alignment; /* bytes that the pointer must be aligned to */
  const char* shape; /* "[M, K]": as declared, fixed dims as numbers */
} tl_tensor_info;

typedef struct tl_signature {
  uint32_t struct_size;
  uint32_t reserved;
  const void* next;
  const char* name; /* of the program */
  const char* target;
  uint32_t num_tensors; /* pointers of a launch */
  uint32_t num_dims;    /* dynamic dims */
  uint32_t num_strides; /* dynamic strides */
  uint32_t num_scalars;
} tl_signature;

TL_API tl_status tl_kernel_signature(const tl_kernel* kernel, tl_signature* out);
TL_API tl_status tl_kernel_tensor(const tl_kernel* kernel, uint32_t index, tl_tensor_info* out);
/* Names in the order in which a launch takes them; NULL past the end. A dynamic stride is called
 * "X.stride0". (0.1) */
TL_API const char* tl_kernel_dim_name(const tl_kernel* kernel, uint32_t index);
TL_API const char* tl_kernel_stride_name(const tl_kernel* kernel, uint32_t index);
TL_API const char* tl_kernel_scalar_name(const tl_kernel* kernel, uint32_t index);
TL_API tl_status tl_kernel_scalar_dtype(const tl_kernel* kernel, uint32_t index, tl_dtype* out);

typedef int32_t tl_text;
enum {
  TL_TEXT_IR = 0,       /* the bound tile program */
  TL_TEXT_SOURCE = 1,   /* generated CUDA C++, LLVM IR ... */
  TL_TEXT_ASSEMBLY = 2, /* PTX, host assembly */
  TL_TEXT_SASS = 3,     /* disassembly of the GPU binary; needs nvdisasm */
  TL_TEXT_REPORT = 4,   /* JSON: parameters, choices, resources, who built it, where it came from */
  TL_TEXT_LOG = 5,      /* the compiler's log */
  TL_TEXT_BINARY = 6,   /* the bytes of the cubin, object ... */
  TL_TEXT_MAPPED = 7,   /* tile program with layouts (not yet produced: TL_UNIMPLEMENTED) */
  TL_TEXT_THREAD = 8    /* scalar statements of one thread */
};

/* *data stays valid until the kernel is released; *size excludes the NUL that follows it. (0.1) */
TL_API tl_status tl_kernel_text(tl_kernel* kernel, tl_text what, const char** data, size_t* size);

/* ---- Launching
 * ----------------------------------------------------------------------------------- */

typedef struct tl_launch_args {
  uint32_t struct_size;
  int32_t device; /* number of the device, see tl_device_get */
  const void* next;
  void* stream;
  void* const* tensors; /* num_tensors pointers, in signature order */
  const int64_t* dims;
  const int64_t* strides;
  const tl_scalar* scalars;
  uint32_t num_tensors; /* checked against the signature */
  uint32_t num_dims;
  uint32_t num_strides;
  uint32_t num_scalars;
  void* workspace; /* on the device, 256-byte aligned; may be NULL if none is needed */
  size_t workspace_size;
} tl_launch_args;

/* Bytes of workspace that a launch with these dims, strides and scalars needs (tensors, workspace
 * and stream are not looked at). (0.1) */
TL_API tl_status tl_workspace_size(const tl_kernel* kernel, const tl_launch_args* args,
                                   size_t* bytes);

/* Enqueues the kernel. The first launch on a device loads the binary there, which is refused with
 * TL_UNAVAILABLE / TL_REASON_NOT_READY while `stream` is being captured; tl_prepare does it ahead.
 * (0.1) */
TL_API tl_status tl_launch(tl_kernel* kernel, const tl_launch_args* args);
/* Loads the kernel on a device now. (0.1) */
TL_API tl_status tl_prepare(tl_kernel* kernel, int32_t device);

/* The same from DLPack tensors, borrowed for the call: `tensors` holds pointers to struct DLTensor
 * of dlpack.h. Dims and dynamic strides are read off them; dtypes, shapes, strides and devices are
 * checked, and messages name the tensor. `device`, `stream`, scalars and workspace come from
 * `args`; its tensors, dims and strides are ignored. Without a workspace the needed size is in the
 * error. (0.1) */
TL_API tl_status tl_launch_dlpack(tl_kernel* kernel, const void* const* tensors,
                                  uint32_t num_tensors, const tl_launch_args* args);

/* ---- Checking and timing
 * ------------------------------------------------------------------------- */

/* Host view of one tensor of a check: contiguous, row-major, converted to double. */
typedef struct tl_oracle_tensor {
  const char* name;
  tl_access access;
  int32_t rank;
  const int64_t* shape;
  const double* input; /* values before the launch; for outputs NULL */
  /* For outputs, to be filled by the oracle: the right values, and how far a result may be off.
   * Elements whose bound is negative are not compared. */
  double* expected;
  double* bound;
} tl_oracle_tensor;

/* Returns 0 if it filled every output. */
typedef int (*tl_oracle)(void* user, const tl_oracle_tensor* tensors, uint32_t num_tensors,
                         const int64_t* dims, const tl_scalar* scalars);

typedef struct tl_check_options {
  uint32_t struct_size;
  int32_t device;
  const void* next;
  const int64_t* dims;      /* every dynamic dim */
  const int64_t* strides;   /* NULL: every dynamic stride is that of a contiguous tensor */
  const tl_scalar* scalars; /* NULL: drawn by the init clauses */
  uint32_t num_dims;
  uint32_t num_strides;
  uint32_t num_scalars;
  uint32_t reserved;
  uint64_t seed;
  /* NULL: compare with the reference interpreter in double precision, which knows for every element
   * how far a correct kernel may be off. */
  tl_oracle oracle;
  void* oracle_user;
  /* Multiply-adds that the reference may spend; larger problems are checked on a random sample of
   * the grid. 0: 2e8. */
  uint64_t reference_work;
} tl_check_options;

typedef struct tl_check_result {
  uint32_t struct_size;
  uint32_t reserved;
  const void* next;
  double worst_ratio; /* largest error / bound; <= 1 passes */
  double worst_error; /* the error there */
  double worst_bound;
  double worst_expected;
  double worst_actual;
  uint64_t compared; /* elements; not those whose error the reference cannot bound */
  uint64_t mismatches;
  const char* worst_tensor; /* name, valid as long as the kernel; NULL if nothing was compared */
  int64_t worst_index;      /* element offset in its memory; with an oracle flat, row-major */
} tl_check_result;

/* Generates inputs by the program's init clauses, poisons outputs and what surrounds them, launches
 * on the device's own stream, compares. TL_DATA_LOSS with TL_REASON_MISMATCH when a result is off,
 * an output element was not written, or memory around a tensor was touched; *result is filled then
 * too. (0.1) */
TL_API tl_status tl_check(tl_kernel* kernel, const tl_check_options* options,
                          tl_check_result* result);

typedef struct tl_bench_options {
  uint32_t struct_size;
  int32_t device;
  const void* next;
  const int64_t* dims;
  const int64_t* strides;
  const tl_scalar* scalars;
  uint32_t num_dims;
  uint32_t num_strides;
  uint32_t num_scalars;
  uint32_t rounds; /* 0: 5; the median counts */
  uint64_t seed;
  double min_round_ns; /* device time of one round; 0: 20 ms */
  uint64_t
      rotate_bytes; /* inputs are rotated over at least this many bytes; 0: twice the L2 cache */
} tl_bench_options;

typedef struct tl_bench_result {
  uint32_t struct_size;
  uint32_t rounds;
  const void* next;
  double median_ns; /* of one launch */
  double min_ns;
  double max_ns;
  double bytes; /* tensors read and written once */
  uint64_t launches_per_round;
  uint64_t input_sets;
} tl_bench_result;

/* Device time of the kernel on random inputs. (0.1) */
TL_API tl_status tl_bench(tl_kernel* kernel, const tl_bench_options* options,
                          tl_bench_result* result);

/* ---- Cache
 * --------------------------------------------------------------------------------------- */

typedef struct tl_cache_stats {
  uint32_t struct_size;
  uint32_t reserved;
  const void* next;
  uint64_t memory_hits; /* tl_compile answered from this context's kernels */
  uint64_t hits;        /* answered from the store */
  uint64_t misses;
  uint64_t compiles;
  double compile_ns; /* spent compiling, in all */
  uint64_t evictions;
  uint64_t quarantined; /* damaged entries set aside */
  uint64_t waits;       /* calls that waited for another thread's or process' compile */
  uint64_t entries;     /* in the store now */
  uint64_t bytes;
  const char* location; /* file of the store, or "memory" */
} tl_cache_stats;

/* Counters of this context; entries and bytes are those of the store. (0.1) */
TL_API tl_status tl_cache_get_stats(tl_context* context, tl_cache_stats* out);

typedef struct tl_cache_entry {
  uint32_t struct_size;
  /* 1: this version of the library may serve it. 0: made by another version, which alone looks it
   * up. */
  uint32_t current;
  const void* next;
  const char* kernel;     /* name of the program that it was compiled from, "" if not recorded */
  const char* target;     /* with everything that changes the binary: "sm_90a", "cpu:..." */
  const char* parameters; /* JSON object of texts: dims, parameters and tune parameters */
  const char* compiler;   /* who built it */
  const char* key;        /* of the program, its parameters and the target: 32 hex digits */
  uint64_t bytes;
  int64_t created; /* seconds since 1970, by the clock of the machine that compiled it */
} tl_cache_entry;
/* The entry lives for the call. Anything but 0 ends the listing. */
typedef int (*tl_cache_entry_callback)(void* user, const tl_cache_entry* entry);

/* Calls back for every entry of the cache, oldest first, or with `pack` not NULL of that pack. Does
 * not verify them. (0.1) */
TL_API tl_status tl_cache_list(tl_context* context, const char* pack,
                               tl_cache_entry_callback callback, void* user);

typedef struct tl_cache_report {
  uint32_t struct_size;
  uint32_t reserved;
  const void* next;
  uint64_t checked; /* entries and tuned configurations */
  uint64_t damaged; /* never served; set aside where the file can be written */
  const char*
      notes; /* a line each of what was found; valid until the thread's next tl_cache_verify */
} tl_cache_report;

/* Reads and checks all of the cache, or with `pack` not NULL of that pack. TL_DATA_LOSS when
 * anything is damaged; *report is filled then too. (0.1) */
TL_API tl_status tl_cache_verify(tl_context* context, const char* pack, tl_cache_report* report);

typedef struct tl_cache_transfer {
  uint32_t struct_size;
  uint32_t reserved;
  const void* next;
  uint64_t entries; /* written to the pack; added to the cache */
  uint64_t present; /* import: entries that the cache had already */
  uint64_t records; /* tuned configurations */
  uint64_t bytes;   /* export: of the entries */
} tl_cache_transfer;

/* Writes a pack: one file with the entries that verify and that this version of the library may
 * serve, for the given targets (names as in tl_compile_options) or, with none, for all, and with
 * the tuned configurations. It replaces the file at `path` when it is complete. TL_NOT_FOUND if
 * there is no such entry. `result` may be NULL. (0.1) */
TL_API tl_status tl_cache_export(tl_context* context, const char* path, const char* const* targets,
                                 size_t num_targets, tl_cache_transfer* result);

/* Takes everything of a pack into the cache, after all of it was verified: TL_DATA_LOSS when
 * anything is damaged, and then nothing is taken. `result` may be NULL. (0.1) */
TL_API tl_status tl_cache_import(tl_context* context, const char* path, tl_cache_transfer* result);

/* ---- Families
 * ------------------------------------------------------------------------------------ */

/* Number of builtin families, name of one (NULL past the end), its tile program. (0.1) */
TL_API uint32_t tl_family_count(void);
TL_API const char* tl_family_name(uint32_t index);
TL_API const char* tl_family_source(const char* name);

#ifdef TL_EXPERIMENTAL
/* ---- Experimental
 * -------------------------------------------------------------------------------- */
/* May change in any release. What does not work yet returns TL_UNIMPLEMENTED. */

/* What has become of a candidate of tl_tune, a combination of values of the tune parameters. */
typedef int32_t tl_tune_fate;
enum {
  TL_TUNE_REFUSED = 1, /* this target cannot have it (too much shared memory ...): never compiled */
  TL_TUNE_UNBUILT = 2, /* the compiler failed */
  TL_TUNE_MEASURED = 3,    /* timed; may still win */
  TL_TUNE_STOPPED = 4,     /* too slow to win, and measured no further */
  TL_TUNE_DISQUALIFIED = 5 /* it faulted, ran past its time, or gave wrong results */
};

/* Something is known of a candidate, or more than before. Everything lives for the call. */
typedef struct tl_tune_event {
  uint32_t struct_size;
  tl_tune_fate fate;
  const void* next;
  const char* configuration; /* "bk=64 bm=128 bn=128 stages=2" */
  const char* reason;        /* why it was refused, unbuilt or disqualified, else "" */
  double median_ns;          /* of its launch so far; 0: not timed */
  double best_ns;            /* of all candidates so far; 0: none was timed */
  double default_ns;         /* of the untuned default; 0: not timed */
  double seconds;            /* since the call began, of */
  double max_seconds;
  uint64_t done; /* candidates of which something is known, of */
  uint64_t total;
} tl_tune_event;
/* Called by the thread that called tl_tune, and must not call back into the library. Anything but
 * 0 cancels. */
typedef int (*tl_tune_callback)(void* user, const tl_tune_event* event);

typedef struct tl_tune_options {
  uint32_t struct_size;
  uint32_t in_process; /* 1: candidates run in this process, which they may take down */
  const void* next;
  /* The program, its parameters, and the device to measure on; a target must be the device's. A
   * value given for a tune parameter narrows (or extends) what is tried: "64", or several as
   * "64,128". */
  const tl_compile_options* compile;
  const int64_t* dims;      /* every dynamic dim, of the launches that are timed */
  const int64_t* strides;   /* NULL: every dynamic stride is that of a contiguous tensor */
  const tl_scalar* scalars; /* NULL: drawn by the init clauses */
  uint32_t num_dims;
  uint32_t num_strides;
  uint32_t num_scalars;
  uint32_t max_candidates;  /* that are compiled; 0: no limit */
  double max_seconds;       /* must be given; what is begun when they are over is finished */
  double candidate_seconds; /* that launches of one candidate may take before it is disqualified; 0:
                               20 times the default's, and at least 2 */
  int32_t jobs;             /* how many compile at a time; 0: one per processor */
  uint32_t reserved;
  uint64_t seed; /* of the data */
  /* The helper program in which candidates run; NULL: tl-worker, beside the library or in ../bin or
   * ../libexec/tilejit of its directory. */
  const char* worker;
  /* Set to anything but 0 by any thread, atomically, to cancel; may be NULL. */
  const int32_t* cancel;
  tl_tune_callback progress; /* may be NULL */
  void* user;
} tl_tune_options;

typedef struct tl_tune_result {
  uint32_t struct_size;
  uint32_t recorded; /* 1: tl_compile takes the winner from now on, see below */
  const void* next;
  double median_ns; /* of one launch of the winner; spread of its rounds */
  double min_ns;
  double max_ns;
  double default_ns;   /* of the untuned default in the same rounds; 0: it does not run */
  double runner_up_ns; /* 0: there was none */
  double seconds;
  uint64_t space;    /* combinations that the program's conditions allow */
  uint64_t refused;  /* of these, by fate */
  uint64_t built;    /* handed to the compiler, or found in the cache */
  uint64_t measured; /* with those that were stopped */
  uint64_t stopped;
  uint64_t disqualified;
  /* Both live until the thread's next tl_tune. */
  const char* configuration; /* of the winner: "bk=64 bm=128 bn=128 stages=2" */
  const char* report;        /* JSON: all of this, and every candidate that was tried */
} tl_tune_result;

/* Looks for the values of the program's tune parameters that make it fastest on a device
 * (docs/tuning.md). Candidates that the target cannot have are dropped before they are compiled;
 * the others are compiled in parallel and run in a worker process, where one that faults, hangs or
 * gives wrong results costs only itself. The untuned default is always measured and stays unless it
 * is beaten beyond doubt. The winner is kept in the cache: a tl_compile that gives no tune
 * parameters takes it from then on, for the same program, parameters and kind of device, where the
 * dims are these or near (a request that this context has answered before keeps its kernel).
 * Narrowed so that the default is not among the candidates, nothing is recorded. *out is the
 * winner, ready to launch; `result` may be NULL. TL_CANCELLED: `progress` or `cancel` said so. */
TL_API tl_status tl_tune(tl_context* context, const tl_tune_options* options, tl_kernel** out,
                         tl_tune_result* result);

/* What the helper program tl-worker does: serves the library that started it, on socket `fd`, and
 * gives the exit code. Of no use to anybody else. */
TL_API int32_t tl_worker_main(int32_t fd);

/* One kernel of a plan is done. Everything lives for the call. */
typedef struct tl_warm_event {
  uint32_t struct_size;
  int32_t line; /* of its [[kernel]] in the plan */
  const void* next;
  const char* program; /* family or file, "source" where the plan has the text */
  const char* params;  /* "K=64 t=f16" */
  const char* target;
  uint64_t done; /* kernels so far, with this one */
  uint64_t total;
  tl_status status;
  uint32_t compiled;    /* 1: now; 0: it was in the cache, or it failed */
  const char* message;  /* of the failure, else "" */
  int32_t program_line; /* where in the program it failed, 0: no position */
  int32_t program_column;
} tl_warm_event;
/* Called for one event at a time, from any thread, and must not call back into the library.
 * Anything but 0: begin nothing more. */
typedef int (*tl_warm_callback)(void* user, const tl_warm_event* event);

typedef struct tl_warm_options {
  uint32_t struct_size;
  int32_t jobs; /* how many compile at a time; 0: one per processor */
  const void* next;
  const char* plan; /* TOML text, see docs/cache.md */
  size_t plan_size; /* or TL_ZERO_TERMINATED; 0 with plan set means the same */
  /* Where files lie that the plan names by relative paths. NULL: such a name is an error. */
  const char* directory;
  /* Not empty: instead of the plan's targets. A kernel with targets of its own keeps those that are
   * among these. */
  const char* const* targets;
  size_t num_targets;
  tl_warm_callback progress; /* may be NULL */
  void* user;
} tl_warm_options;

typedef struct tl_warm_result {
  uint32_t struct_size;
  uint32_t reserved;
  const void* next;
  uint64_t total;
  uint64_t compiled;
  uint64_t present; /* were in the cache */
  uint64_t failed;
} tl_warm_result;

/* Compiles everything in a plan into the cache; needs no device. A plan that cannot be read fails
 * at once, with the place in the plan. A kernel that fails does not keep the others from being
 * compiled; the status is then that of the first failure. TL_CANCELLED: the callback said so.
 * `result`, which may be NULL, is filled in all cases. */
TL_API tl_status tl_warm(tl_context* context, const tl_warm_options* options,
                         tl_warm_result* result);

/* A kernel of a plan with one of its parameter sets and one of its sets of dims. Everything lives
 * for the call. */
typedef struct tl_plan_stop {
  uint32_t struct_size;
  int32_t line; /* of its [[kernel]] in the plan */
  const void* next;
  const char* program;               /* family or file, "source" where the plan has the text */
  const tl_compile_options* compile; /* for the device that was asked for */
  const tl_param* dims;              /* of the launches to tune it for */
  size_t num_dims;
} tl_plan_stop;
/* May call the library. Anything but 0: go no further. */
typedef int (*tl_plan_callback)(void* user, const tl_plan_stop* stop);

typedef struct tl_plan_options {
  uint32_t struct_size;
  int32_t device;
  const void* next;
  const char* plan; /* as in tl_warm_options, these three */
  size_t plan_size;
  const char* directory;
  tl_plan_callback visit;
  void* user;
} tl_plan_options;

/* Calls `visit` for all that a plan asks for on a device, in the order written: what tl_warm
 * compiles is what tl_tune can be given. Kernels for other targets are passed over;
 * TL_INVALID_ARGUMENT where none is left. TL_CANCELLED: the callback said so. */
TL_API tl_status tl_plan_each(tl_context* context, const tl_plan_options* options);

/* What tl_compile would make of this request, as JSON, without compiling it: parameters, the
 * configuration chosen, threads and shared memory, `cached`, and where that is true the whole
 * report of the kernel. *data stays valid until the thread's next call of this function; *size
 * excludes the NUL that follows it. */
TL_API tl_status tl_query(tl_context* context, const tl_compile_options* options, const char** data,
                          size_t* size);

/* A picture of a layout (docs/layouts.md) as SVG text: who owns which element of a tile, in which
 * bank of shared memory each lies. The name is fields with colons between them:
 *     mma_a mma_b mma_c ldmatrix_a ldmatrix_b wgmma_a, each with an optional :DTYPE (bf16)
 *     wgmma_c:COLS  mfma_c:ROWS  rdna_c
 *     tiled_a:ROWSxDEPTH:WARPSxWARPS[:DTYPE]  tiled_c:ROWSxCOLS:WARPSxWARPS[:DTYPE]
 *     blocked:ROWSxCOLS[:DTYPE[:WARPS[:GROUPS]]]  (f32, 4, 1)
 *     shared:ROWSxCOLS[:DTYPE]  plain:ROWSxCOLS[:DTYPE]  (bf16; with and without swizzle)
 * *data stays valid until the thread's next call of this function; *size excludes the NUL that
 * follows it. TL_INVALID_ARGUMENT says what is wrong with a name. (0.1) */
TL_API tl_status tl_layout_svg(const char* name, const char** data, size_t* size);
#endif /* TL_EXPERIMENTAL */

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TL_TL_H_ */
