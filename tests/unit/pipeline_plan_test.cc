// Plans of pipelined loops: what the pass makes of programs, and what it says about copies that it
// leaves alone.
#include "passes/pipeline_plan.h"

#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/bind.h"
#include "ir/unparse.h"
#include "ir/verify.h"
#include "ir/visit.h"
#include "passes/pipeline.h"
#include "passes/plan_pipelines.h"

namespace tl {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Target Overlapping(int64_t max_shared = 0) {
  Target t;
  t.name = "overlapping";
  t.simt = true;
  t.warp_size = 32;
  t.default_threads = 128;
  t.max_shared_bytes = max_shared;
  t.register_fragments = true;
  t.async_copies = true;
  return t;
}

constexpr std::string_view kDecls =
    "in X: tensor<f16>[N, N], H: tensor<f32>[N, N], I: tensor<i32>[N] "
    "out Y: tensor<f16>[N, N] inout Z: tensor<f16>[N, N]";

Module BindText(std::string_view body) {
  const std::string text =
      absl::StrCat("tl 1.0\nkernel k(N: dim) {\n", kDecls, "\nlaunch m in 2 {\n", body, "\n}\n}\n");
  const StatusOr<syntax::Program> program = syntax::Parse(text);
  EXPECT_TRUE(program.ok()) << FormatSpan(DetailOf(program.status()).span) << program.status();
  StatusOr<Module> m = Bind(*program, {});
  EXPECT_TRUE(m.ok()) << FormatSpan(DetailOf(m.status()).span) << " " << m.status();
  return m.ok() ? *std::move(m) : Module();
}

Module Planned(std::string_view body, const Target& target = Overlapping(), int64_t budget = 0,
               int max_slots = 16) {
  Module m = BindText(body);
  const Status s = PlanPipelines(m, target, budget, max_slots);
  EXPECT_TRUE(s.ok()) << s;
  const Status valid = Verify(m, Level::kPlanned);
  EXPECT_TRUE(valid.ok()) << valid << "\n" << ToText(m);
  return m;
}

// The statements of the launch.
std::string BodyText(const Module& m) {
  std::string text = ToText(m);
  text = text.substr(text.find("launch"));
  text = text.substr(text.find('\n') + 1);
  return text.substr(0, text.rfind("  }\n}"));
}

// ---- What comes out

struct Row {
  std::string_view name, body, want;
};

constexpr Row kRows[] = {
    {"one stage: as it was",
     R"(
    x = alloc_shared<f16>[8, 8]
    pipelined j in N stages=1 {
      copy X[m*8, j*8] -> x
      copy x -> Y[m*8, j*8]
    })",
     R"(    x_5 = alloc_shared<f16>[8, 8]
    serial j_2 in N {
      copy X[m_1*8, j_2*8] -> x_5
      copy x_5 -> Y[m_1*8, j_2*8]
    }
)"},
    {"two stages",
     R"(
    x = alloc_shared<f16>[8, 8]
    pipelined j in N stages=2 {
      copy X[m*8, j*8] -> x
      copy x -> Y[m*8, j*8]
    })",
     R"(    x_5 = alloc_shared<f16>[2, 8, 8]
    if 0 < N {
      copy_async X[m_1*8, 0] -> x_5[0, 0:, 0:]
    }
    async_commit
    fill_3 = alloc_var<u8>(1)
    use_4 = alloc_var<u8>(0)
    serial j_2 in N {
      async_wait 0
      barrier
      if j_2 + 1 < N {
        j_5 = j_2 + 1
        copy_async X[m_1*8, j_5*8] -> x_5[fill_3, 0:, 0:]
      }
      async_commit
      fill_3 = if fill_3 + 1 == 2 then 0 else fill_3 + 1
      slot_6 = use_4
      w1 = view x_5[slot_6, 0:, 0:] [8, 8]
      copy w1 -> Y[m_1*8, j_2*8]
      use_4 = if use_4 + 1 == 2 then 0 else use_4 + 1
    }
)"},
    {"three stages, two tiles, one of them made in the loop",
     R"(
    x = alloc_shared<f16>[8, 8]
    pipelined j in ceildiv(N, 8) stages=3 {
      h = alloc_shared<f32>[8]
      copy X[m*8, j*8] -> x
      copy H[m, j*8:] -> h
      parallel r, c in [8, 8] { x_r = x[r, c]  Y[m*8 + r, j*8 + c] = x_r + h[c] }
    })",
     R"(    x_5 = alloc_shared<f16>[3, 8, 8]
    end_6 = ceildiv(N, 8)
    h_6 = alloc_shared<f32>[3, 8]
    if 0 < end_6 {
      copy_async X[m_1*8, 0] -> x_5[0, 0:, 0:]
      copy_async H[m_1, 0:] -> h_6[0, 0:]
    }
    async_commit
    if 1 < end_6 {
      copy_async X[m_1*8, 8] -> x_5[1, 0:, 0:]
      copy_async H[m_1, 8:] -> h_6[1, 0:]
    }
    async_commit
    fill_7 = alloc_var<u8>(2)
    use_8 = alloc_var<u8>(0)
    serial j_2 in end_6 {
      async_wait 1
      barrier
      if j_2 + 2 < end_6 {
        j_9 = j_2 + 2
        copy_async X[m_1*8, j_9*8] -> x_5[fill_7, 0:, 0:]
        copy_async H[m_1, j_9*8:] -> h_6[fill_7, 0:]
      }
      async_commit
      fill_7 = if fill_7 + 1 == 3 then 0 else fill_7 + 1
      slot_10 = use_8
      parallel r_3, c_4 in [8, 8] {
        x_r_5 = x_5[slot_10, r_3, c_4]
        Y[m_1*8+r_3, j_2*8+c_4] = x_r_5 + h_6[slot_10, c_4]
      }
      use_8 = if use_8 + 1 == 3 then 0 else use_8 + 1
    }
)"},
    {"four stages of a known number of iterations, last one first",
     R"(
    x = alloc_shared<f16>[8, 8]
    pipelined j in 2..9 down stages=4 {
      copy X[m*8, j*8] -> x
      copy x -> Y[m*8, j*8]
    })",
     R"(    x_5 = alloc_shared<f16>[4, 8, 8]
    copy_async X[m_1*8, 64] -> x_5[0, 0:, 0:]
    async_commit
    copy_async X[m_1*8, 56] -> x_5[1, 0:, 0:]
    async_commit
    copy_async X[m_1*8, 48] -> x_5[2, 0:, 0:]
    async_commit
    fill_3 = alloc_var<u8>(3)
    use_4 = alloc_var<u8>(0)
    serial j_2 in 2..9 down {
      async_wait 2
      barrier
      if j_2 - 3 >= 2 {
        j_5 = max(j_2 - 3, 2)
        copy_async X[m_1*8, j_5*8] -> x_5[fill_3, 0:, 0:]
      }
      async_commit
      fill_3 = if fill_3 + 1 == 4 then 0 else fill_3 + 1
      slot_6 = use_4
      w1 = view x_5[slot_6, 0:, 0:] [8, 8]
      copy w1 -> Y[m_1*8, j_2*8]
      use_4 = if use_4 + 1 == 4 then 0 else use_4 + 1
    }
)"},
    {"fewer iterations than stages",
     R"(
    x = alloc_shared<f16>[8, 8]
    pipelined j in 1..3 stages=4 {
      copy X[m*8, j*8] -> x
      copy x -> Y[m*8, j*8]
    })",
     R"(    x_5 = alloc_shared<f16>[2, 8, 8]
    copy_async X[m_1*8, 8] -> x_5[0, 0:, 0:]
    async_commit
    fill_3 = alloc_var<u8>(1)
    use_4 = alloc_var<u8>(0)
    serial j_2 in 1..3 {
      async_wait 0
      barrier
      if j_2 + 1 < 3 {
        j_5 = min(j_2 + 1, 2)
        copy_async X[m_1*8, j_5*8] -> x_5[fill_3, 0:, 0:]
      }
      async_commit
      fill_3 = if fill_3 + 1 == 2 then 0 else fill_3 + 1
      slot_6 = use_4
      w1 = view x_5[slot_6, 0:, 0:] [8, 8]
      copy w1 -> Y[m_1*8, j_2*8]
      use_4 = if use_4 + 1 == 2 then 0 else use_4 + 1
    }
)"},
    {"places from lets and tensors; a number of iterations that memory tells",
     R"(
    x = alloc_shared<f16>[8, 8]
    pipelined j in m..I[m] stages=2 {
      page = I[j]
      rest = N - page
      other = page + j
      copy X[page:, m*8:] -> x rows=rest
      copy x -> Y[other:, 0:]
    })",
     R"(    x_5 = alloc_shared<f16>[2, 8, 8]
    end_6 = I[m_1]
    if m_1 < end_6 {
      page_7 = I[m_1]
      rest_8 = N - page_7
      copy_async X[page_7, m_1*8], rest_8 -> x_5[0, 0:, 0:]
    }
    async_commit
    fill_9 = alloc_var<u8>(1)
    use_10 = alloc_var<u8>(0)
    serial j_2 in m_1..end_6 {
      async_wait 0
      barrier
      if j_2 + 1 < end_6 {
        j_11 = j_2 + 1
        page_12 = I[j_11]
        rest_13 = N - page_12
        copy_async X[page_12, m_1*8], rest_13 -> x_5[fill_9, 0:, 0:]
      }
      async_commit
      fill_9 = if fill_9 + 1 == 2 then 0 else fill_9 + 1
      slot_14 = use_10
      page_3 = I[j_2]
      rest_4 = N - page_3
      other_5 = page_3 + j_2
      w1 = view x_5[slot_14, 0:, 0:] [8, 8]
      copy w1 -> Y[other_5, 0]
      use_10 = if use_10 + 1 == 2 then 0 else use_10 + 1
    }
)"},
    {"two loops one after the other",
     R"(
    x = alloc_shared<f16>[8, 8]
    y = alloc_shared<f16>[8, 8]
    pipelined j in N stages=2 {
      copy X[m*8, j*8] -> x
      copy x -> Y[m*8, j*8]
    }
    pipelined j in N stages=2 {
      copy X[m*8, j*8] -> y
      copy y -> Y[m*8, j*8]
    })",
     R"(    x_5 = alloc_shared<f16>[2, 8, 8]
    y_6 = alloc_shared<f16>[2, 8, 8]
    if 0 < N {
      copy_async X[m_1*8, 0] -> x_5[0, 0:, 0:]
    }
    async_commit
    fill_4 = alloc_var<u8>(1)
    use_5 = alloc_var<u8>(0)
    serial j_2 in N {
      async_wait 0
      barrier
      if j_2 + 1 < N {
        j_6 = j_2 + 1
        copy_async X[m_1*8, j_6*8] -> x_5[fill_4, 0:, 0:]
      }
      async_commit
      fill_4 = if fill_4 + 1 == 2 then 0 else fill_4 + 1
      slot_7 = use_5
      w1 = view x_5[slot_7, 0:, 0:] [8, 8]
      copy w1 -> Y[m_1*8, j_2*8]
      use_5 = if use_5 + 1 == 2 then 0 else use_5 + 1
    }
    if 0 < N {
      copy_async X[m_1*8, 0] -> y_6[0, 0:, 0:]
    }
    async_commit
    fill_8 = alloc_var<u8>(1)
    use_9 = alloc_var<u8>(0)
    serial j_3 in N {
      async_wait 0
      barrier
      if j_3 + 1 < N {
        j_10 = j_3 + 1
        copy_async X[m_1*8, j_10*8] -> y_6[fill_8, 0:, 0:]
      }
      async_commit
      fill_8 = if fill_8 + 1 == 2 then 0 else fill_8 + 1
      slot_11 = use_9
      w2 = view y_6[slot_11, 0:, 0:] [8, 8]
      copy w2 -> Y[m_1*8, j_3*8]
      use_9 = if use_9 + 1 == 2 then 0 else use_9 + 1
    }
)"},
    {"in a loop and under a condition",
     R"(
    x = alloc_shared<f16>[8, 8]
    for t in N {
      if t > m {
        pipelined j in t stages=2 {
          copy X[t*8, j*8] -> x
          copy x -> Y[t*8, j*8]
        }
      }
    })",
     R"(    x_5 = alloc_shared<f16>[2, 8, 8]
    serial t_2 in N {
      if t_2 > m_1 {
        if 0 < t_2 {
          copy_async X[t_2*8, 0] -> x_5[0, 0:, 0:]
        }
        async_commit
        fill_4 = alloc_var<u8>(1)
        use_5 = alloc_var<u8>(0)
        serial j_3 in t_2 {
          async_wait 0
          barrier
          if j_3 + 1 < t_2 {
            j_6 = j_3 + 1
            copy_async X[t_2*8, j_6*8] -> x_5[fill_4, 0:, 0:]
          }
          async_commit
          fill_4 = if fill_4 + 1 == 2 then 0 else fill_4 + 1
          slot_7 = use_5
          w1 = view x_5[slot_7, 0:, 0:] [8, 8]
          copy w1 -> Y[t_2*8, j_3*8]
          use_5 = if use_5 + 1 == 2 then 0 else use_5 + 1
        }
      }
    }
)"},
    {"in a pipelined loop",
     R"(
    x = alloc_shared<f16>[8]
    y = alloc_shared<f16>[8]
    pipelined t in N stages=2 {
      copy X[t, 0:] -> x
      pipelined j in t stages=3 {
        copy X[j, 8:] -> y
        parallel r in 8 { Y[t, j*8 + r] = x[r] + y[r] }
      }
    })",
     R"(    x_5 = alloc_shared<f16>[2, 8]
    y_6 = alloc_shared<f16>[3, 8]
    if 0 < N {
      copy_async X[0, 0:] -> x_5[0, 0:]
    }
    async_commit
    fill_9 = alloc_var<u8>(1)
    use_10 = alloc_var<u8>(0)
    serial t_2 in N {
      async_wait 0
      barrier
      if t_2 + 1 < N {
        t_11 = t_2 + 1
        copy_async X[t_11, 0:] -> x_5[fill_9, 0:]
      }
      async_commit
      fill_9 = if fill_9 + 1 == 2 then 0 else fill_9 + 1
      slot_12 = use_10
      if 0 < t_2 {
        copy_async X[0, 8:] -> y_6[0, 0:]
      }
      async_commit
      if 1 < t_2 {
        copy_async X[1, 8:] -> y_6[1, 0:]
      }
      async_commit
      fill_5 = alloc_var<u8>(2)
      use_6 = alloc_var<u8>(0)
      serial j_3 in t_2 {
        async_wait 1
        barrier
        if j_3 + 2 < t_2 {
          j_7 = j_3 + 2
          copy_async X[j_7, 8:] -> y_6[fill_5, 0:]
        }
        async_commit
        fill_5 = if fill_5 + 1 == 3 then 0 else fill_5 + 1
        slot_8 = use_6
        parallel r_4 in 8 {
          Y[t_2, j_3*8+r_4] = x_5[slot_12, r_4] + y_6[slot_8, r_4]
        }
        use_6 = if use_6 + 1 == 3 then 0 else use_6 + 1
      }
      use_10 = if use_10 + 1 == 2 then 0 else use_10 + 1
    }
)"},
};

TEST(PlanPipelines, Prints) {
  for (const Row& row : kRows) EXPECT_EQ(BodyText(Planned(row.body)), row.want) << row.name;
}

// ---- Which copies start early

TEST(PlanPipelines, NotesSayWhatIsDone) {
  const Module m = Planned(R"(
    x = alloc_shared<f16>[8, 8]
    pipelined j in N stages=3 {
      copy X[m*8, j*8] -> x
      copy x -> Y[m*8, j*8]
    })");
  EXPECT_THAT(m.notes, ElementsAre("loop at 7:5: 3 slots of x filled by asynchronous copies"));
}

// Pages of a cache, say: several copies fill a tile, in a row or in a loop that only copies.
TEST(PlanPipelines, PartsFillATile) {
  constexpr std::string_view kFills[] = {
      "v = view w[0, 0] [8, 8]\n copy X[m*8, j*8] -> v  u = view w[8, 0] [8, 8]\n"
      "copy X[m*8, j*8] -> u",
      "unrolled k in 2 { v = view w[k*8, 0] [8, 8]\n p = m + k  copy X[p*8:, j*8:] -> v }"};
  for (const std::string_view fill : kFills) {
    const Module m =
        Planned(absl::StrCat("w = alloc_shared<f16>[16, 8]\n pipelined j in N stages=3 {", fill,
                             "\n copy w -> Y[m*16, j*8] }"));
    EXPECT_THAT(m.notes, ElementsAre(HasSubstr("3 slots of w filled by asynchronous copies")));
  }
}

struct Refusal {
  std::string_view body;
  std::string_view note;
};

TEST(PlanPipelines, NotesSayWhatIsNotOverlapped) {
  constexpr std::string_view kTiles = R"(
    x = alloc_shared<f16>[8, 8]
    y = alloc_shared<f16>[8, 8]
    h = alloc_shared<f32>[8, 8]
    w = alloc_shared<f16>[16, 8]
    f = alloc_fragment<f16>[8, 8]
    at = alloc_var<i32>(0)
    fill y, 0.0
)";
  constexpr Refusal kRefusals[] = {
      {"copy X[m*8, j*8] -> f  copy f -> Y[m*8, j*8]", "f is no shared tile"},
      {"v = view w[8, 0] [8, 8]\n copy X[m*8, j*8] -> v  copy w -> Y[m*16, j*8]",
       "it fills only a part of w"},
      {"v = view w[8, 0] [8, 8]\n copy X[m*8, j*8] -> v  u = view w[4, 0] [8, 8]\n"
       "copy X[m*8, j*8] -> u  copy w -> Y[m*16, j*8]",
       "it fills only a part of w"},
      {"v = view w[0, 0] [8, 8]\n copy X[m*8, j*8] -> v  u = view w[8, 0] [8, 8]\n"
       "copy Z[m*8, j*8] -> u  copy w -> Z[m*16, j*8]",
       "the launch also writes Z"},
      {"copy X[m*8, j*8] -> h  copy h -> Y[m*8, j*8]", "it converts f16 to f32"},
      {"copy X[m*8, j*8] -> x transpose\n copy x -> Y[m*8, j*8]", "it transposes"},
      {"copy Z[m*8, j*8] -> x  copy x -> Z[m*8, j*8]", "the launch also writes Z"},
      {"copy X[m*8, j*8] -> x\n parallel r in 8 { x[r, 0] = 0.0 }\n copy x -> Y[m*8, j*8]",
       "x is also written at 15:20"},
      {"copy X[m*8, j*8] -> x\n copy X[m*8, j*8] -> x rows=3\n copy x -> Y[m*8, j*8]",
       "x is also written at 15:2"},
      {"copy y -> Y[m*8, j*8]  copy X[m*8, j*8] -> y", "y is used before it"},
      {"copy X[m*8, j*8] -> x  } copy x -> Y[m*8, 0]  for k in 1 {", "x is used outside the loop"},
      {"copy X[m*8:, at:] -> x  at = at + 8  copy x -> Y[m*8, j*8]",
       "its place depends on at, which the loop assigns"},
      {"p = at + j  q = p * 8  copy X[q:, 0:] -> x  at = at + 8  copy x -> Y[m*8, j*8]",
       "its place depends on at, which the loop assigns"},
      {"copy X[i32(y[0, 0]):, 0:] -> x  copy x -> Y[m*8, j*8]\n fill y, 1.0",
       "its place depends on y, which the loop writes"},
      {"if j > 3 { copy X[m*8, j*8] -> x  copy x -> Y[m*8, j*8] }", "it stands under a condition"},
      {"for k in 3 { copy X[m*8, j*8] -> x  copy x -> Y[m*8, j*8] }", "it stands in a loop inside"},
  };
  for (const Refusal& r : kRefusals) {
    const std::string body =
        absl::StrCat(kTiles, "    pipelined j in N stages=2 {\n", r.body, "\n}");
    const Module m = Planned(body);
    ASSERT_FALSE(m.notes.empty()) << r.body;
    EXPECT_THAT(m.notes[0], HasSubstr(absl::StrCat(" is not overlapped: ", r.note))) << r.body;
    EXPECT_FALSE(absl::StrContains(ToText(m), "async")) << ToText(m);
  }
}

// What looks like the above and is none.
TEST(PlanPipelines, CopiesThatStartEarly) {
  constexpr std::string_view kBodies[] = {
      // A mutable variable that the loop leaves alone.
      "at = alloc_var<i32>(8)  pipelined j in N stages=2 { copy X[at:, 0:] -> x  copy x -> Y[0, j] "
      "}",
      // A tile that is written elsewhere tells the place.
      "y = alloc_shared<i32>[8]  copy I[0] -> y\n"
      "pipelined j in N stages=2 { copy X[y[m]:, 0:] -> x  copy x -> Y[0, j] }",
      // Uses in conditions, loops and other loops of the body.
      "pipelined j in N stages=2 { copy X[j, 0] -> x  if j > 2 { copy x -> Y[0, j] } "
      "for k in j { copy x -> Y[k, j] } }",
  };
  for (std::string_view body : kBodies) {
    const Module m = Planned(absl::StrCat("x = alloc_shared<f16>[8, 8]\n", body));
    ASSERT_EQ(m.notes.size(), 1u) << absl::StrJoin(m.notes, "\n");
    EXPECT_THAT(m.notes[0], HasSubstr("2 slots of x")) << body;
  }
}

// ---- Depth

TEST(PlanPipelines, DepthFollowsMemory) {
  constexpr std::string_view kBody = R"(
    o = alloc_shared<f16>[32, 32]
    x = alloc_shared<f16>[32, 32]
    y = alloc_shared<f16>[32, 32]
    fill o, 0.0
    pipelined j in N stages=5 {
      copy X[m*32, j*32] -> x
      copy X[j*32, m*32] -> y
      parallel r, c in [32, 32] { o[r, c] = o[r, c] + x[r, c] * y[r, c] }
    }
    copy o -> Y[m*32, 0]
    e = alloc_shared<f16>[32, 32]
    copy X[0, 0] -> e
    copy e -> Y[0, 32]
)";
  // One tile is 2048 bytes; o is in use beside the ring, e is not.
  const std::pair<int64_t, int64_t> rows[] = {
      {2048 * 11, 5}, {2048 * 11 - 1, 4}, {2048 * 5, 2}, {0, 5}};
  for (const auto& [bytes, depth] : rows) {
    const Module m = Planned(kBody, Overlapping(), bytes);
    EXPECT_THAT(m.notes.back(), HasSubstr(absl::StrCat(depth, " slots of x, y"))) << bytes;
    EXPECT_EQ(m.notes.size(), bytes == 0 || depth == 5 ? 1u : 2u);
  }
  const Module none = Planned(kBody, Overlapping(2048 * 5 - 1));
  EXPECT_THAT(none.notes, ElementsAre(HasSubstr("5 slots would take 22528 bytes of on-chip memory, "
                                                "10239 are there"),
                                      HasSubstr("is not pipelined: there is no room")));
}

TEST(PlanPipelines, AtMostSoManySlots) {
  constexpr std::string_view kBody = R"(
    x = alloc_shared<f16>[8, 8]
    pipelined j in N stages=20 { copy X[m*8, j*8] -> x  copy x -> Y[m*8, j*8] })";
  EXPECT_THAT(Planned(kBody).notes, ElementsAre(HasSubstr("16 slots of x filled by asynchronous "
                                                          "copies; 20 stages were asked for")));
  EXPECT_THAT(Planned(kBody, Overlapping(), 0, 1).notes,
              ElementsAre(HasSubstr("no room for a second slot")));
}

// The plan cannot see that this fragment, read at places computed at run time, will not lie in
// registers. The program fits with fewer slots and must not be refused.
TEST(PlanPipelines, FragmentsInSharedMemoryCostSlots) {
  const Module m = BindText(R"(
    f = alloc_fragment<f32>[64, 64]
    x = alloc_shared<f16>[64, 64]
    clear f
    pipelined j in N stages=4 {
      copy X[m*64, j*64] -> x
      parallel r, c in [64, 64] { f[r, c] += x[r, c] }
    }
    parallel r, c in [64, 64] { Y[r, c] = f[r, (c + m) % 64] })");
  Target target = Overlapping(16384 + 8192 * 3);
  target.max_threads_per_block = 1024;
  const StatusOr<Module> lowered = Lower(m, target);
  ASSERT_TRUE(lowered.ok()) << lowered.status();
  EXPECT_THAT(lowered->notes, Contains(HasSubstr("2 slots of x")));
}

TEST(PlanPipelines, InertWithoutTheMeans) {
  constexpr std::string_view kBody = R"(
    x = alloc_shared<f16>[8, 8]
    pipelined j in N stages=3 { copy X[m*8, j*8] -> x  copy x -> Y[m*8, j*8] })";
  Target plain = Overlapping();
  plain.register_fragments = false;
  const Module m = Planned(kBody, plain);
  EXPECT_THAT(m.notes, IsEmpty());
  EXPECT_THAT(BodyText(m), HasSubstr("serial j_2 in N {\n      copy X"));
}

}  // namespace
}  // namespace tl
