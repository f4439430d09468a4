// tl bench: device time of a kernel on random inputs.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "command.h"
#include "nlohmann/json.hpp"

namespace cli {
namespace {

struct Options {
  uint32_t rounds = 0;
  uint64_t seed = 0;
  std::string operations;
  bool json = false;
};

// Value of a factor of --flops: a number or the name of a dim.
double Factor(const std::string& text, const tl_kernel* kernel, const std::vector<int64_t>& dims,
              const Program& program) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (!text.empty() && *end == '\0') return number;
  for (uint32_t i = 0; i < dims.size(); ++i) {
    if (text == tl_kernel_dim_name(kernel, i)) return static_cast<double>(dims[i]);
  }
  for (const auto& [name, value] : program.params) {
    if (text == name) return std::strtod(value.c_str(), nullptr);
  }
  throw UsageError("--flops is a product of numbers and dims such as 2*M*N*K; '" + text +
                   "' is neither");
}

double Operations(const Options& options, const tl_kernel* kernel, const std::vector<int64_t>& dims,
                  const Program& program) {
  double product = 1;
  std::istringstream in(options.operations);
  for (std::string factor; std::getline(in, factor, '*');)
    product *= Factor(factor, kernel, dims, program);
  return product;
}

struct Figures {
  tl_bench_result result;
  double gb_per_s;
  double tflop_per_s;  // 0: not asked for
};

nlohmann::ordered_json Json(const Figures& f, const std::string& device) {
  const tl_bench_result& r = f.result;
  nlohmann::ordered_json json = {
      {"device", device},          {"median_us", r.median_ns / 1e3},
      {"min_us", r.min_ns / 1e3},  {"max_us", r.max_ns / 1e3},
      {"bytes", r.bytes},          {"gb_per_s", f.gb_per_s},
      {"rounds", r.rounds},        {"launches_per_round", r.launches_per_round},
      {"input_sets", r.input_sets}};
  if (f.tflop_per_s > 0) json["tflop_per_s"] = f.tflop_per_s;
  return json;
}

void Print(const Figures& f) {
  const tl_bench_result& r = f.result;
  std::printf("median %.3f us (%.3f ... %.3f), %.1f GB/s", r.median_ns / 1e3, r.min_ns / 1e3,
              r.max_ns / 1e3, f.gb_per_s);
  if (f.tflop_per_s > 0) std::printf(", %.3f TFLOP/s", f.tflop_per_s);
  std::printf("\n%u rounds of %llu launches over %llu sets of inputs\n", r.rounds,
              static_cast<unsigned long long>(r.launches_per_round),
              static_cast<unsigned long long>(r.input_sets));
}

int Run(Program& program, const Options& options) {
  Resolve(program);
  const Context context = MakeContext(program);
  const int32_t device = ChooseDevice(context.get(), program);
  const Kernel kernel = Compile(context.get(), program, device);
  const std::vector<int64_t> dims = LaunchDims(kernel.get(), program);
  const double operations =
      options.operations.empty() ? 0 : Operations(options, kernel.get(), dims, program);
  tl_bench_options bench = Sized<tl_bench_options>();
  bench.device = device;
  bench.dims = dims.data();
  bench.num_dims = static_cast<uint32_t>(dims.size());
  bench.rounds = options.rounds;
  bench.seed = options.seed;
  Figures f{Sized<tl_bench_result>(), 0, 0};
  Check(tl_bench(kernel.get(), &bench, &f.result));
  if (f.result.median_ns > 0) {
    f.gb_per_s = f.result.bytes / f.result.median_ns;
    f.tflop_per_s = operations / f.result.median_ns / 1e3;
  }
  const tl_device_info info = DeviceInfo(context.get(), device);
  if (options.json) {
    std::printf("%s\n", Json(f, info.name).dump(2).c_str());
    return kOk;
  }
  std::printf("%s on %s (%s):%s\n", program.name.c_str(), info.name, info.target,
              DimsText(kernel.get(), dims, program).c_str());
  Print(f);
  return kOk;
}

}  // namespace

void AddBench(CLI::App& app, Session& session) {
  CLI::App* command = app.add_subcommand(
      "bench", "Time a kernel on random inputs (median of several rounds, inputs rotated)");
  const auto options = std::make_shared<Options>();
  AddProgramOptions(*command, session.program);
  AddRunOptions(*command, session.program);
  command->add_option("--rounds", options->rounds, "the median of these counts (5)");
  command->add_option("--seed", options->seed, "of the inputs")->check(CLI::NonNegativeNumber);
  command->add_option("--flops", options->operations,
                      "operations of one launch, a product such as 2*M*N*K: adds TFLOP/s");
  command->add_flag("--json", options->json, "print JSON");
  SetExamples(*command,
              "  tl bench gemm -p M=1024 -p N=1024 -p K=1024 --flops '2*M*N*K'\n"
              "  tl bench gemm -p N=72 -p K=40 --dim M=300 --backend cpu --json");
  command->callback([&session, options] {
    session.run = [&session, options] { return Run(session.program, *options); };
  });
}

}  // namespace cli
