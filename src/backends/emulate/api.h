// What a kernel compiled for the host and the emulator know of each other. This text also stands at
// the head of every such kernel, so it includes nothing.
#ifndef TILEJIT_BACKENDS_EMULATE_API_H_
#define TILEJIT_BACKENDS_EMULATE_API_H_

enum TlAccess : int { kTlRead, kTlWrite, kTlAtomic };
// All threads of a cluster of blocks, of a block, or all of a block but its producers.
enum TlTeam : int { kTlCluster = -3, kTlEveryone = -2, kTlBlock = -1 };
enum TlMbarrierOp : int { kTlInit, kTlArrive, kTlExpect, kTlWait };

// A place in shared memory, for checks and messages. `line` counts in the generated source.
struct TlPlace {
  const char* tile;
  long long index;  // element
  unsigned offset;  // bytes in the arena, where the blocks of a cluster lie one after the other
  int line;
};

// The storage of a global tensor that a pointer argument belongs to.
struct TlExtent {
  const char* name;
  unsigned long long begin, end;  // addresses
};

// Element types of matrices that a warpgroup multiplies.
enum TlElement : int { kTlF16, kTlBF16, kTlTF32, kTlE4M3, kTlE5M2, kTlI8, kTlU8, kTlF32, kTlI32 };

// A row of instructions wgmma m64nNk(32 bytes), the same in all threads of a warpgroup but for the
// registers.
struct TlWgmma {
  int a, b, c;                            // TlElement
  int n, steps;                           // step s: descriptors s * a_step, s * b_step bytes on
  int mn_major_a, mn_major_b;             // in shared memory; else K-major
  unsigned long long a_matrix, b_matrix;  // descriptors
  int a_step, b_step;
  int add;  // to what c holds; else the first step overwrites it
  int line;
  void* c_registers;
  const void* a_registers;  // null: a_matrix
};
// Instructions of whole warps that order or wait for those.
enum TlWgmmaOp : int { kTlWgmmaFence, kTlWgmmaCommit, kTlWgmmaWait };

// A box of a global tensor, as bulk copies see it: what the 128 opaque bytes of a tensor map hold
// here. Dim 0 is the innermost.
enum : unsigned long long { kTlTensorMap = 0x70616d726f736e74ull };
enum : int { kTlMapBytes = 128 };
struct TlTensorMap {
  unsigned long long mark;  // kTlTensorMap
  unsigned long long base;
  unsigned long long extents[5];
  unsigned long long strides[4];  // bytes, of dims 1 and on
  unsigned box[5];
  int rank, element_bytes;
  int swizzle;  // bytes of a swizzled row: 0, 32, 64, 128
};
static_assert(sizeof(TlTensorMap) <= kTlMapBytes);

struct TlBulkCopy {
  TlPlace place;        // in shared memory
  unsigned begin, end;  // its tile
  const void* map;
  int rank;
  int at[5];  // element of the tensor where the box begins
  // Loads to several blocks of the cluster, by rank, at the same place in each; 0: to the thread's
  // own.
  unsigned blocks;
};
enum TlBulkOp : int { kTlBulkCommit, kTlBulkWaitRead, kTlBulkWait };

// Functions that can find a fault do not return then: the launch ends.
struct TlApi {
  void* self;
  unsigned char* arena;
  int thread, block;  // that run
  int blocks;         // of the grid
  int rank;           // of the block in its cluster
  unsigned base;      // where its shared memory begins in the arena

  void (*fail)(void* self, int line, const char* message);
  // `data`: what is about to be written.
  void (*shared)(void* self, const TlPlace* place, int bytes, int access, const void* data);
  // The same by one access of `bytes` aligned bytes; counts bank conflicts.
  void (*shared_vector)(void* self, const TlPlace* place, int bytes, int access, const void* data);
  void (*barrier)(void* self, int team, int line);  // TlTeam or a group
  // setmaxnreg: `count` registers, more than before; below 0: fewer.
  void (*registers)(void* self, int count, int line);
  // `value`: arrivals of a phase, nothing, bytes, parity.
  void (*mbarrier)(void* self, const TlPlace* place, int op, int value);
  // The mbarrier of the same place in a block of the cluster.
  void (*mbarrier_arrive_at)(void* self, const TlPlace* place, int rank);
  void (*async_move)(void* self, const TlPlace* to, const void* from, int bytes, int inside);
  void (*async_commit)(void* self);
  void (*async_wait)(void* self, int pending);
  // `inside`: the 16 bytes at `from` are in the tile.
  void (*load_matrix)(void* self, void* to, const TlPlace* from, int inside, int matrices,
                      int transpose);
  void (*store_matrix)(void* self, const TlPlace* to, int inside, const void* from, int matrices,
                       int transpose);
  // c += a * b of atom number `atom` in kTlAtoms.
  void (*mma)(void* self, int atom, void* c, const void* a, const void* b, int line);
  unsigned long long (*lane_xor)(void* self, unsigned long long value, int mask, int line);
  // The matrix of shared memory that begins at `place` in the tile [begin, end) of the arena.
  unsigned long long (*descriptor)(void* self, const TlPlace* place, unsigned begin, unsigned end,
                                   int leading, int stride, int swizzle);
  void (*wgmma)(void* self, const TlWgmma* call);
  void (*wgmma_order)(void* self, int op, int pending, int line);
  void (*proxy_fence)(void* self);
  void (*mbarrier_init_fence)(void* self);
  void (*bulk_load)(void* self, const TlBulkCopy* copy, const TlPlace* mbarrier);
  void (*bulk_store)(void* self, const TlBulkCopy* copy);
  void (*bulk_order)(void* self, int op, int pending);
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
// Those of waves of 64 lanes; their numbers go on from there.
#define TL_WAVE_ATOMS(ATOM)             \
  ATOM(tl_mfma_m32n32k8_f16_f16_f32)    \
  ATOM(tl_mfma_m16n16k16_f16_f16_f32)   \
  ATOM(tl_mfma_m32n32k8_bf16_bf16_f32)  \
  ATOM(tl_mfma_m16n16k16_bf16_bf16_f32) \
  ATOM(tl_mfma_m32n32k2_f32_f32_f32)    \
  ATOM(tl_mfma_m16n16k4_f32_f32_f32)    \
  ATOM(tl_mfma_m32n32k8_i8_i8_i32)      \
  ATOM(tl_mfma_m16n16k16_i8_i8_i32)     \
  ATOM(tl_mfma_m32n32k16_i8_i8_i32)     \
  ATOM(tl_mfma_m16n16k32_i8_i8_i32)

#endif  // TILEJIT_BACKENDS_EMULATE_API_H_
