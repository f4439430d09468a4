// tl warm: everything in a plan, compiled into the cache.
#define TL_EXPERIMENTAL
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "command.h"
#include "nlohmann/json.hpp"

namespace cli {
namespace {

struct Options {
  std::string plan;
  std::vector<std::string> targets;
  int jobs = 0;
  bool json = false;
};

// What the callback sees: where to print.
struct Progress {
  std::string file;  // the plan, as errors name it
  bool bar = false;  // stderr is a terminal
};

constexpr int kBarWidth = 30;

void DrawBar(const tl_warm_event& e) {
  const int full = static_cast<int>(e.done * kBarWidth / e.total);
  std::fprintf(stderr, "\r\033[K[%-*s] %" PRIu64 "/%" PRIu64 " %s %.60s", kBarWidth,
               std::string(static_cast<size_t>(full), '#').c_str(), e.done, e.total, e.program,
               e.params);
  if (e.done == e.total) std::fputs("\r\033[K", stderr);
}

int OnEvent(void* user, const tl_warm_event* e) {
  const Progress& progress = *static_cast<const Progress*>(user);
  if (e->status != TL_OK) {
    std::string place = e->program;
    if (e->program_line > 0)
      place += ":" + std::to_string(e->program_line) + ":" + std::to_string(e->program_column);
    if (*e->params) place += std::string(" (") + e->params + ")";
    std::fprintf(stderr, "%serror: %s: %s\n  in %s for %s, asked for at %s:%d\n",
                 progress.bar ? "\r\033[K" : "", tl_status_name(e->status), e->message,
                 place.c_str(), e->target, progress.file.c_str(), e->line);
  }
  if (progress.bar) DrawBar(*e);
  return 0;
}

void PrintSummary(const tl_warm_result& r, bool json) {
  if (json) {
    const nlohmann::ordered_json out = {
        {"total", r.total}, {"compiled", r.compiled}, {"present", r.present}, {"failed", r.failed}};
    std::printf("%s\n", out.dump(2).c_str());
    return;
  }
  std::printf("%" PRIu64 " kernels: %" PRIu64 " compiled, %" PRIu64 " were there, %" PRIu64
              " failed\n",
              r.total, r.compiled, r.present, r.failed);
}

int Run(const Options& options, Program& program) {
  ReadPlan(options.plan, program);
  const Context context = MakeContext();
  Progress progress{program.file, isatty(STDERR_FILENO) != 0};
  const std::string directory = DirectoryOf(options.plan);
  std::vector<const char*> targets;
  for (const std::string& target : options.targets) targets.push_back(target.c_str());
  tl_warm_options warm = Sized<tl_warm_options>();
  warm.jobs = options.jobs;
  warm.plan = program.source.c_str();
  warm.plan_size = program.source.size();
  warm.directory = directory.c_str();
  warm.targets = targets.data();
  warm.num_targets = targets.size();
  warm.progress = OnEvent;
  warm.user = &progress;
  tl_warm_result result = Sized<tl_warm_result>();
  const tl_status status = tl_warm(context.get(), &warm, &result);
  if (result.total > 0) PrintSummary(result, options.json);
  // Kernels that failed were told one by one.
  if (result.failed == 0) Check(status);
  return status == TL_OK ? kOk : kFailed;
}

}  // namespace

void AddWarm(CLI::App& app, Session& session) {
  CLI::App* command =
      app.add_subcommand("warm", "Compile everything in a plan into the cache; no GPU is needed");
  const auto options = std::make_shared<Options>();
  command->add_option("PLAN", options->plan, "TOML file (docs/cache.md), '-': standard input")
      ->required();
  AddTargetsOption(*command, options->targets,
                   "compile for these targets or GPUs instead of the plan's");
  command->add_option("-j,--jobs", options->jobs, "how many compile at a time; 0: all cores")
      ->check(CLI::Range(0, 1024));
  command->add_flag("--json", options->json, "print the summary as JSON");
  SetExamples(*command,
              "  tl warm plan.toml\n"
              "  tl warm plan.toml --target sm_90a,cpu -j 8 && tl cache export my.pack");
  command->callback([&session, options] {
    session.run = [&session, options] { return Run(*options, session.program); };
  });
}

}  // namespace cli
