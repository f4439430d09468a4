#include "service/report.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_split.h"
#include "ir/unparse.h"
#include "service/generate.h"

namespace tl {
namespace {

nlohmann::json ParamsJson(const Module& module, bool tuned) {
  nlohmann::json out = nlohmann::json::object();
  for (const BoundParam& p : module.params) {
    if (p.tuned == tuned) out[p.name] = p.value;
  }
  return out;
}

BuildFacts FactsOf(const Program& program) {
  const Artifact& artifact = program.artifact();
  return program.backend()->ReadBuild(artifact.binary, artifact.log, program.entries(),
                                      program.target());
}

nlohmann::json EntriesJson(const std::vector<Entry>& entries, const BuildFacts& facts) {
  nlohmann::json out = nlohmann::json::array();
  for (size_t i = 0; i < entries.size(); ++i) {
    const Entry& e = entries[i];
    nlohmann::json entry = {{"symbol", e.symbol},       {"threads", e.threads},
                            {"groups", e.groups},       {"shared_bytes", e.shared_bytes},
                            {"producers", e.producers}, {"persistent", e.persistent},
                            {"cluster", e.cluster}};
    if (i < facts.entries.size()) {
      const EntryResources& r = facts.entries[i];
      entry.update({{"registers", r.registers},
                    {"stack_bytes", r.stack_bytes},
                    {"spill_store_bytes", r.spill_store_bytes},
                    {"spill_load_bytes", r.spill_load_bytes}});
      if (!r.limited_by.empty()) {
        entry.update({{"blocks_per_multiprocessor", r.blocks_per_unit},
                      {"occupancy", r.occupancy},
                      {"occupancy_limited_by", r.limited_by}});
      }
    }
    out.push_back(std::move(entry));
  }
  return out;
}

// Facts of the driver about the loaded binary, if it is loaded anywhere.
nlohmann::json DriverFacts(const Program& program) {
  for (int ordinal = 0; ordinal < Program::kMaxOrdinals; ++ordinal) {
    const LoadedKernel* loaded = program.loaded(ordinal);
    if (!loaded) continue;
    nlohmann::json facts =
        nlohmann::json::parse(loaded->Facts(), nullptr, /*allow_exceptions=*/false);
    if (!facts.is_discarded()) return facts;
  }
  return nullptr;
}

// What the passes say is made again: its places and names are those of this caller's own text,
// while the binary may come from a program that differed in both.
nlohmann::json NotesOfPasses(const Module& module, const Target& target, int64_t shared_budget) {
  nlohmann::json out = nlohmann::json::array();
  const StatusOr<Module> lowered = LowerFor(module, target, shared_budget);
  if (!lowered.ok()) return out;
  for (const std::string& note : lowered->notes) out.push_back(note);
  return out;
}

nlohmann::json NotesJson(const Kernel& kernel, const BuildFacts& facts) {
  const Program& program = kernel.program();
  nlohmann::json out = NotesOfPasses(kernel.module(), program.target(), program.shared_budget());
  for (std::string_view note : absl::StrSplit(program.artifact().report, '\n', absl::SkipEmpty())) {
    out.push_back(std::string(note));
  }
  for (const std::string& note : facts.notes) out.push_back(note);
  return out;
}

// What is known of a bound program and its target.
nlohmann::json HeadJson(const Module& module, const Target& target, const Choice& choice) {
  nlohmann::json head = {{"kernel", module.name},
                         {"target", target.name},
                         {"target_identity", target.identity},
                         {"backend", target.backend},
                         {"parameters", ParamsJson(module, false)},
                         {"configuration", ParamsJson(module, true)},
                         {"configuration_from", choice.name()}};
  if (choice.record) head["record"] = RecordJson(*choice.record);
  return head;
}

nlohmann::json ReportJson(const Kernel& kernel) {
  const Program& program = kernel.program();
  nlohmann::json report = HeadJson(kernel.module(), program.target(), kernel.choice());
  const BuildFacts build = FactsOf(program);
  report["entries"] = EntriesJson(program.entries(), build);
  report["built_by"] = program.artifact().compiler;
  report["origin"] = program.origin() == Origin::kCompiled ? "compiled" : "cache";
  report["binary_bytes"] = program.artifact().binary.size();
  report["notes"] = NotesJson(kernel, build);
  if (nlohmann::json facts = DriverFacts(program); !facts.is_null()) report["driver"] = facts;
  return report;
}

std::string Print(const nlohmann::json& report) {
  return report.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string CachedReport(const Kernel& kernel, const std::string& key) {
  nlohmann::json report = ReportJson(kernel);
  report["key"] = key;
  report["cached"] = true;
  return Print(report);
}

std::string UncachedReport(const Module& module, const Target& target, int64_t shared_budget,
                           const Generated& generated, const std::string& key,
                           const Choice& choice) {
  nlohmann::json report = HeadJson(module, target, choice);
  report["key"] = key;
  report["cached"] = false;
  report["entries"] = EntriesJson(generated.entries, {});
  report["notes"] = NotesOfPasses(module, target, shared_budget);
  for (const std::string& note : generated.notes) report["notes"].push_back(note);
  return Print(report);
}

StatusOr<std::string> KernelText(const Kernel& kernel, Text what) {
  const Program& program = kernel.program();
  switch (what) {
    case Text::kIr:
      return ToText(kernel.module());
    case Text::kReport:
      return Print(ReportJson(kernel));
    case Text::kLog:
      return program.artifact().log;
    case Text::kBinary:
      return program.artifact().binary;
    case Text::kMapped:
      return absl::UnimplementedError("programs with layouts are not produced yet");
    case Text::kThread: {
      TL_ASSIGN_OR_RETURN(Module lowered,
                          LowerFor(kernel.module(), program.target(), program.shared_budget()));
      return ToText(lowered);
    }
    case Text::kSource:
    case Text::kAssembly:
    case Text::kSass:
      break;
  }
  TL_ASSIGN_OR_RETURN(Generated generated, GenerateFor(*program.backend(), kernel.module(),
                                                       program.target(), program.shared_budget()));
  if (what == Text::kSource) return generated.source;
  return program.backend()->Disassemble(generated, program.artifact().binary, program.target(),
                                        what == Text::kSass ? "sass" : "asm");
}

}  // namespace tl
