// The C functions of libtilejit_emulate.so. C, so that library and module share no object of C++.
#ifndef TILEJIT_BACKENDS_EMULATE_INTERFACE_H_
#define TILEJIT_BACKENDS_EMULATE_INTERFACE_H_

#include <cstddef>
#include <cstdint>

extern "C" {

struct tl_emulate_program;

struct tl_emulate_entry {
  const char* symbol;
  int threads, groups;
  int64_t shared_bytes;
  int producers, persistent, cluster;
};

struct tl_emulate_operand {
  const char* name;
  const void* data;
  int64_t bytes;  // -1: unknown
};

struct tl_emulate_options {
  uint64_t seed;
  int arrival;  // as tl::Arrival
  int warp_size;
};

// Functions that fail return null or non-zero and a text in *error, to be freed by
// tl_emulate_free_text.
// `language`: "cuda" or "hip".
tl_emulate_program* tl_emulate_build(const char* language, const char* source, size_t bytes,
                                     const tl_emulate_entry* entries, int num_entries,
                                     const char* compiler, char** error);
int tl_emulate_run(tl_emulate_program* program, int entry, int64_t blocks, void** params,
                   const tl_emulate_operand* operands, int num_operands,
                   const tl_emulate_options* options, char** error);
void tl_emulate_free(tl_emulate_program* program);
void tl_emulate_free_text(char* text);

}  // extern "C"

#endif  // TILEJIT_BACKENDS_EMULATE_INTERFACE_H_
