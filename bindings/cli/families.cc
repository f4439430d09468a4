// tl families: the builtin tile programs.
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

#include "command.h"
#include "nlohmann/json.hpp"

namespace cli {
namespace {

// Takes the first line off.
std::string_view NextLine(std::string_view& text) {
  const size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

std::string_view Trimmed(std::string_view line) {
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  return line;
}

// The comment that a program begins with, without the marks.
std::string HeaderComment(std::string_view source) {
  std::string text;
  while (!source.empty() && source.front() == '#') {
    std::string_view line = NextLine(source);
    line.remove_prefix(line.substr(0, 2) == "# " ? 2 : 1);
    text += std::string(line) + "\n";
  }
  return text;
}

// Tensors, parameters and rules: the program up to its first launch.
std::string Declarations(std::string_view source) {
  std::string text;
  bool begun = false;
  while (!source.empty()) {
    const std::string_view line = NextLine(source);
    if (Trimmed(line).substr(0, 7) == "launch ") break;
    begun = begun || line.substr(0, 6) == "kernel";
    if (begun) text += std::string(line) + "\n";
  }
  return text;
}

std::string FirstLine(std::string_view text) { return std::string(NextLine(text)); }

int List(bool json) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (uint32_t i = 0; const char* name = tl_family_name(i); ++i) {
    const std::string summary = FirstLine(HeaderComment(tl_family_source(name)));
    if (json) {
      list.push_back({{"name", name}, {"summary", summary}});
    } else {
      std::printf("%-16s %s\n", name, summary.c_str());
    }
  }
  if (json) std::printf("%s\n", list.dump(2).c_str());
  return kOk;
}

int Show(const std::string& name, bool json, bool whole) {
  const char* source = tl_family_source(name.c_str());
  if (!source) throw UsageError("there is no family '" + name + "'; see tl families");
  if (json) {
    const nlohmann::ordered_json family = {{"name", name},
                                           {"description", HeaderComment(source)},
                                           {"declarations", Declarations(source)},
                                           {"source", source}};
    std::printf("%s\n", family.dump(2).c_str());
  } else if (whole) {
    std::printf("%s", source);
  } else {
    std::printf("%s\n%s", HeaderComment(source).c_str(), Declarations(source).c_str());
  }
  return kOk;
}

struct Options {
  std::string name;
  bool json = false, source = false;
};

}  // namespace

void AddFamilies(CLI::App& app, Session& session) {
  CLI::App* command =
      app.add_subcommand("families", "List the builtin families, or describe one of them");
  const auto options = std::make_shared<Options>();
  command->add_option("NAME", options->name, "describe this family: tensors, parameters, rules");
  command->add_flag("--source", options->source, "print its whole program");
  command->add_flag("--json", options->json, "print JSON");
  SetExamples(*command,
              "  tl families\n  tl families gemm\n  tl families gemm --source > my_gemm.tl");
  command->callback([&session, options] {
    session.run = [options] {
      if (options->name.empty()) return List(options->json);
      return Show(options->name, options->json, options->source);
    };
  });
}

}  // namespace cli
