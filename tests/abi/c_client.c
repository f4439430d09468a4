/* A client in C: everything it needs is in tl.h, and everything it does wrong is told, not fatal.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tl/tl.h"

static int failures = 0;

#define EXPECT(condition)                                                     \
  do {                                                                        \
    if (!(condition)) {                                                       \
      ++failures;                                                             \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
    }                                                                         \
  } while (0)

static const char kSource[] =
    "tl 1.0\n"
    "kernel scale(N: dim; t: dtype = f32) {\n"
    "  in X: tensor<t>[N], s: f32\n"
    "  out Y: tensor<t>[N]\n"
    "  launch n in ceildiv(N, 128) {\n"
    "    x = alloc_fragment<t>[128]\n"
    "    copy X[n*128] -> x\n"
    "    parallel i in 128 { x[i] = x[i]*s }\n"
    "    copy x -> Y[n*128]\n"
    "  }\n"
    "}\n";

static int warnings = 0;
static void CountWarnings(void* user, tl_log_level level, const char* message) {
  (void)message;
  if (level >= TL_LOG_WARNING) ++*(int*)user;
}

static int FindDevice(tl_context* context, const char* backend) {
  int32_t count = 0;
  EXPECT(tl_device_count(context, &count) == TL_OK);
  for (int32_t i = 0; i < count; ++i) {
    tl_device_info info = TL_INIT(tl_device_info);
    EXPECT(tl_device_get(context, i, &info) == TL_OK);
    EXPECT(info.name != NULL && info.target != NULL);
    if (strcmp(info.backend, backend) == 0) return i;
  }
  return -1;
}

static tl_kernel* Compile(tl_context* context, int device, const char* dtype) {
  const tl_param params[] = {{"t", dtype}};
  tl_compile_options options = TL_INIT(tl_compile_options);
  options.source = kSource;
  options.source_size = TL_ZERO_TERMINATED;
  options.params = params;
  options.num_params = 1;
  options.device = device;
  tl_kernel* kernel = NULL;
  const tl_status status = tl_compile(context, &options, &kernel);
  if (status != TL_OK) {
    tl_error_info error = TL_INIT(tl_error_info);
    EXPECT(tl_last_error(&error) == TL_OK);
    fprintf(stderr, "%s: %s\n", tl_status_name(status), error.message);
  }
  EXPECT(status == TL_OK);
  return kernel;
}

static void CheckSignature(tl_kernel* kernel) {
  tl_signature signature = TL_INIT(tl_signature);
  EXPECT(tl_kernel_signature(kernel, &signature) == TL_OK);
  EXPECT(strcmp(signature.name, "scale") == 0);
  EXPECT(signature.num_tensors == 2 && signature.num_dims == 1);
  EXPECT(signature.num_strides == 0 && signature.num_scalars == 1);
  tl_tensor_info tensor = TL_INIT(tl_tensor_info);
  EXPECT(tl_kernel_tensor(kernel, 1, &tensor) == TL_OK);
  EXPECT(strcmp(tensor.name, "Y") == 0 && tensor.access == TL_ACCESS_OUT);
  EXPECT(tensor.dtype == TL_F32 && tensor.rank == 1 && strcmp(tensor.shape, "[N]") == 0);
  EXPECT(strcmp(tl_kernel_dim_name(kernel, 0), "N") == 0 && !tl_kernel_dim_name(kernel, 1));
  tl_dtype dtype = -1;
  EXPECT(tl_kernel_scalar_dtype(kernel, 0, &dtype) == TL_OK && dtype == TL_F32);
}

static void Launch(tl_kernel* kernel, int device) {
  enum { kCount = 1000 };
  float* x = malloc(kCount * sizeof(float));
  float* y = malloc(kCount * sizeof(float));
  for (int i = 0; i < kCount; ++i) x[i] = (float)i;
  void* tensors[] = {x, y};
  const int64_t dims[] = {kCount};
  tl_scalar scalars[1];
  scalars[0].f = 0.5;
  tl_launch_args args = TL_INIT(tl_launch_args);
  args.device = device;
  args.tensors = tensors;
  args.num_tensors = 2;
  args.dims = dims;
  args.num_dims = 1;
  args.scalars = scalars;
  args.num_scalars = 1;
  size_t workspace = 1;
  EXPECT(tl_workspace_size(kernel, &args, &workspace) == TL_OK && workspace == 0);
  EXPECT(tl_launch(kernel, &args) == TL_OK);
  for (int i = 0; i < kCount; ++i) EXPECT(fabs((double)y[i] - 0.5 * i) == 0);
  args.num_dims = 2;
  EXPECT(tl_launch(kernel, &args) == TL_INVALID_ARGUMENT);
  args.num_dims = 1;
  args.struct_size = 5;
  EXPECT(tl_launch(kernel, &args) == TL_INVALID_ARGUMENT);
  free(x);
  free(y);
}

static void Check(tl_kernel* kernel, int device) {
  const int64_t dims[] = {333};
  tl_check_options options = TL_INIT(tl_check_options);
  options.device = device;
  options.dims = dims;
  options.num_dims = 1;
  tl_check_result result = TL_INIT(tl_check_result);
  EXPECT(tl_check(kernel, &options, &result) == TL_OK);
  EXPECT(result.compared == 333 && result.mismatches == 0 && result.worst_ratio <= 1);
}

int main(void) {
  EXPECT(tl_version() == TL_VERSION_MAJOR * 10000 + TL_VERSION_MINOR * 100 + TL_VERSION_PATCH);
  EXPECT(tl_abi_version() == TL_ABI_VERSION);
  EXPECT(strcmp(tl_dtype_name(TL_BF16), "bf16") == 0 && tl_dtype_size(TL_F64) == 8);
  EXPECT(strcmp(tl_status_name(TL_DATA_LOSS), "DATA_LOSS") == 0);
  tl_error_info none = TL_INIT(tl_error_info);
  EXPECT(tl_last_error(&none) == TL_NOT_FOUND);

  tl_context_options options = TL_INIT(tl_context_options);
  options.cache_mode = TL_CACHE_MEMORY;
  options.log = CountWarnings;
  options.log_user = &warnings;
  tl_context* context = NULL;
  EXPECT(tl_context_create(&options, &context) == TL_OK);
  if (!context) return 1;
  static const char* const kBackends[] = {"reference", "cpu"};
  for (int i = 0; i < 2; ++i) {
    const int device = FindDevice(context, kBackends[i]);
    if (device < 0) continue;
    tl_kernel* kernel = Compile(context, device, "f32");
    if (!kernel) continue;
    CheckSignature(kernel);
    Launch(kernel, device);
    Check(kernel, device);
    tl_kernel* half = Compile(context, device, "f16");
    if (half) Check(half, device);
    tl_kernel_release(half);
    tl_kernel_release(kernel);
  }
  tl_kernel_release(NULL);
  tl_context_release(context);
  tl_context_release(NULL);
  if (failures) fprintf(stderr, "%d expectations failed\n", failures);
  return failures != 0;
}
