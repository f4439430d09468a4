// What a kernel compiled for the host and the emulator know of each other. This text also stands at
// the head of every such kernel, so it includes nothing.
#ifndef TILEJIT_BACKENDS_EMULATE_API_H_
#define TILEJIT_BACKENDS_EMULATE_API_H_

enum TlAccess : int { kTlRead, kTlWrite, kTlAtomic };
enum TlMbarrierOp : int { kTlInit, kTlArrive, kTlWait };

// A place in shared memory, for checks and messages. `line` counts in the generated source.
struct TlPlace {
  const char* tile;
  long long index;  // element
  unsigned offset;  // bytes in the arena
  int line;
};

// The storage of a global tensor that a pointer argument belongs to.
struct TlExtent {
  const char* name;
  unsigned long long begin, end;  // addresses
};

// Functions that can find a fault do not return then: the launch ends.
struct TlApi {
  void* self;
  unsigned char* arena;
  int thread, block;  // that run

  void (*fail)(void* self, int line, const char* message);
  // `data`: what is about to be written.
  void (*shared)(void* self, const TlPlace* place, int bytes, int access, const void* data);
  // The same by one access of `bytes` aligned bytes; counts bank conflicts.
  void (*shared_vector)(void* self, const TlPlace* place, int bytes, int access, const void* data);
  void (*barrier)(void* self, int group, int line);  // group -1: the block
  // `value`: arrivals of a phase, nothing, parity.
  void (*mbarrier)(void* self, const TlPlace* place, int op, int value);
  void (*async_move)(void* self, const TlPlace* to, const void* from, int bytes, int inside);
  void (*async_commit)(void* self);
  void (*async_wait)(void* self, int pending);
  // `inside`: the 16 bytes at `from` are in the tile.
  void (*load_matrix)(void* self, void* to, const TlPlace* from, int inside, int matrices,
                      int transpose);
  // c += a * b of atom number `atom` in kTlAtoms.
  void (*mma)(void* self, int atom, void* c, const void* a, const void* b, int line);
  unsigned long long (*lane_xor)(void* self, unsigned long long value, int mask, int line);
};

// Runs an entry of a compiled kernel in one thread; extents of its arguments, in their order.
typedef void TlBody(void** params, const TlExtent* extents);
// "tl_entry" of a compiled kernel.
typedef TlBody* TlGetEntry(int entry, TlApi* api);

// The matrix instructions that the emulator knows, in the order of their numbers.
#define TL_ATOMS(ATOM)                \
  ATOM(tl_mma_m16n8k16_f16_f16_f32)   \
  ATOM(tl_mma_m16n8k16_f16_f16_f16)   \
  ATOM(tl_mma_m16n8k16_bf16_bf16_f32) \
  ATOM(tl_mma_m16n8k8_tf32_tf32_f32)  \
  ATOM(tl_mma_m16n8k32_i8_i8_i32)     \
  ATOM(tl_mma_m16n8k32_i8_u8_i32)     \
  ATOM(tl_mma_m16n8k32_u8_i8_i32)     \
  ATOM(tl_mma_m16n8k32_u8_u8_i32)     \
  ATOM(tl_mma_m16n8k32_e4m3_e4m3_f32) \
  ATOM(tl_mma_m16n8k32_e4m3_e5m2_f32) \
  ATOM(tl_mma_m16n8k32_e5m2_e4m3_f32) \
  ATOM(tl_mma_m16n8k32_e5m2_e5m2_f32) \
  ATOM(tl_mma_m8n8k4_f64_f64_f64)     \
  ATOM(tl_mma_m16n8k8_f16_f16_f32)    \
  ATOM(tl_mma_m16n8k8_f16_f16_f16)

#endif  // TILEJIT_BACKENDS_EMULATE_API_H_
