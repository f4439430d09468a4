// Deleting any one wait, commit, fence, barrier or bounds guard from a generated kernel must be
// noticed by the emulator, save those proven redundant, which are listed here with the reason.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "tests/emulate/emulate_testing.h"

namespace tl {
namespace {

using testing::CudaCase;
using testing::FamilyText;
using testing::Lowered;
using testing::TableText;

struct Mutant {
  int line;  // of the source, from 0
  std::string original, mutated;
};

// What stands for "inside" conditions on dims: the kernels here have dynamic dims only.
bool MentionsDims(const std::string& text) {
  return std::regex_search(text, std::regex("\\bn[0-9]\\b"));
}

std::string Replaced(const std::string& line, const std::string& pattern, const std::string& by) {
  return std::regex_replace(line, std::regex(pattern), by, std::regex_constants::format_first_only);
}

// Where the condition of the first `condition ? a : b` begins.
size_t ConditionOf(const std::string& line, size_t question) {
  int depth = 0;
  for (size_t i = question; i > 0; --i) {
    const char c = line[i - 1];
    depth += c == ')' || c == ']';
    depth -= c == '(' || c == '[';
    const bool assigned = c == ' ' && i >= 3 && line.substr(i - 3, 3) == " = ";
    if (depth < 0 || (depth == 0 && assigned)) return i;
  }
  return 0;
}

// The line with its guard gone; the same line if it has none.
std::string WithoutGuard(const std::string& line) {
  // Boxes would bring rows that the program leaves out.
  const std::string whole =
      Replaced(line, "(if \\(b[0-9] == 1( && b[0-9] == 1)*) && [^b].*\\) \\{$", "$1) {");
  if (whole != line || !MentionsDims(line)) return whole;
  if (absl::StrContains(line, "tl_async_move")) {
    return Replaced(line, ", [^,]*\\);$", ", true);");
  }
  const std::string plain = Replaced(Replaced(line, "if \\(.*\\) \\{$", "if (true) {"),
                                     "(const bool v[0-9]+ = ).*;$", "$1true;");
  const size_t question = line.find(" ? ");
  if (plain != line || question == line.npos) return plain;
  const size_t begin = ConditionOf(line, question);
  if (!MentionsDims(line.substr(begin, question - begin))) return line;
  return line.substr(0, begin) + "true" + line.substr(question);
}

std::vector<Mutant> MutantsOf(const std::string& source) {
  const std::vector<std::string> lines = absl::StrSplit(source, '\n');
  std::vector<Mutant> mutants;
  bool in_kernels = false;
  for (size_t i = 0; i < lines.size(); ++i) {
    in_kernels = in_kernels || absl::StartsWith(lines[i], kProgramMark.substr(0, 10));
    if (!in_kernels || absl::StartsWith(lines[i], "extern")) continue;
    const bool waits = std::regex_search(
        lines[i],
        std::regex("tl_async_wait<|tl_async_commit\\(|__syncthreads\\(|tl_(group|block)_barrier|"
                   "tl_mbarrier_|tl_cluster_barrier\\(|"
                   "tl_wgmma_|tl_proxy_fence\\(|tl_bulk_(commit|wait)"));
    const std::string mutated = waits ? ";" : WithoutGuard(lines[i]);
    if (mutated != lines[i]) mutants.push_back({static_cast<int>(i), lines[i], mutated});
  }
  return mutants;
}

std::string Apply(const std::string& source, const Mutant& m) {
  std::vector<std::string> lines = absl::StrSplit(source, '\n');
  lines[static_cast<size_t>(m.line)] = m.mutated;
  return absl::StrJoin(lines, "\n");
}

bool RightNumbers(const Lowered& program, const reference::GeneratedInputs& inputs,
                  const reference::Outputs& exact) {
  for (const reference::Output& out : exact.tensors) {
    size_t at = 0;
    while (program.tile.operands[at] != out.id()) ++at;
    const bool fresh = program.tile.buffer(out.id()).role == BufferRole::kOut;
    if (!reference::Compare(out, inputs.operands[at].data(), fresh).ok()) return false;
  }
  return true;
}

// The tensors `shift` elements further on: off the alignment that fast paths ask for.
class Shifted {
 public:
  Shifted(const Module& module, const reference::GeneratedInputs& inputs, int shift) {
    for (size_t i = 0; i < inputs.operands.size(); ++i) {
      const auto& m = inputs.operands[i];
      const size_t offset = shift * SizeOf(module.buffer(module.operands[i]).dtype);
      storage_.emplace_back((static_cast<size_t>(m.bytes()) + offset) / 16 + 1);
      auto* data = reinterpret_cast<uint8_t*>(storage_.back().data()) + offset;
      std::memcpy(data, m.data(), static_cast<size_t>(m.bytes()));
      operands_.push_back({absl::StrCat("a", i), data, m.bytes()});
    }
  }
  const std::vector<EmulatedOperand>& operands() const { return operands_; }
  void CopyBack(reference::GeneratedInputs& inputs) const {
    for (size_t i = 0; i < operands_.size(); ++i) {
      std::memcpy(inputs.operands[i].data(), operands_[i].data,
                  static_cast<size_t>(operands_[i].bytes));
    }
  }

 private:
  struct alignas(16) Chunk {
    uint8_t bytes[16];
  };
  std::vector<std::vector<Chunk>> storage_;
  std::vector<EmulatedOperand> operands_;
};

// What the emulator says of one run; "" if it notices nothing.
StatusOr<std::string> VerdictOn(const CudaCase& c, const Lowered& program,
                                EmulatedProgram& emulated, const std::vector<int64_t>& dims,
                                int shift) {
  TL_ASSIGN_OR_RETURN(auto inputs,
                      reference::MakeInputs(program.tile, dims, c.strides, std::nullopt, 1));
  TL_ASSIGN_OR_RETURN(const auto exact, reference::RunExact(program.tile, inputs.arguments));
  for (Arrival arrival : {Arrival::kRandom, Arrival::kEager, Arrival::kLazy}) {
    const Shifted shifted(program.tile, inputs, shift);
    TL_ASSIGN_OR_RETURN(auto results,
                        reference::MakeInputs(program.tile, dims, c.strides, std::nullopt, 1));
    const Status run = testing::RunEmulated(program.thread, emulated, shifted.operands(),
                                            inputs.arguments.host(), {.arrival = arrival});
    if (!run.ok()) return std::string(run.message());
    shifted.CopyBack(results);
    if (!RightNumbers(program, results, exact)) return std::string("wrong numbers");
  }
  return std::string();
}

// The same over all dims, tensors aligned and not.
StatusOr<std::string> Verdict(const CudaCase& c, const Lowered& program,
                              const Generated& generated) {
  TL_ASSIGN_OR_RETURN(auto emulated, EmulatedProgram::Build(generated, TL_HOST_COMPILER));
  for (const std::vector<int64_t>& dims : c.dims) {
    for (int shift : {0, 1}) {
      TL_ASSIGN_OR_RETURN(std::string verdict, VerdictOn(c, program, *emulated, dims, shift));
      if (!verdict.empty()) return verdict;
    }
  }
  return std::string();
}

// A line that may go without notice: its text, a piece of one of the four lines after it, and why.
struct Redundant {
  std::string text, before, reason;

  bool Matches(const std::vector<std::string>& lines, const Mutant& m) const {
    if (m.original.find(text) == std::string::npos) return false;
    const size_t line = static_cast<size_t>(m.line);
    for (size_t i = line + 1; i < std::min(line + 5, lines.size()); ++i) {
      if (lines[i].find(before) != std::string::npos) return true;
    }
    return false;
  }
};

void ExpectAllNoticed(const CudaCase& c, const Target& target,
                      const std::vector<Redundant>& redundant = {}) {
  SCOPED_TRACE(c.name);
  const StatusOr<Lowered> program = testing::LowerText(c.text, c.values, target);
  ASSERT_TRUE(program.ok()) << program.status();
  const StatusOr<std::string> intact = Verdict(c, *program, program->generated);
  ASSERT_TRUE(intact.ok()) << intact.status() << DetailOf(intact.status()).log;
  ASSERT_EQ(*intact, "") << program->generated.source;
  std::vector<std::string> lines = absl::StrSplit(program->generated.source, '\n');
  lines.push_back("extern");  // the last kernel ends as the others do
  int noticed = 0;
  for (const Mutant& m : MutantsOf(program->generated.source)) {
    Generated generated = program->generated;
    generated.source = Apply(generated.source, m);
    const StatusOr<std::string> verdict = Verdict(c, *program, generated);
    ASSERT_TRUE(verdict.ok()) << m.mutated << verdict.status() << DetailOf(verdict.status()).log;
    noticed += !verdict->empty();
    const auto known = [&](const Redundant& r) { return r.Matches(lines, m); };
    if (std::any_of(redundant.begin(), redundant.end(), known)) continue;
    EXPECT_NE(*verdict, "") << "line " << m.line + 1 << ": " << m.original << "\n"
                            << program->generated.source;
  }
  std::printf("%s: %d mutants noticed\n", c.name.c_str(), noticed);
}

CudaCase Gemm(const std::string& type, int stages) {
  return {absl::StrCat("gemm_", type, "_", stages),
          FamilyText("gemm"),
          {{"t", type}, {"bm", "32"}, {"bn", "32"}, {"bk", "32"}, {"stages", absl::StrCat(stages)}},
          // Vector accesses and ragged edges; scalar ones; one step, after which the tiles' memory
          // serves for C at once.
          {{44, 40, 200}, {33, 37, 50}, {32, 32, 24}},
          {}};
}

TEST(Mutation, GemmsOfOneToFourStages) {
  for (int stages = 1; stages <= 4; ++stages) {
    ExpectAllNoticed(Gemm("f16", stages), testing::TargetFor("sm_80", true));
  }
}

TEST(Mutation, GemmsOfOtherTypes) {
  ExpectAllNoticed(Gemm("f32", 2), testing::TargetFor("sm_80", true));
  ExpectAllNoticed(Gemm("i8", 3), testing::TargetFor("sm_80", true));
  ExpectAllNoticed(Gemm("bf16", 2), testing::TargetFor("sm_75", true));
}

TEST(Mutation, GemmInSharedMemory) {
  ExpectAllNoticed(Gemm("f16", 2), testing::TargetFor("sm_80", false));
}

// Sums that stay with the instructions throughout a loop.
const Redundant kFenceOfStep = {
    "tl_wgmma_fence", "",
    "one stands before the loop and one in it, which the assembler wants; the sum is not the "
    "thread's in between"};
const Redundant kWaitBehindLoop = {
    "tl_wgmma_wait", "tl_sums_out",
    "each iteration waits for its products; behind the loop the sums come to the thread"};
const std::vector<Redundant> kSumsStay = {kFenceOfStep, kWaitBehindLoop};

// Warpgroups multiply; with four slots their products run on into the next iteration.
CudaCase WarpgroupGemm(int stages) {
  CudaCase c = Gemm("f16", stages);
  c.values = {
      {"t", "f16"}, {"bm", "64"}, {"bn", "64"}, {"bk", "32"}, {"stages", absl::StrCat(stages)}};
  c.dims = {{72, 72, 200}, {64, 72, 32}};
  return c;
}

TEST(Mutation, GemmOfWarpgroups) {
  ExpectAllNoticed(WarpgroupGemm(1), testing::TargetFor("sm_90a", true));
}

TEST(Mutation, RingOfWarpgroups) {
  CudaCase c = WarpgroupGemm(3);
  c.dims.push_back({64, 72, 64});  // all copies stand before the loop
  ExpectAllNoticed(c, testing::TargetFor("sm_90a", true), kSumsStay);
}

TEST(Mutation, GemmWhoseProductsTrail) {
  CudaCase c = WarpgroupGemm(4);
  c.dims.push_back({64, 72, 320});
  c.dims.push_back({64, 72, 64});
  ExpectAllNoticed(c, testing::TargetFor("sm_90a", true), {kFenceOfStep});
}

// Threads of their own copy, from one tile to the next; and so do those that multiply.
CudaCase ResidentGemm(const std::string& copies, int stages) {
  return {absl::StrCat("product_", copies, "_", stages),
          TableText("product"),
          {{"copies", copies},
           {"stay", "on"},
           {"bn", "24"},
           {"bk", "16"},
           {"stages", absl::StrCat(stages)}},
          // Several tiles of a block; ragged ones; one step and two.
          {{500, 24, 80}, {300, 23, 24}, {60, 100, 88}, {60, 24, 32}, {60, 24, 16}},
          {}};
}

TEST(Mutation, GemmWithProducers) {
  ExpectAllNoticed(ResidentGemm("warp", 3), testing::TargetFor("sm_90a", true), kSumsStay);
}

// Groups with tiles of their own: one ring, used in turn, and C by way of shared memory.
TEST(Mutation, GemmOfOwners) {
  CudaCase c = ResidentGemm("warp", 2);
  c.name = "product_of_owners";
  c.values.insert(c.values.end(), {{"owners", "2"}, {"stores", "bulk"}});
  ExpectAllNoticed(c, testing::TargetFor("sm_90a", true), kSumsStay);
}

// Few rows by 64 columns to an instruction: the columns' maxima pass between warps, p through
// memory.
TEST(Mutation, SwappedProducts) {
  const CudaCase scores{"swapped_scores",
                        TableText("swapped_scores"),
                        {{"bm", "8"}, {"D", "64"}, {"stages", "2"}},
                        // Odd and even rows, ragged and a single short step.
                        {{9, 200}, {10, 64}, {3, 40}},
                        {}};
  ExpectAllNoticed(scores, testing::TargetFor("sm_90a", true),
                   {{"tl_proxy_fence", "l9[v76] = s4",
                     "of the next step's rows, which the fence where the loop begins orders too"}});
}

// Blocks that load for each other, all rows in boxes or none: two tiles of a block, one with a step
// more than there are slots; and one step alone.
CudaCase ClusterGemm(const std::string& n, const std::string& m, const std::string& stay) {
  CudaCase c = ResidentGemm("warp", 2);
  c.name = absl::StrCat("cluster_", n, "_", m);
  std::erase_if(c.values, [](const auto& v) { return v.first == "stay" || v.first == "bn"; });
  c.values.insert(c.values.end(),
                  {{"M", "256"}, {"N", "64"}, {"bn", "16"}, {"cn", n}, {"cm", m}, {"stay", stay}});
  c.dims = {{48}, {16}, {40}};
  return c;
}

TEST(Mutation, GemmOfClusters) {
  ExpectAllNoticed(ClusterGemm("2", "1", "on"), testing::TargetFor("sm_90a", true), kSumsStay);
  ExpectAllNoticed(ClusterGemm("1", "2", "off"), testing::TargetFor("sm_90a", true), kSumsStay);
}

TEST(Mutation, GemmOfClustersOfFour) {
  ExpectAllNoticed(ClusterGemm("2", "2", "on"), testing::TargetFor("sm_90a", true), kSumsStay);
}

TEST(Mutation, GemmOfPersistentBlocks) {
  const char* const met =
      "the tile before has met at a barrier when all its products had been waited for";
  std::vector<Redundant> redundant{
      kFenceOfStep,
      kWaitBehindLoop,
      {"tl_proxy_fence", "v48 = thread; v48 < 1536",
       "boxes follow in C's memory; where C is not aligned, a test has none"}};
  // Of the first two steps of a tile, by boxes and not.
  for (const char* step :
       {"{(int)(0), tl_box", "{(int)(16), tl_box", "v16 = thread", "v24 = thread"}) {
    redundant.push_back({"tl_mbarrier_wait(&s1[v0], v1 ^ 1)", step, met});
  }
  ExpectAllNoticed(ResidentGemm("self", 3), testing::TargetFor("sm_90a", true), redundant);
}

// C leaves in boxes, while the next tile is begun or at the end.
TEST(Mutation, GemmThatStoresBoxes) {
  for (const auto& [copies, stay] : {std::pair("warp", "on"), std::pair("self", "off")}) {
    CudaCase c = ResidentGemm(copies, 3);
    c.name = absl::StrCat("bulk_", c.name);
    c.values = {{"copies", copies}, {"stay", stay}, {"stores", "bulk"},
                {"bn", "32"},       {"bk", "16"},   {"stages", "3"}};
    c.dims = {{500, 40, 80}, {300, 32, 24}, {60, 24, 16}};
    ExpectAllNoticed(c, testing::TargetFor("sm_90a", true), kSumsStay);
  }
}

// The same place again and again, and memory that another tile has after it.
TEST(Mutation, BoxesThatMeet) {
  const CudaCase c = {"boxes_that_meet",
                      R"(tl 1.0
kernel boxes(M: dim, N: dim) {
  in X: tensor<f16>[M, N]
  out Y: tensor<f16>[M, N], Z: tensor<f32>[M, N]
  launch n in ceildiv(N, 32), m in ceildiv(M, 32) threads=64 stores=bulk {
    x = alloc_fragment<f16>[32, 32]  z = alloc_fragment<f32>[32, 32]
    copy X[m*32, n*32] -> x
    serial k in 3 {
      parallel i, j in [32, 32] { x[i, j] = x[i, j] + k }
      copy x -> Y[m*32, n*32]
    }
    parallel i, j in [32, 32] { z[i, j] = x[i, j] * 2 }
    copy z -> Z[m*32, n*32]
  }
})",
                      {},
                      {{40, 40}, {32, 37}},
                      {}};
  ExpectAllNoticed(c, testing::TargetFor("sm_90a", true));
}

// Several rows and one in registers, one in shared memory, and one read twice.
TEST(Mutation, Softmax) {
  const CudaCase c = {"softmax",
                      FamilyText("softmax"),
                      {{"t", "bf16"}, {"bm", "4"}, {"bn", "128"}, {"room", "8192"}},
                      {{9, 104},
                       {9, 99},
                       {3, 300},
                       {3, 259},
                       {2, 1104},
                       {2, 4096},
                       {3, 1029},
                       {3, 4104},
                       {3, 4101}},
                      {}};
  constexpr char kLoopEnd[] =
      "at the end of the loop that writes Y: iterations write different columns, which the pass "
      "that places barriers does not see";
  ExpectAllNoticed(
      c, testing::TargetFor("sm_80", true),
      {{"__syncthreads", "extern", kLoopEnd},
       {"if (n1 < 128)", "", "saves full rows the tests of each column, which say the same"},
       {"if (n1 < 512)", "", "the same"},
       {"if ((n1 & 4095) != 0)", "", "saves whole steps the same tests"},
       {"v29 * 512", "", "columns read once more are whole blocks of them, all inside"}});
}

// Two products with a softmax between, tiles of `rows` by `columns` and as deep as `depth`.
CudaCase Fused(int rows, int columns, int depth, int threads) {
  const auto text = [](int n) { return absl::StrCat(n); };
  return {
      absl::StrCat("fused_", rows),
      absl::StrReplaceAll(
          R"(tl 1.0
kernel fused(M: dim, N: dim) {
  in Q: tensor<f16>[M, $d], K: tensor<f16>[N, $d], V: tensor<f16>[N, $d]
  out O: tensor<f32>[M, $d]
  launch m in ceildiv(M, $r) threads=$t {
    q = alloc_shared<f16>[$r, $d]  k = alloc_shared<f16>[$c, $d]  v = alloc_shared<f16>[$c, $d]
    s = alloc_fragment<f32>[$r, $c]  p = alloc_fragment<f16>[$r, $c]
    o = alloc_fragment<f32>[$r, $d]  mx = alloc_fragment<f32>[$r]  l = alloc_fragment<f32>[$r]
    copy Q[m*$r, 0] -> q
    clear o  fill l, 0  fill mx, 0
    pipelined j in ceildiv(N, $c) stages=2 {
      copy K[j*$c, 0] -> k
      copy V[j*$c, 0] -> v
      gemm q, k -> s transpose_b clear
      reduce_max s -> mx dim=1
      parallel r, x in [$r, $c] { s[r, x] = if j*$c + x < N then exp(s[r, x] * 0.1) else 0 }
      reduce_sum s -> l dim=1
      copy s -> p
      gemm p, v -> o
    }
    parallel r, x in [$r, $d] { o[r, x] = o[r, x] / (l[r] + abs(mx[r]) + 1) }
    copy o -> O[m*$r, 0]
  }
})",
          {{"$r", text(rows)}, {"$c", text(columns)}, {"$d", text(depth)}, {"$t", text(threads)}}),
      {},
      {{rows + 4, 3 * columns + 4}, {rows + 4, columns - 12}},
      {}};
}

TEST(Mutation, Fused) {
  ExpectAllNoticed(Fused(16, 32, 32, 64), testing::TargetFor("sm_80", true),
                   {{"__syncthreads", "&s6[",
                     "o goes through memory of k's, last read before barriers of the loop's last "
                     "iteration; a loop "
                     "of no iterations reads none of it. The pass looks at loops from outside."}});
}

// Q is copied between the making of the mbarriers and the loop, and shown to all.
const std::vector<Redundant>& BeforeTheLoop() {
  const char* const again = "a fence and a barrier for q stand between this and the loop";
  static const auto& lines =
      *new std::vector<Redundant>{{"__syncthreads", "TL_LOCAL", again},
                                  {"tl_proxy_fence", "tl_mbarrier_arrive(&s0[0]);", again},
                                  {"__syncthreads", "tl_mbarrier_arrive(&s0[0]);", again}};
  return lines;
}

// The second product takes its left factor from registers.
TEST(Mutation, FusedByWarpgroups) {
  ExpectAllNoticed(Fused(64, 64, 64, 128), testing::TargetFor("sm_90a", true), BeforeTheLoop());
}

// Columns of either product are shared out over two warpgroups: they exchange what they reduce and
// the weights.
TEST(Mutation, ColumnsOfTwoWarpgroups) {
  const char* const met = "the warpgroups meet in the loop for what they exchange";
  std::vector<Redundant> redundant = BeforeTheLoop();
  redundant.push_back({"__syncthreads", "&s8[",
                       "o goes through memory of q's and k's, last read before barriers of the "
                       "loop's last iteration"});
  redundant.push_back({"tl_mbarrier_wait(&s1[v0], v1 ^ 1)", "", met});
  redundant.push_back({"tl_proxy_fence", "tl_mbarrier_arrive(&s0[v0]);", met});
  redundant.push_back({"__syncthreads", "tl_mbarrier_arrive(&s0[v0]);", met});
  ExpectAllNoticed(Fused(64, 32, 128, 256), testing::TargetFor("sm_90a", true), redundant);
}

// As it is shipped, on few keys: producers, a slot for what lags, masked steps.
TEST(Mutation, Attention) {
  const CudaCase c = {"attention",
                      FamilyText("attention"),
                      {{"D", "32"},
                       {"bm", "64"},
                       {"bn", "16"},
                       {"rows", "16"},
                       {"stages", "2"},
                       {"overlap", "on"},
                       {"causal", "on"},
                       {"t", "f16"}},
                      {{1, 1, 1, 70, 90}, {1, 2, 1, 20, 16}},
                      {}};
  std::vector<Redundant> redundant = BeforeTheLoop();
  redundant.push_back(
      {"tl_wgmma_fence", "float, 32, 1, true>(&l2[0]",
       "the sums and the left operand are as they were at the fence of the product before"});
  ExpectAllNoticed(c, testing::TargetFor("sm_90a", true), redundant);
}

// Zeros instead of rows that are left out.
TEST(Mutation, BoxesWithoutTheirLastRows) {
  const CudaCase c = {"rows",
                      TableText("rows"),
                      {{"bn", "32"}, {"bk", "32"}, {"stages", "2"}},
                      {{70, 264}, {64, 32}},
                      {}};
  ExpectAllNoticed(c, testing::TargetFor("sm_90a", true), kSumsStay);
}

// What is multiplied in one iteration meets the ring's kept slot in the next one.
TEST(Mutation, ProductsThatLag) {
  const CudaCase c = {"lags",
                      TableText("lags"),
                      {{"d", "32"}, {"bn", "16"}, {"stages", "2"}},
                      {{70, 60}, {64, 10}},
                      {}};
  std::vector<Redundant> redundant = BeforeTheLoop();
  redundant.push_back(
      {"tl_proxy_fence", "tl_wgmma_wait<0>", "no product follows the one iteration of this loop"});
  redundant.push_back(
      {"tl_wgmma_fence", "float, 32, 1, true>(&l2[0]",
       "the sums and the left operand are as they were at the fence of the product before"});
  ExpectAllNoticed(c, testing::TargetFor("sm_90a", true), redundant);
}

// Two groups with bodies of their own: one passes tiles and sums to the other.
TEST(Mutation, Channels) {
  const CudaCase c = {"channels",
                      R"(tl 1.0
kernel channels(M: dim, N: dim) {
  in X: tensor<f16>[M, N], W: tensor<f16>[32, N]
  out Y: tensor<f32>[M, 32], S: tensor<f32>[M, 8]
  launch m in ceildiv(M, 32) groups=2 threads=32 {
    tiles = alloc_chan<f16>[32, 32] depth=2
    sums = alloc_chan<f32>[32]
    on g in 2 {
      if g == 0 {
        x = alloc_fragment<f16>[32, 32]
        wide = alloc_fragment<f32>[32, 32]
        s = alloc_fragment<f32>[32]
        serial n in ceildiv(N, 32) {
          copy X[m*32, n*32] -> x
          send x -> tiles
          copy x -> wide
          reduce_sum wide -> s dim=1 clear
          send s -> sums
        }
      } else {
        x = alloc_fragment<f16>[32, 32]
        s = alloc_fragment<f32>[32]
        y = alloc_fragment<f32>[32, 32]
        w_s = alloc_shared<f16>[32, 32]
        clear y
        serial n in ceildiv(N, 32) {
          copy W[0, n*32] -> w_s
          recv tiles -> x
          gemm x, w_s -> y transpose_b
          recv sums -> s
          parallel i in 32 { if m*32 + i < M and n < 8 { S[m*32 + i, n] = s[i] } }
        }
        copy y -> Y[m*32, 0]
      }
    }
  }
})",
                      {},
                      {{44, 200}, {33, 96}},
                      {}};
  ExpectAllNoticed(
      c, testing::TargetFor("sm_80", true),
      {{"tl_mbarrier_wait(&s0[v0 + 2]", " = v0;",
        "a slot of tiles is free whenever the one of sums is, for which the sender has "
        "waited in the iteration before"}});
}

}  // namespace
}  // namespace tl
