#include "backends/cuda/targets.h"

#include <cstdlib>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace tl {
namespace {

struct Arch {
  std::string_view name;
  int number;
  bool specific;   // runs on its own capability only, and has its special instructions
  int shared_kib;  // shared memory of one block, when asked for
  CudaUnit unit;   // a multiprocessor: shared memory, what a block adds to it, warps, blocks
};

// CUDA C++ Programming Guide, "Compute Capabilities". Ascending; the specific form after the plain.
constexpr int kKiB = 1024;
constexpr Arch kArchs[] = {
    {"sm_75", 75, false, 64, {64 * kKiB, 0, 32, 16}},
    {"sm_80", 80, false, 163, {164 * kKiB, kKiB, 64, 32}},
    {"sm_86", 86, false, 99, {100 * kKiB, kKiB, 48, 16}},
    {"sm_87", 87, false, 163, {164 * kKiB, kKiB, 48, 16}},
    {"sm_89", 89, false, 99, {100 * kKiB, kKiB, 48, 24}},
    {"sm_90", 90, false, 227, {228 * kKiB, kKiB, 64, 32}},
    {"sm_90a", 90, true, 227, {228 * kKiB, kKiB, 64, 32}},
    {"sm_100", 100, false, 227, {228 * kKiB, kKiB, 64, 32}},
    {"sm_100a", 100, true, 227, {228 * kKiB, kKiB, 64, 32}},
    {"sm_120", 120, false, 99, {100 * kKiB, kKiB, 48, 24}},
    {"sm_120a", 120, true, 99, {100 * kKiB, kKiB, 48, 24}},
};

struct Gpu {
  std::string_view name;
  std::string_view arch;
};

constexpr Gpu kGpus[] = {
    {"T4", "sm_75"},           {"RTX 2080", "sm_75"},   {"RTX 2080 Ti", "sm_75"},
    {"A100", "sm_80"},         {"A800", "sm_80"},       {"A30", "sm_80"},
    {"A10", "sm_86"},          {"A10G", "sm_86"},       {"A40", "sm_86"},
    {"RTX A6000", "sm_86"},    {"RTX 3080", "sm_86"},   {"RTX 3090", "sm_86"},
    {"Orin", "sm_87"},         {"L4", "sm_89"},         {"L40", "sm_89"},
    {"L40S", "sm_89"},         {"RTX 4080", "sm_89"},   {"RTX 4090", "sm_89"},
    {"RTX 6000 Ada", "sm_89"}, {"H20", "sm_90a"},       {"H100", "sm_90a"},
    {"H200", "sm_90a"},        {"H800", "sm_90a"},      {"GH200", "sm_90a"},
    {"B100", "sm_100a"},       {"B200", "sm_100a"},     {"GB200", "sm_100a"},
    {"RTX 5080", "sm_120a"},   {"RTX 5090", "sm_120a"}, {"RTX PRO 6000", "sm_120a"},
};

struct AtomRow {
  MatrixAtom atom;
  int from, until;  // architectures
};

// Fastest first among those that fit one gemm. PTX ISA, "Matrix Fragments for mma".
constexpr int kAll = 1000;
constexpr DType kF16 = DType::kF16, kBF16 = DType::kBF16, kF32 = DType::kF32, kF64 = DType::kF64;
constexpr DType kI8 = DType::kI8, kU8 = DType::kU8, kI32 = DType::kI32;
constexpr DType kE4M3 = DType::kE4M3, kE5M2 = DType::kE5M2;
constexpr AtomForm kMma = AtomForm::kMma;
constexpr AtomForm kWgmma = AtomForm::kWgmma;
constexpr AtomRow kAtoms[] = {
    {{"wgmma.m64k16.f32.f16.f16", kWgmma, kF16, kF16, kF32, 64, 8, 16}, 90, 90},
    {{"wgmma.m64k16.f16.f16.f16", kWgmma, kF16, kF16, kF16, 64, 8, 16}, 90, 90},
    {{"wgmma.m64k16.f32.bf16.bf16", kWgmma, kBF16, kBF16, kF32, 64, 8, 16}, 90, 90},
    {{"wgmma.m64k8.f32.tf32.tf32", kWgmma, kF32, kF32, kF32, 64, 8, 8, true}, 90, 90},
    {{"wgmma.m64k32.s32.s8.s8", kWgmma, kI8, kI8, kI32, 64, 8, 32}, 90, 90},
    {{"wgmma.m64k32.s32.s8.u8", kWgmma, kI8, kU8, kI32, 64, 8, 32}, 90, 90},
    {{"wgmma.m64k32.s32.u8.s8", kWgmma, kU8, kI8, kI32, 64, 8, 32}, 90, 90},
    {{"wgmma.m64k32.s32.u8.u8", kWgmma, kU8, kU8, kI32, 64, 8, 32}, 90, 90},
    {{"wgmma.m64k32.f32.e4m3.e4m3", kWgmma, kE4M3, kE4M3, kF32, 64, 8, 32, false, true}, 90, 90},
    {{"wgmma.m64k32.f32.e4m3.e5m2", kWgmma, kE4M3, kE5M2, kF32, 64, 8, 32, false, true}, 90, 90},
    {{"wgmma.m64k32.f32.e5m2.e4m3", kWgmma, kE5M2, kE4M3, kF32, 64, 8, 32, false, true}, 90, 90},
    {{"wgmma.m64k32.f32.e5m2.e5m2", kWgmma, kE5M2, kE5M2, kF32, 64, 8, 32, false, true}, 90, 90},
    {{"tl_mma_m16n8k16_f16_f16_f32", kMma, kF16, kF16, kF32, 16, 8, 16}, 80, kAll},
    {{"tl_mma_m16n8k16_f16_f16_f16", kMma, kF16, kF16, kF16, 16, 8, 16}, 80, kAll},
    {{"tl_mma_m16n8k16_bf16_bf16_f32", kMma, kBF16, kBF16, kF32, 16, 8, 16}, 80, kAll},
    {{"tl_mma_m16n8k8_tf32_tf32_f32", kMma, kF32, kF32, kF32, 16, 8, 8, true}, 80, kAll},
    {{"tl_mma_m16n8k32_i8_i8_i32", kMma, kI8, kI8, kI32, 16, 8, 32}, 80, kAll},
    {{"tl_mma_m16n8k32_i8_u8_i32", kMma, kI8, kU8, kI32, 16, 8, 32}, 80, kAll},
    {{"tl_mma_m16n8k32_u8_i8_i32", kMma, kU8, kI8, kI32, 16, 8, 32}, 80, kAll},
    {{"tl_mma_m16n8k32_u8_u8_i32", kMma, kU8, kU8, kI32, 16, 8, 32}, 80, kAll},
    {{"tl_mma_m16n8k32_e4m3_e4m3_f32", kMma, kE4M3, kE4M3, kF32, 16, 8, 32}, 89, kAll},
    {{"tl_mma_m16n8k32_e4m3_e5m2_f32", kMma, kE4M3, kE5M2, kF32, 16, 8, 32}, 89, kAll},
    {{"tl_mma_m16n8k32_e5m2_e4m3_f32", kMma, kE5M2, kE4M3, kF32, 16, 8, 32}, 89, kAll},
    {{"tl_mma_m16n8k32_e5m2_e5m2_f32", kMma, kE5M2, kE5M2, kF32, 16, 8, 32}, 89, kAll},
    {{"tl_mma_m8n8k4_f64_f64_f64", AtomForm::kDmma, kF64, kF64, kF64, 8, 8, 4}, 80, kAll},
    // Later architectures take two steps of these for one of the longer ones.
    {{"tl_mma_m16n8k8_f16_f16_f32", kMma, kF16, kF16, kF32, 16, 8, 8}, 75, 79},
    {{"tl_mma_m16n8k8_f16_f16_f16", kMma, kF16, kF16, kF16, 16, 8, 8}, 75, 79},
};

Target MakeTarget(const Arch& arch) {
  Target t;
  t.name = arch.name;
  t.identity = arch.name;
  // The specific form has the instructions of the plain one.
  if (arch.specific) t.also_runs = {std::string(arch.name.substr(0, arch.name.size() - 1))};
  t.backend = "cuda";
  t.simt = true;
  t.warp_size = 32;
  t.default_threads = 256;
  t.max_threads_per_block = 1024;
  t.max_groups = 15;  // 16 hardware barriers, one of them the block's
  t.max_shared_bytes = int64_t{arch.shared_kib} * 1024;
  t.max_blocks = std::numeric_limits<int32_t>::max();
  t.max_param_bytes = 4096;
  t.channels = arch.number >= 80;  // mbarriers
  t.register_fragments = true;
  t.async_copies = arch.number >= 80;
  t.bulk_copies = arch.number == 90;                           // TMA
  t.max_cluster = arch.number == 90 && arch.specific ? 8 : 1;  // more are not portable
  t.cache_hints = arch.number >= 80;                           // createpolicy
  t.early_starts = arch.number >= 90;
  t.registers = 65536;
  t.most_registers = 255;
  t.moves_registers = arch.number == 90 && arch.specific;  // setmaxnreg
  t.matrix_loads = true;
  t.matrix_stores = arch.number >= 90;
  for (const AtomRow& row : kAtoms) {
    const bool has = row.from <= arch.number && arch.number <= row.until;
    if (has && (arch.specific || row.atom.form != kWgmma)) t.matrix_atoms.push_back(row.atom);
  }
  return t;
}

// "NVIDIA GeForce RTX 4090" -> "rtx4090".
std::string Normalized(std::string_view name) {
  std::string text = absl::AsciiStrToLower(name);
  std::string_view rest = absl::StripAsciiWhitespace(text);
  for (std::string_view word : {"nvidia", "tesla", "geforce"}) {
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

StatusOr<Target> FindCudaTarget(std::string_view name) {
  if (const Arch* a = ArchNamed(name)) return MakeTarget(*a);
  const std::string wanted = Normalized(name);
  for (const Gpu& g : kGpus) {
    if (Normalized(g.name) == wanted) return MakeTarget(*ArchNamed(g.arch));
  }
  return absl::NotFoundError(absl::StrCat("no CUDA target is named '", name, "'"));
}

StatusOr<Target> CudaTargetOfCapability(int major, int minor) {
  const int number = 10 * major + minor;
  const Arch* best = nullptr;
  for (const Arch& a : kArchs) {
    // A binary runs on devices of its major capability and at least its minor one.
    const bool runs =
        a.specific ? a.number == number : a.number / 10 == major && a.number <= number;
    if (runs) best = &a;
  }
  if (best != nullptr) return MakeTarget(*best);
  return MakeError(absl::StatusCode::kUnimplemented,
                   absl::StrCat("devices of compute capability ", major, ".", minor,
                                " are not supported; the oldest is 7.5"),
                   {.domain = Domain::kCuda, .reason = Reason::kUnsupported});
}

std::vector<std::string> CudaTargetNames() {
  std::vector<std::string> names;
  for (const Arch& a : kArchs) names.emplace_back(a.name);
  for (const Gpu& g : kGpus) names.emplace_back(g.name);
  return names;
}

int ArchNumber(const Target& target) {
  const Arch* a = ArchNamed(target.name);
  return a != nullptr ? a->number : 0;
}

std::optional<CudaUnit> UnitOf(const Target& target) {
  const Arch* a = ArchNamed(target.name);
  return a != nullptr ? std::optional(a->unit) : std::nullopt;
}

}  // namespace tl
