// Requests for tuning, and a program with planted candidates.
#ifndef TILEJIT_TESTS_ABI_TUNE_TESTING_H_
#define TILEJIT_TESTS_ABI_TUNE_TESTING_H_

#ifndef TL_EXPERIMENTAL
#define TL_EXPERIMENTAL
#endif
#include "tests/abi/abi_testing.h"
#include "tests/abi/temp_dir.h"

namespace tuning {

using border::Sized;
using border::TempDir;

inline border::Context ContextOn(const std::string& cache, std::vector<const char*> packs = {}) {
  tl_context_options options = Sized<tl_context_options>();
  options.cache_dir = cache.c_str();
  options.packs = packs.data();
  options.num_packs = packs.size();
  tl_context* context = nullptr;
  EXPECT_EQ(tl_context_create(&options, &context), TL_OK) << families::LastError();
  return border::Context(context);
}

using Params = families::Values;

// A request with the texts that it points into.
struct Request {
  Request(tl_context* context, std::string program, Params values, std::vector<int64_t> launch_dims)
      : text(std::move(program)), given(std::move(values)), dims(std::move(launch_dims)) {
    for (const auto& [name, value] : given) params.push_back({name.c_str(), value.c_str()});
    if (tl_family_source(text.c_str()) != nullptr) {
      compile.family = text.c_str();
    } else {
      compile.source = text.c_str();
    }
    compile.params = params.data();
    compile.num_params = params.size();
    compile.device = families::FindDevice(context, "cpu");
    tune.compile = &compile;
    tune.dims = dims.data();
    tune.num_dims = static_cast<uint32_t>(dims.size());
    tune.max_seconds = 60;
  }
  Request(const Request&) = delete;

  std::string text;
  Params given;
  std::vector<int64_t> dims;
  std::vector<tl_param> params;
  tl_compile_options compile = Sized<tl_compile_options>();
  tl_tune_options tune = Sized<tl_tune_options>();
};

struct Tuned {
  tl_status status;
  border::Kernel kernel;
  tl_tune_result result;
  std::string configuration, report;
};

inline Tuned Tune(tl_context* context, const Request& request) {
  tl_kernel* kernel = nullptr;
  Tuned out{TL_OK, nullptr, Sized<tl_tune_result>(), "", ""};
  out.status = tl_tune(context, &request.tune, &kernel, &out.result);
  out.kernel.reset(kernel);
  if (out.status == TL_OK) {
    out.configuration = out.result.configuration;
    out.report = out.result.report;
  }
  return out;
}

inline border::Kernel Compile(tl_context* context, const Request& request) {
  tl_kernel* kernel = nullptr;
  EXPECT_EQ(tl_compile(context, &request.compile, &kernel), TL_OK) << families::LastError();
  return border::Kernel(kernel);
}

inline bool Has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Slow but right; faults; goes on for half a minute or more and ends; fast and wrong. Those that
// are right differ in `work`.
inline constexpr char kPlanted[] = R"(tl 1.0
kernel planted(N: dim) {
  in X: tensor<f32>[N]
  out Y: tensor<f32>[N]
  tune mode in {0, 1, 2, 3}, work in {8000, 400}
  where mode == 0 or work == 400
  launch n in ceildiv(N, 64) {
    x, stale = alloc_fragment<f32>[64]
    copy X[n*64] -> x
    if mode == 1 { parallel i in 64 { Y[n*64 + i + 1099511627776] = x[i] } }
    if mode == 2 { serial k in 4000000000 { parallel i in 64 { x[i] = x[i] * 0.999 + 0.5 } } }
    if mode == 3 {
      copy stale -> Y[n*64]
    } else {
      y = alloc_fragment<f32>[64]
      copy x -> y
      serial k in work { parallel i in 64 { y[i] = y[i] * 0.999 + 0.5 } }
      parallel i in 64 { x[i] = if y[i] > 1e30 then y[i] else x[i] * 2.0 }
      copy x -> Y[n*64]
    }
  }
}
)";

}  // namespace tuning

#endif  // TILEJIT_TESTS_ABI_TUNE_TESTING_H_
