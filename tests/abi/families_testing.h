// What tests of the families need of tl.h: contexts, compiled kernels, checks that say what is off.
#ifndef TILEJIT_TESTS_ABI_FAMILIES_TESTING_H_
#define TILEJIT_TESTS_ABI_FAMILIES_TESTING_H_

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tl/tl.h"

namespace families {

using Values = std::vector<std::pair<std::string, std::string>>;
using Dims = std::vector<int64_t>;

struct ReleaseContext {
  void operator()(tl_context* c) const { tl_context_release(c); }
};
struct ReleaseKernel {
  void operator()(tl_kernel* k) const { tl_kernel_release(k); }
};
using Context = std::unique_ptr<tl_context, ReleaseContext>;
using Kernel = std::unique_ptr<tl_kernel, ReleaseKernel>;

template <typename T>
T Sized() {
  T value{};
  value.struct_size = sizeof(T);
  return value;
}

inline std::string LastError() {
  tl_error_info info = Sized<tl_error_info>();
  if (tl_last_error(&info) != TL_OK) return "no error";
  std::ostringstream text;
  text << tl_status_name(info.status) << " (reason " << info.reason << "): " << info.message;
  if (info.line > 0) text << " at " << info.line << ":" << info.column;
  if (info.log && *info.log) text << "\n" << info.log;
  return text.str();
}

// Nothing on disk: compiles can be counted, and no run depends on another.
inline Context MakeContext() {
  tl_context_options options = Sized<tl_context_options>();
  options.cache_mode = TL_CACHE_MEMORY;
  tl_context* context = nullptr;
  EXPECT_EQ(tl_context_create(&options, &context), TL_OK) << LastError();
  return Context(context);
}

// One for all tests of the process, so that equal kernels are compiled once.
inline tl_context* SharedContext() {
  static const Context& context = *new Context(MakeContext());
  return context.get();
}

// First device of a backend, -1 if there is none.
inline int32_t FindDevice(tl_context* context, const std::string& backend) {
  int32_t count = 0;
  EXPECT_EQ(tl_device_count(context, &count), TL_OK) << LastError();
  for (int32_t i = 0; i < count; ++i) {
    tl_device_info info = Sized<tl_device_info>();
    if (tl_device_get(context, i, &info) == TL_OK && backend == info.backend) return i;
  }
  return -1;
}

// Those of the candidates that have a device here.
inline std::vector<std::string> Present(const std::vector<std::string>& candidates) {
  std::vector<std::string> present;
  for (const std::string& backend : candidates) {
    if (FindDevice(SharedContext(), backend) >= 0) present.push_back(backend);
  }
  return present;
}

// `program`: the name of a family, or the text of a program.
inline Kernel Compile(tl_context* context, const std::string& program, const Values& values,
                      int32_t device) {
  tl_compile_options options = Sized<tl_compile_options>();
  if (tl_family_source(program.c_str())) {
    options.family = program.c_str();
  } else {
    options.source = program.c_str();
    options.source_size = TL_ZERO_TERMINATED;
  }
  std::vector<tl_param> params;
  for (const auto& [name, value] : values) params.push_back({name.c_str(), value.c_str()});
  options.params = params.data();
  options.num_params = params.size();
  options.device = device;
  tl_kernel* kernel = nullptr;
  EXPECT_EQ(tl_compile(context, &options, &kernel), TL_OK) << LastError();
  return Kernel(kernel);
}

inline std::string Show(const Values& values) {
  std::string text;
  for (const auto& [name, value] : values) text += name + "=" + value + " ";
  return text;
}

inline std::string Show(const Dims& dims) {
  std::string text;
  for (int64_t dim : dims) text += (text.empty() ? "" : "x") + std::to_string(dim);
  return text;
}

// A series of checks against one oracle; prints the worst ratio of error to bound when it ends.
class Series {
 public:
  Series(std::string title, tl_oracle oracle, void* user)
      : title_(std::move(title)), oracle_(oracle), user_(user) {}
  ~Series() {
    std::printf("%s: %d checks, worst error/bound %.3f (%s)\n", title_.c_str(), checks_, worst_,
                where_.c_str());
  }

  // Whether the kernel passed.
  bool Check(tl_kernel* kernel, int32_t device, const Dims& dims, uint64_t seed = 1) {
    tl_check_options options = Sized<tl_check_options>();
    options.device = device;
    options.dims = dims.data();
    options.num_dims = static_cast<uint32_t>(dims.size());
    options.seed = seed;
    options.oracle = oracle_;
    options.oracle_user = user_;
    tl_check_result result = Sized<tl_check_result>();
    const tl_status status = tl_check(kernel, &options, &result);
    EXPECT_EQ(status, TL_OK) << title_ << " at " << Show(dims) << ": " << LastError();
    ++checks_;
    if (result.worst_ratio >= worst_) {
      worst_ = result.worst_ratio;
      where_ = Show(dims);
    }
    return status == TL_OK;
  }

 private:
  const std::string title_;
  const tl_oracle oracle_;
  void* const user_;
  int checks_ = 0;
  double worst_ = 0;
  std::string where_;
};

// Tests of families, once for every backend with a device here.
class FamilyTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { device_ = FindDevice(SharedContext(), GetParam()); }
  bool interprets() const { return GetParam() == "reference"; }
  bool on_host() const { return interprets() || GetParam() == "cpu"; }

  // The family with these values, at all these sizes.
  void CheckSizes(const std::string& family, const Values& values, tl_oracle oracle, void* user,
                  const std::vector<Dims>& sizes) {
    const std::string title = GetParam() + " " + family + " " + Show(values);
    const Kernel kernel = Compile(SharedContext(), family, values, device_);
    ASSERT_NE(kernel, nullptr) << title;
    Series series(title, oracle, user);
    for (const Dims& dims : sizes) {
      if (!series.Check(kernel.get(), device_, dims)) return;
    }
  }

  int32_t device_ = -1;
};

inline const char* Bool(bool value) { return value ? "true" : "false"; }

}  // namespace families

#endif  // TILEJIT_TESTS_ABI_FAMILIES_TESTING_H_
