#include "backends/emulate/mma.h"

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

namespace tl::emulate {
namespace {

constexpr int kLanes = 32;

// "tl_mma_m16n8k16_f16_f16_f32".
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
  atom.form = atom.m == 8 ? AtomForm::kDmma : AtomForm::kMma;
  return atom;
}

int PerRegister(DType t) { return 4 / static_cast<int>(SizeOf(t)); }

float TF32(float x) {  // to nearest, ties away from zero
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  if ((bits & 0x7f800000u) == 0x7f800000u) return x;
  return std::bit_cast<float>((bits + 0x1000u) & ~0x1fffu);
}

// Element values by their bits, for the types of at most 16 bits.
const std::vector<float>& Values(DType t) {
  static const auto tables = [] {
    std::array<std::vector<float>, kNumDTypes> all;
    for (DType u :
         {DType::kI8, DType::kU8, DType::kE4M3, DType::kE5M2, DType::kF16, DType::kBF16}) {
      std::vector<float>& table = all[static_cast<size_t>(u)];
      table.resize(size_t{1} << (8 * SizeOf(u)));
      for (uint32_t bits = 0; bits < table.size(); ++bits) {
        table[bits] = static_cast<float>(LoadElement(u, &bits));
      }
    }
    return all;
  }();
  return tables[static_cast<size_t>(t)];
}

double Load(const MatrixAtom& atom, DType t, const void* p, int i) {
  if (t == DType::kF64) return static_cast<const double*>(p)[i];
  if (t == DType::kI32) return static_cast<const int32_t*>(p)[i];
  if (t == DType::kF32) {
    const float x = static_cast<const float*>(p)[i];
    return atom.tf32 && t == atom.a ? TF32(x) : x;
  }
  uint32_t bits =
      SizeOf(t) == 1 ? static_cast<const uint8_t*>(p)[i] : static_cast<const uint16_t*>(p)[i];
  return Values(t)[bits];
}

void Add(DType t, void* p, int i, double sum) {
  if (t == DType::kI32) {  // wraps
    auto* c = static_cast<uint32_t*>(p) + i;
    *c += static_cast<uint32_t>(static_cast<int64_t>(sum));
  } else if (t == DType::kF64) {
    static_cast<double*>(p)[i] += sum;
  } else if (t == DType::kF32) {
    auto* c = static_cast<float*>(p) + i;
    *c = static_cast<float>(*c + sum);
  } else {
    auto* c = static_cast<uint16_t*>(p) + i;
    StoreElement(t, c, Values(t)[*c] + sum);
  }
}

}  // namespace

const MatrixAtom& AtomNumber(int atom) {
  static const std::vector<MatrixAtom> atoms = {
#define TL_ATOM(name) FromName(#name),
      TL_ATOMS(TL_ATOM)
#undef TL_ATOM
  };
  return atoms[static_cast<size_t>(atom)];
}

int ElementsA(const MatrixAtom& atom) { return atom.m * atom.k / kLanes; }
int ElementsB(const MatrixAtom& atom) { return atom.k * atom.n / kLanes; }
int ElementsC(const MatrixAtom& atom) { return atom.m * atom.n / kLanes; }

Position PlaceInA(const MatrixAtom& atom, int lane, int i) {
  if (atom.form == AtomForm::kDmma) return {lane / 4, lane % 4};
  const int per = PerRegister(atom.a), reg = i / per;
  return {lane / 4 + 8 * (reg % 2), lane % 4 * per + i % per + reg / 2 * 4 * per};
}

Position PlaceInB(const MatrixAtom& atom, int lane, int i) {
  if (atom.form == AtomForm::kDmma) return {lane % 4, lane / 4};
  const int per = PerRegister(atom.b), reg = i / per;
  return {lane % 4 * per + i % per + reg * 4 * per, lane / 4};
}

Position PlaceInC(const MatrixAtom& atom, int lane, int i) {
  if (atom.form == AtomForm::kDmma) return {lane / 4, lane % 4 * 2 + i};
  return {lane / 4 + 8 * (i / 2), lane % 4 * 2 + i % 2};
}

void Mma(const MatrixAtom& atom, void* const* c, const void* const* a, const void* const* b) {
  constexpr int kRows = 16, kCols = 8, kDepth = 32;  // the largest
  double left[kRows][kDepth], right[kDepth][kCols], sum[kRows][kCols] = {};
  for (int lane = 0; lane < kLanes; ++lane) {
    for (int i = 0; i < ElementsA(atom); ++i) {
      const Position p = PlaceInA(atom, lane, i);
      left[p.row][p.col] = Load(atom, atom.a, a[lane], i);
    }
    for (int i = 0; i < ElementsB(atom); ++i) {
      const Position p = PlaceInB(atom, lane, i);
      right[p.row][p.col] = Load(atom, atom.b, b[lane], i);
    }
  }
  for (int row = 0; row < atom.m; ++row) {
    for (int k = 0; k < atom.k; ++k) {
      for (int col = 0; col < kCols; ++col) sum[row][col] += left[row][k] * right[k][col];
    }
  }
  for (int lane = 0; lane < kLanes; ++lane) {
    for (int i = 0; i < ElementsC(atom); ++i) {
      const Position p = PlaceInC(atom, lane, i);
      Add(atom.c, c[lane], i, sum[p.row][p.col]);
    }
  }
}

}  // namespace tl::emulate
