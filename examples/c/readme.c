/* C = A · Bᵀ on the CPU: the example of the README. */
#include <stdio.h>
#include <string.h>
#include <tl/tl.h>

int main(void) {
  const float a[2][3] = {{1, 2, 3}, {4, 5, 6}}, b[2][3] = {{1, 0, 1}, {0, 2, 0}};
  float c[2][2];
  void* tensors[] = {(void*)a, (void*)b, c};
  const int64_t dims[] = {2, 2, 3}; /* M, N, K: one kernel serves all sizes */

  tl_context* context = NULL;
  tl_kernel* kernel = NULL;
  tl_device_info cpu = TL_INIT(tl_device_info);
  tl_error_info error = TL_INIT(tl_error_info);
  tl_launch_args args = TL_INIT(tl_launch_args);
  args.tensors = tensors, args.num_tensors = 3, args.dims = dims, args.num_dims = 3;
  tl_compile_options options = TL_INIT(tl_compile_options);
  options.family = "gemm", options.target = "cpu";
  options.params = &(tl_param){"t", "f32"}, options.num_params = 1;

  tl_status status = tl_context_create(NULL, &context);
  for (; !status && (!cpu.backend || strcmp(cpu.backend, "cpu")); ++args.device)
    status = tl_device_get(context, args.device, &cpu); /* GPUs come first */
  --args.device;
  if (!status) status = tl_compile(context, &options, &kernel);
  if (!status) status = tl_launch(kernel, &args);
  if (status && !tl_last_error(&error)) fprintf(stderr, "%s\n", error.message);
  if (!status) printf("%g %g\n%g %g\n", c[0][0], c[0][1], c[1][0], c[1][1]);
  tl_kernel_release(kernel);
  tl_context_release(context);
  return status != TL_OK;
}
