// Statements that stand for instructions: their text, and the functions behind it on every
// architecture.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "backends/c_family/prelude.h"
#include "tests/unit/cuda_testing.h"
#include "tests/unit/nvrtc_testing.h"

namespace tl {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// One warp: a tile comes to shared memory, goes through a matrix instruction and leaves.
class NearTargetTest : public ::testing::Test {
 protected:
  NearTargetTest() {
    module_.name = "near";
    module_.level = Level::kThread;
    x_ = Tensor("X", BufferRole::kIn, DType::kBF16);
    y_ = Tensor("Y", BufferRole::kOut, DType::kF32);
    tile_ = Tile(Scope::kShared, DType::kBF16, 512, 0);
    a_ = Tile(Scope::kLocal, DType::kBF16, 8, -1);
    b_ = Tile(Scope::kLocal, DType::kBF16, 4, -1);
    c_ = Tile(Scope::kLocal, DType::kF32, 4, -1);
    mbarriers_ = Tile(Scope::kShared, DType::kI64, 2, 1024);
    block_ = module_.AddVar("block", ScalarType::kInt, VarRole::kThread);
    thread_ = module_.AddVar("thread", ScalarType::kInt, VarRole::kThread);
    slot_ = module_.AddVar("slot", ScalarType::kInt, VarRole::kLoop);
    usable_ = module_.AddVar("usable", ScalarType::kInt, VarRole::kThread);
    other_ = module_.AddVar("other", ScalarType::kF32, VarRole::kLet);
    launch_.block = block_;
    launch_.thread = thread_;
    launch_.threads = 32;
    launch_.arena_bytes = 1040;
  }

  BufferId Tensor(std::string name, BufferRole role, DType dtype) {
    Buffer b;
    b.name = std::move(name), b.role = role, b.dtype = dtype;
    b.shape = {MakeInt(4096)}, b.strides = {MakeInt(1)};
    const BufferId id = module_.AddBuffer(b);
    module_.operands.push_back(id);
    return id;
  }
  BufferId Tile(Scope scope, DType dtype, int64_t elements, int64_t offset) {
    Buffer b;
    b.scope = scope, b.dtype = dtype, b.extents = {elements}, b.arena_offset = offset;
    return module_.AddBuffer(b);
  }
  ExprRef Thread(int64_t times) const {
    return MakeBinary(BinaryOp::kMul, MakeVar(thread_, ScalarType::kInt), MakeInt(times));
  }
  template <typename T>
  void Add(T node) {
    launch_.body.push_back(MakeStmt(std::move(node)));
  }
  void AddEverything(const Target& target) {
    for (BufferId id : {a_, b_, c_}) Add(Alloc{id});
    Block zero{MakeStmt(Store{
        c_, {MakeVar(slot_, ScalarType::kInt)}, StoreOp::kSet, MakeFloat(0, ScalarType::kF32)})};
    Add(SlotFor{slot_, 4, zero});
    if (target.async_copies) {
      Add(AsyncMove{tile_, Thread(8), x_, Thread(8), 8, MakeIsAligned(x_, 16)});
      Add(AsyncMove{tile_, Thread(2), x_, Thread(2), 2, MakeBool(true)});
      Add(AsyncCommit{});
      Add(AsyncWait{0});
    } else {
      Add(VectorMove{tile_, Thread(8), x_, Thread(8), 8});
    }
    if (target.channels) Add(Mbarrier{Mbarrier::Op::kInit, mbarriers_, MakeInt(1), MakeInt(32)});
    Add(Barrier{Team::kBlock});
    if (target.channels) {
      Add(Mbarrier{Mbarrier::Op::kArrive, mbarriers_, MakeInt(1), nullptr});
      Add(Mbarrier{Mbarrier::Op::kWait, mbarriers_, MakeInt(1), MakeInt(0)});
    }
    if (target.bulk_copies) {
      launch_.boxes = {{0, {1, 8, 64}, 128, usable_}};
      Add(Mbarrier{Mbarrier::Op::kExpect, mbarriers_, MakeInt(0), MakeInt(1024)});
      Add(BulkLoad{
          0, {MakeInt(0), Thread(8), Thread(64)}, tile_, MakeInt(0), mbarriers_, MakeInt(0)});
      Add(ProxyFence{});
      Add(BulkStore{0, {MakeInt(0), Thread(8), Thread(64)}, tile_, MakeInt(0)});
      for (BulkSync::Op op :
           {BulkSync::Op::kCommit, BulkSync::Op::kWaitRead, BulkSync::Op::kWait}) {
        Add(BulkSync{op});
      }
    }
    if (target.matrix_stores) {
      Add(StoreMatrix{tile_, Thread(8), a_, MakeInt(0), 4, false});
      Add(StoreMatrix{tile_, Thread(8), b_, MakeInt(0), 2, true});
    }
    if (target.max_cluster > 1) AddCluster();
    Add(LoadMatrix{a_, MakeInt(0), tile_, Thread(8), 4, false});
    Add(LoadMatrix{b_, MakeInt(0), tile_, Thread(8), 2, true});
    if (target.async_copies)
      Add(Mma{Bf16Atom(target), a_, MakeInt(0), b_, MakeInt(0), c_, MakeInt(0)});
    Add(LaneExchange{other_, MakeLoad(c_, DType::kF32, {MakeInt(1)}), 16});
    Add(Store{c_, {MakeInt(1)}, StoreOp::kAdd, MakeVar(other_, ScalarType::kF32)});
    const ExprRef block =
        MakeBinary(BinaryOp::kMul, MakeVar(block_, ScalarType::kInt), MakeInt(128));
    Add(VectorMove{y_, MakeBinary(BinaryOp::kAdd, block, Thread(4)), c_, MakeInt(0), 4});
  }
  // Accesses with a hint, of every width.
  void AddHints(const Target& target) {
    if (!target.cache_hints) return;
    for (Eviction evict : {Eviction::kFirst, Eviction::kLast}) {
      for (int count : {1, 2, 4, 8}) {
        Add(VectorMove{a_, MakeInt(0), x_, Thread(8), count, evict});
        Add(VectorMove{tile_, Thread(8), x_, Thread(8), count, evict});
      }
      for (int count : {1, 2, 4}) {
        Add(VectorMove{y_, Thread(4), c_, MakeInt(0), count, evict});
      }
      const std::vector<ExprRef> at = {MakeInt(0), Thread(8), Thread(64)};
      if (target.bulk_copies) {
        Add(BulkLoad{0, at, tile_, MakeInt(0), mbarriers_, MakeInt(0), nullptr, evict});
        Add(BulkStore{0, at, tile_, MakeInt(0), evict});
      }
      if (target.max_cluster > 1) {
        Add(BulkLoad{0, at, tile_, MakeInt(0), mbarriers_, MakeInt(0), MakeInt(3), evict});
      }
    }
  }
  void AddCluster() {
    launch_.cluster = {2, 2};
    launch_.rank = module_.AddVar("rank", ScalarType::kInt, VarRole::kThread);
    const ExprRef rank = MakeVar(launch_.rank, ScalarType::kInt);
    Add(MbarrierFence{});
    Add(Barrier{Team::kCluster});
    Add(Mbarrier{Mbarrier::Op::kArrive, mbarriers_, MakeInt(1), nullptr, MakeInt(3)});
    Add(BulkLoad{0,
                 {MakeInt(0), Thread(8), Thread(64)},
                 tile_,
                 MakeInt(0),
                 mbarriers_,
                 MakeInt(0),
                 MakeBinary(BinaryOp::kShl, MakeInt(3), rank)});
  }
  static int Bf16Atom(const Target& target) {
    for (size_t i = 0; i < target.matrix_atoms.size(); ++i) {
      const MatrixAtom& atom = target.matrix_atoms[i];
      if (atom.a == DType::kBF16 && !atom.in_place()) return static_cast<int>(i);
    }
    return kNoAtom;
  }
  StatusOr<Generated> Generate(const Target& target) {
    module_.launches = {launch_};
    return EmitC(module_, target, CudaDialect());
  }

  Module module_;
  Launch launch_;
  BufferId x_, y_, tile_, a_, b_, c_, mbarriers_;
  VarId block_, thread_, slot_, usable_, other_;
};

TEST_F(NearTargetTest, Text) {
  const Target target = *FindCudaTarget("sm_80");
  AddEverything(target);
  const StatusOr<Generated> g = Generate(target);
  ASSERT_TRUE(g.ok()) << g.status();
  EXPECT_EQ(testing::KernelText(*g), R"(
extern "C" __global__ __launch_bounds__(32, 1) void tl_kernel_0(TL_GLOBAL(const tl_bf16) a0, TL_GLOBAL(float) a1) {
  extern __shared__ __align__(1024) unsigned char arena[];
  TL_SHARED(tl_bf16, s0, 0, 512);
  TL_SHARED(long long, s1, 1024, 2);
  const int block = (int)blockIdx.x;
  const int thread = (int)threadIdx.x;
  TL_LOCAL(tl_bf16, l0, 8);
  TL_LOCAL(tl_bf16, l1, 4);
  TL_LOCAL(float, l2, 4);
  #pragma unroll
  for (int v0 = 0; v0 < 4; ++v0) {
    l2[v0] = 0.0f;
  }
  tl_async_move<16>(&s0[thread * 8], &a0[thread * 8], tl_is_aligned<16>(a0));
  tl_async_move<4>(&s0[thread * 2], &a0[thread * 2], true);
  tl_async_commit();
  tl_async_wait<0>();
  tl_mbarrier_init(&s1[1], 32);
  __syncthreads();
  tl_mbarrier_arrive(&s1[1]);
  tl_mbarrier_wait(&s1[1], 0);
  tl_load_matrix<4, false>(&l0[0], &s0[thread * 8]);
  tl_load_matrix<2, true>(&l1[0], &s0[thread * 8]);
  tl_mma_m16n8k16_bf16_bf16_f32(&l2[0], &l0[0], &l1[0]);
  const float v1 = tl_lane_xor(l2[1], 16);
  l2[1] += v1;
  tl_move<16>(&a1[(long long)block * 128 + thread * 4], &l2[0]);
}
)");
}

TEST_F(NearTargetTest, Hints) {
  const Target target = *FindCudaTarget("sm_90a");
  AddEverything(target);
  const size_t plain = testing::KernelText(*Generate(target)).rfind('}');
  AddHints(target);
  const std::string text = testing::KernelText(*Generate(target));
  const std::string first = text.substr(plain, text.find("tl_evict_last()") - plain);
  EXPECT_EQ(first.substr(0, first.rfind('\n') + 1),
            R"(  tl_load<2>(&l0[0], &a0[thread * 8], tl_evict_first());
  tl_load<2>(&s0[thread * 8], &a0[thread * 8], tl_evict_first());
  tl_load<4>(&l0[0], &a0[thread * 8], tl_evict_first());
  tl_load<4>(&s0[thread * 8], &a0[thread * 8], tl_evict_first());
  tl_load<8>(&l0[0], &a0[thread * 8], tl_evict_first());
  tl_load<8>(&s0[thread * 8], &a0[thread * 8], tl_evict_first());
  tl_load<16>(&l0[0], &a0[thread * 8], tl_evict_first());
  tl_load<16>(&s0[thread * 8], &a0[thread * 8], tl_evict_first());
  tl_store<4>(&a1[thread * 4], &l2[0], tl_evict_first());
  tl_store<8>(&a1[thread * 4], &l2[0], tl_evict_first());
  tl_store<16>(&a1[thread * 4], &l2[0], tl_evict_first());
  tl_bulk_load<3>(&s0[0], m0, {(int)(thread * 64), (int)(thread * 8), (int)(0)}, &s1[0], tl_evict_first());
  tl_bulk_store<3>(m0, {(int)(thread * 64), (int)(thread * 8), (int)(0)}, &s0[0], tl_evict_first());
  tl_bulk_load_to<3>(&s0[0], m0, {(int)(thread * 64), (int)(thread * 8), (int)(0)}, &s1[0], (int)(3), tl_evict_first());
)");
}

TEST_F(NearTargetTest, LoopsThatWaitAreKept) {
  const Target target = *FindCudaTarget("sm_80");
  const VarId i = module_.AddVar("i", ScalarType::kInt, VarRole::kLoop);
  Add(For{LoopKind::kSerial, i, MakeInt(0), MakeInt(9), false, 1, {MakeStmt(AsyncWait{1})}});
  EXPECT_THAT(testing::KernelText(*Generate(target)), HasSubstr("  #pragma unroll 1\n  for ("));
}

TEST_F(NearTargetTest, RegistersAreCountedByTheLayout) {
  module_.buffers[c_].layout = std::make_shared<FragmentLayout>(
      std::vector<int64_t>{16, 8},
      FragmentLayout::Axes{.lane = {{4, 2}, {8, 8}}, .slot = {{2, 1}, {2, 64}}});
  module_.buffers[c_].extents = {16, 8};
  Add(Alloc{c_});
  EXPECT_THAT(testing::KernelText(*Generate(*FindCudaTarget("sm_80"))),
              HasSubstr("TL_LOCAL(float, l0, 4);"));
}

TEST_F(NearTargetTest, UnknownInstructionsAreRefused) {
  Add(Mma{1000, a_, MakeInt(0), b_, MakeInt(0), c_, MakeInt(0)});
  EXPECT_EQ(Generate(*FindCudaTarget("sm_80")).status().code(), absl::StatusCode::kInternal);
}

// ---- the prelude ----

TEST(Prelude, PartsThatAreMentioned) {
  constexpr std::string_view kText =
      "first\n//@ a b\nA uses c\n//@ c\nC\n//@ d\nD\n//@ a with d\nAD\n";
  EXPECT_EQ(SelectParts(kText, ""), "first\n");
  EXPECT_EQ(SelectParts(kText, "x = b(1)"), "first\nA uses c\nC\n");
  EXPECT_EQ(SelectParts(kText, "bc c1 d"), "first\nD\n");
  EXPECT_EQ(SelectParts(kText, "d a"), "first\nA uses c\nC\nD\nAD\n");
  EXPECT_EQ(SelectParts("no parts", "d"), "no parts");
}

TEST(Prelude, SourcesHoldWhatTheyUse) {
  const std::string text = WithPrelude(CudaPrimitives(), "void k(TL_GLOBAL(float) a0) {}\n");
  EXPECT_THAT(text, Not(HasSubstr("tl_bf16")));
  EXPECT_THAT(text, Not(HasSubstr("atomic")));
  EXPECT_THAT(text, Not(HasSubstr("mma")));
  EXPECT_EQ(WithoutPrelude(text), "void k(TL_GLOBAL(float) a0) {}\n");
}

// A specific form has the plain form's instructions and some more.
TEST(CudaTargets, WhoseBinariesADeviceRuns) {
  const Target plain = *FindCudaTarget("sm_90"), specific = *FindCudaTarget("sm_90a");
  EXPECT_TRUE(specific.Runs(specific));
  EXPECT_TRUE(specific.Runs(plain));
  EXPECT_FALSE(plain.Runs(specific));
  EXPECT_FALSE(specific.Runs(*FindCudaTarget("sm_80")));
}

TEST(CudaTargets, MatrixInstructionsByArchitecture) {
  std::set<std::string_view> all;
  for (const char* name : {"sm_75", "sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a"}) {
    const Target t = *FindCudaTarget(name);
    EXPECT_TRUE(t.matrix_loads);
    EXPECT_EQ(t.async_copies, t.name != "sm_75");
    const size_t of_four_warps = t.name == "sm_90a" ? 12 : 0;
    EXPECT_EQ(t.matrix_atoms.size(), of_four_warps + (t.name == "sm_75"    ? 2u
                                                      : ArchNumber(t) < 89 ? 9u
                                                                           : 13u));
    for (const MatrixAtom& atom : t.matrix_atoms) {
      all.insert(atom.name);
      if (atom.in_place()) continue;
      const std::string part = absl::StrCat("//@ ", atom.name, "\n");
      EXPECT_THAT(std::string(CudaPrimitives()), HasSubstr(part));
    }
  }
  EXPECT_EQ(all.size(), 15u + 12u);
}

// ---- with a compiler ----

class NearTargetNvrtcTest : public testing::WithNvrtc<NearTargetTest> {
 protected:
  void ExpectCompiles(const Generated& g, const Target& target) {
    const StatusOr<Built> built = backend_->Build(g, target);
    if (DetailOf(built.status()).reason == Reason::kUnsupported) return;  // an older compiler
    ASSERT_TRUE(built.ok()) << target.name << built.status() << DetailOf(built.status()).log;
    EXPECT_THAT(built->log, Not(HasSubstr("warning"))) << target.name;
  }
};

TEST_F(NearTargetNvrtcTest, EveryStatementOnEveryArchitecture) {
  for (const char* name : {"sm_75", "sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a"}) {
    const Target target = *FindCudaTarget(name);
    launch_.body.clear(), launch_.boxes.clear(), launch_.cluster.clear();
    launch_.rank = kNoId;
    AddEverything(target);
    AddHints(target);
    ExpectCompiles(*Generate(target), target);
  }
}

TEST_F(NearTargetNvrtcTest, EveryInstructionOfTheTables) {
  for (const char* name : {"sm_75", "sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a"}) {
    const Target target = *FindCudaTarget(name);
    std::string kernels;
    for (const MatrixAtom& atom : target.matrix_atoms) {
      if (atom.in_place()) continue;
      absl::StrAppend(&kernels, "extern \"C\" __global__ void with_", atom.name,
                      "(float4* x) {\n  TL_LOCAL(float4, l, 3);\n"
                      "  for (int i = 0; i < 3; ++i) l[i] = x[threadIdx.x * 3 + i];\n  ",
                      atom.name, "(&l[0], &l[1], &l[2]);\n  x[threadIdx.x] = l[0];\n}\n");
    }
    Generated g;
    g.source = WithPrelude(CudaPrimitives(), kernels);
    ExpectCompiles(g, target);
  }
}

// Narrow, odd and wide; every order of the operands in memory; a from registers.
std::vector<WarpgroupProduct> ProductsOf(const MatrixAtom& atom) {
  std::vector<WarpgroupProduct> out;
  for (int n : {8, 80, 256}) {
    out.push_back({atom.a, atom.b, atom.c, n, atom.k, 2, false, false, false});
    out.push_back({atom.a, atom.b, atom.c, n, atom.k, 2, true, false, false});
    // Of sums apart, from element 4 on.
    out.push_back({atom.a, atom.b, atom.c, n, atom.k, 2, false, false, false, 4, 0});
    out.push_back({atom.a, atom.b, atom.c, n, atom.k, 2, true, false, false, 4, 0});
    if (SizeOf(atom.a) != 2) continue;
    out.push_back({atom.a, atom.b, atom.c, n, atom.k, 1, false, true, false});
    out.push_back({atom.a, atom.b, atom.c, n, atom.k, 4, false, true, true});
    out.push_back({atom.a, atom.b, atom.c, n, atom.k, 3, true, false, true});
  }
  return out;
}

std::string KernelOf(const WarpgroupProduct& p, std::string_view name) {
  const std::string types = TemplateArguments(p);
  const std::string type = types.substr(0, types.find(','));
  const std::string a = p.a_in_registers ? "&la[0]" : "tl_descriptor(arena, 2048, 1024, 128), 32";
  const std::string_view c = p.c == DType::kF16 ? "tl_f16" : p.c == DType::kF32 ? "float" : "int";
  std::string load;
  if (p.a_in_registers) {
    load = absl::StrCat("  TL_LOCAL(", type, ", la, 64);\n#pragma unroll\n",
                        "  for (int i = 0; i < 64; ++i) la[i] = y[threadIdx.x * 64 + i];\n");
  }
  const bool apart = p.sums != WarpgroupProduct::kNone;
  const std::string sum = apart ? absl::StrCat("c", p.sums) : "&l[0]";
  const int elements = p.n / 2 + p.first;
  const std::string declared =
      apart ? absl::StrCat("  TL_SUMS(", c, ", ", p.sums, ", ", elements, ");\n") : "";
  const auto move = [&](std::string_view way) {
    return apart ? absl::StrCat("tl_sums_", way, "(", sum, ", &l[0]);")
                 : absl::StrCat("tl_settle<", elements, ">(&l[0]);");
  };
  return absl::Substitute(R"(
extern "C" __global__ __launch_bounds__(128) void $0($1* x, const $2* y) {
  extern __shared__ __align__(1024) unsigned char arena[];
$7  TL_LOCAL($1, l, $3);
#pragma unroll
  for (int i = 0; i < $3; ++i) l[i] = x[threadIdx.x * $3 + i];
$4  $8
  tl_wgmma_fence();
  tl_wgmma<$5>($9, $6, tl_descriptor(arena, 4096, 1024, 128), 32, true);
  tl_wgmma_commit();
  tl_wgmma_wait<0>();
)",
                          name, c, type, elements, load, types, a, declared, move("in"), sum) +
         absl::Substitute(R"(  $0
#pragma unroll
  for (int i = 0; i < $1; ++i) x[threadIdx.x * $1 + i] = l[i];
}
)",
                          move("out"), elements);
}

TEST_F(NearTargetNvrtcTest, InstructionsOfFourWarps) {
  const Target target = *FindCudaTarget("sm_90a");
  std::string functions, kernels;
  int sums = 0;
  for (const MatrixAtom& atom : target.matrix_atoms) {
    if (!atom.in_place()) continue;
    for (WarpgroupProduct p : ProductsOf(atom)) {
      if (p.sums != WarpgroupProduct::kNone) {
        p.sums = sums++;
        functions += CudaDialect().warpgroup_sums({p.c, p.n / 2 + p.first, p.sums});
      }
      functions += CudaDialect().warpgroup_product(p);
      kernels += KernelOf(p, absl::StrCat("k", kernels.size()));
    }
  }
  Generated g;
  g.source = WithPrelude(CudaPrimitives(), kernels, functions);
  ExpectCompiles(g, target);
}

// Every function of the prelude brings what it needs.
TEST_F(NearTargetNvrtcTest, PartsAreComplete) {
  const Target target = *FindCudaTarget("sm_90a");
  const std::string all = absl::StrCat(CudaPrimitives(), NumericsPrelude());
  for (const PreludePart& part : PartsOf(all)) {
    if (part.names.empty()) continue;
    Generated g;
    g.source = SelectParts(all, absl::StrCat(part.names[0], " ", part.with));
    absl::StrAppend(&g.source, "extern \"C\" __global__ void k(int* x) { *x = 1; }\n");
    ExpectCompiles(g, target);
  }
}

}  // namespace
}  // namespace tl
