// tl check: random inputs, one launch, every result against the reference interpreter.
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "command.h"
#include "error_text.h"
#include "nlohmann/json.hpp"

namespace cli {
namespace {

struct Options {
  uint64_t seed = 0;
  uint64_t reference_work = 0;
  bool json = false;
};

nlohmann::ordered_json Json(const tl_check_result& r, const std::string& device, bool pass) {
  return {{"pass", pass},
          {"device", device},
          {"worst_ratio", r.worst_ratio},
          {"worst_error", r.worst_error},
          {"worst_bound", r.worst_bound},
          {"worst_expected", r.worst_expected},
          {"worst_actual", r.worst_actual},
          {"worst_tensor", r.worst_tensor ? r.worst_tensor : ""},
          {"worst_index", r.worst_index},
          {"compared", r.compared},
          {"mismatches", r.mismatches}};
}

void Print(const tl_check_result& r, bool pass) {
  std::printf("%llu elements compared, %llu off; worst ratio of error to bound %.3g",
              static_cast<unsigned long long>(r.compared),
              static_cast<unsigned long long>(r.mismatches), r.worst_ratio);
  if (r.worst_tensor) {
    std::printf(" at %s, element %lld: %.9g, expected %.9g ± %.3g", r.worst_tensor,
                static_cast<long long>(r.worst_index), r.worst_actual, r.worst_expected,
                r.worst_bound);
  }
  std::printf("\n%s\n", pass ? "PASS" : "FAIL");
}

int Run(Program& program, const Options& options) {
  Resolve(program);
  const Context context = MakeContext(program);
  const int32_t device = ChooseDevice(context.get(), program);
  const Kernel kernel = Compile(context.get(), program, device);
  const std::vector<int64_t> dims = LaunchDims(kernel.get(), program);
  const tl_device_info info = DeviceInfo(context.get(), device);
  if (!options.json) {
    std::printf("%s on %s (%s):%s, seed %llu\n", program.name.c_str(), info.name, info.target,
                DimsText(kernel.get(), dims, program).c_str(),
                static_cast<unsigned long long>(options.seed));
  }
  tl_check_options check = Sized<tl_check_options>();
  check.device = device;
  check.dims = dims.data();
  check.num_dims = static_cast<uint32_t>(dims.size());
  check.seed = options.seed;
  check.reference_work = options.reference_work;
  tl_check_result result = Sized<tl_check_result>();
  const tl_status status = tl_check(kernel.get(), &check, &result);
  const bool pass = status == TL_OK;
  Failure failure{};
  if (!pass) {
    failure = LastFailure();
    if (failure.reason != TL_REASON_MISMATCH) throw failure;
  }
  if (options.json) {
    std::printf("%s\n", Json(result, info.name, pass).dump(2).c_str());
  } else {
    Print(result, pass);
  }
  std::fflush(stdout);
  if (!pass) throw failure;
  return kOk;
}

}  // namespace

void AddCheck(CLI::App& app, Session& session) {
  CLI::App* command = app.add_subcommand("check",
                                         "Compare a kernel with the reference interpreter on "
                                         "random inputs; exit code 1 if it differs");
  const auto options = std::make_shared<Options>();
  AddProgramOptions(*command, session.program);
  AddRunOptions(*command, session.program);
  command->add_option("--seed", options->seed, "of the inputs")->check(CLI::NonNegativeNumber);
  command
      ->add_option("--reference-work", options->reference_work,
                   "multiply-adds that the reference may spend; larger problems are sampled")
      ->check(CLI::NonNegativeNumber);
  command->add_flag("--json", options->json, "print JSON");
  SetExamples(*command,
              "  tl check gemm -p M=129 -p N=72 -p K=40 --backend cpu\n"
              "  tl check gemm -p t=f16 -p ta=on --dim M=100 --dim N=77 --dim K=33 --seed 7\n"
              "  tl check my_kernel.tl --backend reference");
  command->callback([&session, options] {
    session.run = [&session, options] { return Run(session.program, *options); };
  });
}

}  // namespace cli
