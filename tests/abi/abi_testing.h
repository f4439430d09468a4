// Small programs and launches for the tests of the C interface's border.
#ifndef TILEJIT_TESTS_ABI_ABI_TESTING_H_
#define TILEJIT_TESTS_ABI_ABI_TESTING_H_

#include <string>
#include <string_view>
#include <vector>

#include "tests/abi/families_testing.h"

namespace border {

using families::Context;
using families::Kernel;
using families::Sized;

// Y = X + add, of any length.
inline std::string AddProgram(int add) {
  return "tl 1.0\nkernel add(N: dim) {\n  in X: tensor<f32>[N]\n  out Y: tensor<f32>[N]\n"
         "  launch n in ceildiv(N, 64) {\n    x = alloc_fragment<f32>[64]\n"
         "    copy X[n*64] -> x\n    parallel i in 64 { x[i] = x[i] + " +
         std::to_string(add) + " }\n    copy x -> Y[n*64]\n  }\n}\n";
}

// One of each kind of argument: a dim, a stride, scalars, a workspace.
inline constexpr char kEverything[] = R"(tl 1.0
kernel all(M: dim, N: dim) {
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

inline tl_error_info LastInfo() {
  tl_error_info info = Sized<tl_error_info>();
  EXPECT_EQ(tl_last_error(&info), TL_OK);
  return info;
}

inline std::string LastMessage() { return LastInfo().message; }

// The call failed with `code`, and the message of this thread holds `text`.
#define EXPECT_FAILS(call, code, text)                                                         \
  do {                                                                                         \
    const tl_status status_ = (call);                                                          \
    EXPECT_EQ(status_, code) << tl_status_name(status_) << " by " #call;                       \
    if (status_ != TL_OK) {                                                                    \
      EXPECT_NE(border::LastMessage().find(text), std::string::npos) << border::LastMessage(); \
      EXPECT_EQ(border::LastInfo().status, status_);                                           \
    }                                                                                          \
  } while (false)

// The text must outlive the options.
inline tl_compile_options SourceOptions(std::string_view source, const char* target) {
  tl_compile_options options = Sized<tl_compile_options>();
  options.source = source.data();
  options.source_size = source.size();
  options.target = target;
  return options;
}

inline Kernel CompileFor(tl_context* context, const std::string& source, const char* target) {
  const tl_compile_options options = SourceOptions(source, target);
  tl_kernel* kernel = nullptr;
  EXPECT_EQ(tl_compile(context, &options, &kernel), TL_OK) << families::LastError();
  return Kernel(kernel);
}

inline tl_cache_stats Stats(tl_context* context) {
  tl_cache_stats stats = Sized<tl_cache_stats>();
  EXPECT_EQ(tl_cache_get_stats(context, &stats), TL_OK) << families::LastError();
  return stats;
}

inline std::string Text(tl_kernel* kernel, tl_text what) {
  const char* data = nullptr;
  size_t size = 0;
  EXPECT_EQ(tl_kernel_text(kernel, what, &data, &size), TL_OK) << families::LastError();
  return data ? std::string(data, size) : "";
}

// Arguments of a launch that point into vectors of one's own.
struct Launch {
  std::vector<void*> tensors;
  std::vector<int64_t> dims, strides;
  std::vector<tl_scalar> scalars;
  void* workspace = nullptr;
  size_t workspace_size = 0;
  int32_t device = 0;

  tl_launch_args args() const {
    tl_launch_args a = Sized<tl_launch_args>();
    a.device = device;
    a.tensors = tensors.data();
    a.dims = dims.data();
    a.strides = strides.data();
    a.scalars = scalars.data();
    a.num_tensors = static_cast<uint32_t>(tensors.size());
    a.num_dims = static_cast<uint32_t>(dims.size());
    a.num_strides = static_cast<uint32_t>(strides.size());
    a.num_scalars = static_cast<uint32_t>(scalars.size());
    a.workspace = workspace;
    a.workspace_size = workspace_size;
    return a;
  }
  tl_status Run(tl_kernel* kernel) const {
    const tl_launch_args a = args();
    return tl_launch(kernel, &a);
  }
};

// Launches AddProgram(add) and says whether every element is right.
inline bool RunsRight(tl_kernel* kernel, int32_t device, int add, int64_t n) {
  std::vector<float> x(static_cast<size_t>(n)), y(static_cast<size_t>(n), -1);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 1000);
  Launch launch{.tensors = {x.data(), y.data()}, .dims = {n}, .device = device};
  if (launch.Run(kernel) != TL_OK) return false;
  for (size_t i = 0; i < x.size(); ++i) {
    if (y[i] != x[i] + static_cast<float>(add)) return false;
  }
  return true;
}

}  // namespace border

#endif  // TILEJIT_TESTS_ABI_ABI_TESTING_H_
