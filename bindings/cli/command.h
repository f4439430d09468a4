// One command of tl: a subcommand of the application and what it does.
#ifndef TILEJIT_BINDINGS_CLI_COMMAND_H_
#define TILEJIT_BINDINGS_CLI_COMMAND_H_

#include <functional>
#include <string>

#include "CLI/CLI.hpp"
#include "program.h"

namespace cli {

// What main needs of the command that was chosen.
struct Session {
  std::function<int()> run;  // gives the exit code
  // The program at work, for messages that point into it.
  Program program;
};

void AddDevices(CLI::App& app, Session& session);
void AddFamilies(CLI::App& app, Session& session);
void AddCompile(CLI::App& app, Session& session);
void AddCheck(CLI::App& app, Session& session);
void AddBench(CLI::App& app, Session& session);
void AddCache(CLI::App& app, Session& session);
void AddWarm(CLI::App& app, Session& session);
void AddTune(CLI::App& app, Session& session);
void AddQuery(CLI::App& app, Session& session);
void AddLayout(CLI::App& app, Session& session);

// Adds the examples below the command's help.
void SetExamples(CLI::App& command, const std::string& lines);

// The counters of a context as JSON text.
std::string CacheStatsJson(tl_context* context);

}  // namespace cli

#endif  // TILEJIT_BINDINGS_CLI_COMMAND_H_
