// tl tune: the fastest configuration of a program on a device.
#define TL_EXPERIMENTAL
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "command.h"
#include "error_text.h"
#include "nlohmann/json.hpp"

namespace cli {
namespace {

struct Options {
  double budget = 30;
  uint32_t candidates = 0;
  double candidate_seconds = 0;
  int jobs = 0;
  uint64_t seed = 0;
  bool in_process = false;
  bool json = false;
};

constexpr int kBarWidth = 30;

std::string Microseconds(double ns) {
  if (ns <= 0) return "-";
  char text[64];
  std::snprintf(text, sizeof(text), "%.3f us", ns / 1e3);
  return text;
}

const char* FateText(tl_tune_fate fate) {
  switch (fate) {
    case TL_TUNE_REFUSED:
      return "refused";
    case TL_TUNE_UNBUILT:
      return "not built";
    case TL_TUNE_STOPPED:
      return "stopped";
    case TL_TUNE_DISQUALIFIED:
      return "disqualified";
    default:
      return "measured";
  }
}

// The part of the seconds that has gone, or of the candidates where that is more.
void DrawBar(const tl_tune_event& e) {
  const double part = std::min(
      1.0,
      std::max(e.seconds / e.max_seconds,
               static_cast<double>(e.done) / static_cast<double>(std::max<uint64_t>(e.total, 1))));
  const int full = static_cast<int>(part * kBarWidth);
  std::fprintf(
      stderr, "\r\033[K[%-*s] %.0f of %.0f s, %" PRIu64 "/%" PRIu64 ", best %s, default %s",
      kBarWidth, std::string(static_cast<size_t>(full), '#').c_str(), e.seconds, e.max_seconds,
      e.done, e.total, Microseconds(e.best_ns).c_str(), Microseconds(e.default_ns).c_str());
}

void PrintLine(const tl_tune_event& e) {
  std::fprintf(stderr, "%6.1f s %4" PRIu64 "/%" PRIu64 " %-12s %s %.100s\n", e.seconds, e.done,
               e.total, FateText(e.fate), e.configuration,
               *e.reason ? e.reason : Microseconds(e.median_ns).c_str());
}

// Where events are printed.
struct Screen {
  bool bar = false;  // stderr is a terminal
  uint64_t done = 0;
};

int OnEvent(void* user, const tl_tune_event* e) {
  Screen& screen = *static_cast<Screen*>(user);
  // Further rounds of one that is known already are for a bar only.
  const bool news = e->done > screen.done || e->fate != TL_TUNE_MEASURED;
  screen.done = e->done;
  if (!screen.bar) {
    if (news) PrintLine(*e);
    return 0;
  }
  // What is wrong with a candidate stays on the screen.
  if (e->fate == TL_TUNE_DISQUALIFIED || e->fate == TL_TUNE_UNBUILT) {
    std::fputs("\r\033[K", stderr);
    PrintLine(*e);
  }
  DrawBar(*e);
  return 0;
}

// Dims of a launch in the signature's order, which no tune parameter changes: that of a kernel for
// the interpreter, which takes any program.
std::vector<int64_t> DimsToTune(tl_context* context, const Program& program) {
  Program any = program;
  std::erase_if(any.params,
                [](const auto& param) { return param.second.find(',') != std::string::npos; });
  any.backend.clear();
  any.target = "reference";
  any.shared_budget = 0;
  const Kernel kernel = Compile(context, any, 0);
  return LaunchDims(kernel.get(), program);
}

void Print(const tl_tune_result& r, const tl_device_info& device) {
  std::printf("%s\n  %s (%.3f ... %.3f) on %s\n", r.configuration,
              Microseconds(r.median_ns).c_str(), r.min_ns / 1e3, r.max_ns / 1e3, device.name);
  if (r.default_ns > 0) {
    std::printf("  the untuned default takes %s: %.2f times as long\n",
                Microseconds(r.default_ns).c_str(), r.default_ns / r.median_ns);
  }
  if (r.runner_up_ns > 0)
    std::printf("  the next one takes %s\n", Microseconds(r.runner_up_ns).c_str());
  std::printf("  %" PRIu64 " combinations: %" PRIu64 " refused, %" PRIu64 " built, %" PRIu64
              " measured (%" PRIu64 " stopped early), %" PRIu64 " disqualified, in %.1f s\n",
              r.space, r.refused, r.built, r.measured, r.stopped, r.disqualified, r.seconds);
  std::printf("  %s\n", r.recorded ? "recorded: tl compile takes it from now on"
                                   : "not recorded: give it with -p");
}

// Tunes one program and prints what came of it.
void TuneOne(tl_context* context, int32_t device, const Program& program, const Options& options) {
  const std::vector<int64_t> dims = DimsToTune(context, program);
  const CompileOptions compile(context, program, device);
  Screen screen{isatty(STDERR_FILENO) != 0};
  tl_tune_options tune = Sized<tl_tune_options>();
  tune.compile = &compile.options;
  tune.in_process = options.in_process ? 1 : 0;
  tune.dims = dims.data();
  tune.num_dims = static_cast<uint32_t>(dims.size());
  tune.max_candidates = options.candidates;
  tune.max_seconds = options.budget;
  tune.candidate_seconds = options.candidate_seconds;
  tune.jobs = options.jobs;
  tune.seed = options.seed;
  tune.progress = OnEvent;
  tune.user = &screen;
  tl_tune_result result = Sized<tl_tune_result>();
  tl_kernel* kernel = nullptr;
  const tl_status status = tl_tune(context, &tune, &kernel, &result);
  if (screen.bar) std::fputs("\r\033[K", stderr);
  Check(status);
  const Kernel owned(kernel);
  if (options.json) {
    std::fputs(result.report, stdout);
    return;
  }
  std::printf("%s:%s\n", program.name.c_str(), DimsText(kernel, dims, program).c_str());
  Print(result, DeviceInfo(context, device));
}

// ---- Plans

struct Stop {
  int line;  // in the plan
  Program program;
};

NamedValues Copied(const tl_param* values, size_t count) {
  NamedValues out;
  for (size_t i = 0; i < count; ++i) out.emplace_back(values[i].name, values[i].value);
  return out;
}

int Collect(void* user, const tl_plan_stop* stop) {
  const tl_compile_options& compile = *stop->compile;
  Program program;
  program.name = stop->program;
  program.is_family = compile.family != nullptr;
  program.file = program.name + (program.is_family ? ".tl" : "");
  program.source = program.is_family ? tl_family_source(compile.family)
                                     : std::string(compile.source, compile.source_size);
  program.params = Copied(compile.params, compile.num_params);
  program.dims = Copied(stop->dims, stop->num_dims);
  program.shared_budget = compile.shared_budget;
  static_cast<std::vector<Stop>*>(user)->push_back({stop->line, std::move(program)});
  return 0;
}

std::vector<Stop> StopsOf(tl_context* context, int32_t device, const Program& plan) {
  const std::string directory = DirectoryOf(plan.name);
  std::vector<Stop> stops;
  tl_plan_options options = Sized<tl_plan_options>();
  options.device = device;
  options.plan = plan.source.c_str();
  options.plan_size = plan.source.size();
  options.directory = directory.c_str();
  options.visit = Collect;
  options.user = &stops;
  Check(tl_plan_each(context, &options));
  return stops;
}

// One that fails keeps nobody else from being tuned. Whether it did not.
bool TuneStop(tl_context* context, int32_t device, const Stop& stop, const Program& plan,
              const Options& options) {
  std::string message;
  try {
    TuneOne(context, device, stop.program, options);
    return true;
  } catch (const Failure& failure) {
    message = ErrorText(failure, stop.program.file, stop.program.source);
  } catch (const UsageError& error) {
    message = std::string("error: INVALID_ARGUMENT: ") + error.what() + "\n";
  }
  std::fprintf(stderr, "%s  in %s, asked for at %s:%d\n", message.c_str(),
               stop.program.name.c_str(), plan.file.c_str(), stop.line);
  return false;
}

int RunPlan(Program& plan, const Options& options) {
  if (!plan.param_texts.empty() || !plan.dim_texts.empty() || plan.shared_budget != 0)
    throw UsageError("a plan has parameters, dims and shared budgets of its own");
  ReadPlan(plan.name, plan);
  const Context context = MakeContext(plan);
  const int32_t device = ChooseDevice(context.get(), plan);
  const std::vector<Stop> stops = StopsOf(context.get(), device, plan);
  size_t tuned = 0;
  if (options.json) std::puts("[");
  for (const Stop& stop : stops) {
    if (options.json && tuned > 0) std::puts(",");
    if (TuneStop(context.get(), device, stop, plan, options)) ++tuned;
  }
  if (options.json) {
    std::puts("]");
  } else {
    std::printf("%zu of the plan: %zu tuned, %zu failed\n", stops.size(), tuned,
                stops.size() - tuned);
  }
  return tuned == stops.size() ? kOk : kFailed;
}

// What is wrong with them; "": nothing.
std::string CheckSeconds(const std::string& text, bool zero) {
  char* end = nullptr;
  const double seconds = std::strtod(text.c_str(), &end);
  const bool number = !text.empty() && *end == '\0' && std::isfinite(seconds);
  if (number && (seconds > 0 || (zero && seconds == 0))) return "";
  return std::string("seconds are expected, ") + (zero ? "0 or more" : "more than 0") +
         "; found '" + text + "'";
}

int Run(Program& program, const Options& options) {
  if (program.name.ends_with(".toml")) return RunPlan(program, options);
  Resolve(program);
  const Context context = MakeContext(program);
  TuneOne(context.get(), ChooseDevice(context.get(), program), program, options);
  return kOk;
}

}  // namespace

void AddTune(CLI::App& app, Session& session) {
  CLI::App* command = app.add_subcommand(
      "tune",
      "Find the values of a program's tune parameters that are fastest on a device, and keep them");
  const auto options = std::make_shared<Options>();
  AddProgramOptions(*command, session.program);
  AddRunOptions(*command, session.program);
  command->get_option("-p")->description(
      "compile-time value of a dim or parameter (repeatable); of a tune parameter: what to try, "
      "one value or several as 64,128");
  command->get_option("PROGRAM")->description(
      "file with a tile program ('-': standard input), name of a builtin family, or a plan "
      "(PLAN.toml, docs/cache.md), of which everything for the device is tuned");
  command
      ->add_option("--budget", options->budget,
                   "seconds that it may take (30); of a plan, for each kernel")
      ->check([](const std::string& text) { return CheckSeconds(text, false); });
  command->add_option("--candidates", options->candidates, "compile at most so many; 0: no limit");
  command
      ->add_option("--candidate-seconds", options->candidate_seconds,
                   "that launches of one candidate may take; 0: by the default's time")
      ->check([](const std::string& text) { return CheckSeconds(text, true); });
  command->add_option("-j,--jobs", options->jobs, "how many compile at a time; 0: all cores")
      ->check(CLI::Range(0, 1024));
  command->add_option("--seed", options->seed, "of the inputs")->check(CLI::NonNegativeNumber);
  command->add_flag("--in-process", options->in_process,
                    "run candidates in this process, which a faulty one takes down");
  command->add_flag("--json", options->json, "print the report as JSON");
  SetExamples(*command,
              "  tl tune gemm -p M=4096 -p N=4096 -p K=4096 --budget 20\n"
              "  tl tune softmax -p t=bf16 --dim M=8192 --dim N=4096 --target cpu\n"
              "  tl tune my_kernel.tl -p bm=64,128 --candidates 40 --json\n"
              "  tl tune plan.toml --budget 20 && tl warm plan.toml");
  command->callback([&session, options] {
    session.run = [&session, options] { return Run(session.program, *options); };
  });
}

}  // namespace cli
