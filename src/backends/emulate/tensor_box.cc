#include "backends/emulate/tensor_box.h"

#include <algorithm>
#include <cstring>

#include "backends/emulate/wgmma.h"

namespace tl::emulate {
namespace {

// visit(address, position in the box, bytes) for the part of every innermost row that is inside of
// the tensor.
template <typename F>
void ForEachRow(const TensorBox& box, F visit) {
  const TlTensorMap& map = box.map;
  const auto size = static_cast<int64_t>(map.element_bytes),
             width = static_cast<int64_t>(map.box[0]);
  const auto extent = static_cast<int64_t>(map.extents[0]), first = static_cast<int64_t>(box.at[0]);
  const int64_t begin = std::clamp<int64_t>(-first, 0, width);
  const int64_t end = std::clamp<int64_t>(extent - first, begin, width);
  const auto rows = static_cast<int64_t>(box.bytes()) / (width * size);
  for (int64_t row = 0; row < rows; ++row) {
    bool inside = true;
    uint64_t address = map.base + static_cast<uint64_t>((first + begin) * size);
    int64_t left = row;
    for (int d = 1; d < map.rank; ++d) {
      const int64_t at = box.at[d] + left % map.box[d];
      left /= map.box[d];
      inside = inside && at >= 0 && at < static_cast<int64_t>(map.extents[d]);
      address += static_cast<uint64_t>(at) * map.strides[d - 1];
    }
    if (!inside || begin == end) continue;
    visit(reinterpret_cast<unsigned char*>(address), (row * width + begin) * size,
          static_cast<size_t>((end - begin) * size));
  }
}

}  // namespace

size_t TensorBox::bytes() const {
  size_t product = static_cast<size_t>(map.element_bytes);
  for (int d = 0; d < map.rank; ++d) product *= map.box[d];
  return product;
}

std::vector<unsigned char> ReadTensor(const TensorBox& box) {
  std::vector<unsigned char> elements(box.bytes(), 0);
  ForEachRow(box, [&](const unsigned char* from, int64_t position, size_t bytes) {
    std::memcpy(&elements[static_cast<size_t>(position)], from, bytes);
  });
  return elements;
}

void WriteTensor(const TensorBox& box, const std::vector<unsigned char>& elements) {
  ForEachRow(box, [&](unsigned char* to, int64_t position, size_t bytes) {
    std::memcpy(to, &elements[static_cast<size_t>(position)], bytes);
  });
}

std::vector<unsigned char> ReadShared(const TensorBox& box, const unsigned char* arena,
                                      unsigned offset) {
  std::vector<unsigned char> elements(box.bytes());
  for (unsigned i = 0; i < elements.size(); i += kChunk) {
    std::memcpy(&elements[i], arena + Swizzled(offset + i, box.map.swizzle), kChunk);
  }
  return elements;
}

void WriteShared(const TensorBox& box, unsigned char* arena, unsigned offset,
                 const std::vector<unsigned char>& elements) {
  for (unsigned i = 0; i < elements.size(); i += kChunk) {
    std::memcpy(arena + Swizzled(offset + i, box.map.swizzle), &elements[i], kChunk);
  }
}

bool Overlap(const TensorBox& a, const TensorBox& b) {
  if (a.map.base != b.map.base || a.map.rank != b.map.rank) return false;
  for (int d = 0; d < a.map.rank; ++d) {
    const auto end = [&](const TensorBox& box) {
      return std::min<int64_t>(int64_t{box.at[d]} + box.map.box[d],
                               static_cast<int64_t>(box.map.extents[d]));
    };
    if (std::max({0, a.at[d], b.at[d]}) >= std::min(end(a), end(b))) return false;
  }
  return true;
}

unsigned AlignmentOf(const TlTensorMap& map) {
  return std::max(128u, 8 * static_cast<unsigned>(map.swizzle));
}

}  // namespace tl::emulate
