/* A builtin family from start to end: compiled for the best device (or taken from the cache),
 * launched on random data, verified against a plain loop, timed. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <tl/tl.h>

#include "device_memory.h"

enum { kM = 500, kN = 384, kK = 257 };
#define BYTES(rows, columns) ((size_t)(rows) * (columns) * sizeof(float))

static int failed(const char* what) {
  tl_error_info error = TL_INIT(tl_error_info);
  tl_last_error(&error);
  fprintf(stderr, "%s: %s: %s\n%s", what, tl_status_name(error.status), error.message, error.log);
  return 1;
}

static float* random_matrix(size_t count) {
  float* x = malloc(count * sizeof(float));
  for (size_t i = 0; x && i < count; ++i) x[i] = 2.0f * (float)rand() / (float)RAND_MAX - 1.0f;
  return x;
}

/* Largest error of c = relu(a · bᵀ) in units of what f32 sums in any order may be off. */
static double worst_error(const float* a, const float* b, const float* c) {
  double worst = 0;
  for (int i = 0; i < kM; ++i) {
    for (int j = 0; j < kN; ++j) {
      double sum = 0, magnitude = 0;
      for (int k = 0; k < kK; ++k) {
        const double product = (double)a[i * kK + k] * b[j * kK + k];
        sum += product;
        magnitude += fabs(product);
      }
      const double bound = (4 * sqrt(kK) * magnitude + fabs(sum)) * 0x1p-23;
      const double ratio = fabs(c[i * kN + j] - (sum < 0 ? 0 : sum)) / bound;
      /* Written so that a NaN counts. */
      if (!(ratio <= worst)) worst = ratio;
    }
  }
  return worst;
}

/* M, N and K stay dynamic: one kernel for all sizes. */
static tl_kernel* compile(tl_context* context, int32_t device) {
  const tl_param params[] = {{"t", "f32"}, {"act", "relu"}};
  tl_compile_options options = TL_INIT(tl_compile_options);
  tl_kernel* kernel = NULL;
  options.family = "gemm";
  options.params = params;
  options.num_params = 2;
  options.device = device;
  return tl_compile(context, &options, &kernel) == TL_OK ? kernel : NULL;
}

static int launch_and_verify(tl_kernel* kernel, int32_t device, memory* m) {
  const int64_t dims[] = {kM, kN, kK};
  float *a = random_matrix(kM * kK), *b = random_matrix(kN * kK), *c = random_matrix(kM * kN);
  void* tensors[] = {memory_upload(m, a, BYTES(kM, kK)), memory_upload(m, b, BYTES(kN, kK)),
                     memory_upload(m, c, BYTES(kM, kN))};
  tl_launch_args args = TL_INIT(tl_launch_args);
  double worst = INFINITY;
  int status = 0;
  args.device = device;
  args.tensors = tensors;
  args.num_tensors = 3;
  args.dims = dims;
  args.num_dims = 3;
  if (tl_launch(kernel, &args) != TL_OK) {
    status = failed("launch");
  } else if (memory_download(m, c, tensors[2], BYTES(kM, kN))) {
    fprintf(stderr, "cannot read the result\n");
    status = 1;
  } else {
    worst = worst_error(a, b, c);
    printf("verified: worst error / bound %.3f, %s\n", worst, worst <= 1 ? "pass" : "FAIL");
    status = !(worst <= 1);
  }
  for (int i = 0; i < 3; ++i) memory_free(m, tensors[i]);
  free(a);
  free(b);
  free(c);
  return status;
}

static int time_it(tl_kernel* kernel, int32_t device) {
  const int64_t dims[] = {kM, kN, kK};
  tl_bench_options options = TL_INIT(tl_bench_options);
  tl_bench_result result = TL_INIT(tl_bench_result);
  options.device = device;
  options.dims = dims;
  options.num_dims = 3;
  if (tl_bench(kernel, &options, &result) != TL_OK) return failed("bench");
  printf("%d x %d x %d: median %.1f us, %.1f GFLOP/s\n", kM, kN, kK, result.median_ns / 1e3,
         2.0 * kM * kN * kK / result.median_ns);
  return 0;
}

static int run(tl_context* context) {
  const int32_t best = 0;
  tl_device_info device = TL_INIT(tl_device_info);
  tl_cache_stats stats = TL_INIT(tl_cache_stats);
  memory m;
  tl_kernel* kernel;
  int status;
  if (tl_device_get(context, best, &device) != TL_OK) return failed("device");
  printf("device: %s (%s)\n", device.name, device.target);
  if (memory_open(&m, &device)) {
    fprintf(stderr, "no memory on backend %s\n", device.backend);
    return 1;
  }
  kernel = compile(context, best);
  if (!kernel) return failed("compile");
  status = launch_and_verify(kernel, best, &m) || time_it(kernel, best);
  tl_kernel_release(kernel);
  if (tl_cache_get_stats(context, &stats) != TL_OK) return failed("statistics");
  printf("cache: %llu hits, %llu compiles (%s)\n", (unsigned long long)stats.hits,
         (unsigned long long)stats.compiles, stats.location);
  return status;
}

int main(void) {
  tl_context* context = NULL;
  int status;
  if (tl_context_create(NULL, &context) != TL_OK) return failed("context");
  status = run(context);
  tl_context_release(context);
  return status;
}
