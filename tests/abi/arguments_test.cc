// What callers get wrong at the border: sizes, counts, pointers, devices. One row per mistake, with
// the status, the reason and the words that must be in the message.
#include <dlpack/dlpack.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "tests/abi/families_testing.h"

namespace {

using families::Context;
using families::Kernel;
using families::Sized;
using testing::HasSubstr;

constexpr char kAdd[] = R"(tl 1.0
kernel add(N: dim; t: dtype = f32) {
  in A: tensor<t>[N], B: tensor<t>[N] strides[?], s: f32
  out C: tensor<t>[N]
  workspace W: tensor<f32>[N]
  launch i in ceildiv(N, 16) {
    a, b = alloc_fragment<t>[16]
    copy A[i*16] -> a
    copy B[i*16] -> b
    parallel x in 16 { a[x] = a[x] + s*b[x] }
    copy a -> C[i*16]
  }
}
)";

tl_error_info Last() {
  tl_error_info info = Sized<tl_error_info>();
  EXPECT_EQ(tl_last_error(&info), TL_OK);
  return info;
}

int32_t DeviceOf(tl_context* context, const char* backend) {
  int32_t count = 0;
  EXPECT_EQ(tl_device_count(context, &count), TL_OK);
  for (int32_t i = 0; i < count; ++i) {
    tl_device_info info = Sized<tl_device_info>();
    EXPECT_EQ(tl_device_get(context, i, &info), TL_OK);
    if (std::strcmp(info.backend, backend) == 0) return i;
  }
  return -1;
}

tl_compile_options Options(const char* source, const char* target) {
  tl_compile_options o = Sized<tl_compile_options>();
  o.source = source;
  o.target = target;
  return o;
}

Kernel Compile(tl_context* context, const tl_compile_options& options) {
  tl_kernel* kernel = nullptr;
  EXPECT_EQ(tl_compile(context, &options, &kernel), TL_OK) << families::LastError();
  return Kernel(kernel);
}

// A launch of kAdd on the reference device that works, to be spoiled in one place.
struct Launch {
  explicit Launch(tl_context* context) {
    args = Sized<tl_launch_args>();
    args.device = DeviceOf(context, "reference");
    args.tensors = tensors, args.num_tensors = 3;
    args.dims = dims, args.num_dims = 1;
    args.strides = strides, args.num_strides = 1;
    args.scalars = scalars, args.num_scalars = 1;
    args.workspace = workspace, args.workspace_size = sizeof(workspace);
  }
  alignas(16) float a[8] = {1, 2, 3, 4, 5, 6, 7, 8}, b[8] = {1, 1, 1, 1, 1, 1, 1, 1}, c[8] = {};
  alignas(256) char workspace[256];
  void* tensors[3] = {a, b, c};
  int64_t dims[1] = {5};
  int64_t strides[1] = {1};
  tl_scalar scalars[1] = {{.f = 2.0}};
  tl_launch_args args;
};

class ArgumentsTest : public testing::Test {
 protected:
  Context context_ = families::MakeContext();
  Kernel kernel_ = Compile(context_.get(), Options(kAdd, "reference"));
};

TEST_F(ArgumentsTest, TheLaunchThatIsSpoiledBelowWorks) {
  Launch launch(context_.get());
  size_t bytes = 0;
  ASSERT_EQ(tl_workspace_size(kernel_.get(), &launch.args, &bytes), TL_OK) << families::LastError();
  EXPECT_EQ(bytes, 256u);
  ASSERT_EQ(tl_launch(kernel_.get(), &launch.args), TL_OK) << families::LastError();
  EXPECT_THAT(launch.c, testing::ElementsAre(3, 4, 5, 6, 7, 0, 0, 0));
}

struct Mistake {
  const char* name;
  std::function<void(Launch&)> spoil;
  tl_status status;
  const char* message;
};

TEST_F(ArgumentsTest, EveryMistakeOfALaunchIsNamed) {
  const Mistake mistakes[] = {
      {"struct size 0", [](Launch& l) { l.args.struct_size = 0; }, TL_INVALID_ARGUMENT,
       "struct_size"},
      {"struct size garbage", [](Launch& l) { l.args.struct_size = 0xcdcdcdcd; },
       TL_INVALID_ARGUMENT, "struct_size"},
      {"next", [](Launch& l) { l.args.next = &l; }, TL_INVALID_ARGUMENT, "next must be NULL"},
      {"tensors", [](Launch& l) { l.args.num_tensors = 2; }, TL_INVALID_ARGUMENT,
       "takes 3 tensors, and 2 are given"},
      {"no tensors", [](Launch& l) { l.args.tensors = nullptr; }, TL_INVALID_ARGUMENT,
       "tensors is NULL"},
      {"dims", [](Launch& l) { l.args.num_dims = 0; }, TL_INVALID_ARGUMENT,
       "takes 1 dims, and 0 are given"},
      {"strides", [](Launch& l) { l.args.num_strides = 0; }, TL_INVALID_ARGUMENT,
       "takes 1 strides"},
      {"scalars", [](Launch& l) { l.args.num_scalars = 2; }, TL_INVALID_ARGUMENT,
       "takes 1 scalars"},
      {"negative dim", [](Launch& l) { l.dims[0] = -1; }, TL_INVALID_ARGUMENT, "dim 'N' is -1"},
      {"negative stride", [](Launch& l) { l.strides[0] = -4; }, TL_INVALID_ARGUMENT,
       "stride 'B.stride0' is -4"},
      {"huge dim", [](Launch& l) { l.dims[0] = INT64_MAX; }, TL_OUT_OF_RANGE, ""},
      {"null tensor", [](Launch& l) { l.tensors[1] = nullptr; }, TL_INVALID_ARGUMENT,
       "tensor 'B' is null"},
      {"misaligned", [](Launch& l) { l.tensors[0] = reinterpret_cast<char*>(l.a) + 2; },
       TL_INVALID_ARGUMENT, "tensor 'A' at "},
      {"workspace missing", [](Launch& l) { l.args.workspace = nullptr; }, TL_INVALID_ARGUMENT,
       "needs 256 bytes of workspace and got 0"},
      {"workspace small", [](Launch& l) { l.args.workspace_size = 255; }, TL_INVALID_ARGUMENT,
       "got 255"},
      {"no such device", [](Launch& l) { l.args.device = 99; }, TL_NOT_FOUND,
       "there is no device 99"},
      {"negative device", [](Launch& l) { l.args.device = -1; }, TL_NOT_FOUND,
       "there is no device -1"},
      {"stream", [](Launch& l) { l.args.stream = &l; }, TL_INVALID_ARGUMENT, "stream"},
  };
  for (const Mistake& mistake : mistakes) {
    SCOPED_TRACE(mistake.name);
    Launch launch(context_.get());
    mistake.spoil(launch);
    EXPECT_EQ(tl_launch(kernel_.get(), &launch.args), mistake.status);
    EXPECT_EQ(Last().status, mistake.status);
    EXPECT_THAT(Last().message, HasSubstr(mistake.message));
  }
}

TEST_F(ArgumentsTest, StructsOfOtherSizes) {
  // An older client: what it does not know is 0.
  Launch launch(context_.get());
  tl_device_info old = Sized<tl_device_info>();
  old.struct_size = offsetof(tl_device_info, ordinal);
  old.ordinal = 77;
  ASSERT_EQ(tl_device_get(context_.get(), launch.args.device, &old), TL_OK);
  EXPECT_STREQ(old.backend, "reference");
  EXPECT_EQ(old.ordinal, 77) << "written past the end of the caller's struct";
  // A newer client: fine while what is unknown is 0.
  struct Newer {
    tl_launch_args args;
    uint64_t more;
  } newer{launch.args, 0};
  newer.args.struct_size = sizeof(newer);
  EXPECT_EQ(tl_launch(kernel_.get(), &newer.args), TL_OK) << families::LastError();
  newer.more = 1;
  EXPECT_EQ(tl_launch(kernel_.get(), &newer.args), TL_INVALID_ARGUMENT);
  EXPECT_THAT(Last().message, HasSubstr("newer header"));
}

TEST_F(ArgumentsTest, NullPointers) {
  tl_kernel* kernel = nullptr;
  tl_context* context = nullptr;
  size_t size = 0;
  const char* data = nullptr;
  const tl_compile_options options = Options(kAdd, "reference");
  EXPECT_EQ(tl_context_create(nullptr, nullptr), TL_INVALID_ARGUMENT);
  EXPECT_EQ(tl_context_retain(nullptr), TL_INVALID_ARGUMENT);
  EXPECT_EQ(tl_device_count(nullptr, nullptr), TL_INVALID_ARGUMENT);
  EXPECT_EQ(tl_device_get(context_.get(), 0, nullptr), TL_INVALID_ARGUMENT);
  EXPECT_EQ(tl_compile(nullptr, &options, &kernel), TL_INVALID_ARGUMENT);
  EXPECT_EQ(tl_compile(context_.get(), nullptr, &kernel), TL_INVALID_ARGUMENT);
  EXPECT_EQ(tl_compile(context_.get(), &options, nullptr), TL_INVALID_ARGUMENT);
  EXPECT_EQ(tl_launch(nullptr, nullptr), TL_INVALID_ARGUMENT);
  EXPECT_EQ(tl_launch(kernel_.get(), nullptr), TL_INVALID_ARGUMENT);
  EXPECT_EQ(tl_launch_dlpack(kernel_.get(), nullptr, 3, nullptr), TL_INVALID_ARGUMENT);
  EXPECT_EQ(tl_prepare(nullptr, 0), TL_INVALID_ARGUMENT);
  EXPECT_EQ(tl_workspace_size(kernel_.get(), nullptr, &size), TL_INVALID_ARGUMENT);
  EXPECT_EQ(tl_kernel_text(kernel_.get(), TL_TEXT_IR, nullptr, &size), TL_INVALID_ARGUMENT);
  EXPECT_EQ(tl_kernel_text(kernel_.get(), 99, &data, &size), TL_INVALID_ARGUMENT);
  EXPECT_EQ(tl_check(kernel_.get(), nullptr, nullptr), TL_INVALID_ARGUMENT);
  EXPECT_EQ(tl_bench(kernel_.get(), nullptr, nullptr), TL_INVALID_ARGUMENT);
  EXPECT_EQ(tl_cache_get_stats(context_.get(), nullptr), TL_INVALID_ARGUMENT);
  EXPECT_EQ(tl_last_error(nullptr), TL_INVALID_ARGUMENT);
  EXPECT_EQ(tl_kernel_dim_name(nullptr, 0), nullptr);
  EXPECT_EQ(tl_kernel_dim_name(kernel_.get(), 1), nullptr);
  EXPECT_EQ(tl_family_name(10000), nullptr);
  EXPECT_EQ(tl_family_source("no such family"), nullptr);
  tl_context_release(context);
  tl_kernel_release(kernel);
}

struct BadCompile {
  const char* name;
  std::function<void(tl_compile_options&)> spoil;
  tl_status status;
  const char* message;
};

TEST_F(ArgumentsTest, EveryMistakeOfACompileIsNamed) {
  static const tl_param unknown{"tt", "bf16"}, nameless{nullptr, "1"}, wrong{"t", "bf15"};
  const BadCompile mistakes[] = {
      {"both", [](tl_compile_options& o) { o.family = "gemm"; }, TL_INVALID_ARGUMENT,
       "exactly one"},
      {"neither", [](tl_compile_options& o) { o.source = nullptr; }, TL_INVALID_ARGUMENT,
       "exactly one"},
      {"empty", [](tl_compile_options& o) { o.source = ""; }, TL_INVALID_ARGUMENT,
       "source is empty"},
      {"family", [](tl_compile_options& o) { o.source = nullptr, o.family = "gem"; }, TL_NOT_FOUND,
       "gemm"},
      {"target", [](tl_compile_options& o) { o.target = "sm_91"; }, TL_NOT_FOUND, "sm_90a"},
      {"device", [](tl_compile_options& o) { o.target = nullptr, o.device = 1000; }, TL_NOT_FOUND,
       "device 1000"},
      {"parameter", [](tl_compile_options& o) { o.params = &unknown, o.num_params = 1; },
       TL_INVALID_ARGUMENT, "has no parameter 'tt'; it has N, t"},
      {"no name", [](tl_compile_options& o) { o.params = &nameless, o.num_params = 1; },
       TL_INVALID_ARGUMENT, "params[0]"},
      {"value", [](tl_compile_options& o) { o.params = &wrong, o.num_params = 1; },
       TL_INVALID_ARGUMENT, "bf15"},
      {"no params", [](tl_compile_options& o) { o.num_params = 1; }, TL_INVALID_ARGUMENT,
       "params is NULL"},
      {"budget", [](tl_compile_options& o) { o.shared_budget = -1; }, TL_INVALID_ARGUMENT,
       "shared_budget"},
  };
  for (const BadCompile& mistake : mistakes) {
    SCOPED_TRACE(mistake.name);
    tl_compile_options options = Options(kAdd, "reference");
    mistake.spoil(options);
    tl_kernel* kernel = nullptr;
    EXPECT_EQ(tl_compile(context_.get(), &options, &kernel), mistake.status);
    EXPECT_EQ(kernel, nullptr);
    EXPECT_THAT(Last().message, HasSubstr(mistake.message));
  }
}

TEST_F(ArgumentsTest, AProgramsMistakeHasItsPlace) {
  const tl_compile_options options =
      Options("tl 1.0\nkernel k(N: dim) {\n  in A: tensor<f33>[N]\n}\n", "reference");
  tl_kernel* kernel = nullptr;
  EXPECT_EQ(tl_compile(context_.get(), &options, &kernel), TL_INVALID_ARGUMENT);
  EXPECT_EQ(Last().reason, TL_REASON_SEMANTICS);
  EXPECT_EQ(Last().line, 3);
  EXPECT_EQ(Last().column, 16);
  EXPECT_THAT(Last().message, HasSubstr("f33"));
}

// The error belongs to the thread that made it.
TEST_F(ArgumentsTest, LastErrorIsTheThreads) {
  EXPECT_EQ(tl_prepare(nullptr, 0), TL_INVALID_ARGUMENT);
  std::thread([] {
    tl_error_info info = Sized<tl_error_info>();
    EXPECT_EQ(tl_last_error(&info), TL_NOT_FOUND);
  }).join();
  EXPECT_EQ(Last().status, TL_INVALID_ARGUMENT);
}

TEST_F(ArgumentsTest, AKernelOutlivesItsContextsHandle) {
  Launch launch(context_.get());
  context_.reset();
  EXPECT_EQ(tl_launch(kernel_.get(), &launch.args), TL_OK) << families::LastError();
}

TEST_F(ArgumentsTest, AKernelForAnAbsentDeviceCannotBeLaunched) {
  Launch launch(context_.get());
  const int32_t cpu = DeviceOf(context_.get(), "cpu");
  ASSERT_GE(cpu, 0);
  launch.args.device = cpu;
  EXPECT_EQ(tl_launch(kernel_.get(), &launch.args), TL_FAILED_PRECONDITION);
  EXPECT_EQ(Last().reason, TL_REASON_NO_DEVICE);
  EXPECT_THAT(Last().message, HasSubstr("compiled for reference"));
}

TEST_F(ArgumentsTest, AForkedChildIsTold) {
  Launch launch(context_.get());
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const tl_compile_options options = Options(kAdd, "reference");
    tl_kernel* kernel = nullptr;
    const bool ok = tl_launch(kernel_.get(), &launch.args) == TL_FAILED_PRECONDITION &&
                    tl_compile(context_.get(), &options, &kernel) == TL_FAILED_PRECONDITION;
    _exit(ok ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_EQ(tl_launch(kernel_.get(), &launch.args), TL_OK);
}

// The values that clients were compiled with.
TEST(Numbers, AreWhatTheyWere) {
  EXPECT_EQ(TL_UNAUTHENTICATED, 16);
  EXPECT_EQ(TL_UNAVAILABLE, 14);
  EXPECT_EQ(TL_DOMAIN_OS, 6);
  EXPECT_EQ(TL_REASON_MISMATCH, 9);
  EXPECT_EQ(TL_F64, 13);
  EXPECT_EQ(TL_E4M3, 8);
  EXPECT_EQ(TL_ACCESS_INOUT, 2);
  EXPECT_EQ(TL_TEXT_THREAD, 8);
  EXPECT_EQ(TL_CACHE_READ_ONLY, 2);
  EXPECT_EQ(tl_abi_version(), static_cast<uint32_t>(TL_ABI_VERSION));
  EXPECT_STREQ(tl_dtype_name(TL_BF16), "bf16");
  EXPECT_EQ(tl_dtype_size(TL_F64), 8u);
  EXPECT_EQ(tl_dtype_name(14), nullptr);
  EXPECT_STREQ(tl_status_name(TL_DATA_LOSS), "DATA_LOSS");
}

// ---- DLPack ------------------------------------------------------------------------------------

struct Borrowed {
  explicit Borrowed(float* data) : shape{5}, stride{1} {
    tensor = {data, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, shape, stride, 0};
  }
  int64_t shape[1], stride[1];
  DLTensor tensor;
};

struct BadTensor {
  const char* name;
  std::function<void(Borrowed& a, Borrowed& b, Borrowed& c)> spoil;
  const char* message;  // "" works
};

TEST_F(ArgumentsTest, DlpackTensorsAreChecked) {
  const BadTensor rows[] = {
      {"works", [](Borrowed&, Borrowed&, Borrowed&) {}, ""},
      {"no strides", [](Borrowed& a, Borrowed&, Borrowed&) { a.tensor.strides = nullptr; }, ""},
      {"dtype", [](Borrowed& a, Borrowed&, Borrowed&) { a.tensor.dtype.bits = 64; },
       "tensor 'A' has dtype f64"},
      {"lanes", [](Borrowed& a, Borrowed&, Borrowed&) { a.tensor.dtype.lanes = 4; },
       "tensor 'A' has dtype unknown"},
      {"rank", [](Borrowed& a, Borrowed&, Borrowed&) { a.tensor.ndim = 0; },
       "tensor 'A' has rank 0"},
      {"device", [](Borrowed&, Borrowed& b, Borrowed&) { b.tensor.device = {kDLCUDA, 0}; },
       "tensor 'B' lies on"},
      {"extents differ", [](Borrowed&, Borrowed& b, Borrowed&) { b.shape[0] = 4; },
       "tensor 'B' makes N = 4"},
      {"fixed stride", [](Borrowed& a, Borrowed&, Borrowed&) { a.stride[0] = 2; },
       "tensor 'A' has stride 2"},
  };
  for (const BadTensor& row : rows) {
    SCOPED_TRACE(row.name);
    Launch launch(context_.get());
    Borrowed a(launch.a), b(launch.b), c(launch.c);
    row.spoil(a, b, c);
    const void* tensors[] = {&a.tensor, &b.tensor, &c.tensor};
    const tl_status status = tl_launch_dlpack(kernel_.get(), tensors, 3, &launch.args);
    if (*row.message == '\0') {
      EXPECT_EQ(status, TL_OK) << families::LastError();
      EXPECT_EQ(launch.c[4], 7);
    } else {
      EXPECT_EQ(status, TL_INVALID_ARGUMENT);
      EXPECT_THAT(Last().message, HasSubstr(row.message));
    }
  }
  Launch launch(context_.get());
  // A dynamic stride is read off the tensor, and an offset in bytes counts.
  Borrowed a(launch.a), b(launch.b), c(launch.c);
  a.shape[0] = b.shape[0] = c.shape[0] = 3;
  b.stride[0] = 2;
  a.tensor.byte_offset = 4;
  launch.b[2] = 10;
  const void* tensors[] = {&a.tensor, &b.tensor, &c.tensor};
  ASSERT_EQ(tl_launch_dlpack(kernel_.get(), tensors, 3, &launch.args), TL_OK)
      << families::LastError();
  EXPECT_THAT(launch.c, testing::ElementsAre(4, 23, 6, 0, 0, 0, 0, 0));
}

// ---- Threads -----------------------------------------------------------------------------------

TEST(Threads, ManyAsksOneCompile) {
  Context context = families::MakeContext();
  const char* const names[] = {"1", "2", "3"};
  std::vector<std::thread> threads;
  for (int t = 0; t < 24; ++t) {
    threads.emplace_back([&, t] {
      Launch launch(context.get());
      launch.args.device = DeviceOf(context.get(), "cpu");
      for (int round = 0; round < 3; ++round) {
        // Three programs that differ in one number.
        std::string source = kAdd;
        source.replace(source.find("s*b"), 1, std::string("s*") + names[(t + round) % 3] + ".0");
        const tl_compile_options options = Options(source.c_str(), "cpu");
        Kernel kernel = Compile(context.get(), options);
        ASSERT_EQ(tl_launch(kernel.get(), &launch.args), TL_OK) << families::LastError();
        EXPECT_EQ(launch.c[0], 1.0f + 2.0f * static_cast<float>((t + round) % 3 + 1));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  tl_cache_stats stats = Sized<tl_cache_stats>();
  ASSERT_EQ(tl_cache_get_stats(context.get(), &stats), TL_OK);
  EXPECT_EQ(stats.compiles, 3u);
}

}  // namespace
