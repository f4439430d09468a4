/* The whole way in plain C11: compile, launch, compare, tell a mistake. Exit code 0 when all is
 * well. */
#include <stdio.h>
#include <string.h>
#include <tl/tl.h>

static int failures = 0;

#define EXPECT(condition)                                                                 \
  do {                                                                                    \
    if (!(condition)) {                                                                   \
      tl_error_info e = TL_INIT(tl_error_info);                                           \
      const int known = tl_last_error(&e) == TL_OK;                                       \
      printf("line %d: %s (%s)\n", __LINE__, #condition, known ? e.message : "no error"); \
      ++failures;                                                                         \
    }                                                                                     \
  } while (0)

static int32_t find_device(tl_context* context, const char* backend) {
  int32_t count = 0;
  EXPECT(tl_device_count(context, &count) == TL_OK);
  for (int32_t i = 0; i < count; ++i) {
    tl_device_info info = TL_INIT(tl_device_info);
    EXPECT(tl_device_get(context, i, &info) == TL_OK);
    if (strcmp(info.backend, backend) == 0) return i;
  }
  return -1;
}

static void softmax_on(tl_context* context, const char* backend) {
  const tl_param params[] = {{"t", "f32"}};
  tl_compile_options options = TL_INIT(tl_compile_options);
  options.family = "softmax";
  options.target = backend;
  options.params = params;
  options.num_params = 1;
  tl_kernel* kernel = NULL;
  EXPECT(tl_compile(context, &options, &kernel) == TL_OK);

  tl_signature signature = TL_INIT(tl_signature);
  EXPECT(tl_kernel_signature(kernel, &signature) == TL_OK);
  EXPECT(signature.num_tensors == 2 && signature.num_dims == 2);

  const float x[2][3] = {{0, 0, 0}, {1000, 1000, -1000}};
  float y[2][3];
  memset(y, 0xff, sizeof y);
  void* tensors[] = {(void*)x, y};
  const int64_t dims[] = {2, 3};
  tl_launch_args args = TL_INIT(tl_launch_args);
  args.device = find_device(context, backend);
  args.tensors = tensors;
  args.num_tensors = 2;
  args.dims = dims;
  args.num_dims = 2;
  EXPECT(tl_launch(kernel, &args) == TL_OK);
  for (int i = 0; i < 3; ++i) EXPECT(y[0][i] > 0.3333f && y[0][i] < 0.3334f);
  EXPECT(y[1][0] == 0.5f && y[1][1] == 0.5f && y[1][2] == 0.0f);
  tl_kernel_release(kernel);
}

static void mistake(tl_context* context) {
  tl_compile_options options = TL_INIT(tl_compile_options);
  options.source = "tl 1.0\nkernel k(N: dim) {\n  launch i in N { cpoy x -> y }\n}\n";
  options.target = "reference";
  tl_kernel* kernel = NULL;
  EXPECT(tl_compile(context, &options, &kernel) == TL_INVALID_ARGUMENT);
  tl_error_info e = TL_INIT(tl_error_info);
  EXPECT(tl_last_error(&e) == TL_OK);
  EXPECT(e.line == 3 && e.column == 19 && strstr(e.message, "copy") != NULL);
}

int main(void) {
  tl_context_options options = TL_INIT(tl_context_options);
  options.cache_mode = TL_CACHE_MEMORY;
  tl_context* context = NULL;
  EXPECT(tl_context_create(&options, &context) == TL_OK);
  if (!context) return 1;
  softmax_on(context, "reference");
  softmax_on(context, "cpu");
  mistake(context);
  tl_context_release(context);
  return failures != 0;
}
