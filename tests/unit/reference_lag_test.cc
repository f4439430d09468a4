// lag, groups and channels.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/unit/reference_testing.h"

namespace tl::reference {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

// ---- lag
// -----------------------------------------------------------------------------------------

// Each lagged body appends one digit to `log`: the order of events can be read off.
Doubles Events(const std::string& body, int n) {
  Program p(absl::StrCat(R"(tl 1.0
kernel k(n: dim) {
  out Y: tensor<i64>[1]
  launch m in 1 {
    log = alloc_var<i64>(9)
    pipelined i in n stages=2 {
)",
                         body, R"(
    }
    parallel r in 1 { Y[0] = log }
  }
})"));
  EXPECT_TRUE(p.status().ok()) << p.status();
  p.Dim("n", n);
  EXPECT_TRUE(p.Run().ok());
  return p.Exact("Y");
}

TEST(Lag, SkipsTheFirstAndDrainsTheLast) {
  const std::string body = "log = log * 10 + 1 + i\nlag 2 { log = log * 10 + 5 + i }";
  EXPECT_THAT(Events(body, 0), ElementsAre(9));
  EXPECT_THAT(Events(body, 1), ElementsAre(915));
  EXPECT_THAT(Events(body, 2), ElementsAre(91256));
  EXPECT_THAT(Events(body, 3), ElementsAre(9123567));
  EXPECT_THAT(Events(body, 4), ElementsAre(912354678));
}

// After the loop: virtual iterations, in each the lags as written.
TEST(Lag, SeveralContinueInTheOrderWritten) {
  const std::string body = "lag 2 { log = log * 10 + 1 + i }\nlag 1 { log = log * 10 + 5 + i }";
  EXPECT_THAT(Events(body, 3), ElementsAre(9516273));
  EXPECT_THAT(Events(body, 1), ElementsAre(951));
}

TEST(Lag, RunsDownwardsToo) {
  Program p(R"(tl 1.0
kernel k(n: dim) {
  out Y: tensor<i64>[1]
  launch m in 1 {
    log = alloc_var<i64>(9)
    pipelined i in n down stages=2 {
      log = log * 10 + 1 + i
      lag 1 { log = log * 10 + 5 + i }
    }
    parallel r in 1 { Y[0] = log }
  }
})");
  p.Dim("n", 3);
  TL_ASSERT_OK(p.Run());
  EXPECT_THAT(p.Exact("Y"), ElementsAre(9327165));
}

// Replayed: the index, values and copied tiles of the iteration; present: everything else.
TEST(Lag, ReplaysValuesAndCopiedTiles) {
  Program p(R"(tl 1.0
kernel k(n: dim) {
  in X: tensor<f32>[n, 2], U: tensor<f32>[n, 2]
  out Y: tensor<f32>[n, 6]
  launch m in 1 {
    x, u, z = alloc_shared<f32>[2]
    now = alloc_var<f32>(0)
    pipelined i in n stages=2 {
      twice = f32(i * 2)
      now = f32(i)
      in_turn on { copy X[i, 0:] -> x }
      parallel c in 2 { z[c] = f32(i) * 100 }
      lag 1 {
        parallel r in 1 {
          Y[i, 0] = x[0]
          Y[i, 1] = x[1]
          Y[i, 2] = twice
          Y[i, 3] = now
          Y[i, 4] = z[0]
          Y[i, 5] = u[1]
        }
      }
      copy U[i, 0:] -> u
    }
  }
})");
  TL_ASSERT_OK(p.status());
  p.Dim("n", 3).Set("X", {1, 2, 3, 4, 5, 6}).Set("U", {10, 20, 30, 40, 50, 60});
  TL_ASSERT_OK(p.Run());
  EXPECT_THAT(p.Exact("Y"), ElementsAre(1, 2, 0, 1, 100, 20,  // u: copied behind the lag
                                        3, 4, 2, 2, 200, 40,  //
                                        5, 6, 4, 2, 200, 60));
}

// The two forms of a pipelined product: with lag and by hand.
TEST(Lag, EqualsTheUnlaggedLoop) {
  const auto text = [](const std::string& step) {
    return absl::StrCat(R"(tl 1.0
kernel k(n: dim) {
  in Q: tensor<f32>[4, 8], K: tensor<f32>[n, 4, 8], V: tensor<f32>[n, 4, 8]
  out O: tensor<f32>[4, 8]
  launch m in 1 {
    q, k_s, v_s = alloc_shared<f32>[4, 8]
    s, p = alloc_fragment<f32>[4, 4]
    o = alloc_fragment<f32>[4, 8]
    copy Q[0, 0] -> q
    clear o
    pipelined j in n stages=2 {
      copy K[j, 0:, 0:] -> k_s
      copy V[j, 0:, 0:] -> v_s
      gemm q, k_s -> s transpose_b clear
)",
                        step, R"(
    }
    copy o -> O[0, 0]
  }
})");
  };
  for (int n : {0, 1, 2, 5}) {
    Program lagged(
        text("lag 1 { gemm p, v_s -> o }\nparallel r, c in [4, 4] { p[r, c] = s[r, c] * 2 }"));
    Program plain(text("parallel r, c in [4, 4] { p[r, c] = s[r, c] * 2 }\ngemm p, v_s -> o"));
    for (Program* p : {&lagged, &plain}) {
      p->Dim("n", n).Set("Q", Ramp(32)).Set("K", Ramp(n * 32, 2)).Set("V", Ramp(n * 32, 3));
      TL_ASSERT_OK(p->Run());
    }
    EXPECT_THAT(lagged.Exact("O"), ElementsAreArray(plain.Exact("O"))) << n;
  }
}

TEST(Lag, MayNotWriteWhatIsReplayed) {
  Program p(R"(tl 1.0
kernel k(n: dim) {
  in X: tensor<f32>[n, 2]
  launch m in 1 {
    x = alloc_shared<f32>[2]
    pipelined i in n stages=2 {
      copy X[i, 0:] -> x
      lag 1 { fill x, 0 }
    }
  }
})");
  if (!p.status().ok()) {  // the binder may know already
    EXPECT_THAT(p.status(), FailsAt(8, "x"));
    return;
  }
  p.Dim("n", 2).Set("X", Ramp(4));
  EXPECT_THAT(p.Run(), FailsAt(8, "writes 'x'"));
}

// ---- groups
// --------------------------------------------------------------------------------------

TEST(Groups, PrivateFragmentsCommonSharedTiles) {
  Program p(R"(tl 1.0
kernel k(M: dim) {
  in X: tensor<f32>[M, 2, 4]
  out Y: tensor<f32>[M, 2, 4]
  launch m in M groups=2 {
    x = alloc_shared<f32>[2, 4]
    copy X[m, 0:, 0:] -> x
    on g in 2 {
      f = alloc_fragment<f32>[4]
      parallel c in 4 { f[c] = x[g, c] + f32(g) * 100 }
      parallel c in 4 { x[g, c] = f[c] }
    }
    copy x -> Y[m, 0:, 0:]
  }
})");
  TL_ASSERT_OK(p.status());
  p.Dim("M", 2).Set("X", Ramp(16));
  Doubles want = Ramp(16);
  for (int i = 0; i < 16; ++i) want[i] += i / 4 % 2 * 100;
  TL_ASSERT_OK(p.Run(2));
  EXPECT_THAT(p.Exact("Y"), ElementsAreArray(want));
}

std::string PingPong(int depth, const std::string& first, const std::string& second) {
  return absl::StrCat(R"(tl 1.0
kernel k(n: dim) {
  in X: tensor<f32>[n, 2]
  out Y: tensor<f32>[n, 2]
  launch m in 2 groups=2 {
    there = alloc_chan<f32>[2] depth=)",
                      depth, R"(
    back = alloc_chan<f32>[2] depth=)",
                      depth, R"(
    on g in 2 {
      f = alloc_fragment<f32>[2]
      if g == 0 { )",
                      first, R"( } else { )", second, R"( }
    }
  }
})");
}

TEST(Channels, CarryTilesInOrder) {
  const std::string first =
      "for i in n { copy X[i, 0:] -> f; send f -> there; recv back -> f; copy f -> Y[i, 0:] }";
  const std::string second =
      "for i in n { recv there -> f; parallel c in 2 { f[c] = f[c] * 2 }; send f -> back }";
  Doubles want = Ramp(10);
  for (double& v : want) v *= 2;
  for (int depth : {1, 3}) {
    Program p(PingPong(depth, first, second));
    TL_ASSERT_OK(p.status());
    p.Dim("n", 5).Set("X", Ramp(10));
    TL_ASSERT_OK(p.Run(2));
    EXPECT_THAT(p.Exact("Y"), ElementsAreArray(want));
  }
}

TEST(Channels, DepthLetsTheSenderRunAhead) {
  // All sends before the first recv of the way back: n messages need depth n.
  const std::string first =
      "for i in n { copy X[i, 0:] -> f; send f -> there }"
      "for i in n { recv back -> f; copy f -> Y[i, 0:] }";
  const std::string second = "for i in n { recv there -> f; send f -> back }";
  Program deep(PingPong(4, first, second));
  deep.Dim("n", 4).Set("X", Ramp(8));
  TL_ASSERT_OK(deep.Run());
  EXPECT_THAT(deep.Exact("Y"), ElementsAreArray(Ramp(8)));
  Program shallow(PingPong(1, first, second));
  shallow.Dim("n", 4).Set("X", Ramp(8));
  const Status s = shallow.Run();
  EXPECT_THAT(std::string(s.message()),
              HasSubstr("deadlock: group 0 waits in send to 'there' (10:"));
  EXPECT_THAT(std::string(s.message()), HasSubstr("group 1 waits in send to 'back' (10:"));
}

TEST(Channels, DeadlockWhenTheOtherGroupHasEnded) {
  Program p(PingPong(1, "recv back -> f", "fill f, 1"));
  p.Dim("n", 1).Set("X", Ramp(2));
  EXPECT_THAT(p.Run(), FailsAt(10, "group 1 has ended"));
}

TEST(Channels, OneSenderOneReceiverNothingLeft) {
  Program two(PingPong(4, "fill f, 1; send f -> there", "fill f, 1; send f -> there"));
  two.Dim("n", 1).Set("X", Ramp(2));
  EXPECT_THAT(two.Run(), FailsAt(10, "one sending group"));
  Program left(PingPong(4, "fill f, 1; send f -> there", "fill f, 1"));
  left.Dim("n", 1).Set("X", Ramp(2));
  EXPECT_THAT(left.Run(), FailsAt(6, "channel 'there' still holds 1 message(s)"));
}

TEST(Channels, FailuresInAGroupEndTheOthers) {
  Program p(PingPong(1, "parallel c in 2 { f[c] = X[n, c] }", "recv there -> f"));
  p.Dim("n", 1).Set("X", Ramp(2));
  EXPECT_THAT(p.Run(), FailsAt(10, "read of X[1, 0]"));
}

TEST(Groups, VariablesMustAgreeAfterwards) {
  const auto text = [](const std::string& value) {
    return absl::StrCat(R"(tl 1.0
kernel k() {
  out Y: tensor<i32>[1]
  launch m in 1 groups=2 {
    v = alloc_var<i32>(1)
    on g in 2 { v = )",
                        value, R"( }
    parallel r in 1 { Y[0] = v }
  }
})");
  };
  Program same(text("v + 4"));
  TL_ASSERT_OK(same.Run());
  EXPECT_THAT(same.Exact("Y"), ElementsAre(5));
  Program differs(text("v + g"));
  if (differs.status().ok()) {
    EXPECT_THAT(differs.Run(), FailsAt(6, "different values in 'v'"));
  }
}

}  // namespace
}  // namespace tl::reference
