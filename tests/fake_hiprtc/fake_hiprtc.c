/* Behaves as the environment's FAKE_HIPRTC says: a compiler, or one of the ways in which one fails.
 * Nothing that it does lasts longer than kHang seconds. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

#ifdef TL_FAKE_fake_hiprtc_other
EXPORT const char fake_hiprtc_other[] = "another build";
#endif

#ifndef TL_FAKE_fake_hiprtc_empty

enum { kOk = 0, kInvalidInput = 3, kCompilation = 6, kHang = 20 };

struct Program {
  char* source;
  const char* log;
  char code[4096];
};

static int Does(const char* what) {
  const char* wanted = getenv("FAKE_HIPRTC");
  return wanted != NULL && strcmp(wanted, what) == 0;
}

static void Print(FILE* file) {
  for (int i = 0; i < 100000; ++i) fputs("{\"blobs\":[1]} \001\377garbage\n", file);
  fflush(file);
}

static void LeaveFile(void) {
  char path[4096];
  snprintf(path, sizeof(path), "%s/left", getenv("TMPDIR"));
  FILE* file = fopen(path, "w");
  if (file == NULL) exit(3);
  fprintf(stderr, "left %s\n", path);
  fclose(file);
}

static void Misbehave(void) {
  static const char kNonsense[] = "\377\377\377\377\377\377\377\377nonsense";
  if (Does("abort")) {
    fprintf(stderr, "munmap_chunk(): invalid pointer\n");
    abort();
  }
  if (Does("segv")) {
    signal(SIGSEGV, SIG_DFL); /* a sanitizer would exit instead */
    raise(SIGSEGV);
  }
  if (Does("exit")) exit(7);
  if (Does("hang")) sleep(kHang);
  if (Does("spin")) {
    alarm(kHang);
    for (volatile unsigned i = 0;; ++i) { /* unsigned: it may wrap */
    }
  }
  if (Does("print")) {
    Print(stdout);
    Print(stderr);
  }
  if (Does("nonsense") && write(0, kNonsense, sizeof(kNonsense)) < 0) exit(3);
  if (Does("leave")) {
    LeaveFile();
    abort();
  }
}

EXPORT int hiprtcCreateProgram(struct Program** program, const char* source, const char* name,
                               int num_headers, const char* const* headers,
                               const char* const* names) {
  (void)headers;
  (void)names;
  if (Does("refuse") || name == NULL || num_headers != 0) return kInvalidInput;
  *program = calloc(1, sizeof(**program));
  (*program)->source = strdup(source);
  (*program)->log = "";
  return kOk;
}

EXPORT int hiprtcCompileProgram(struct Program* program, int num_options,
                                const char* const* options) {
  Misbehave();
  if (Does("error")) {
    program->log =
        "/tmp/comgr-8911aa/input/CompileSource:3:7: error: no such thing\n"
        "1 error generated when compiling.\n";
    return kCompilation;
  }
  if (Does("nothing")) return kOk;
  char* end = program->code;
  if (!Does("text")) end += sprintf(end, "\177ELF ");
  end += sprintf(end, "%zu bytes of source, options", strlen(program->source));
  for (int i = 0; i < num_options; ++i) end += sprintf(end, " %s", options[i]);
  return kOk;
}

EXPORT int hiprtcGetCodeSize(struct Program* program, size_t* bytes) {
  *bytes = strlen(program->code);
  return kOk;
}
EXPORT int hiprtcGetCode(struct Program* program, char* to) {
  memcpy(to, program->code, strlen(program->code));
  return kOk;
}
EXPORT int hiprtcGetProgramLogSize(struct Program* program, size_t* bytes) {
  *bytes = strlen(program->log) + 1;
  return kOk;
}
EXPORT int hiprtcGetProgramLog(struct Program* program, char* to) {
  strcpy(to, program->log);
  return kOk;
}
EXPORT const char* hiprtcGetErrorString(int result) {
  return result == kCompilation ? "HIPRTC_ERROR_COMPILATION" : "HIPRTC_ERROR_INVALID_INPUT";
}

#endif
