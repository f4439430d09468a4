// What a warpgroup's matrix instruction computes, and where in shared memory its operands lie: from
// the vendor's description ("Asynchronous Warpgroup Level Matrix", PTX ISA), written independently
// of the compiler's layouts.
//
// One instruction multiplies 64 rows of 32 bytes by 32 bytes of n columns. A matrix of shared
// memory is taken in chunks of 16 bytes, which a swizzle permutes but never cuts.
#ifndef TILEJIT_BACKENDS_EMULATE_WGMMA_H_
#define TILEJIT_BACKENDS_EMULATE_WGMMA_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "backends/emulate/api.h"

namespace tl::emulate {

inline constexpr int kWarpgroup = 128;
inline constexpr int kWgmmaRows = 64;
inline constexpr int kChunk = 16;

// A matrix descriptor. All in bytes.
struct SharedMatrix {
  unsigned address, leading, stride;
  int swizzle;  // 0, 32, 64, 128
};
uint64_t Encode(const SharedMatrix& matrix);
SharedMatrix Decode(uint64_t descriptor);

// Where the bytes of address `offset` lie in fact.
unsigned Swizzled(unsigned offset, int swizzle);

// The chunks that one instruction reads. K-major: chunk 2 i + j holds the j-th half of row (column)
// i. MN-major, of elements of two bytes: chunk k * extent / 8 + i holds row (column) 8 i and the
// seven after it at depth k.
std::vector<unsigned> Chunks(const SharedMatrix& matrix, bool mn_major, int extent);

size_t BytesOf(TlElement type);
inline int SumsPerLane(const TlWgmma& call) { return call.n / 2; }
inline size_t SumBytes(const TlWgmma& call) {  // of a lane
  return static_cast<size_t>(SumsPerLane(call)) * BytesOf(static_cast<TlElement>(call.c));
}
// Of a lane, where A comes from registers.
inline size_t FactorBytes(const TlWgmma& call) { return static_cast<size_t>(call.steps) * kChunk; }

// One step of a call. `c` and, unless A comes from shared memory, `a`: of each thread one after the
// other. Products are exact, and their sum is rounded once; of tf32 the low bits are ignored.
void Wgmma(const TlWgmma& call, int step, const unsigned char* arena, unsigned char* c,
           const unsigned char* a);
// The matrix that step number `step` reads.
SharedMatrix MatrixOfStep(uint64_t descriptor, int step_bytes, int step);

}  // namespace tl::emulate

#endif  // TILEJIT_BACKENDS_EMULATE_WGMMA_H_
