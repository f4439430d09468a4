// tl query: what a program would compile to, without compiling it.
#define TL_EXPERIMENTAL
#include <cstdio>
#include <memory>
#include <string>

#include "command.h"
#include "nlohmann/json.hpp"

namespace cli {
namespace {

using Json = nlohmann::json;

std::string ValuesText(const Json& values) {
  std::string text;
  for (const auto& [name, value] : values.items())
    text += " " + name + "=" + value.get<std::string>();
  return text.empty() ? " none" : text;
}

std::string EntryText(const Json& entry) {
  std::string text = "launch         " + entry["symbol"].get<std::string>() + ": " +
                     std::to_string(entry["threads"].get<int64_t>()) + " threads, " +
                     std::to_string(entry["shared_bytes"].get<int64_t>()) +
                     " bytes of shared memory";
  if (entry.contains("registers"))
    text += ", " + std::to_string(entry["registers"].get<int64_t>()) + " registers";
  return text + "\n";
}

std::string MicrosecondsText(const Json& time) {
  char text[64];
  std::snprintf(text, sizeof(text), "%.3f us", time["median_ns"].get<double>() / 1e3);
  return text;
}

// Where the configuration comes from, with what was measured.
std::string ChoiceText(const Json& report) {
  std::string text = report["configuration_from"].get<std::string>();
  if (!report.contains("record")) return text;
  const Json& record = report["record"];
  text += ": " + MicrosecondsText(record) + " for";
  for (const Json& dim : record["dims"]) {
    text +=
        " " + dim["name"].get<std::string>() + "=" + std::to_string(dim["value"].get<int64_t>());
  }
  text += " on " + record["device"].get<std::string>();
  if (!record["default"].is_null()) text += ", untuned " + MicrosecondsText(record["default"]);
  return text;
}

// The facts, one per line; then the notes, as the compiler wrote them.
std::string Text(const Json& report) {
  const bool cached = report["cached"].get<bool>();
  std::string text =
      report["kernel"].get<std::string>() + " for " + report["target"].get<std::string>() + "\n" +
      "parameters    " + ValuesText(report["parameters"]) + "\n" + "configuration " +
      ValuesText(report["configuration"]) + "\n" + "chosen by      " + ChoiceText(report) + "\n";
  for (const Json& entry : report["entries"]) text += EntryText(entry);
  text += "cached         ";
  text += cached ? "yes, built by " + report["built_by"].get<std::string>() : std::string("no");
  text += "\nkey            " + report["key"].get<std::string>() + "\n";
  for (const Json& note : report["notes"]) text += "  " + note.get<std::string>() + "\n";
  return text;
}

int Run(Program& program, bool json) {
  Resolve(program);
  const Context context = MakeContext(program);
  const CompileOptions options(context.get(), program, 0);
  const char* data = nullptr;
  size_t size = 0;
  Check(tl_query(context.get(), &options.options, &data, &size));
  const std::string report(data, size);
  std::fputs(json ? report.c_str() : Text(Json::parse(report)).c_str(), stdout);
  return kOk;
}

}  // namespace

void AddQuery(CLI::App& app, Session& session) {
  CLI::App* command = app.add_subcommand(
      "query",
      "Say what a program would compile to: configuration, shared memory, whether it is in the "
      "cache, and its report if it is");
  AddProgramOptions(*command, session.program);
  command->get_option("--target")
      ->excludes(command->add_option("--gpu", session.program.target, "the same as --target")
                     ->type_name("NAME")
                     ->check(CheckTargetName));
  const auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "print the report as JSON");
  SetExamples(*command,
              "  tl query gemm -p t=bf16 -p N=4096 -p K=4096 --gpu H100\n"
              "  tl query softmax -p N=4096 --target sm_80 --json");
  command->callback(
      [&session, json] { session.run = [&session, json] { return Run(session.program, *json); }; });
}

}  // namespace cli
