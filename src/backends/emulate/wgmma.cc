#include "backends/emulate/wgmma.h"

#include <array>
#include <bit>
#include <cstring>

#include "backends/emulate/elements.h"
#include "base/dtype.h"

namespace tl::emulate {
namespace {

constexpr int kMaxColumns = 256, kMaxDepth = 32;
constexpr int kStepBytes = 2 * kChunk;  // of depth
constexpr unsigned kField = (1u << 14) - 1;

DType TypeOf(int element) {
  constexpr std::array types = {DType::kF16, DType::kBF16, DType::kF32, DType::kE4M3, DType::kE5M2,
                                DType::kI8,  DType::kU8,   DType::kF32, DType::kI32};
  return types[static_cast<size_t>(element)];
}

double Factor(int element, const void* p, int i) {
  const double x = ElementValue(TypeOf(element), p, i);
  if (element != kTlTF32) return x;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(static_cast<float>(x)) & ~0x1fffu);
}

struct Operand {
  int element;
  bool mn_major;
  int extent;
  SharedMatrix matrix;
};

// visit(row or column, depth, value) for every element.
template <typename F>
void ForEach(const Operand& o, const unsigned char* arena, F visit) {
  const int per = kChunk / static_cast<int>(SizeOf(TypeOf(o.element)));
  const std::vector<unsigned> chunks = Chunks(o.matrix, o.mn_major, o.extent);
  for (size_t c = 0; c < chunks.size(); ++c) {
    const int chunk = static_cast<int>(c);
    for (int e = 0; e < per; ++e) {
      const double x = Factor(o.element, arena + chunks[c], e);
      if (o.mn_major) {
        visit(chunk % (o.extent / 8) * 8 + e, chunk / (o.extent / 8), x);
      } else {
        visit(chunk / 2, chunk % 2 * per + e, x);
      }
    }
  }
}

// Element `i` of the 16 bytes that `thread` holds.
template <typename F>
void ForEachInRegisters(int element, const unsigned char* a, size_t pitch, F visit) {
  const int per_chunk = kChunk / static_cast<int>(SizeOf(TypeOf(element))), per = per_chunk / 4;
  for (int thread = 0; thread < kWarpgroup; ++thread) {
    const int warp = thread / 32, lane = thread % 32;
    for (int i = 0; i < per_chunk; ++i) {
      const int reg = i / per;
      visit(16 * warp + lane / 4 + 8 * (reg % 2), lane % 4 * per + i % per + reg / 2 * 4 * per,
            Factor(element, a + static_cast<size_t>(thread) * pitch, i));
    }
  }
}

}  // namespace

size_t BytesOf(TlElement type) { return SizeOf(TypeOf(type)); }

uint64_t Encode(const SharedMatrix& m) {
  const auto field = [](unsigned bytes) { return static_cast<uint64_t>(bytes >> 4 & kField); };
  const uint64_t mode = m.swizzle == 128 ? 1 : m.swizzle == 64 ? 2 : m.swizzle == 32 ? 3 : 0;
  return field(m.address) | field(m.leading) << 16 | field(m.stride) << 32 | mode << 62;
}

SharedMatrix Decode(uint64_t descriptor) {
  constexpr std::array swizzles = {0, 128, 64, 32};
  const auto field = [&](int bit) {
    return static_cast<unsigned>(descriptor >> bit & kField) << 4;
  };
  return {field(0), field(16), field(32), swizzles[descriptor >> 62]};
}

unsigned Swizzled(unsigned offset, int swizzle) {
  const unsigned chunks = static_cast<unsigned>(swizzle) / kChunk;  // of a row of the pattern
  return chunks == 0 ? offset : offset ^ (offset >> 7 & (chunks - 1)) << 4;
}

std::vector<unsigned> Chunks(const SharedMatrix& m, bool mn_major, int extent) {
  std::vector<unsigned> offsets;
  offsets.reserve(static_cast<size_t>(2 * extent));
  const auto add = [&](unsigned offset) {
    offsets.push_back(Swizzled(m.address + offset, m.swizzle));
  };
  const unsigned row = m.swizzle == 0 ? kChunk : static_cast<unsigned>(m.swizzle);
  const unsigned chunks = row / kChunk, size = static_cast<unsigned>(extent);
  if (!mn_major) {
    const unsigned half = m.swizzle == 0 ? m.leading : kChunk;
    for (unsigned i = 0; i < size; ++i) {
      for (unsigned j = 0; j < 2; ++j) add(i % 8 * row + i / 8 * m.stride + j * half);
    }
    return offsets;
  }
  // Without a swizzle the two offsets change places.
  const unsigned beside = m.swizzle == 0 ? m.stride : m.leading;
  const unsigned deeper = m.swizzle == 0 ? m.leading : m.stride;
  for (unsigned k = 0; k < kStepBytes / 2; ++k) {
    for (unsigned i = 0; i < size / 8; ++i) {
      add(i % chunks * kChunk + i / chunks * beside + k % 8 * row + k / 8 * deeper);
    }
  }
  return offsets;
}

SharedMatrix MatrixOfStep(uint64_t descriptor, int step_bytes, int step) {
  SharedMatrix m = Decode(descriptor);
  m.address = (m.address + static_cast<unsigned>(step * step_bytes)) & (kField << 4);
  return m;
}

void Wgmma(const TlWgmma& call, int step, const unsigned char* arena, unsigned char* c,
           const unsigned char* a) {
  double left[kWgmmaRows][kMaxDepth], right[kMaxDepth][kMaxColumns];
  const auto to_left = [&](int row, int k, double x) { left[row][k] = x; };
  if (a != nullptr) {
    ForEachInRegisters(call.a, a + step * kChunk, FactorBytes(call), to_left);
  } else {
    const SharedMatrix m = MatrixOfStep(call.a_matrix, call.a_step, step);
    ForEach({call.a, call.mn_major_a != 0, kWgmmaRows, m}, arena, to_left);
  }
  ForEach({call.b, call.mn_major_b != 0, call.n, MatrixOfStep(call.b_matrix, call.b_step, step)},
          arena, [&](int column, int k, double x) { right[k][column] = x; });
  const int depth = kStepBytes / static_cast<int>(SizeOf(TypeOf(call.a)));
  const bool add = call.add != 0 || step > 0;
  for (int row = 0; row < kWgmmaRows; ++row) {
    double sums[kMaxColumns] = {};
    for (int k = 0; k < depth; ++k) {
      for (int column = 0; column < call.n; ++column)
        sums[column] += left[row][k] * right[k][column];
    }
    for (int column = 0; column < call.n; ++column) {
      const int thread = row / 16 * 32 + row % 8 * 4 + column % 8 / 2;
      const int i = column / 8 * 4 + row % 16 / 8 * 2 + column % 2;
      unsigned char* const mine = c + static_cast<size_t>(thread) * SumBytes(call);
      if (!add) std::memset(mine + i * SizeOf(TypeOf(call.c)), 0, SizeOf(TypeOf(call.c)));
      AddToElement(TypeOf(call.c), mine, i, sums[column]);
    }
  }
}

}  // namespace tl::emulate
