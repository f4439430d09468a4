/* Tunes softmax for one shape and launches the winner: the example of docs/tuning.md. */
#define TL_EXPERIMENTAL
#include <stdio.h>
#include <string.h>
#include <tl/tl.h>

static int on_event(void* user, const tl_tune_event* e) {
  (void)user;
  if (e->fate == TL_TUNE_DISQUALIFIED) fprintf(stderr, "%s: %s\n", e->configuration, e->reason);
  return 0; /* anything else cancels */
}

static int fail(void) {
  tl_error_info error = TL_INIT(tl_error_info);
  if (tl_last_error(&error) == TL_OK) fprintf(stderr, "%s\n", error.message);
  return 1;
}

int main(void) {
  const tl_param params[] = {{"t", "f32"}, {"N", "512"}}; /* M stays dynamic */
  const int64_t dims[] = {64};                            /* M of the launches that are timed */
  static float x[64 * 512], y[64 * 512];

  tl_context* context = NULL;
  if (tl_context_create(NULL, &context) != TL_OK) return fail();
  tl_compile_options compile = TL_INIT(tl_compile_options);
  tl_device_info device = TL_INIT(tl_device_info);
  while (device.backend == NULL || strcmp(device.backend, "cpu") != 0) { /* GPUs come first */
    if (tl_device_get(context, compile.device, &device) != TL_OK) return fail();
    ++compile.device;
  }
  --compile.device;
  compile.family = "softmax";
  compile.params = params;
  compile.num_params = 2;

  tl_tune_options tune = TL_INIT(tl_tune_options);
  tl_tune_result result = TL_INIT(tl_tune_result);
  tl_kernel* kernel = NULL;
  tune.compile = &compile;
  tune.dims = dims;
  tune.num_dims = 1;
  tune.max_seconds = 10;
  tune.progress = on_event;
  if (tl_tune(context, &tune, &kernel, &result) != TL_OK) return fail();
  printf("%s: %.1f us, untuned %.1f us, %d of %d measured\n", result.configuration,
         result.median_ns / 1e3, result.default_ns / 1e3, (int)result.measured, (int)result.space);

  void* tensors[] = {x, y};
  tl_launch_args args = TL_INIT(tl_launch_args);
  args.device = compile.device;
  args.tensors = tensors;
  args.num_tensors = 2;
  args.dims = dims;
  args.num_dims = 1;
  if (tl_launch(kernel, &args) != TL_OK) return fail();
  printf("1/512 is %g\n", y[0]);
  tl_kernel_release(kernel);
  tl_context_release(context);
  return 0;
}
