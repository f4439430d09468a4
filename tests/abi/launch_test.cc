// Arguments of a launch that do not fit the kernel are refused by name; nothing is launched.
#include <cstdlib>

#include "tests/abi/abi_testing.h"

namespace {

using border::Launch;
using border::Sized;

class LaunchTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    context_ = families::SharedContext();
    device_ = families::FindDevice(context_, GetParam());
    if (device_ < 0) GTEST_SKIP() << "no device of " << GetParam();
    kernel_ = border::CompileFor(context_, border::kEverything, GetParam());
    ASSERT_TRUE(kernel_);
    workspace_ = std::aligned_alloc(256, 4096);
    x_.assign(64, 2);
    y_.assign(64, -1);
    good_ = {.tensors = {x_.data(), y_.data()},
             .dims = {3, 7},
             .strides = {9},
             .scalars = {Float(0.5), Int(4)},
             .workspace = workspace_,
             .workspace_size = 4096,
             .device = device_};
  }
  void TearDown() override {
    for (float y : y_) EXPECT_TRUE(y == -1 || launched_);
    std::free(workspace_);
  }

  static tl_scalar Float(double f) {
    tl_scalar s;
    s.f = f;
    return s;
  }
  static tl_scalar Int(int64_t i) {
    tl_scalar s;
    s.i = i;
    return s;
  }

  tl_context* context_ = nullptr;
  int32_t device_ = -1;
  border::Kernel kernel_;
  void* workspace_ = nullptr;
  std::vector<float> x_, y_;
  Launch good_;
  bool launched_ = false;
};

TEST_P(LaunchTest, Right) {
  launched_ = true;
  ASSERT_EQ(good_.Run(kernel_.get()), TL_OK) << families::LastError();
  for (int i = 0; i < 21; ++i) EXPECT_EQ(y_[i], 5) << i;
  EXPECT_EQ(y_[21], -1);
  good_.dims = {0, 7};  // nothing to do
  EXPECT_EQ(good_.Run(kernel_.get()), TL_OK) << families::LastError();
  good_.tensors = {nullptr, nullptr};
  good_.workspace = nullptr;
  EXPECT_EQ(good_.Run(kernel_.get()), TL_OK) << families::LastError();
}

TEST_P(LaunchTest, Counts) {
  Launch l = good_;
  l.tensors.pop_back();
  EXPECT_FAILS(l.Run(kernel_.get()), TL_INVALID_ARGUMENT, "'all' takes 2 tensors, and 1 are given");
  l = good_;
  l.dims.push_back(1);
  EXPECT_FAILS(l.Run(kernel_.get()), TL_INVALID_ARGUMENT, "'all' takes 2 dims, and 3 are given");
  l = good_;
  l.strides.clear();
  EXPECT_FAILS(l.Run(kernel_.get()), TL_INVALID_ARGUMENT, "'all' takes 1 strides, and 0 are given");
  l = good_;
  l.scalars.clear();
  EXPECT_FAILS(l.Run(kernel_.get()), TL_INVALID_ARGUMENT, "'all' takes 2 scalars, and 0 are given");
  tl_launch_args a = good_.args();
  a.dims = nullptr;
  EXPECT_FAILS(tl_launch(kernel_.get(), &a), TL_INVALID_ARGUMENT, "dims is NULL");
  a = good_.args();
  a.tensors = nullptr;
  EXPECT_FAILS(tl_launch(kernel_.get(), &a), TL_INVALID_ARGUMENT, "tensors is NULL");
  a = good_.args();
  a.struct_size = 40;  // an older caller that knew no counts
  EXPECT_FAILS(tl_launch(kernel_.get(), &a), TL_INVALID_ARGUMENT, "takes 2 tensors, and 0 are");
}

TEST_P(LaunchTest, StructsOfOtherSizes) {
  for (uint32_t size : {0u, 0xcdcdcdcdu}) {
    tl_launch_args a = good_.args();
    a.struct_size = size;
    EXPECT_FAILS(tl_launch(kernel_.get(), &a), TL_INVALID_ARGUMENT, "struct_size");
  }
  tl_launch_args chained = good_.args();
  chained.next = &chained;
  EXPECT_FAILS(tl_launch(kernel_.get(), &chained), TL_INVALID_ARGUMENT, "next must be NULL");
  // A newer client: fine while what is unknown is 0.
  struct Newer {
    tl_launch_args args;
    uint64_t more;
  } newer{good_.args(), 1};
  newer.args.struct_size = sizeof(newer);
  EXPECT_FAILS(tl_launch(kernel_.get(), &newer.args), TL_INVALID_ARGUMENT, "newer header");
  newer.more = 0;
  launched_ = true;
  EXPECT_EQ(tl_launch(kernel_.get(), &newer.args), TL_OK) << families::LastError();
}

TEST_P(LaunchTest, Numbers) {
  Launch l = good_;
  l.dims[1] = -1;
  EXPECT_FAILS(l.Run(kernel_.get()), TL_INVALID_ARGUMENT, "dim 'N' is -1; dims are 0 or more");
  l = good_;
  l.strides[0] = -9;
  EXPECT_FAILS(l.Run(kernel_.get()), TL_INVALID_ARGUMENT, "stride 'X.stride0' is -9");
  for (int64_t huge : {int64_t{1} << 32, int64_t{1} << 47, INT64_MAX}) {
    l = good_;
    l.dims = {huge, huge};
    l.workspace_size = SIZE_MAX;
    EXPECT_FAILS(l.Run(kernel_.get()), TL_OUT_OF_RANGE,
                 "would have more than 2^48 bytes with M = ");
    size_t bytes = 1;
    const tl_launch_args a = l.args();
    EXPECT_FAILS(tl_workspace_size(kernel_.get(), &a, &bytes), TL_OUT_OF_RANGE, "2^48");
    EXPECT_EQ(bytes, 0u);
  }
  l = good_;
  l.strides[0] = INT64_MAX;
  EXPECT_FAILS(l.Run(kernel_.get()), TL_OUT_OF_RANGE,
               "tensor 'X' [M, N] would have more than 2^48");
}

TEST_P(LaunchTest, Pointers) {
  Launch l = good_;
  l.tensors[0] = nullptr;
  EXPECT_FAILS(l.Run(kernel_.get()), TL_INVALID_ARGUMENT, "tensor 'X' is null but has");
  l = good_;
  l.tensors[1] = reinterpret_cast<char*>(y_.data()) + 2;
  EXPECT_FAILS(l.Run(kernel_.get()), TL_INVALID_ARGUMENT, "tensor 'Y' at ");
  EXPECT_NE(border::LastMessage().find("is not aligned to its element of 4 bytes"),
            std::string::npos);
}

TEST_P(LaunchTest, Workspace) {
  size_t bytes = 0;
  const tl_launch_args args = good_.args();
  ASSERT_EQ(tl_workspace_size(kernel_.get(), &args, &bytes), TL_OK) << families::LastError();
  EXPECT_EQ(bytes, 256u);
  Launch l = good_;
  l.workspace_size = 255;
  EXPECT_FAILS(l.Run(kernel_.get()), TL_INVALID_ARGUMENT,
               "the launch needs 256 bytes of workspace and got 255");
  l = good_;
  l.workspace = nullptr;
  EXPECT_FAILS(l.Run(kernel_.get()), TL_INVALID_ARGUMENT, "needs 256 bytes of workspace and got 0");
  l = good_;
  l.workspace = static_cast<char*>(workspace_) + 128;
  l.workspace_size -= 128;
  EXPECT_FAILS(l.Run(kernel_.get()), TL_INVALID_ARGUMENT, "workspace is not aligned to 256 bytes");
}

TEST_P(LaunchTest, Devices) {
  for (int32_t device : {-1, 1000}) {
    Launch l = good_;
    l.device = device;
    EXPECT_FAILS(l.Run(kernel_.get()), TL_NOT_FOUND, "there is no device");
    EXPECT_FAILS(tl_prepare(kernel_.get(), device), TL_NOT_FOUND, "there is no device");
  }
  const std::string other = GetParam() == std::string("cpu") ? "reference" : "cpu";
  Launch l = good_;
  l.device = families::FindDevice(context_, other);
  ASSERT_GE(l.device, 0);
  EXPECT_FAILS(l.Run(kernel_.get()), TL_FAILED_PRECONDITION, "the kernel was compiled for");
  EXPECT_EQ(border::LastInfo().reason, TL_REASON_NO_DEVICE);
  EXPECT_FAILS(tl_prepare(kernel_.get(), l.device), TL_FAILED_PRECONDITION, "compiled for");
  tl_launch_args a = good_.args();
  a.stream = &a;  // hosts have none
  EXPECT_NE(tl_launch(kernel_.get(), &a), TL_OK);
}

TEST_P(LaunchTest, Checks) {
  tl_check_options options = Sized<tl_check_options>();
  tl_check_result result = Sized<tl_check_result>();
  options.device = device_;
  EXPECT_FAILS(tl_check(kernel_.get(), &options, &result), TL_INVALID_ARGUMENT, "takes 2 dims");
  int64_t dims[] = {5, -5};
  options.dims = dims;
  options.num_dims = 2;
  EXPECT_FAILS(tl_check(kernel_.get(), &options, &result), TL_INVALID_ARGUMENT, "dim 'N' is -5");
  dims[1] = int64_t{1} << 60;
  const tl_status huge = tl_check(kernel_.get(), &options, &result);
  EXPECT_TRUE(huge == TL_OUT_OF_RANGE || huge == TL_RESOURCE_EXHAUSTED) << families::LastError();
  dims[1] = 33;
  EXPECT_EQ(tl_check(kernel_.get(), &options, &result), TL_OK) << families::LastError();
  EXPECT_EQ(result.compared, 5u * 33);
  EXPECT_EQ(tl_check(kernel_.get(), &options, nullptr), TL_OK) << families::LastError();
  result.struct_size = 3;
  EXPECT_FAILS(tl_check(kernel_.get(), &options, &result), TL_INVALID_ARGUMENT, "struct_size is 3");
  result = Sized<tl_check_result>();
  options.oracle = [](void*, const tl_oracle_tensor*, uint32_t, const int64_t*, const tl_scalar*) {
    return 1;
  };
  EXPECT_FAILS(tl_check(kernel_.get(), &options, &result), TL_ABORTED, "the oracle gave up");
  // An oracle that is wrong about one element.
  options.oracle = [](void*, const tl_oracle_tensor* t, uint32_t count, const int64_t* d,
                      const tl_scalar* s) {
    if (count != 2) return 1;
    for (int64_t i = 0; i < d[0] * d[1]; ++i) {
      t[1].expected[i] = t[0].input[i] * s[0].f + static_cast<double>(s[1].i) + (i == 7 ? 1 : 0);
      t[1].bound[i] = 1e-4;
    }
    return 0;
  };
  EXPECT_FAILS(tl_check(kernel_.get(), &options, &result), TL_DATA_LOSS,
               "1 of 165 elements are off");
  EXPECT_EQ(border::LastInfo().reason, TL_REASON_MISMATCH);
  EXPECT_EQ(result.mismatches, 1u);
  EXPECT_EQ(result.worst_index, 7);
  EXPECT_STREQ(result.worst_tensor, "Y");
}

INSTANTIATE_TEST_SUITE_P(Backends, LaunchTest, testing::Values("reference", "cpu"),
                         [](const auto& info) { return std::string(info.param); });

// Compiled for what is not here: all but the launch works.
TEST(Launch, AbsentDevice) {
  tl_context* context = families::SharedContext();
  const std::string source = border::kEverything;
  const tl_compile_options options = border::SourceOptions(source, "sm_80");
  tl_kernel* raw = nullptr;
  const tl_status status = tl_compile(context, &options, &raw);
  if (status == TL_NOT_FOUND || status == TL_UNAVAILABLE || status == TL_FAILED_PRECONDITION) {
    EXPECT_EQ(border::LastInfo().reason, TL_REASON_MISSING_LIBRARY) << families::LastError();
    EXPECT_NE(border::LastMessage().find("nvrtc"), std::string::npos) << families::LastError();
    GTEST_SKIP() << "no NVRTC";
  }
  ASSERT_EQ(status, TL_OK) << families::LastError();
  const border::Kernel kernel(raw);
  EXPECT_FALSE(border::Text(raw, TL_TEXT_SOURCE).empty());
  EXPECT_FALSE(border::Text(raw, TL_TEXT_BINARY).empty());
  tl_signature signature = Sized<tl_signature>();
  EXPECT_EQ(tl_kernel_signature(raw, &signature), TL_OK);
  EXPECT_STREQ(signature.target, "sm_80");
  tl_launch_args args = Sized<tl_launch_args>();
  const int32_t cpu = families::FindDevice(context, "cpu");
  args.device = cpu;
  EXPECT_FAILS(tl_launch(raw, &args), TL_FAILED_PRECONDITION,
               "the kernel was compiled for sm_80, and device");
  EXPECT_EQ(border::LastInfo().reason, TL_REASON_NO_DEVICE);
  EXPECT_FAILS(tl_prepare(raw, cpu), TL_FAILED_PRECONDITION, "compiled for sm_80");
}

TEST(Launch, OneElementIntoItself) {
  // `inout` is how a program says that input and output are one.
  const std::string source =
      "tl 1.0\nkernel twice(N: dim) {\n inout X: tensor<i32>[N]\n launch n in N {\n"
      " x = alloc_fragment<i32>[1]\n copy X[n] -> x\n parallel i in 1 { x[i] = x[i]*2 }\n"
      " copy x -> X[n]\n }\n}\n";
  for (const char* backend : {"reference", "cpu"}) {
    const int32_t device = families::FindDevice(families::SharedContext(), backend);
    if (device < 0) continue;
    const border::Kernel kernel = border::CompileFor(families::SharedContext(), source, backend);
    int32_t x[] = {1, 2, 3};
    const Launch launch{.tensors = {x}, .dims = {3}, .device = device};
    ASSERT_EQ(launch.Run(kernel.get()), TL_OK) << families::LastError();
    EXPECT_EQ(x[2], 6);
  }
}

}  // namespace
