// tl cache: the store of compiled kernels, and packs that carry it elsewhere.
#include <cinttypes>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "command.h"
#include "nlohmann/json.hpp"

namespace cli {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  std::string pack;
  std::vector<std::string> targets;
  bool json = false;
};

const char* PackOrCache(const Options& options) {
  return options.pack.empty() ? nullptr : options.pack.c_str();
}

void PrintJson(const Json& json) {
  std::printf("%s\n", json.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
}

tl_cache_stats StatsOf(tl_context* context) {
  tl_cache_stats stats = Sized<tl_cache_stats>();
  Check(tl_cache_get_stats(context, &stats));
  return stats;
}

double KiB(uint64_t bytes) { return static_cast<double>(bytes) / 1024; }

int Stats(const Options& options) {
  const Context context = MakeContext();
  if (options.json) {
    std::printf("%s\n", CacheStatsJson(context.get()).c_str());
    return kOk;
  }
  const tl_cache_stats s = StatsOf(context.get());
  std::printf("%s\n%" PRIu64 " kernels, %.1f KiB\n", s.location, s.entries, KiB(s.bytes));
  return kOk;
}

// {"t": "bf16", "N": "4096"} as "t=bf16 N=4096".
std::string ParametersText(const char* json) {
  std::string text;
  const Json parameters = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  for (const auto& [name, value] : parameters.items()) {
    if (value.is_string()) text += " " + name + "=" + value.get<std::string>();
  }
  return text;
}

int AddEntry(void* list, const tl_cache_entry* e) {
  static_cast<Json*>(list)->push_back(
      {{"key", e->key},
       {"kernel", e->kernel},
       {"target", e->target},
       {"parameters", Json::parse(e->parameters, nullptr, /*allow_exceptions=*/false)},
       {"compiler", e->compiler},
       {"bytes", e->bytes},
       {"created", e->created},
       {"current", e->current != 0}});
  return 0;
}

int PrintEntry(void* count, const tl_cache_entry* e) {
  ++*static_cast<uint64_t*>(count);
  // A CPU is named by all its features, a line would be nothing else.
  const std::string target(e->target);
  std::printf("%.12s  %-12s %9.1f KiB  %s%s%s\n", e->key,
              target.rfind("cpu:", 0) == 0 ? "cpu" : target.c_str(), KiB(e->bytes),
              *e->kernel ? e->kernel : "?", ParametersText(e->parameters).c_str(),
              e->current ? "" : "  (of another version of the library)");
  return 0;
}

int List(const Options& options) {
  const Context context = MakeContext();
  if (options.json) {
    Json list = Json::array();
    Check(tl_cache_list(context.get(), PackOrCache(options), AddEntry, &list));
    PrintJson(list);
    return kOk;
  }
  uint64_t count = 0;
  Check(tl_cache_list(context.get(), PackOrCache(options), PrintEntry, &count));
  std::printf("%" PRIu64 " kernels\n", count);
  return kOk;
}

int Verify(const Options& options) {
  const Context context = MakeContext();
  tl_cache_report report = Sized<tl_cache_report>();
  const tl_status status = tl_cache_verify(context.get(), PackOrCache(options), &report);
  if (status != TL_OK && status != TL_DATA_LOSS) Check(status);
  const std::string notes = report.notes ? report.notes : "";
  if (status == TL_DATA_LOSS && notes.empty()) Check(status);  // could not even be opened
  if (options.json) {
    PrintJson({{"checked", report.checked}, {"damaged", report.damaged}, {"notes", notes}});
  } else {
    std::printf("%" PRIu64 " entries checked, %" PRIu64 " damaged\n%s%s", report.checked,
                report.damaged, notes.c_str(), notes.empty() ? "" : "\n");
  }
  return status == TL_OK ? kOk : kMismatch;
}

int Export(const Options& options) {
  const Context context = MakeContext();
  std::vector<const char*> targets;
  for (const std::string& target : options.targets) targets.push_back(target.c_str());
  tl_cache_transfer done = Sized<tl_cache_transfer>();
  Check(
      tl_cache_export(context.get(), options.pack.c_str(), targets.data(), targets.size(), &done));
  if (options.json) {
    PrintJson({{"entries", done.entries}, {"records", done.records}, {"bytes", done.bytes}});
  } else {
    std::printf("%s: %" PRIu64 " kernels, %" PRIu64 " tuned configurations, %.1f KiB\n",
                options.pack.c_str(), done.entries, done.records, KiB(done.bytes));
  }
  return kOk;
}

int Import(const Options& options) {
  const Context context = MakeContext();
  tl_cache_transfer done = Sized<tl_cache_transfer>();
  Check(tl_cache_import(context.get(), options.pack.c_str(), &done));
  if (options.json) {
    PrintJson({{"entries", done.entries}, {"present", done.present}, {"records", done.records}});
  } else {
    std::printf("%" PRIu64 " kernels added, %" PRIu64 " were there, %" PRIu64
                " tuned configurations\n",
                done.entries, done.present, done.records);
  }
  return kOk;
}

// One subcommand of tl cache.
struct Verb {
  const char* name;
  const char* help;
  const char* examples;
  int (*run)(const Options&);
  enum { kNoPack, kMayNamePack, kNamesPack } pack;
};

constexpr Verb kVerbs[] = {
    {"stats", "Where the cache is and what it holds; the counters are those of this process",
     "  tl cache stats\n  TL_CACHE_DIR=/tmp/cache tl cache stats --json", &Stats, Verb::kNoPack},
    {"ls", "List the kernels of the cache, or of a pack",
     "  tl cache ls\n  tl cache ls my.pack --json", &List, Verb::kMayNamePack},
    {"verify",
     "Read and check all of the cache, or of a pack; exit code 1 when anything is damaged",
     "  tl cache verify\n  tl cache verify my.pack", &Verify, Verb::kMayNamePack},
    {"export", "Write a pack: one file that other processes read without a compiler",
     "  tl cache export my.pack\n  tl cache export my.pack --target sm_90a,cpu", &Export,
     Verb::kNamesPack},
    {"import", "Take the kernels of a pack into the cache, after all of it was verified",
     "  tl cache import my.pack", &Import, Verb::kNamesPack},
};

void AddVerb(CLI::App& cache, const Verb& verb, Session& session) {
  CLI::App* command = cache.add_subcommand(verb.name, verb.help);
  const auto options = std::make_shared<Options>();
  if (verb.pack != Verb::kNoPack) {
    command->add_option("PACK", options->pack, "file of the pack")
        ->required(verb.pack == Verb::kNamesPack);
  }
  if (verb.run == &Export) {
    AddTargetsOption(*command, options->targets, "only kernels for these targets or GPUs");
  }
  command->add_flag("--json", options->json, "print JSON");
  SetExamples(*command, verb.examples);
  command->callback([&session, &verb, options] {
    session.run = [&verb, options] { return verb.run(*options); };
  });
}

}  // namespace

std::string CacheStatsJson(tl_context* context) {
  const tl_cache_stats s = StatsOf(context);
  const Json json = {{"location", s.location},   {"entries", s.entries},
                     {"bytes", s.bytes},         {"memory_hits", s.memory_hits},
                     {"hits", s.hits},           {"misses", s.misses},
                     {"compiles", s.compiles},   {"compile_ns", s.compile_ns},
                     {"evictions", s.evictions}, {"quarantined", s.quarantined},
                     {"waits", s.waits}};
  return json.dump(2);
}

void AddCache(CLI::App& app, Session& session) {
  CLI::App* command =
      app.add_subcommand("cache", "Look at the kernel cache, check it, carry it elsewhere");
  command->require_subcommand(1);
  for (const Verb& verb : kVerbs) AddVerb(*command, verb, session);
  SetExamples(*command,
              "  tl cache stats\n  tl cache ls\n  tl cache export my.pack\n"
              "  TL_CACHE_DIR=/tmp/cache tl cache stats --json");
}

}  // namespace cli
