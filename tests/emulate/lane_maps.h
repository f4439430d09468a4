// Kernels that show which lane and register holds which element, for every function of the prelude
// that a whole warp takes part in. Each runs on one warp, from given registers to registers; the
// same on a GPU and in the emulator.
#ifndef TILEJIT_TESTS_EMULATE_LANE_MAPS_H_
#define TILEJIT_TESTS_EMULATE_LANE_MAPS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "backends/backend.h"
#include "backends/c_family/prelude.h"
#include "backends/emulate/mma.h"
#include "base/dtype.h"

namespace tl::testing {

inline constexpr int kLanes = 32;
inline constexpr int kWords = 12;   // in, of each lane: A, B and C with four each
inline constexpr int kResults = 4;  // out, of each lane

struct LaneProbe {
  std::string name;
  std::vector<uint32_t> in;  // kLanes * kWords
};

// Registers of one lane: small numbers that differ between lanes and elements.
inline void FillOperand(DType t, int elements, int lane, int which, uint32_t* words) {
  auto* bytes = reinterpret_cast<uint8_t*>(words);
  for (int i = 0; i < elements; ++i) {
    const int value = (lane * 5 + i * 3 + which * 2 + lane * i) % 7;
    StoreElement(t, bytes + i * SizeOf(t), t == DType::kU8 ? value : value - 3);
  }
}

inline LaneProbe MmaProbe(const MatrixAtom& atom) {
  LaneProbe probe{std::string(atom.name), std::vector<uint32_t>(kLanes * kWords)};
  for (int lane = 0; lane < kLanes; ++lane) {
    uint32_t* words = &probe.in[static_cast<size_t>(lane * kWords)];
    FillOperand(atom.a, emulate::ElementsA(atom), lane, 0, words);
    FillOperand(atom.b, emulate::ElementsB(atom), lane, 1, words + 4);
    FillOperand(atom.c, emulate::ElementsC(atom), lane, 2, words + 8);
  }
  return probe;
}

inline std::vector<LaneProbe> LaneProbes() {
  std::vector<LaneProbe> probes;
  for (int i = 0; i < emulate::kNumAtoms; ++i) probes.push_back(MmaProbe(emulate::AtomNumber(i)));
  for (const char* trans : {"false", "true"}) {
    for (int matrices : {1, 2, 4}) {
      LaneProbe probe{absl::StrCat("tl_load_matrix<", matrices, ", ", trans, ">"), {}};
      for (uint32_t i = 0; i < kLanes * kWords; ++i) probe.in.push_back(2 * i | (2 * i + 1) << 16);
      probes.push_back(std::move(probe));
    }
  }
  for (int mask : {1, 2, 4, 8, 16, 31}) {
    LaneProbe probe{absl::StrCat("tl_lane_xor ", mask), {}};
    for (uint32_t i = 0; i < kLanes * kWords; ++i) probe.in.push_back(i);
    probes.push_back(std::move(probe));
  }
  return probes;
}

inline std::string ProbeBody(const std::string& name) {
  if (name.find("tl_lane_xor") == 0) {
    const std::string mask = name.substr(name.find(' ') + 1);
    return absl::StrCat("  l0[8] = (unsigned)tl_lane_xor((int)l0[0], ", mask, ");\n");
  }
  // The first 32 rows of 16 bytes of the input, in shared memory.
  if (name.find("tl_load_matrix") == 0) {
    return absl::StrCat(
        "  for (int i = 0; i < 4; ++i) s0[thread * 4 + i] = a0[thread * 4 + i];\n"
        "  for (int i = 8; i < 12; ++i) l0[i] = 0;\n"
        "  __syncthreads();\n  ",
        name, "(&l0[8], &s0[thread * 4]);\n");
  }
  return absl::StrCat("  ", name, "(&l0[8], &l0[0], &l0[4]);\n");
}

// One entry per probe.
inline Generated ProbeSource(std::string_view primitives, const std::vector<LaneProbe>& probes) {
  Generated g;
  std::string kernels;
  for (size_t i = 0; i < probes.size(); ++i) {
    const std::string symbol = absl::StrCat("probe_", i);
    absl::StrAppend(&kernels, "extern \"C\" __global__ void ", symbol,
                    "(TL_GLOBAL(const unsigned) a0, TL_GLOBAL(unsigned) a1) {\n"
                    "  extern __shared__ __align__(1024) unsigned char arena[];\n"
                    "  TL_SHARED(unsigned, s0, 0, 128);\n"
                    "  TL_LOCAL(unsigned, l0, 12);\n"
                    "  const int thread = (int)threadIdx.x;\n"
                    "  for (int i = 0; i < 12; ++i) l0[i] = a0[thread * 12 + i];\n",
                    ProbeBody(probes[i].name),
                    "  for (int i = 0; i < 4; ++i) a1[thread * 4 + i] = l0[8 + i];\n}\n");
    g.entries.push_back({.symbol = symbol, .threads = kLanes, .groups = 1, .shared_bytes = 512});
  }
  g.language = "cuda";
  g.source = WithPrelude(primitives, kernels);
  return g;
}

// "name, lane: words" for every probe and lane; `run(entry, in)` gives the words that come out.
inline StatusOr<std::string> LaneMapText(
    const std::vector<LaneProbe>& probes,
    const std::function<StatusOr<std::vector<uint32_t>>(int, const std::vector<uint32_t>&)>& run) {
  std::string text;
  for (size_t p = 0; p < probes.size(); ++p) {
    TL_ASSIGN_OR_RETURN(const std::vector<uint32_t> out, run(static_cast<int>(p), probes[p].in));
    for (int lane = 0; lane < kLanes; ++lane) {
      absl::StrAppend(&text, probes[p].name, ", ", lane, ":");
      for (int i = 0; i < kResults; ++i) {
        absl::StrAppendFormat(&text, " %x", out[static_cast<size_t>(lane * kResults + i)]);
      }
      text += "\n";
    }
  }
  return text;
}

}  // namespace tl::testing

#endif  // TILEJIT_TESTS_EMULATE_LANE_MAPS_H_
