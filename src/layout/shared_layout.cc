#include "layout/shared_layout.h"

#include <algorithm>
#include <array>
#include <bit>

namespace tl {
namespace {

constexpr int64_t kChunk = 16, kWord = 4, kBanks = 32;
constexpr int kChunkBits = 3;  // eight chunks fill all banks once

// Passes for the lanes of one phase: the most different words in one bank.
int Passes(std::vector<int64_t> words) {
  std::sort(words.begin(), words.end());
  words.erase(std::unique(words.begin(), words.end()), words.end());
  std::array<int, kBanks> in_bank{};
  for (int64_t word : words) ++in_bank[word % kBanks];
  return *std::max_element(in_bank.begin(), in_bank.end());
}

}  // namespace

Swizzle SwizzleFor(int64_t row_bytes) {
  if (row_bytes <= 0 || row_bytes % kChunk != 0) return {};
  // Rows of an odd number of chunks visit all chunk positions by themselves. With 2^a chunks to a
  // row (times something odd), 2^(3-a) rows do so, and the next ones have to be moved.
  const int bits =
      std::min(kChunkBits, std::countr_zero(static_cast<uint64_t>(row_bytes / kChunk)));
  if (bits == 0) return {};
  return {bits, kChunkBits - bits};
}

Swizzle PanelsFor(int64_t row_bytes) {
  int64_t panel = 128;
  while (row_bytes % panel != 0) panel /= 2;
  Swizzle s = SwizzleFor(panel);
  if (panel < row_bytes) s.panel_bytes = panel;
  return s;
}

int64_t SwizzledOffset(Swizzle swizzle, int64_t row_bytes, int64_t row, int64_t column,
                       int64_t rows) {
  if (const int64_t panel = swizzle.panel_bytes; panel > 0) {
    swizzle.panel_bytes = 0;
    return column / panel * rows * panel + SwizzledOffset(swizzle, panel, row, column % panel);
  }
  const int64_t mask = (int64_t{1} << swizzle.bits) - 1;
  const int64_t chunk = column / kChunk ^ (row >> swizzle.row_shift & mask);
  return row * row_bytes + chunk * kChunk + column % kChunk;
}

int BankConflicts(const std::vector<int64_t>& offsets, int bytes) {
  const size_t lanes = bytes <= 4 ? 32 : 128 / bytes;
  int extra = 0;
  for (size_t begin = 0; begin < offsets.size(); begin += lanes) {
    std::vector<int64_t> words;
    for (size_t i = begin; i < std::min(begin + lanes, offsets.size()); ++i) {
      if (offsets[i] < 0) continue;
      const int64_t last = (offsets[i] + bytes - 1) / kWord;
      for (int64_t word = offsets[i] / kWord; word <= last; ++word) words.push_back(word);
    }
    if (!words.empty()) extra += Passes(std::move(words)) - 1;
  }
  return extra;
}

}  // namespace tl
