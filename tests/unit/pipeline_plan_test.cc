// Plans of pipelined loops: what the pass makes of programs, what it says about copies that it
// leaves alone, and that faults in a plan are found.
#include "passes/pipeline_plan.h"

#include <algorithm>
#include <ctime>
#include <functional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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

// ---- The check of plans

LoopPlan PlanOf(Transport transport, int depth, int trailing = 0, bool again = true,
                bool producer = false, int blocks = 1) {
  return MakeLoopPlan({.tiles = {0},
                       .depth = depth,
                       .transport = transport,
                       .trailing = trailing,
                       .again = again,
                       .blocks = blocks},
                      producer);
}
constexpr Transport kTransports[] = {Transport::kAsyncCopy, Transport::kRegisters,
                                     Transport::kBoxes};

using Steps = std::vector<Step>;
Steps& Body(LoopPlan& p) { return p.agents.back().body; }
Steps& Prologue(LoopPlan& p) { return p.agents.back().prologue; }
Steps& Epilogue(LoopPlan& p) { return p.agents.back().epilogue; }
// Of who fills.
Steps& FillerBody(LoopPlan& p) { return p.agents.front().body; }

bool Erase(Steps& steps, StepKind kind) {
  const auto it =
      std::find_if(steps.begin(), steps.end(), [&](const Step& s) { return s.kind == kind; });
  if (it == steps.end()) return false;
  steps.erase(it);
  return true;
}
bool Change(Steps& steps, StepKind kind, const std::function<void(Step&)>& change) {
  const auto it =
      std::find_if(steps.begin(), steps.end(), [&](const Step& s) { return s.kind == kind; });
  if (it == steps.end()) return false;
  change(*it);
  return true;
}
// The step comes right behind another one.
bool Move(Steps& steps, StepKind kind, StepKind behind) {
  const auto is = [&](StepKind k) { return [k](const Step& s) { return s.kind == k; }; };
  const auto from = std::find_if(steps.begin(), steps.end(), is(kind));
  if (from == steps.end()) return false;
  const Step step = *from;
  steps.erase(from);
  const auto to = std::find_if(steps.begin(), steps.end(), is(behind));
  if (to == steps.end()) return false;
  steps.insert(to + 1, step);
  return true;
}

// "; 2 slots: acquire 0, issue 0 | …".
std::string Text(const LoopPlan& plan) {
  static constexpr std::string_view kNames[] = {"issue",   "commit",  "wait",      "await",
                                                "acquire", "release", "fetch",     "put",
                                                "barrier", "use",     "next fill", "next use"};
  std::string text = absl::StrCat("; ", plan.rings[0].depth, " slots");
  for (const Agent& agent : plan.agents) {
    for (const Steps* steps : {&agent.prologue, &agent.body, &agent.epilogue}) {
      absl::StrAppend(&text, steps == &agent.prologue ? ": " : " | ");
      for (const Step& s : *steps) {
        absl::StrAppend(&text, kNames[static_cast<size_t>(s.kind)], " ", s.iteration, ", ");
      }
    }
  }
  return text;
}

TEST(VerifyPlan, AcceptsWhatIsMade) {
  for (Transport t : kTransports) {
    for (int depth = 2; depth <= 16; ++depth) {
      for (bool again : {false, true}) {
        for (bool producer : {false, t == Transport::kBoxes}) {
          const LoopPlan plan = PlanOf(t, depth, 0, again, producer);
          const Status s = VerifyPlan(plan);
          EXPECT_TRUE(s.ok()) << Name(t) << Text(plan) << ": " << s;
        }
      }
    }
  }
}

// Blocks that fill each other's slots.
TEST(VerifyPlan, AcceptsSlotsOfClusters) {
  for (int blocks : {2, 3, 4, 8}) {
    for (int depth = 2; depth <= (blocks > 2 ? 3 : 6); ++depth) {
      for (bool again : {false, true}) {
        for (int trailing = 0; trailing <= (depth < 3 ? 0 : 1); ++trailing) {
          const LoopPlan plan = PlanOf(Transport::kBoxes, depth, trailing, again, true, blocks);
          const Status s = VerifyPlan(plan);
          EXPECT_TRUE(s.ok()) << blocks << " blocks" << Text(plan) << ": " << s;
        }
      }
    }
  }
  // Who fills for others fills nothing else, and by boxes.
  for (Transport t : kTransports) {
    EXPECT_EQ(VerifyPlan(PlanOf(t, 2, 0, true, false, 2)).code(), absl::StatusCode::kInternal);
  }
}

// A use that reads its slot for one iteration longer leaves one slot fewer to fill.
TEST(VerifyPlan, UsesThatTrailTakeASlot) {
  for (Transport t : {Transport::kAsyncCopy, Transport::kBoxes}) {
    for (int depth = 3; depth <= 16; ++depth) {
      for (bool again : {false, true}) {
        for (bool producer : {false, t == Transport::kBoxes}) {
          const LoopPlan plan = PlanOf(t, depth, 1, again, producer);
          const Status s = VerifyPlan(plan);
          EXPECT_TRUE(s.ok()) << Name(t) << Text(plan) << ": " << s;
        }
      }
      // The same steps with a use that nobody told the plan about.
      LoopPlan plan = PlanOf(t, depth);
      plan.rings[0].trailing = 1;
      EXPECT_EQ(VerifyPlan(plan).code(), absl::StatusCode::kInternal) << Name(t) << " " << depth;
    }
    EXPECT_EQ(VerifyPlan(PlanOf(t, 2, 1)).code(), absl::StatusCode::kInternal) << Name(t);
  }
}

TEST(VerifyPlan, FindsPlantedFaults) {
  using K = StepKind;
  struct Fault {
    std::string_view name;
    std::function<bool(LoopPlan&)> plant;  // false: not in this plan
  };
  const Fault faults[] = {
      {"waits for one group less",
       [](LoopPlan& p) { return Change(Body(p), K::kWait, [](Step& s) { ++s.pending; }); }},
      {"no wait",
       [](LoopPlan& p) { return Erase(Body(p), K::kWait) || Erase(Body(p), K::kAwait); }},
      {"no barrier", [](LoopPlan& p) { return Erase(Body(p), K::kBarrier); }},
      {"barrier before the wait", [](LoopPlan& p) { return Move(Body(p), K::kWait, K::kBarrier); }},
      {"copies before the barrier",
       [](LoopPlan& p) { return Move(Body(p), K::kBarrier, K::kIssue); }},
      {"barrier behind the computation",
       [](LoopPlan& p) { return Move(Body(p), K::kBarrier, K::kUse); }},
      {"no commit", [](LoopPlan& p) { return Erase(Body(p), K::kCommit); }},
      {"no commit in the prologue", [](LoopPlan& p) { return Erase(Prologue(p), K::kCommit); }},
      {"commit before the copies",
       [](LoopPlan& p) { return Move(Body(p), K::kIssue, K::kCommit); }},
      {"a slot too far",
       [](LoopPlan& p) {
         if (p.agents.size() > 1) return false;
         Prologue(p).push_back({.kind = K::kNextFill});
         return true;
       }},
      {"slot not stepped", [](LoopPlan& p) { return Erase(FillerBody(p), K::kNextFill); }},
      {"slot of the computation not stepped",
       [](LoopPlan& p) { return Erase(Body(p), K::kNextUse); }},
      {"slot stepped before the computation",
       [](LoopPlan& p) { return Move(Body(p), K::kUse, K::kNextUse); }},
      {"depth too small",
       [](LoopPlan& p) { return p.agents.size() == 1 && --p.rings[0].depth > 0; }},
      {"copies one iteration too far ahead",
       [](LoopPlan& p) {
         return Change(FillerBody(p), K::kIssue, [](Step& s) { ++s.iteration; });
       }},
      {"copies too late",
       [](LoopPlan& p) {
         return Change(FillerBody(p), K::kIssue, [](Step& s) { --s.iteration; });
       }},
      {"a copy of the prologue missing",
       [](LoopPlan& p) { return Erase(Prologue(p), K::kIssue) || Erase(Prologue(p), K::kPut); }},
      {"registers stored before the computation",
       [](LoopPlan& p) { return Move(Body(p), K::kBarrier, K::kPut); }},
      {"registers loaded too late", [](LoopPlan& p) { return Move(Body(p), K::kFetch, K::kPut); }},
      {"no computation", [](LoopPlan& p) { return Erase(Body(p), K::kUse); }},
      {"slots are filled that may not be free",
       [](LoopPlan& p) { return Erase(FillerBody(p), K::kAcquire); }},
      {"those of an earlier run, too", [](LoopPlan& p) { return Erase(Prologue(p), K::kAcquire); }},
      {"copies before their slot is free",
       [](LoopPlan& p) { return Move(FillerBody(p), K::kAcquire, K::kIssue); }},
      {"slots are not given back", [](LoopPlan& p) { return Erase(Body(p), K::kRelease); }},
      {"nor behind the loop", [](LoopPlan& p) { return Erase(Epilogue(p), K::kRelease); }},
      {"slots are given back before the computation",
       [](LoopPlan& p) { return p.rings[0].trailing == 0 && Move(Body(p), K::kUse, K::kRelease); }},
      {"slots are given back while they are read",
       [](LoopPlan& p) {
         return p.rings[0].trailing > 0 &&
                Change(Body(p), K::kRelease, [](Step& s) { ++s.iteration; });
       }},
      {"slots are given back twice",
       [](LoopPlan& p) {
         const bool boxes = p.rings[0].transport == Transport::kBoxes;
         if (boxes) Body(p).insert(Body(p).end() - 1, *(Body(p).end() - 2));
         return boxes;
       }},
  };
  for (Transport t : kTransports) {
    for (int depth = 2; depth <= 5; ++depth) {
      for (int trailing : {0, 1}) {
        if (trailing > 0 && (t == Transport::kRegisters || depth < 3)) continue;
        for (const Fault& fault : faults) {
          for (int blocks : {0, 1, 2}) {  // 0: all threads fill
            if (blocks > 0 && t != Transport::kBoxes) continue;
            LoopPlan plan = PlanOf(t, depth, trailing, true, blocks > 0, std::max(blocks, 1));
            if (!fault.plant(plan)) continue;
            const Status s = VerifyPlan(plan);
            EXPECT_EQ(s.code(), absl::StatusCode::kInternal)
                << fault.name << ", " << Name(t) << ", trailing " << trailing << ", " << blocks
                << " blocks" << Text(plan);
          }
        }
      }
    }
  }
}

// Threads that run a plan's steps in a random order, moves that land at random moments: the oracle
// for random changes to plans.
class Threads {
 public:
  Threads(const LoopPlan& plan, int trips, std::mt19937& rng)
      : plan_(plan), trips_(trips), rng_(rng), slots_(plan.rings[0].depth) {}

  // Does everything go well?
  bool Run() {
    for (int pass = 0; pass < 2 && ok_; ++pass) {
      first_ = pass * trips_;
      Flatten();
      for (Thread& t : threads_) t.at = 0, t.fill = t.use = 0;
      while (ok_ && Step()) {
      }
      for (const Thread& t : threads_) ok_ = ok_ && t.at == steps_.size();
      if (ok_) Land(1.0);  // of what is under way: after the loop it may hit anything
      for (const Thread& t : threads_) ok_ = ok_ && t.flights.empty();
    }
    return ok_;
  }

 private:
  static constexpr int kThreads = 2;
  struct Slot {
    int part[kThreads];  // iteration whose data each thread's part holds
    Slot() { std::fill(std::begin(part), std::end(part), -1); }
  };
  struct Flight {
    int slot, iteration, group;
    bool landed = false;
  };
  struct Thread {
    size_t at = 0;
    int fill = 0, use = 0, fetched = -1, groups = 0;
    std::vector<Flight> flights;
  };
  struct Instance {
    tl::Step step;
    int iteration, now;
  };

  void Flatten() {
    steps_.clear();
    for (const tl::Step& s : plan_.agents[0].prologue) steps_.push_back({s, s.iteration, -1});
    for (int now = 0; now < trips_; ++now) {
      for (const tl::Step& s : plan_.agents[0].body) steps_.push_back({s, now + s.iteration, now});
    }
  }

  // One thread goes one step; false: none can.
  bool Step() {
    Land(0.2);
    std::vector<int> ready;
    int at_barrier = 0;
    for (int i = 0; i < kThreads; ++i) {
      const Thread& t = threads_[i];
      if (t.at == steps_.size()) continue;
      steps_[t.at].step.kind == StepKind::kBarrier ? void(++at_barrier) : ready.push_back(i);
    }
    if (ready.empty() && at_barrier == 0) return false;
    if (ready.empty()) {
      for (Thread& t : threads_) ++t.at;
      return true;
    }
    const int i = ready[rng_() % ready.size()];
    Do(i, threads_[i]);
    ++threads_[i].at;
    return true;
  }

  void Do(int i, Thread& t) {
    const Instance& x = steps_[t.at];
    const int depth = static_cast<int>(slots_.size());
    switch (x.step.kind) {
      case StepKind::kIssue:
        if (x.iteration < trips_) t.flights.push_back({t.fill, first_ + x.iteration, t.groups});
        return;
      case StepKind::kCommit:
        ++t.groups;
        return;
      case StepKind::kWait:
        for (Flight& f : t.flights) {
          if (f.group < t.groups - x.step.pending) Land(i, f);
        }
        std::erase_if(t.flights,
                      [&](const Flight& f) { return f.group < t.groups - x.step.pending; });
        return;
      case StepKind::kFetch:
        if (x.iteration < trips_) t.fetched = first_ + x.iteration;
        return;
      case StepKind::kPut:
        if (x.iteration < trips_) slots_[t.fill].part[i] = t.fetched;
        return;
      case StepKind::kUse:
        for (int part : slots_[t.use].part) ok_ = ok_ && part == first_ + x.now;
        return;
      case StepKind::kNextFill:
        t.fill = (t.fill + 1) % depth;
        return;
      case StepKind::kNextUse:
        t.use = (t.use + 1) % depth;
        return;
      default:
        return;
    }
  }

  void Land(int i, Flight& f) {
    if (!f.landed) slots_[f.slot].part[i] = f.iteration;
    f.landed = true;
  }
  void Land(double chance) {
    for (int i = 0; i < kThreads; ++i) {
      for (Flight& f : threads_[i].flights) {
        if (std::bernoulli_distribution(chance)(rng_)) Land(i, f);
      }
    }
  }

  const LoopPlan& plan_;
  const int trips_;
  std::mt19937& rng_;
  int first_ = 0;
  std::vector<Slot> slots_;
  Thread threads_[kThreads];
  std::vector<Instance> steps_;
  bool ok_ = true;
};

// The same for plans with mbarriers: boxes land at random moments.
class HandingThreads {
 public:
  HandingThreads(const LoopPlan& plan, int trips, std::mt19937& rng)
      : ring_(plan.rings[0]), trips_(trips), rng_(rng), slots_(ring_.depth * ring_.blocks) {
    for (int block = 0; block < ring_.blocks; ++block) {
      for (const Agent& agent : plan.agents) AddThreads(agent, block);
    }
    for (Slot& slot : slots_) slot.free.missing = users_;
    for (Slot& slot : slots_) slot.filled.missing = ring_.blocks;
  }
  void AddThreads(const Agent& agent, int block) {
    // Of a producer's threads one waits for slots.
    for (int i = 0; i < (Uses(agent) ? 2 : 1); ++i) {
      Thread& t = threads_.emplace_back();
      t.block = block;
      t.fills = i == 0;
      for (int pass = 0; pass < (ring_.again ? 2 : 1); ++pass) {
        AddPass(agent, pass * trips_, t.todo);
      }
      users_ += Uses(agent);
    }
  }

  bool Run() {
    while (ok_ && Step()) {
    }
    for (const Thread& t : threads_) ok_ = ok_ && t.next == t.todo.size();
    return ok_ && flights_.empty();
  }

 private:
  struct Mbarrier {
    int phase = 0, missing = 1;
    void Arrive(int arrivals) {
      if (--missing > 0) return;
      ++phase;
      missing = arrivals;
    }
  };
  struct Slot {
    int holds = -1;
    Mbarrier filled, free;
  };
  struct Position {
    int slot = 0, parity = 0;
    void Next(int depth) {
      parity ^= slot + 1 == depth;
      slot = (slot + 1) % depth;
    }
  };
  struct Instance {
    tl::Step step;
    int iteration;
    bool exists, last;  // the loop's last step
  };
  struct Reading {
    int slot, iteration, until;  // computation of iteration `until`
  };
  struct Thread {
    int block = 0;
    bool fills = false;
    std::vector<Instance> todo;
    size_t next = 0;
    Position fill, use;
    std::vector<Reading> reading;
  };
  struct Flight {
    int block, slot, iteration;
  };

  Slot& SlotOf(int block, int slot) { return slots_[block * ring_.depth + slot]; }
  static bool Uses(const Agent& agent) {
    return std::any_of(agent.body.begin(), agent.body.end(),
                       [](const tl::Step& s) { return s.kind == StepKind::kUse; });
  }
  void AddPass(const Agent& agent, int first, std::vector<Instance>& out) const {
    const auto add = [&](const tl::Step& s, int i) {
      out.push_back({s, first + i, i >= 0 && i < trips_, false});
    };
    for (const tl::Step& s : agent.prologue) add(s, s.iteration);
    for (int now = 0; now < trips_; ++now) {
      for (const tl::Step& s : agent.body) add(s, now + s.iteration);
    }
    if (trips_ > 0) out.back().last = true;
    for (const tl::Step& s : agent.epilogue) add(s, trips_ + s.iteration);
  }

  bool Step() {
    if (!flights_.empty() && rng_() % 4 == 0) Land();
    const size_t first = rng_() % threads_.size();
    for (size_t i = 0; i < threads_.size(); ++i) {
      Thread& t = threads_[(first + i) % threads_.size()];
      if (t.next == t.todo.size() || !Do(t, t.todo[t.next])) continue;
      if (t.todo[t.next].last) EndReading(t, [](const Reading&) { return true; });
      ++t.next;
      return true;
    }
    if (flights_.empty()) return false;
    Land();
    return true;
  }

  bool Do(Thread& t, const Instance& x) {
    switch (x.step.kind) {
      case StepKind::kAcquire:
        return !x.exists || SlotOf(t.block, t.fill.slot).free.phase % 2 != (t.fill.parity ^ 1);
      case StepKind::kIssue:
        for (int block = 0; x.exists && t.fills && block < ring_.blocks; ++block) {
          flights_.push_back({block, t.fill.slot, x.iteration});
        }
        return true;
      case StepKind::kNextFill:
        if (x.exists) t.fill.Next(ring_.depth);
        return true;
      case StepKind::kAwait:
        return SlotOf(t.block, t.use.slot).filled.phase % 2 != t.use.parity;
      case StepKind::kUse:
        ok_ = ok_ && SlotOf(t.block, t.use.slot).holds == x.iteration;
        t.reading.push_back({t.use.slot, x.iteration, x.iteration + ring_.trailing});
        EndReading(t, [&](const Reading& r) { return r.until <= x.iteration; });
        return true;
      case StepKind::kRelease:
        if (x.exists) {
          const int slot = (t.use.slot + x.step.iteration + 8 * ring_.depth) % ring_.depth;
          for (int block = 0; block < ring_.blocks; ++block) {
            SlotOf(block, slot).free.Arrive(users_);
          }
        }
        return true;
      case StepKind::kNextUse:
        t.use.Next(ring_.depth);
        return true;
      default:
        ok_ = false;
        return true;
    }
  }

  template <typename F>
  void EndReading(Thread& t, F ends) {
    for (const Reading& r : t.reading) {
      if (ends(r)) ok_ = ok_ && SlotOf(t.block, r.slot).holds == r.iteration;
    }
    std::erase_if(t.reading, ends);
  }
  // A box may destroy what its slot holds long before it is all there.
  void Land() {
    const size_t i = rng_() % flights_.size();
    Slot& slot = SlotOf(flights_[i].block, flights_[i].slot);
    slot.holds = flights_[i].iteration;
    slot.filled.Arrive(ring_.blocks);
    flights_.erase(flights_.begin() + static_cast<ptrdiff_t>(i));
  }

  const Ring& ring_;
  const int trips_;
  std::mt19937& rng_;
  int users_ = 0;
  std::vector<Slot> slots_;
  std::vector<Thread> threads_;
  std::vector<Flight> flights_;
  bool ok_ = true;
};

bool Runs(const LoopPlan& plan, int trips, std::mt19937& rng) {
  return plan.rings[0].transport == Transport::kBoxes ? HandingThreads(plan, trips, rng).Run()
                                                      : Threads(plan, trips, rng).Run();
}

// One random change; most are faults.
void Mutate(LoopPlan& plan, std::mt19937& rng) {
  Steps& steps = rng() % 3 == 0 ? Prologue(plan) : Body(plan);
  const auto pick = [&] { return steps.begin() + rng() % steps.size(); };
  switch (rng() % 6) {
    case 0:
      if (!steps.empty()) steps.erase(pick());
      return;
    case 1:
      if (!steps.empty()) steps.insert(pick(), *pick());
      return;
    case 2:
      if (!steps.empty()) std::iter_swap(pick(), pick());
      return;
    case 3:
      if (!steps.empty()) pick()->iteration += rng() % 2 ? 1 : -1;
      return;
    case 4:
      for (Step& s : Body(plan)) s.pending = std::max(0, s.pending + (rng() % 2 ? 1 : -1));
      return;
    case 5:
      plan.rings[0].depth = std::max(1, plan.rings[0].depth + (rng() % 2 ? 1 : -1));
      return;
  }
}

TEST(VerifyPlan, WhatItAcceptsRuns) {
  std::mt19937 rng(7);
  int accepted = 0, refused = 0, failed = 0;
  for (int i = 0; i < 4000; ++i) {
    const Transport transport = kTransports[rng() % 3];
    const int blocks = transport == Transport::kBoxes ? static_cast<int>(rng() % 3) : 0;
    LoopPlan plan = PlanOf(transport, 2 + static_cast<int>(rng() % 3), 0, true, blocks > 0,
                           std::max(blocks, 1));
    for (uint32_t n = 1 + rng() % 2; n > 0; --n) Mutate(plan, rng);
    for (Steps* steps : {&Prologue(plan), &Body(plan)}) {
      for (Step& s : *steps) s.iteration = std::max(s.iteration, 0);
    }
    const Status verdict = VerifyPlan(plan);
    bool runs = true;
    for (int n = 0; n < 12 && runs; ++n) {
      runs = Runs(plan, static_cast<int>(rng() % (2 * plan.rings[0].depth + 2)), rng);
    }
    if (!runs) ++failed;
    ++(verdict.ok() ? accepted : refused);
    if (verdict.ok()) {
      EXPECT_TRUE(runs) << "plan " << i << Text(plan);
    }
  }
  // The check is worth something: it tells the two apart.
  EXPECT_GT(accepted, 200);
  EXPECT_GT(failed, 1000);
  EXPECT_LT(refused, failed * 2);
}

// It runs at every compile. Processor time, so that a busy machine does not count.
TEST(VerifyPlan, TakesMicroseconds) {
  constexpr int kRuns = 50;
  for (const auto& [depth, micros] : {std::pair(4, 200), std::pair(16, 10000)}) {
    const LoopPlan plan = PlanOf(Transport::kAsyncCopy, depth);
    const std::clock_t start = std::clock();
    for (int i = 0; i < kRuns; ++i) EXPECT_TRUE(VerifyPlan(plan).ok());
    const double took = 1e6 * static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC / kRuns;
    RecordProperty(absl::StrCat("depth_", depth), absl::StrCat(took));
    EXPECT_LT(took, micros) << depth;
  }
}

}  // namespace
}  // namespace tl
