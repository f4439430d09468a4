// Tuning on a GPU: planted candidates take down a worker and nothing else, and a real search.
#include "tests/abi/tune_testing.h"

namespace {

using border::TempDir;
using namespace tuning;  // NOLINT(build/namespaces)

bool IsRight(tl_kernel* kernel, const Request& request) {
  tl_check_options options = border::Sized<tl_check_options>();
  tl_check_result result = border::Sized<tl_check_result>();
  options.device = request.compile.device;
  options.dims = request.dims.data();
  options.num_dims = static_cast<uint32_t>(request.dims.size());
  return tl_check(kernel, &options, &result) == TL_OK;
}

class TuneGpu : public testing::Test {
 protected:
  void SetUp() override {
    context_ = ContextOn(dir_ / "cache");
    device_ = families::FindDevice(context_.get(), "cuda");
    if (device_ < 0) GTEST_SKIP() << "there is no GPU";
  }
  TempDir dir_;
  border::Context context_;
  int32_t device_ = -1;
};

TEST_F(TuneGpu, CandidatesThatFaultSpinOrAreWrongCostOnlyThemselves) {
  Request request(context_.get(), kPlanted, {}, {64});
  request.compile.device = device_;
  // One that the caller has, from before and during it all.
  const border::Kernel before =
      families::Compile(context_.get(), border::AddProgram(3), {}, device_);
  ASSERT_TRUE(before);
  ASSERT_TRUE(IsRight(before.get(), request)) << families::LastError();
  request.tune.candidate_seconds = 1;
  const Tuned tuned = Tune(context_.get(), request);
  ASSERT_EQ(tuned.status, TL_OK) << families::LastError();
  EXPECT_EQ(tuned.configuration, "mode=0 work=400") << tuned.report;
  // The wrong one may also be given up as a slow one, before anybody looks at its numbers.
  EXPECT_GE(tuned.result.disqualified, 2u) << tuned.report;
  EXPECT_TRUE(IsRight(before.get(), request)) << families::LastError();
  EXPECT_TRUE(IsRight(tuned.kernel.get(), request)) << families::LastError();
}

TEST_F(TuneGpu, GemmWithinItsBudget) {
  for (const char* m : {"16", "4096"}) {
    const char* n = m[0] == '1' ? "8192" : "4096";
    SCOPED_TRACE(m);
    Request request(context_.get(), "gemm", {{"t", "bf16"}, {"M", m}, {"N", n}, {"K", n}}, {});
    request.compile.device = device_;
    request.tune.max_seconds = 20;
    const Tuned tuned = Tune(context_.get(), request);
    ASSERT_EQ(tuned.status, TL_OK) << families::LastError();
    EXPECT_GT(tuned.result.measured, 1u);
    EXPECT_LE(tuned.result.median_ns, tuned.result.default_ns);
    EXPECT_EQ(tuned.result.recorded, 1u);
    printf(
        "%s x %s x %s: %s, %.1f us, untuned %.1f us; %d refused, %d built, %d disqualified, %.1f "
        "s\n",
        m, n, n, tuned.configuration.c_str(), tuned.result.median_ns / 1e3,
        tuned.result.default_ns / 1e3, static_cast<int>(tuned.result.refused),
        static_cast<int>(tuned.result.built), static_cast<int>(tuned.result.disqualified),
        tuned.result.seconds);
    EXPECT_TRUE(IsRight(tuned.kernel.get(), request)) << families::LastError();
  }
}

}  // namespace
