// Pipelined loops lowered for a target with registers, asynchronous copies and matrix instructions,
// run thread by thread and compared with the reference: every number of iterations around the
// number of stages, and no barrier or wait that could be left out.
#include <cmath>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "backends/reference/reference.h"
#include "gtest/gtest.h"
#include "ir/bind.h"
#include "ir/unparse.h"
#include "ir/visit.h"
#include "passes/pipeline.h"
#include "tests/unit/thread_eval.h"

namespace tl {
namespace {

Target TargetWith(bool async_copies) {
  Target t;
  t.name = async_copies ? "async" : "registers";
  t.simt = true;
  t.warp_size = 32;
  t.default_threads = 64;
  t.max_threads_per_block = 1024;
  t.register_fragments = true;
  t.async_copies = async_copies;
  t.matrix_loads = true;
  t.matrix_atoms = {
      {"mma", AtomForm::kMma, DType::kF16, DType::kF16, DType::kF32, 16, 8, 16},
  };
  return t;
}

// Operands of a call: whole numbers, so that sums are the same in every order.
class Call {
 public:
  Call(const Module& m, int64_t n) : m_(m), args_{{}, {}, {n}, {}, {}} {
    std::mt19937 rng(3);
    for (BufferId id : m.operands) {
      const Buffer& b = m.buffer(id);
      const int64_t elements = *EvalHost(m, StorageSize(m, id), {args_.dims, {}, {}});
      const size_t size = SizeOf(b.dtype);
      data_.emplace_back(std::max<int64_t>(elements, 1) * size);
      for (int64_t i = 0; i < elements; ++i) {
        const int64_t v = b.role == BufferRole::kOut ? 77
                          : IsFloat(b.dtype)         ? std::uniform_int_distribution(-3, 3)(rng)
                                                     : i * 3 % 4;
        StoreElement(b.dtype, &data_.back()[i * size], static_cast<double>(v));
      }
    }
    for (std::vector<char>& d : data_) args_.operands.push_back(d.data());
  }

  Status Reference() { return reference::RunRounded(m_, {args_.operands, {}, args_.dims, {}, {}}); }
  std::string Threads(const Module& lowered, const Target& target, uint64_t seed) {
    const int threads = lowered.launches[0].threads;
    return testing::ThreadEval(lowered, args_, threads, seed, target.matrix_atoms).Run();
  }
  // Where this result differs from the one wanted; empty: nowhere.
  std::string DiffersFrom(const Call& want) const {
    for (size_t o = 0; o < data_.size(); ++o) {
      const Buffer& b = m_.buffer(m_.operands[o]);
      const size_t size = SizeOf(b.dtype);
      for (size_t i = 0; i < data_[o].size() / size; ++i) {
        const double is = LoadElement(b.dtype, &data_[o][i * size]);
        const double should_be = LoadElement(b.dtype, &want.data_[o][i * size]);
        if (!(is == should_be)) {
          return absl::StrCat(b.name, "[", i, "] is ", is, ", should be ", should_be);
        }
      }
    }
    return "";
  }

 private:
  const Module& m_;
  testing::ThreadEvalArgs args_;
  std::vector<std::vector<char>> data_;
};

StatusOr<Module> BindText(std::string_view text) {
  TL_ASSIGN_OR_RETURN(const syntax::Program program, syntax::Parse(text));
  return Bind(program, {});
}

// Empty if the lowered program computes what the reference does.
std::string Check(const Module& m, const Module& lowered, const Target& target, int64_t n,
                  uint64_t seed) {
  Call want(m, n), got(m, n);
  const Status s = want.Reference();
  if (!s.ok()) return std::string(s.message());
  std::string error = got.Threads(lowered, target, seed);
  return error.empty() ? got.DiffersFrom(want) : error;
}

struct Program {
  std::string_view name, text;  // STAGES is replaced
};

constexpr Program kPrograms[] = {
    {"product", R"(
kernel k(N: dim) {
  in A: tensor<f16>[32, N*16], B: tensor<f16>[N*16, 16] out C: tensor<f32>[32, 16]
  launch m in 1 {
    a = alloc_shared<f16>[32, 16]
    b = alloc_shared<f16>[16, 16]
    c = alloc_fragment<f32>[32, 16]
    clear c
    pipelined k in N stages=STAGES {
      copy A[m*32, k*16] -> a
      copy B[k*16, 0] -> b
      gemm a, b -> c
    }
    copy c -> C[m*32, 0]
  }
})"},
    {"tiles of the grid one after the other, last iteration first", R"(
kernel k(N: dim) {
  in A: tensor<f16>[48, 80], B: tensor<f16>[80, 16], L: tensor<i32>[4] out C: tensor<f32>[48, 16]
  launch m in 1 {
    a = alloc_shared<f16>[16, 16]
    b = alloc_shared<f16>[16, 16]
    c = alloc_fragment<f32>[16, 16]
    for t in 3 {
      clear c
      pipelined k in N - L[t] down stages=STAGES {
        copy A[t*16, k*16] -> a
        copy B[k*16, 0] -> b
        gemm a, b -> c
      }
      copy c -> C[t*16, 0]
    }
  }
})"},
    {"two loops and a tile in the same memory, under a condition", R"(
kernel k(N: dim) {
  in X: tensor<f32>[64, 8] out Y: tensor<f32>[8, 8], Z: tensor<f32>[8, 8]
  launch m in 1 {
    s = alloc_fragment<f32>[8, 8]
    u = alloc_fragment<f32>[8, 8]
    clear s, u
    for t in 3 {
      if t != 1 {
        x = alloc_shared<f32>[8, 8]
        pipelined k in N stages=STAGES {
          copy X[k*4, 0] -> x
          parallel r, c in [8, 8] { s[r, c] += x[r, 7 - c] }
        }
        y = alloc_shared<f32>[8, 8]
        parallel r, c in [8, 8] { y[r, c] = s[c, r] }
        z = alloc_shared<f32>[8, 8]
        pipelined k in N - 1 stages=STAGES {
          copy X[k*8:, 0:] -> z rows=N
          parallel r, c in [8, 8] { u[r, c] += z[c, r] + y[r, 7 - c] }
        }
      }
    }
    copy s -> Y[0, 0]
    copy u -> Z[0, 0]
  }
})"},
    {"a pipelined loop in another", R"(
kernel k(N: dim) {
  in X: tensor<f32>[8, 8], W: tensor<f32>[8, 8] out Y: tensor<f32>[8, 8]
  launch m in 1 {
    s = alloc_fragment<f32>[8]
    x = alloc_shared<f32>[8]
    w = alloc_shared<f32>[8]
    parallel r, c in [8, 8] { Y[r, c] = 1.0 }
    pipelined i in N stages=STAGES {
      copy X[i % 8, 0:] -> x
      clear s
      pipelined j in i stages=STAGES {
        copy W[j % 8, 0:] -> w
        parallel r in 8 { s[r] += w[7 - r] + x[r] }
      }
      parallel r in 8 { Y[i % 8, r] = s[r] + x[7 - r] }
    }
  }
})"},
    {"places from a table", R"(
kernel k(N: dim) {
  in X: tensor<f32>[8, 8], P: tensor<i32>[16] out Y: tensor<f32>[16, 8]
  launch m in 1 {
    x = alloc_shared<f32>[8]
    parallel r, c in [16, 8] { Y[r, c] = 1.0 }
    pipelined i in N stages=STAGES {
      page = P[i]
      copy X[page, 0:] -> x
      parallel r in 8 { Y[i, r] = x[7 - r] }
    }
  }
})"},
};

TEST(PipelineRun, EveryNumberOfIterations) {
  for (const Program& p : kPrograms) {
    for (int stages : {2, 3, 4}) {
      const StatusOr<Module> m = BindText(
          absl::StrCat("tl 1.0", absl::StrReplaceAll(p.text, {{"STAGES", absl::StrCat(stages)}})));
      ASSERT_TRUE(m.ok()) << p.name << FormatSpan(DetailOf(m.status()).span) << m.status();
      for (bool async : {true, false}) {
        const Target target = TargetWith(async);
        const StatusOr<Module> lowered = Lower(*m, target);
        ASSERT_TRUE(lowered.ok()) << p.name << ": " << lowered.status();
        for (int64_t n : {0, 1, 2, 3, 5}) {
          EXPECT_EQ(Check(*m, *lowered, target, n, n), "")
              << p.name << ", stages " << stages << ", " << target.name << ", N " << n << "\n"
              << ToText(*lowered);
        }
      }
    }
  }
}

// Leaves out one barrier or wait, or lets a wait leave out one group more.
class Without : public StmtMapper {
 public:
  Without(int number, bool weaker) : left_(number), weaker_(weaker) {}
  Block MapBlock(const Block& b) override {
    Block out;
    for (const StmtRef& s : b) {
      const bool counts = As<AsyncWait>(s) || (!weaker_ && As<Barrier>(s));
      if (!counts || left_-- != 0) {
        out.push_back(MapStmt(s));
      } else if (weaker_) {
        out.push_back(MakeStmt(AsyncWait{As<AsyncWait>(s)->pending + 1}));
      }
    }
    return out;
  }
  bool done() const { return left_ < 0; }

 private:
  int left_;
  const bool weaker_;
};

TEST(PipelineRun, NothingCanBeLeftOut) {
  for (const Program& p : kPrograms) {
    const StatusOr<Module> m =
        BindText(absl::StrCat("tl 1.0", absl::StrReplaceAll(p.text, {{"STAGES", "3"}})));
    ASSERT_TRUE(m.ok()) << m.status();
    for (bool async : {true, false}) {
      const Target target = TargetWith(async);
      const StatusOr<Module> lowered = Lower(*m, target);
      ASSERT_TRUE(lowered.ok()) << lowered.status();
      for (bool weaker : {false, true}) {
        for (int i = 0;; ++i) {
          Without without(i, weaker);
          Module broken = *lowered;
          broken.launches[0].body = without.MapBlock(broken.launches[0].body);
          if (!without.done()) break;
          std::string error;
          for (int64_t n : {5, 2, 1, 4}) {
            if (error.empty()) error = Check(*m, broken, target, n, 1);
          }
          EXPECT_NE(error, "") << p.name << ", " << target.name << ": without number " << i
                               << (weaker ? ", weaker" : "") << "\n"
                               << ToText(*lowered);
        }
      }
    }
  }
}

}  // namespace
}  // namespace tl
