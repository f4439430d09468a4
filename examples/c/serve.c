/* What a server does, in C: open a context, compile ahead of time, seal, launch from several
 * threads, read the counters. Runs on the CPU, or on the interpreter where the CPU module is not
 * installed.
 *
 *   example_serve [PACK]      with PACK, a file of `tl cache export`, nothing is compiled at all
 */
#define TL_EXPERIMENTAL /* tl_warm */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <tl/tl.h>

enum { kThreads = 4, kRows = 8, kColumns = 100 };

static void log_warning(void* user, tl_log_level level, const char* message) {
  (void)user;
  if (level != TL_LOG_INFO) fprintf(stderr, "tilejit: %s\n", message);
}

/* The details of this thread's last failure. In a sealed context the log is a plan of what is
 * missing. */
static int failed(const char* what) {
  tl_error_info error = TL_INIT(tl_error_info);
  if (tl_last_error(&error) != TL_OK) return 1;
  fprintf(stderr, "%s: %s: %s\n", what, tl_status_name(error.status), error.message);
  if (error.line > 0) fprintf(stderr, "at %d:%d of the program\n", error.line, error.column);
  fputs(error.log, stderr);
  return 1;
}

static tl_status open_context(const char* pack, tl_context** context) {
  tl_context_options options = TL_INIT(tl_context_options);
  options.log = log_warning;
  if (pack) {
    options.packs = &pack;
    options.num_packs = 1;
    options.cache_mode = TL_CACHE_MEMORY; /* the pack is all there is */
  }
  return tl_context_create(&options, context);
}

/* The best device whose kernels use the host's memory. A server on a GPU takes device 0. */
static tl_status find_device(tl_context* context, int32_t* index, tl_device_info* info) {
  for (*index = 0;; ++*index) {
    const tl_status status = tl_device_get(context, *index, info);
    if (status != TL_OK) return status;
    if (!strcmp(info->backend, "cpu") || !strcmp(info->backend, "reference")) return TL_OK;
  }
}

/* Into the cache; what is there already is left alone. */
static tl_status warm(tl_context* context, const char* target) {
  static const char kPlan[] =
      "plan = 1\n"
      "[[kernel]]\n"
      "family = \"softmax\"\n"
      "params = { t = \"f32\" }\n";
  tl_warm_options options = TL_INIT(tl_warm_options);
  options.plan = kPlan;
  options.plan_size = TL_ZERO_TERMINATED;
  options.targets = &target;
  options.num_targets = 1;
  return tl_warm(context, &options, NULL);
}

static tl_status load(tl_context* context, int32_t device, tl_kernel** softmax) {
  const tl_param params[] = {{"t", "f32"}};
  tl_compile_options options = TL_INIT(tl_compile_options);
  options.family = "softmax";
  options.params = params;
  options.num_params = 1;
  options.device = device;
  return tl_compile(context, &options, softmax);
}

typedef struct worker {
  pthread_t thread;
  tl_kernel* softmax;
  int32_t device;
  int failed;
} worker;

/* One request. On a GPU the pointers are the device's and the stream is this thread's. */
static tl_status answer(const worker* w, float* x, float* y, int64_t rows) {
  void* tensors[] = {x, y};
  const int64_t dims[] = {rows, kColumns};
  tl_launch_args args = TL_INIT(tl_launch_args);
  args.device = w->device;
  args.stream = NULL;
  args.tensors = tensors;
  args.num_tensors = 2;
  args.dims = dims;
  args.num_dims = 2;
  return tl_launch(w->softmax, &args);
}

static void* work(void* argument) {
  worker* w = argument;
  float x[kRows * kColumns], y[kRows * kColumns];
  for (int i = 0; i < kRows * kColumns; ++i) x[i] = (float)(i * 37 % 101) / 10;
  for (int64_t rows = 1; rows <= kRows; ++rows) {
    double sum = 0;
    if (answer(w, x, y, rows) != TL_OK) w->failed |= failed("launch"); /* errors are per thread */
    for (int64_t i = 0; i < rows * kColumns; ++i) sum += y[i];
    if (!(sum > rows - 1e-3 && sum < rows + 1e-3)) w->failed = 1;
  }
  return NULL;
}

static int serve(tl_kernel* softmax, int32_t device) {
  worker workers[kThreads];
  int any = 0;
  for (int i = 0; i < kThreads; ++i) {
    workers[i] = (worker){.softmax = softmax, .device = device};
    if (pthread_create(&workers[i].thread, NULL, work, &workers[i])) return 1;
  }
  for (int i = 0; i < kThreads; ++i) {
    pthread_join(workers[i].thread, NULL);
    any |= workers[i].failed;
  }
  return any;
}

static int run(tl_context* context, const char* pack) {
  tl_device_info info = TL_INIT(tl_device_info);
  tl_cache_stats before = TL_INIT(tl_cache_stats), after = TL_INIT(tl_cache_stats);
  tl_kernel* softmax = NULL;
  int32_t device;
  int status;
  if (find_device(context, &device, &info) != TL_OK) return failed("device");
  if (!pack && warm(context, info.target) != TL_OK) return failed("warm");
  if (tl_seal(context) != TL_OK) return failed("seal");

  tl_cache_get_stats(context, &before);
  if (load(context, device, &softmax) != TL_OK) return failed("load");
  status = serve(softmax, device);
  tl_cache_get_stats(context, &after);
  printf("%s: %s; hits %llu, compiles %llu, after sealing %llu\n", info.name,
         status ? "FAILED" : "all right", (unsigned long long)after.hits,
         (unsigned long long)after.compiles,
         (unsigned long long)(after.compiles - before.compiles));
  tl_kernel_release(softmax);
  return status || after.compiles != before.compiles;
}

int main(int argc, char** argv) {
  const char* pack = argc > 1 ? argv[1] : NULL;
  tl_context* context = NULL;
  int status;
  if (open_context(pack, &context) != TL_OK) return failed("context");
  status = run(context, pack);
  tl_context_release(context);
  return status;
}
