#include "layout/matrix_fragments.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace tl {
namespace {

// Lanes 0..31 are 8 rows of 4; a register holds neighbouring elements of a row.
constexpr int64_t kLaneRows = 8, kLaneCols = 4;

int64_t RoundUp(int64_t value, int64_t step) { return (value + step - 1) / step * step; }

// Elements of one 32-bit register, or the one of a 64-bit register.
int64_t PerRegister(DType type) {
  return std::max<int64_t>(1, 4 / static_cast<int64_t>(SizeOf(type)));
}

// Places of one instruction in a tile whose rows are `pitch` elements apart.
struct Operand {
  Digits lane, slot;
};

// `rows` by `cols` elements, `run` neighbours to a register: registers down the rows first, then
// along the columns.
Operand OperandOf(int64_t rows, int64_t cols, int64_t run, int64_t pitch) {
  return {{{kLaneCols, run}, {kLaneRows, pitch}},
          {{run, 1},
           {rows / kLaneRows, kLaneRows * pitch},
           {cols / (kLaneCols * run), kLaneCols * run}}};
}

// Warps that run one instruction together, one below the other.
int64_t WarpsOf(const MatrixAtom& atom) { return atom.form == AtomForm::kWgmma ? 4 : 1; }
int64_t WarpRows(const MatrixAtom& atom) { return atom.m / WarpsOf(atom); }

constexpr int64_t kMfmaLanes = 64;

// MFMA: lanes along the `rows`, then further neighbours along the depth.
Operand MfmaFactor(int64_t rows, int64_t depth, int64_t pitch) {
  const int64_t across = kMfmaLanes / rows, run = depth / across;
  return {{{rows, pitch}, {across, run}}, {{run, 1}}};
}

// Its result, transposed: lanes along the rows, then the next four columns.
Operand MfmaSum(int64_t rows, int64_t cols, int64_t pitch) {
  constexpr int64_t kRun = 4;
  const int64_t across = kMfmaLanes / rows;
  return {{{rows, pitch}, {across, kRun}}, {{kRun, 1}, {cols / (kRun * across), kRun * across}}};
}

Operand OperandA(const MatrixAtom& atom, int64_t pitch) {
  if (atom.form == AtomForm::kMfma) return MfmaFactor(atom.m, atom.k, pitch);
  return OperandOf(WarpRows(atom), atom.k, PerRegister(atom.a), pitch);
}

Operand OperandB(const MatrixAtom& atom, int64_t pitch) {
  if (atom.form == AtomForm::kMfma) return MfmaFactor(atom.n, atom.k, pitch);
  return OperandOf(atom.n, atom.k, PerRegister(atom.b), pitch);
}

// Pairs of neighbours, whatever the type.
Operand OperandC(const MatrixAtom& atom, int64_t pitch) {
  if (atom.form == AtomForm::kMfma) return MfmaSum(atom.m, atom.n, pitch);
  return OperandOf(WarpRows(atom), atom.n, 2, pitch);
}

// `warps` down the rows of a tile of `padded_rows`, `across` of them at each place (`stride`
// apart).
Digits WarpsDown(const MatrixAtom& atom, int warps, int64_t padded_rows, int64_t pitch, int across,
                 int64_t stride) {
  const int64_t together = WarpsOf(atom), blocks = warps / together;
  return {
      {together, WarpRows(atom) * pitch}, {across, stride}, {blocks, padded_rows / blocks * pitch}};
}

FragmentLayout OneWarp(int64_t rows, int64_t cols, Operand operand) {
  return FragmentLayout({rows, cols}, {{}, {}, std::move(operand.lane), std::move(operand.slot)});
}

// Appends the instructions of one warp: `across` along the columns, then `down` along the rows.
Digits WithInstructions(Digits slot, int64_t across, int64_t cols, int64_t down,
                        int64_t row_offset) {
  slot.push_back({across, cols});
  slot.push_back({down, row_offset});
  return slot;
}

// Eight lanes' addresses make a matrix of 8 rows of 16 bytes, which becomes one register of all
// lanes.
FragmentLayout AddressesOf(int64_t rows, int64_t cols, int64_t element_bytes) {
  const int64_t run = 16 / element_bytes, down = rows / kLaneRows, across = cols / run;
  const Digits lane = {
      {kLaneRows, cols}, {down, kLaneRows * cols}, {across, run}, {4 / (down * across), 0}};
  return OneWarp(rows, cols, {lane, {{run, 1}}});
}

// What is left of digits behind their first `count` values; nullopt: no digit ends there.
std::optional<Digits> Behind(const Digits& digits, int64_t count) {
  Digits rest;
  for (const Digit& d : digits) {
    if (count % d.radix == 0) {
      count /= d.radix;
    } else if (d.radix % count == 0) {
      rest.push_back({d.radix / count, d.stride * count});
      count = 1;
    } else {
      return std::nullopt;
    }
  }
  return count == 1 ? std::optional(rest) : std::nullopt;
}

// Do the lanes hold pairs of neighbours of matrices of 8 x 8, the first of `slots` slots one pair
// of each? Lanes are `along` apart, and the next ones of four `across`.
bool HoldsMatrices(const FragmentLayout& tile, int64_t slots, int64_t along, int64_t across) {
  for (int64_t lane = 0; lane < kLaneRows * kLaneCols; ++lane) {
    const int64_t in_matrix = lane / kLaneCols * across + lane % kLaneCols * 2 * along;
    for (int64_t s = 0; s < slots; ++s) {
      const int64_t matrix = tile.At({.slot = s - s % 2});
      if (tile.At({.lane = lane, .slot = s}) != matrix + in_matrix + s % 2 * along) return false;
    }
  }
  return true;
}

FragmentLayout FourWarps(int64_t cols, Operand operand) {
  return FragmentLayout({64, cols},
                        {{}, {{4, 16 * cols}}, std::move(operand.lane), std::move(operand.slot)});
}

}  // namespace

FragmentLayout AtomA(const MatrixAtom& atom) {
  return OneWarp(atom.m, atom.k, OperandA(atom, atom.k));
}

FragmentLayout AtomB(const MatrixAtom& atom) {
  return OneWarp(atom.n, atom.k, OperandB(atom, atom.k));
}

FragmentLayout AtomC(const MatrixAtom& atom) {
  return OneWarp(atom.m, atom.n, OperandC(atom, atom.n));
}

FragmentLayout TiledC(const MatrixAtom& atom, int64_t rows, int64_t cols, int warp_rows,
                      int warp_cols) {
  const int64_t blocks = warp_rows / WarpsOf(atom);
  const int64_t padded_rows = RoundUp(rows, atom.m * blocks);
  const int64_t padded_cols = RoundUp(cols, int64_t{atom.n} * warp_cols);
  const int64_t block_cols = padded_cols / warp_cols;
  Operand c = OperandC(atom, padded_cols);
  Digits slot = WithInstructions(std::move(c.slot), block_cols / atom.n, atom.n,
                                 padded_rows / blocks / atom.m, atom.m * padded_cols);
  return FragmentLayout(
      {rows, cols}, {padded_rows, padded_cols},
      {{},
       WarpsDown(atom, warp_rows, padded_rows, padded_cols, warp_cols, block_cols),
       std::move(c.lane),
       std::move(slot)});
}

FragmentLayout TiledA(const MatrixAtom& atom, int64_t rows, int64_t depth, int warp_rows,
                      int warp_cols) {
  const int64_t blocks = warp_rows / WarpsOf(atom);
  const int64_t padded_rows = RoundUp(rows, atom.m * blocks);
  const int64_t padded_depth = RoundUp(depth, atom.k);
  Operand a = OperandA(atom, padded_depth);
  Digits slot = WithInstructions(std::move(a.slot), padded_depth / atom.k, atom.k,
                                 padded_rows / blocks / atom.m, atom.m * padded_depth);
  return FragmentLayout({rows, depth}, {padded_rows, padded_depth},
                        {{},
                         WarpsDown(atom, warp_rows, padded_rows, padded_depth, warp_cols, 0),
                         std::move(a.lane),
                         std::move(slot)});
}

FragmentLayout LdmatrixA(const MatrixAtom& atom) {
  return AddressesOf(atom.m, atom.k, SizeOf(atom.a));
}

FragmentLayout LdmatrixB(const MatrixAtom& atom) {
  return AddressesOf(atom.n, atom.k, SizeOf(atom.b));
}

std::optional<MatrixStores> StmatrixOf(const FragmentLayout& tile, bool down) {
  if (tile.rank() != 2 || tile.IsPadded() || tile.IsReplicated()) return std::nullopt;
  if (tile.size(LayoutAxis::kLane) != kLaneRows * kLaneCols) return std::nullopt;
  const int64_t pitch = tile.padded()[1];
  for (int matrices : {4, 2, 1}) {
    const int64_t slots = int64_t{matrices} * 2;
    const std::optional<Digits> rest = Behind(tile.digits(LayoutAxis::kSlot), slots);
    if (!rest) continue;
    const bool turned = HoldsMatrices(tile, slots, pitch, 1);
    if (!turned && !HoldsMatrices(tile, slots, 1, pitch)) continue;
    Digits lane = {{kLaneRows, down ? 1 : pitch}};
    for (int64_t m = 1; m < 4; m *= 2) {
      lane.push_back({2, m < matrices ? tile.At({.slot = 2 * m}) : 0});
    }
    Digits slot = {{kLaneRows, down ? pitch : 1}};
    slot.insert(slot.end(), rest->begin(), rest->end());
    FragmentLayout addresses(tile.extents(),
                             {tile.digits(LayoutAxis::kGroup), tile.digits(LayoutAxis::kWarp),
                              std::move(lane), std::move(slot)});
    return MatrixStores{matrices, turned != down, std::move(addresses)};
  }
  return std::nullopt;
}

FragmentLayout WgmmaC(int n) { return FourWarps(n, OperandOf(16, n, 2, n)); }

FragmentLayout WgmmaA(DType type) {
  const int64_t k = 32 / static_cast<int64_t>(SizeOf(type));
  return FourWarps(k, OperandOf(16, k, PerRegister(type), k));
}

FragmentLayout MfmaC(int m) {
  // Lanes along a column of four rows each, and again below those of the other lanes.
  const int64_t lane_rows = 64 / m;
  const Digits lane = {{m, 1}, {lane_rows, 4 * m}};
  const Digits slot = {{4, m}, {m / (4 * lane_rows), 4 * lane_rows * m}};
  return OneWarp(m, m, {lane, slot});
}

FragmentLayout RdnaWmmaC() { return OneWarp(16, 16, {{{32, 1}}, {{8, 32}}}); }

}  // namespace tl
