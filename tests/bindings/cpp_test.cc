// tl/tl.hpp: that it passes on what the C interface says, and owns what it holds. The C interface
// has tests of its own.
#include <dlpack/dlpack.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>
#include <thread>

#define TL_EXPERIMENTAL
#include "tl/tl.hpp"

namespace {

using ::testing::HasSubstr;
using tilejit::Context;
using tilejit::Device;
using tilejit::Error;
using tilejit::Family;
using tilejit::Kernel;
using tilejit::Source;
using tilejit::TensorView;
using tilejit::View;

constexpr char kScale[] = R"(tl 1.0
kernel scale(M: dim, N: dim) {
  in X: tensor<f32>[M, N] strides[?, 1], s: f32, k: i32
  out Y: tensor<f32>[M, N]
  workspace W: tensor<f32>[M, N]
  launch m in M, n in ceildiv(N, 32) {
    x = alloc_fragment<f32>[32]
    copy X[m, n*32:] -> x
    parallel i in 32 { x[i] = x[i]*s + f32(k) }
    copy x -> W[m, n*32:]
  }
  launch m in M, n in ceildiv(N, 32) {
    x = alloc_fragment<f32>[32]
    copy W[m, n*32:] -> x
    copy x -> Y[m, n*32:]
  }
}
)";

Context InMemory() {
  tilejit::ContextOptions options;
  options.cache_mode = TL_CACHE_MEMORY;
  return Context(options);
}

// What the call throws; the test fails where it throws nothing.
Error Thrown(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return Error(TL_OK, "");
}

class CppTest : public ::testing::Test {
 protected:
  // The interpreter is always there.
  Context context_ = InMemory();
  Device device_ = context_.FindDevice("reference");
};

TEST_F(CppTest, LaunchesFromViewsWithStridesScalarsAndWorkspace) {
  const Kernel kernel = context_.Compile(Source(kScale), device_);
  const std::vector<float> x = {1, 2, 3, -1, 4, 5, 6, -1};
  std::vector<float> y(6);
  alignas(256) float workspace[64];
  ASSERT_LE(kernel.WorkspaceSize({2, 3}, {4}, {2.0, 1}), sizeof(workspace));
  tilejit::LaunchOptions options;
  options.scalars = {2, 10};  // an integer will do for a float
  options.workspace = workspace;
  options.workspace_size = sizeof(workspace);
  kernel.Launch(device_, {View(x.data(), {2, 3}, {4, 1}), View(y, {2, 3})}, options);
  EXPECT_THAT(y, ::testing::ElementsAre(12, 14, 16, 18, 20, 22));
}

TEST_F(CppTest, LaunchesWithPlainPointers) {
  const Kernel add = context_.Compile(Family("vector_add"), device_);
  float a[] = {1, 2, 3}, b[] = {10, 20, 30}, c[3];
  void* tensors[] = {a, b, c};
  const int64_t n = 3;
  tl_launch_args args = TL_INIT(tl_launch_args);
  args.device = device_.index;
  args.tensors = tensors;
  args.num_tensors = 3;
  args.dims = &n;
  args.num_dims = 1;
  add.Launch(args);
  EXPECT_THAT(c, ::testing::ElementsAre(11, 22, 33));
}

TEST_F(CppTest, DescribesItsSignature) {
  const tilejit::Signature s = context_.Compile(Source(kScale), device_).Signature();
  EXPECT_EQ(s.name, "scale");
  EXPECT_EQ(s.target, "reference");
  ASSERT_EQ(s.tensors.size(), 2u);
  EXPECT_EQ(s.tensors[1].name, "Y");
  EXPECT_EQ(s.tensors[1].access, TL_ACCESS_OUT);
  EXPECT_EQ(s.tensors[1].shape, "[M, N]");
  EXPECT_THAT(s.dims, ::testing::ElementsAre("M", "N"));
  EXPECT_THAT(s.strides, ::testing::ElementsAre("X.stride0"));
  EXPECT_THAT(s.scalars, ::testing::ElementsAre(std::pair<std::string, tl_dtype>("s", TL_F32),
                                                std::pair<std::string, tl_dtype>("k", TL_I32)));
}

TEST_F(CppTest, ErrorsCarryCodePlaceAndMessage) {
  const Error error = Thrown([&] {
    context_.Compile(Source("tl 1.0\nkernel k(N: dim) {\n  in X: tensor<f33>[N]\n}\n"), device_);
  });
  EXPECT_EQ(error.status(), TL_INVALID_ARGUMENT);
  EXPECT_EQ(error.domain(), TL_DOMAIN_TL);
  EXPECT_EQ(error.span().line, 3);
  EXPECT_THAT(error.message(), HasSubstr("f33"));
  EXPECT_THAT(error.what(), HasSubstr("INVALID_ARGUMENT at 3:"));
}

TEST_F(CppTest, ErrorsOutliveTheThreadsNextFailure) {
  const Error first = Thrown([&] { context_.Compile(Family("no_such_family"), device_); });
  Thrown([&] { context_.DeviceAt(1000); });
  EXPECT_THAT(first.message(), HasSubstr("no_such_family"));
}

TEST_F(CppTest, RefusesWhatCannotBeMeant) {
  const Kernel add = context_.Compile(Family("vector_add"), device_);
  const Kernel scale = context_.Compile(Source(kScale), device_);
  float x[4] = {};
  const float fixed[4] = {};
  const struct {
    const char* message;
    std::function<void()> call;
  } rows[] = {
      {"tensor 'C' is written",
       [&] { add.Launch(device_, {View(x, {4}), View(x, {4}), View(fixed, {4})}); }},
      {"rank 2", [&] { add.Launch(device_, {View(x, {2, 2}), View(x, {4}), View(x, {4})}); }},
      {"an earlier tensor",
       [&] { add.Launch(device_, {View(x, {4}), View(fixed, {3}), View(x, {4})}); }},
      {"2 strides", [&] { View(x, {4}, {1, 1}); }},
      {"at most 8 dims", [&] { View(x, {1, 1, 1, 1, 1, 1, 1, 1, 4}); }},
      {"a shape of 5 elements was given for 4",
       [&] {
         std::vector<float> four(4);
         View(four, {5});
       }},
      {"dtype 99, which is none",
       [&] { add.Launch(device_, {View(x, 99, {4}), View(x, {4}), View(x, {4})}); }},
      {"a float was given for a scalar of type i32",
       [&] {
         scale.Launch(device_, {View(x, {2, 2}), View(x, {2, 2})},
                      {nullptr, {1.0, 1.5}, nullptr, 0});
       }},
      {"no device of backend 'abacus'; there are", [&] { context_.FindDevice("abacus"); }},
      {"NULL", [&] { Kernel().Launch(device_, {}); }},
  };
  for (const auto& row : rows) EXPECT_THAT(Thrown(row.call).message(), HasSubstr(row.message));
}

TEST_F(CppTest, HandlesAreCounted) {
  std::optional<Context> context = InMemory();
  Kernel kernel = context->Compile(Family("vector_add"), device_);
  const Kernel copy = kernel;
  const Kernel moved = std::move(kernel);
  EXPECT_FALSE(kernel);  // NOLINT: what is left is empty
  EXPECT_EQ(copy.get(), moved.get());
  const Context second = *context;
  EXPECT_EQ(second.get(), context->get());
  context.reset();
  // The kernel keeps its context.
  float a[] = {1}, b[] = {2}, c[1];
  copy.Launch(device_, {View(a, {1}), View(b, {1}), View(c, {1})});
  EXPECT_EQ(c[0], 3);
}

TEST_F(CppTest, OneKernelServesManyThreads) {
  const Kernel add = context_.Compile(Family("vector_add"), device_);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const Kernel mine = add;
      std::vector<float> a(100 + t), b(100 + t, 1), c(100 + t);
      std::iota(a.begin(), a.end(), 0.0f);
      const int64_t n = 100 + t;
      mine.Launch(device_, {View(a, {n}), View(b, {n}), View(c, {n})});
      EXPECT_EQ(c.back(), n);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(CppTest, WarmsQueriesAndSeals) {
  tl_warm_result result = TL_INIT(tl_warm_result);
  context_.Warm("plan = 1\n[[kernel]]\nfamily = \"vector_add\"\ntargets = [\"reference\"]\n", {},
                &result);
  EXPECT_EQ(result.total, 1u);
  EXPECT_THAT(context_.Query(Family("vector_add"), "reference"), HasSubstr("\"cached\": true"));
  context_.Seal();
  context_.Compile(Family("vector_add"), device_);
  const Error error = Thrown([&] { context_.Compile(Family("softmax"), device_); });
  EXPECT_EQ(error.status(), TL_UNAVAILABLE);
  EXPECT_EQ(error.reason(), TL_REASON_NOT_READY);
  EXPECT_THAT(error.log(), HasSubstr("softmax"));
}

TEST(CppTune, FindsAConfigurationAndCanBeCancelled) {
  const Context context = InMemory();
  const std::vector<Device> devices = context.Devices();
  const auto cpu = std::find_if(devices.begin(), devices.end(),
                                [](const Device& d) { return d.backend == "cpu"; });
  if (cpu == devices.end()) GTEST_SKIP() << "the CPU module is not built";
  tilejit::TuneOptions options;
  options.dims = {64};
  options.max_seconds = 1;
  const tilejit::Program program =
      Family("softmax", {{"t", "f32"}, {"N", 64}, {"bm", "1,8"}, {"bn", 512}});
  int events = 0;
  options.user = &events;
  options.progress = [](void* user, const tl_tune_event*) {
    ++*static_cast<int*>(user);
    return 0;
  };
  const tilejit::Tuned tuned = context.Tune(program, *cpu, options);
  EXPECT_GT(events, 0);
  EXPECT_EQ(tuned.space, 2u);
  EXPECT_THAT(tuned.configuration, HasSubstr("bn=512"));
  EXPECT_GT(tuned.median_ns, 0);
  EXPECT_THAT(tuned.report, HasSubstr("\"bm\""));
  std::vector<float> x(64 * 64, 1), y(64 * 64);
  tuned.kernel.Launch(*cpu, {View(x, {64, 64}), View(y, {64, 64})});
  EXPECT_FLOAT_EQ(y[0], 1.0f / 64);

  options.progress = [](void*, const tl_tune_event*) { return 1; };
  EXPECT_EQ(Thrown([&] { context.Tune(program, *cpu, options); }).status(), TL_CANCELLED);
}

TEST_F(CppTest, TextsAndReportsAreGiven) {
  const Kernel add = context_.Compile(Family("vector_add"), device_);
  EXPECT_THAT(std::string(add.Text(TL_TEXT_IR)), HasSubstr("kernel vector_add"));
}

TEST(CppLayout, TensorsAreThoseOfDlpack) {
  using Mine = tilejit::detail::DlTensor;
  EXPECT_EQ(sizeof(Mine), sizeof(DLTensor));
  EXPECT_EQ(offsetof(Mine, device_type), offsetof(DLTensor, device));
  EXPECT_EQ(offsetof(Mine, device_id), offsetof(DLTensor, device) + offsetof(DLDevice, device_id));
  EXPECT_EQ(offsetof(Mine, ndim), offsetof(DLTensor, ndim));
  EXPECT_EQ(offsetof(Mine, code), offsetof(DLTensor, dtype));
  EXPECT_EQ(offsetof(Mine, bits), offsetof(DLTensor, dtype) + offsetof(DLDataType, bits));
  EXPECT_EQ(offsetof(Mine, lanes), offsetof(DLTensor, dtype) + offsetof(DLDataType, lanes));
  EXPECT_EQ(offsetof(Mine, shape), offsetof(DLTensor, shape));
  EXPECT_EQ(offsetof(Mine, strides), offsetof(DLTensor, strides));
  EXPECT_EQ(offsetof(Mine, byte_offset), offsetof(DLTensor, byte_offset));
}

// Every dtype reaches the library as itself.
class CppDtype : public ::testing::TestWithParam<tl_dtype> {};

TEST_P(CppDtype, ArrivesAsItself) {
  const Context context = InMemory();
  const Device device = context.FindDevice("reference");
  const std::string name = tl_dtype_name(GetParam());
  const Kernel kernel = context.Compile(
      Source("tl 1.0\nkernel k(N: dim) {\n  in X: tensor<" + name + ">[N]\n  out Y: tensor<" +
             name + ">[N]\n  launch n in N {\n    x = alloc_fragment<" + name +
             ">[1]\n    copy X[n] -> x\n    copy x -> Y[n]\n  }\n}\n"),
      device);
  const std::vector<uint8_t> x(8, 1);
  std::vector<uint8_t> y(8, 0);
  kernel.Launch(device,
                {TensorView(x.data(), GetParam(), {1}), TensorView(y.data(), GetParam(), {1})});
  EXPECT_TRUE(std::equal(y.begin(), y.begin() + tl_dtype_size(GetParam()), x.begin()));
}

INSTANTIATE_TEST_SUITE_P(All, CppDtype, ::testing::Range<tl_dtype>(TL_BOOL, TL_F64 + 1),
                         [](const auto& info) { return std::string(tl_dtype_name(info.param)); });

}  // namespace
