// Boxes of tensors and what bulk copies do with them, from the vendor's description ("Tensors", PTX
// ISA, and cuTensorMapEncodeTiled).
#ifndef TILEJIT_BACKENDS_EMULATE_TENSOR_BOX_H_
#define TILEJIT_BACKENDS_EMULATE_TENSOR_BOX_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "backends/emulate/api.h"

namespace tl::emulate {

struct TensorBox {
  TlTensorMap map;
  std::array<int, 5> at;  // where it begins; any part of it may be outside of the tensor

  size_t bytes() const;
};

// Its elements, the innermost dim first; zeros for those outside.
std::vector<unsigned char> ReadTensor(const TensorBox& box);
// The same order; those outside are dropped.
void WriteTensor(const TensorBox& box, const std::vector<unsigned char>& elements);

// The box in shared memory, from `offset` on.
std::vector<unsigned char> ReadShared(const TensorBox& box, const unsigned char* arena,
                                      unsigned offset);
void WriteShared(const TensorBox& box, unsigned char* arena, unsigned offset,
                 const std::vector<unsigned char>& elements);

// Have they elements inside of one tensor in common?
bool Overlap(const TensorBox& a, const TensorBox& b);

// What a box's offset in shared memory is a multiple of.
unsigned AlignmentOf(const TlTensorMap& map);

}  // namespace tl::emulate

#endif  // TILEJIT_BACKENDS_EMULATE_TENSOR_BOX_H_
