// Launching from DLPack tensors: what is read off them, and every way not to fit.
#include <dlpack/dlpack.h>

#include <cstdlib>
#include <cstring>
#include <functional>

#include "tests/abi/abi_testing.h"

namespace {

using border::Sized;

// A host tensor with shape and strides of its own.
struct Tensor {
  std::vector<float> data;
  std::vector<int64_t> shape, strides;
  DLTensor view{};

  Tensor(std::vector<int64_t> s, std::vector<int64_t> st, size_t size)
      : data(size, 1), shape(std::move(s)), strides(std::move(st)) {}
  DLTensor* get() {
    view.data = data.data();
    view.device = {kDLCPU, 0};
    view.ndim = static_cast<int>(shape.size());
    view.dtype = {kDLFloat, 32, 1};
    view.shape = shape.data();
    view.strides = strides.empty() ? nullptr : strides.data();
    return &view;
  }
};

class DlpackTest : public testing::Test {
 public:
  void SetUp() override {
    tl_context* context = families::SharedContext();
    args_.device = families::FindDevice(context, "reference");
    kernel_ = border::CompileFor(context, border::kEverything, "reference");
    ASSERT_TRUE(kernel_);
    scalars_[0].f = 2;
    scalars_[1].i = 3;
    args_.scalars = scalars_;
    args_.num_scalars = 2;
    workspace_ = std::aligned_alloc(256, 4096);
    args_.workspace = workspace_;
    args_.workspace_size = 4096;
  }
  void TearDown() override { std::free(workspace_); }

  DLTensor* X() { return x_; }
  DLTensor*& Y() { return y_; }
  tl_launch_args& Args() { return args_; }

  tl_status Run() {
    const void* list[] = {x_, y_};
    return tl_launch_dlpack(kernel_.get(), list, 2, &args_);
  }

  Tensor x{{3, 5}, {8, 1}, 24}, y{{3, 5}, {}, 15};
  DLTensor *x_ = x.get(), *y_ = y.get();
  border::Kernel kernel_;
  tl_launch_args args_ = Sized<tl_launch_args>();
  tl_scalar scalars_[2];
  void* workspace_ = nullptr;
};

TEST_F(DlpackTest, ReadsDimsAndStrides) {
  x.data[8] = 7;
  ASSERT_EQ(Run(), TL_OK) << families::LastError();
  EXPECT_EQ(y.data[0], 5);
  EXPECT_EQ(y.data[5], 17);
  // The data begins at an offset.
  x_->data = x.data.data() - 2;
  x_->byte_offset = 8;
  y.data.assign(15, 0);
  ASSERT_EQ(Run(), TL_OK) << families::LastError();
  EXPECT_EQ(y.data[5], 17);
}

TEST_F(DlpackTest, EmptyTensorsHaveAnyStrides) {
  x.shape = {3, 0};
  x.strides = {1, 1};
  y.shape = {3, 0};
  y.strides = {1, 1};  // as frameworks write them
  y_ = y.get();
  x_ = x.get();
  x_->data = y_->data = nullptr;
  EXPECT_EQ(Run(), TL_OK) << families::LastError();
}

TEST_F(DlpackTest, StridesOfSingleElementsMeanNothing) {
  y.shape = x.shape = {1, 5};
  y.strides = {77, 1};
  y_ = y.get();
  EXPECT_EQ(Run(), TL_OK) << families::LastError();
}

TEST_F(DlpackTest, Mismatches) {
  struct Row {
    const char* what;
    std::function<void(DlpackTest&)> change;
    tl_status status;
    std::string message;
  };
  const Row rows[] = {
      {"null", [](DlpackTest& t) { t.Y() = nullptr; }, TL_INVALID_ARGUMENT, "tensor 'Y' is NULL"},
      {"rank", [](DlpackTest& t) { t.X()->ndim = 1; }, TL_INVALID_ARGUMENT,
       "tensor 'X' has rank 1, the kernel declares [M, N]"},
      {"negative rank", [](DlpackTest& t) { t.X()->ndim = -2; }, TL_INVALID_ARGUMENT,
       "tensor 'X' has rank -2"},
      {"dtype", [](DlpackTest& t) { t.Y()->dtype.bits = 16; }, TL_INVALID_ARGUMENT,
       "tensor 'Y' has dtype f16, the kernel declares f32"},
      {"odd dtype", [](DlpackTest& t) { t.Y()->dtype.code = 99; }, TL_INVALID_ARGUMENT,
       "tensor 'Y' has dtype unknown to the library"},
      {"lanes", [](DlpackTest& t) { t.X()->dtype.lanes = 4; }, TL_INVALID_ARGUMENT,
       "tensor 'X' has dtype unknown to the library"},
      {"device", [](DlpackTest& t) { t.X()->device = {kDLCUDA, 3}; }, TL_INVALID_ARGUMENT,
       "tensor 'X' lies on DLPack device (2, 3), the launch is on "},
      {"no such device",
       [](DlpackTest& t) {
         const uint32_t type = 0x8000000a;
         std::memcpy(&t.X()->device.device_type, &type, sizeof(type));
       },
       TL_INVALID_ARGUMENT, "tensor 'X' lies on DLPack device (-2147483638, "},
      {"no shape", [](DlpackTest& t) { t.X()->shape = nullptr; }, TL_INVALID_ARGUMENT,
       "tensor 'X' has no shape"},
      {"negative", [](DlpackTest& t) { t.X()->shape[0] = -3; }, TL_INVALID_ARGUMENT,
       "tensor 'X' has extent -3 in dim 0, which is negative"},
      {"huge", [](DlpackTest& t) { t.X()->shape[0] = t.X()->shape[1] = int64_t{1} << 40; },
       TL_INVALID_ARGUMENT, "and too many elements"},
      {"extent", [](DlpackTest& t) { t.Y()->shape[1] = 6; }, TL_INVALID_ARGUMENT,
       "tensor 'Y' makes N = 6, an earlier tensor 5"},
      {"stride", [](DlpackTest& t) { t.X()->strides[1] = 2; }, TL_INVALID_ARGUMENT,
       "tensor 'X' has stride 2 in dim 1; the kernel is compiled for 1"},
      {"negative stride", [](DlpackTest& t) { t.X()->strides[0] = -8; }, TL_INVALID_ARGUMENT,
       "stride 'X.stride0' is -8"},
      {"null data", [](DlpackTest& t) { t.X()->data = nullptr; }, TL_INVALID_ARGUMENT,
       "tensor 'X' is null but has"},
      {"null data at an offset",
       [](DlpackTest& t) { t.X()->data = nullptr, t.X()->byte_offset = 64; }, TL_INVALID_ARGUMENT,
       "tensor 'X' is null but has"},
      {"misaligned", [](DlpackTest& t) { t.X()->byte_offset = 2; }, TL_INVALID_ARGUMENT,
       "is not aligned to its element of 4 bytes"},
      {"workspace", [](DlpackTest& t) { t.Args().workspace = nullptr; }, TL_INVALID_ARGUMENT,
       "the launch needs 256 bytes of workspace and got 0"},
      {"scalars", [](DlpackTest& t) { t.Args().num_scalars = 1; }, TL_INVALID_ARGUMENT,
       "'all' takes 2 scalars, and 1 are given"},
      {"device number", [](DlpackTest& t) { t.Args().device = 50; }, TL_NOT_FOUND,
       "there is no device 50"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.what);
    const Tensor old_x = x, old_y = y;
    const tl_launch_args old_args = args_;
    row.change(*this);
    EXPECT_FAILS(Run(), row.status, row.message);
    x.shape = old_x.shape;
    x.strides = old_x.strides;
    y.shape = old_y.shape;
    args_ = old_args;
    x_ = x.get();
    x_->byte_offset = 0;
    y_ = y.get();
    EXPECT_EQ(Run(), TL_OK) << families::LastError();
  }
}

TEST_F(DlpackTest, Counts) {
  const void* list[] = {x_, y_};
  EXPECT_FAILS(tl_launch_dlpack(kernel_.get(), list, 1, &args_), TL_INVALID_ARGUMENT,
               "'all' takes 2 tensors, and 1 are given");
  EXPECT_FAILS(tl_launch_dlpack(kernel_.get(), nullptr, 2, &args_), TL_INVALID_ARGUMENT,
               "tensors is NULL");
}

// A shape may depend on a scalar; a dim may be no tensor's own extent.
TEST(Dlpack, ShapesOfScalarsAndHiddenDims) {
  const std::string source =
      "tl 1.0\nkernel k(N: dim) {\n in n: i32\n out Y: tensor<f32>[N, n]\n launch {\n"
      " x = alloc_fragment<f32>[1, 1]\n fill x, 1\n copy x -> Y[0, 0]\n }\n}\n";
  tl_context* context = families::SharedContext();
  const border::Kernel kernel = border::CompileFor(context, source, "reference");
  Tensor y{{2, 4}, {}, 8};
  const void* list[] = {y.get()};
  tl_launch_args args = Sized<tl_launch_args>();
  args.device = families::FindDevice(context, "reference");
  tl_scalar n;
  n.i = 4;
  args.scalars = &n;
  args.num_scalars = 1;
  EXPECT_EQ(tl_launch_dlpack(kernel.get(), list, 1, &args), TL_OK) << families::LastError();
  n.i = 5;
  EXPECT_FAILS(tl_launch_dlpack(kernel.get(), list, 1, &args), TL_INVALID_ARGUMENT,
               "tensor 'Y' has extent 4 in dim 1; [N, n] asks for 5");
  const std::string hidden =
      "tl 1.0\nkernel k(N: dim) {\n out Y: tensor<f32>[2*N]\n launch {\n"
      " x = alloc_fragment<f32>[1]\n fill x, 1\n copy x -> Y[0]\n }\n}\n";
  const border::Kernel other = border::CompileFor(context, hidden, "reference");
  Tensor z{{4}, {}, 4};
  const void* zs[] = {z.get()};
  args.num_scalars = 0;
  EXPECT_FAILS(tl_launch_dlpack(other.get(), zs, 1, &args), TL_INVALID_ARGUMENT,
               "dim 'N' is no tensor's extent by itself; launch with tl_launch");
}

}  // namespace
