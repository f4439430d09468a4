/* A tile program of one's own, as a string: first with a mistake, to see how it is reported, then
 * right, on the best device: a GPU, the CPU, or the interpreter where nothing else is there. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <tl/tl.h>

#include "device_memory.h"

/* Y = alpha · X / (1 + |X|), row by row; M and N are known at launch only. */
static const char kProgram[] =
    "tl 1.0\n"
    "kernel soft_sign(M: dim, N: dim; t: dtype = f32, bm: int = 16, bn: int = 64) {\n"
    "  in X: tensor<t>[M, N], alpha: f32\n"
    "  out Y: tensor<t>[M, N]\n"
    "  launch n in ceildiv(N, bn), m in ceildiv(M, bm) {\n"
    "    x = alloc_fragment<f32>[bm, bn]\n"
    "    copy X[m*bm, n*bn] -> x\n"
    "    parallel r, c in [bm, bn] { x[r, c] = alpha * x[r, c] / (1.0 + abs(x[r, c])) }\n"
    "    copy x -> Y[m*bm, n*bn]\n"
    "  }\n"
    "}\n";
static const char kMistaken[] =
    "tl 1.0\n"
    "kernel soft_sign(M: dim, N: dim) {\n"
    "  in X: tensor<f32>[M, N]\n"
    "  out Y: tensor<f32>[M, N]\n"
    "  launch m in M {\n"
    "    x = alloc_fragment<f32>[1, 64]\n"
    "    copy X[m, 0] -> xx\n"
    "    copy x -> Y[m, 0]\n"
    "  }\n"
    "}\n";

enum { kRows = 37, kColumns = 101 };

/* The line of `text` that the error stands in, with a mark below the place. */
static void print_error(const char* text) {
  tl_error_info error = TL_INIT(tl_error_info);
  const char* line = text;
  if (tl_last_error(&error) != TL_OK) return;
  printf("%s: %s\n", tl_status_name(error.status), error.message);
  if (error.line == 0) return;
  for (int i = 1; i < error.line; ++i) line = strchr(line, '\n') + 1;
  printf("%3d | %.*s\n", error.line, (int)strcspn(line, "\n"), line);
  printf("    | %*s\n", error.column, "^");
}

static tl_kernel* compile(tl_context* context, const char* text, int32_t device) {
  tl_compile_options options = TL_INIT(tl_compile_options);
  tl_kernel* kernel = NULL;
  options.source = text;
  options.source_size = TL_ZERO_TERMINATED;
  options.device = device;
  if (tl_compile(context, &options, &kernel) != TL_OK) print_error(text);
  return kernel;
}

static int launch_and_verify(tl_kernel* kernel, int32_t device, memory* m) {
  static float x[kRows * kColumns], y[kRows * kColumns];
  void* tensors[2];
  const int64_t dims[] = {kRows, kColumns};
  const tl_scalar alpha = {.f = 2.5};
  tl_launch_args args = TL_INIT(tl_launch_args);
  int wrong = 0, launched;
  for (int i = 0; i < kRows * kColumns; ++i) x[i] = (float)(i % 201 - 100) / 10;
  tensors[0] = memory_upload(m, x, sizeof(x));
  tensors[1] = memory_upload(m, y, sizeof(y));
  args.device = device;
  args.tensors = tensors;
  args.num_tensors = 2;
  args.dims = dims;
  args.num_dims = 2;
  args.scalars = &alpha;
  args.num_scalars = 1;
  launched = tl_launch(kernel, &args) == TL_OK;
  if (!launched) print_error(kProgram);
  launched = launched && memory_download(m, y, tensors[1], sizeof(y)) == 0;
  for (int i = 0; i < 2; ++i) memory_free(m, tensors[i]);
  if (!launched) return 1;
  for (int i = 0; i < kRows * kColumns; ++i)
    wrong += !(fabs(y[i] - 2.5 * x[i] / (1 + fabs(x[i]))) <= 1e-6);
  printf("%d of %d elements wrong\n", wrong, kRows * kColumns);
  return wrong > 0;
}

int main(void) {
  tl_context* context = NULL;
  tl_kernel* kernel;
  tl_device_info info = TL_INIT(tl_device_info);
  const int32_t device = 0;
  memory m;
  int status = 1;
  if (tl_context_create(NULL, &context) != TL_OK ||
      tl_device_get(context, device, &info) != TL_OK) {
    print_error("");
    return 1;
  }
  if (memory_open(&m, &info)) {
    fprintf(stderr, "no memory on backend %s\n", info.backend);
    return 1;
  }
  printf("device: %s\n", info.name);

  printf("with a mistake:\n");
  kernel = compile(context, kMistaken, device);
  if (kernel) {
    printf("it compiled?\n");
    tl_kernel_release(kernel);
    tl_context_release(context);
    return 1;
  }

  printf("without:\n");
  kernel = compile(context, kProgram, device);
  if (kernel) status = launch_and_verify(kernel, device, &m);
  tl_kernel_release(kernel);
  tl_context_release(context);
  return status;
}
