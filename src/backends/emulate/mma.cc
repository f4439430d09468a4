#include "backends/emulate/mma.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "backends/emulate/api.h"
#include "backends/emulate/elements.h"

namespace tl::emulate {
namespace {

// "tl_mma_m16n8k16_f16_f16_f32", "tl_mfma_m32n32k8_f16_f16_f32".
MatrixAtom FromName(std::string_view name) {
  const std::vector<std::string_view> words = absl::StrSplit(name, '_');
  MatrixAtom atom{name};
  const std::vector<std::string_view> extents = absl::StrSplit(words[2], absl::ByAnyChar("mnk"));
  (void)absl::SimpleAtoi(extents[1], &atom.m);
  (void)absl::SimpleAtoi(extents[2], &atom.n);
  (void)absl::SimpleAtoi(extents[3], &atom.k);
  atom.tf32 = words[3] == "tf32";
  atom.a = atom.tf32 ? DType::kF32 : *ParseDType(words[3]);
  atom.b = atom.tf32 ? DType::kF32 : *ParseDType(words[4]);
  atom.c = *ParseDType(words[5]);
  atom.form = words[1] == "mfma" ? AtomForm::kMfma : atom.m == 8 ? AtomForm::kDmma : AtomForm::kMma;
  return atom;
}

int PerRegister(DType t) { return 4 / static_cast<int>(SizeOf(t)); }

double TF32(double value) {  // to nearest, ties away from zero
  const auto x = static_cast<float>(value);
  const auto bits = std::bit_cast<uint32_t>(x);
  if ((bits & 0x7f800000u) == 0x7f800000u) return x;
  return std::bit_cast<float>((bits + 0x1000u) & ~0x1fffu);
}

double Factor(const MatrixAtom& atom, DType t, const void* p, int i) {
  const double x = ElementValue(t, p, i);
  return atom.tf32 ? TF32(x) : x;
}

}  // namespace

const MatrixAtom& AtomNumber(int atom) {
  static const std::vector<MatrixAtom> atoms = {
#define TL_ATOM(name) FromName(#name),
      TL_ATOMS(TL_ATOM) TL_WAVE_ATOMS(TL_ATOM)
#undef TL_ATOM
  };
  return atoms[static_cast<size_t>(atom)];
}

int LanesOf(const MatrixAtom& atom) { return atom.form == AtomForm::kMfma ? 64 : 32; }
int ElementsA(const MatrixAtom& atom) { return atom.m * atom.k / LanesOf(atom); }
int ElementsB(const MatrixAtom& atom) { return atom.k * atom.n / LanesOf(atom); }
int ElementsC(const MatrixAtom& atom) { return atom.m * atom.n / LanesOf(atom); }

namespace {

// Of the instruction's own operands. Its first one has rows and depth, its second one depth and
// columns: lane L, item i hold row (column) L mod m at depth i + items * (L / m). Of its result it
// holds column L mod n, and four rows at a time: 4 * (L / n) + i mod 4 + 4 * (64 / n) * (i / 4).
// The prelude hands it b's transpose first and a's second, so that its rows are c's columns.
Position PlaceInFirst(const MatrixAtom& atom, int lane, int i, int items) {
  return {lane % atom.m, i + items * (lane / atom.m)};
}
Position PlaceInResult(const MatrixAtom& atom, int lane, int i) {
  const int together = 64 / atom.n;
  return {4 * (lane / atom.n) + i % 4 + 4 * together * (i / 4), lane % atom.n};
}
Position Transposed(Position p) { return {p.col, p.row}; }

}  // namespace

Position PlaceInA(const MatrixAtom& atom, int lane, int i) {
  if (atom.form == AtomForm::kMfma) return PlaceInFirst(atom, lane, i, ElementsA(atom));
  if (atom.form == AtomForm::kDmma) return {lane / 4, lane % 4};
  const int per = PerRegister(atom.a), reg = i / per;
  return {lane / 4 + 8 * (reg % 2), lane % 4 * per + i % per + reg / 2 * 4 * per};
}

Position PlaceInB(const MatrixAtom& atom, int lane, int i) {
  if (atom.form == AtomForm::kMfma) {
    return Transposed(PlaceInFirst(atom, lane, i, ElementsB(atom)));
  }
  if (atom.form == AtomForm::kDmma) return {lane % 4, lane / 4};
  const int per = PerRegister(atom.b), reg = i / per;
  return {lane % 4 * per + i % per + reg * 4 * per, lane / 4};
}

Position PlaceInC(const MatrixAtom& atom, int lane, int i) {
  if (atom.form == AtomForm::kMfma) return Transposed(PlaceInResult(atom, lane, i));
  if (atom.form == AtomForm::kDmma) return {lane / 4, lane % 4 * 2 + i};
  return {lane / 4 + 8 * (i / 2), lane % 4 * 2 + i % 2};
}

void Mma(const MatrixAtom& atom, void* const* c, const void* const* a, const void* const* b) {
  constexpr int kRows = 32, kCols = 32, kDepth = 32;  // the largest
  const int lanes = LanesOf(atom);
  double left[kRows][kDepth], right[kDepth][kCols], sum[kRows][kCols];
  for (int row = 0; row < atom.m; ++row) std::fill_n(sum[row], atom.n, 0.0);
  for (int lane = 0; lane < lanes; ++lane) {
    for (int i = 0; i < ElementsA(atom); ++i) {
      const Position p = PlaceInA(atom, lane, i);
      left[p.row][p.col] = Factor(atom, atom.a, a[lane], i);
    }
    for (int i = 0; i < ElementsB(atom); ++i) {
      const Position p = PlaceInB(atom, lane, i);
      right[p.row][p.col] = Factor(atom, atom.b, b[lane], i);
    }
  }
  for (int row = 0; row < atom.m; ++row) {
    for (int k = 0; k < atom.k; ++k) {
      for (int col = 0; col < atom.n; ++col) sum[row][col] += left[row][k] * right[k][col];
    }
  }
  for (int lane = 0; lane < lanes; ++lane) {
    for (int i = 0; i < ElementsC(atom); ++i) {
      const Position p = PlaceInC(atom, lane, i);
      AddToElement(atom.c, c[lane], i, sum[p.row][p.col]);
    }
  }
}

}  // namespace tl::emulate
