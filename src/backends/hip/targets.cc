#include "backends/hip/targets.h"

#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace tl {
namespace {

struct Arch {
  std::string_view name;
  int warp_size;
  RocmVersion first;  // by the release notes
};

constexpr Arch kArchs[] = {{"gfx90a", 64, {5, 0}}, {"gfx942", 64, {6, 0}}, {"gfx1100", 32, {5, 5}}};

struct Gpu {
  std::string_view name;
  std::string_view arch;
};

constexpr Gpu kGpus[] = {
    {"MI210", "gfx90a"},        {"MI250", "gfx90a"},       {"MI250X", "gfx90a"},
    {"MI300A", "gfx942"},       {"MI300X", "gfx942"},      {"MI325X", "gfx942"},
    {"RX 7900 XTX", "gfx1100"}, {"RX 7900 XT", "gfx1100"},
};

// The first that pads a gemm least is taken; the larger ones read less. "AMD Instinct MI200
// Instruction Set Architecture", matrix arithmetic instructions.
constexpr DType kF16 = DType::kF16, kBF16 = DType::kBF16, kF32 = DType::kF32;
constexpr DType kI8 = DType::kI8, kI32 = DType::kI32;
constexpr AtomForm kMfma = AtomForm::kMfma;
constexpr MatrixAtom kGfx90a[] = {
    {"tl_mfma_m32n32k8_f16_f16_f32", kMfma, kF16, kF16, kF32, 32, 32, 8},
    {"tl_mfma_m16n16k16_f16_f16_f32", kMfma, kF16, kF16, kF32, 16, 16, 16},
    {"tl_mfma_m32n32k8_bf16_bf16_f32", kMfma, kBF16, kBF16, kF32, 32, 32, 8},
    {"tl_mfma_m16n16k16_bf16_bf16_f32", kMfma, kBF16, kBF16, kF32, 16, 16, 16},
    {"tl_mfma_m32n32k2_f32_f32_f32", kMfma, kF32, kF32, kF32, 32, 32, 2},
    {"tl_mfma_m16n16k4_f32_f32_f32", kMfma, kF32, kF32, kF32, 16, 16, 4},
    {"tl_mfma_m32n32k8_i8_i8_i32", kMfma, kI8, kI8, kI32, 32, 32, 8},
    {"tl_mfma_m16n16k16_i8_i8_i32", kMfma, kI8, kI8, kI32, 16, 16, 16},
};
// The later architecture has the same floats; its integers come in longer rows.
constexpr MatrixAtom kGfx942Integers[] = {
    {"tl_mfma_m32n32k16_i8_i8_i32", kMfma, kI8, kI8, kI32, 32, 32, 16},
    {"tl_mfma_m16n16k32_i8_i8_i32", kMfma, kI8, kI8, kI32, 16, 16, 32},
};

void AddAtoms(const Arch& arch, std::vector<MatrixAtom>& atoms) {
  if (arch.warp_size != 64) return;
  const bool later = arch.name == "gfx942";
  for (const MatrixAtom& atom : kGfx90a) {
    if (!later || atom.a != kI8) atoms.push_back(atom);
  }
  if (!later) return;
  for (const MatrixAtom& atom : kGfx942Integers) atoms.push_back(atom);
}

Target MakeTarget(const Arch& arch) {
  Target t;
  t.name = arch.name;
  t.identity = arch.name;
  t.backend = "hip";
  t.simt = true;
  t.warp_size = arch.warp_size;
  t.default_threads = 256;
  t.max_threads_per_block = 1024;
  t.max_groups = 1;  // the block's barrier is the only one
  t.max_shared_bytes = int64_t{64} * 1024;
  t.max_blocks = std::numeric_limits<int32_t>::max();
  t.max_param_bytes = 4096;
  t.register_fragments = true;
  AddAtoms(arch, t.matrix_atoms);
  return t;
}

// "AMD Instinct MI250X" -> "mi250x".
std::string Normalized(std::string_view name) {
  std::string text = absl::AsciiStrToLower(name);
  std::string_view rest = absl::StripAsciiWhitespace(text);
  for (std::string_view word : {"amd", "instinct", "radeon"}) {
    if (absl::ConsumePrefix(&rest, word)) rest = absl::StripLeadingAsciiWhitespace(rest);
  }
  std::string result;
  for (char c : rest) {
    if (c != ' ' && c != '-' && c != '_') result += c;
  }
  return result;
}

const Arch* ArchNamed(std::string_view name) {
  for (const Arch& a : kArchs) {
    if (absl::EqualsIgnoreCase(a.name, name)) return &a;
  }
  return nullptr;
}

}  // namespace

StatusOr<Target> FindHipTarget(std::string_view name) {
  if (const Arch* a = ArchNamed(name)) return MakeTarget(*a);
  const std::string wanted = Normalized(name);
  for (const Gpu& g : kGpus) {
    if (Normalized(g.name) == wanted) return MakeTarget(*ArchNamed(g.arch));
  }
  return absl::NotFoundError(absl::StrCat("no HIP target is named '", name, "'"));
}

std::vector<std::string> HipTargetNames() {
  std::vector<std::string> names;
  for (const Arch& a : kArchs) names.emplace_back(a.name);
  for (const Gpu& g : kGpus) names.emplace_back(g.name);
  return names;
}

RocmVersion FirstRocmFor(const Target& target) {
  const Arch* arch = ArchNamed(target.name);
  return arch != nullptr ? arch->first : RocmVersion{};
}

}  // namespace tl
