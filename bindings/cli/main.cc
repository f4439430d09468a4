// tl: compile, inspect, check and time tile programs from the command line.
#include <cstdio>
#include <exception>
#include <string>

#include "command.h"
#include "error_text.h"

namespace cli {

void SetExamples(CLI::App& command, const std::string& lines) {
  command.footer("Examples:\n" + lines);
}

namespace {

std::string Version() {
  const uint32_t v = tl_version();
  return "tl " + std::to_string(v / 10000) + "." + std::to_string(v / 100 % 100) + "." +
         std::to_string(v % 100);
}

void Describe(CLI::App& app) {
  app.require_subcommand(1);
  app.set_version_flag("--version", Version());
  app.footer(
      "Examples:\n"
      "  tl devices\n"
      "  tl compile gemm -p N=4096 -p K=4096 --target sm_90a --emit source\n"
      "  tl check my_kernel.tl -p t=f16 --dim M=1000 --backend cpu\n"
      "  tl bench gemm -p M=1024 -p N=1024 -p K=1024\n"
      "\n"
      "Exit code: 0 done, 1 results differ by more than the bound or a cache is damaged, 2 wrong "
      "usage, 3 other failure.\n"
      "Errors are on stderr as 'error: CODE: message'. TL_CACHE_DIR chooses the kernel cache.");
}

int Usage(const std::string& message) {
  std::fprintf(stderr, "error: INVALID_ARGUMENT: %s\n", message.c_str());
  return kUsage;
}

int Run(const Session& session) {
  try {
    return session.run();
  } catch (const Failure& failure) {
    const Program& p = session.program;
    std::fputs(ErrorText(failure, p.file, p.source).c_str(), stderr);
    const bool wrong = failure.reason == TL_REASON_MISMATCH || failure.status == TL_DATA_LOSS;
    return wrong ? kMismatch : kFailed;
  } catch (const UsageError& error) {
    return Usage(error.what());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: INTERNAL: %s\n", error.what());
    return kFailed;
  }
}

int Main(int argc, char** argv) {
  CLI::App app("Compiles, inspects, checks and times tile programs.", "tl");
  Session session;
  Describe(app);
  AddDevices(app, session);
  AddFamilies(app, session);
  AddCompile(app, session);
  AddCheck(app, session);
  AddBench(app, session);
  AddCache(app, session);
  AddWarm(app, session);
  AddTune(app, session);
  AddQuery(app, session);
  AddLayout(app, session);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // Help and version are "errors" with code 0.
    if (error.get_exit_code() == 0) return app.exit(error);
    return Usage(std::string(error.what()) + "; see tl --help");
  }
  return Run(session);
}

}  // namespace
}  // namespace cli

int main(int argc, char** argv) { return cli::Main(argc, argv); }
