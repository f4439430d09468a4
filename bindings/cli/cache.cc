// tl cache: the store of compiled kernels.
#include <cstdio>
#include <memory>
#include <string>

#include "command.h"
#include "nlohmann/json.hpp"

namespace cli {
namespace {

tl_cache_stats StatsOf(tl_context* context) {
  tl_cache_stats stats = Sized<tl_cache_stats>();
  Check(tl_cache_get_stats(context, &stats));
  return stats;
}

int Stats(bool json) {
  const Context context = MakeContext();
  if (json) {
    std::printf("%s\n", CacheStatsJson(context.get()).c_str());
    return kOk;
  }
  const tl_cache_stats s = StatsOf(context.get());
  std::printf("%s\n%llu kernels, %.1f KiB\n", s.location,
              static_cast<unsigned long long>(s.entries), static_cast<double>(s.bytes) / 1024);
  return kOk;
}

}  // namespace

std::string CacheStatsJson(tl_context* context) {
  const tl_cache_stats s = StatsOf(context);
  const nlohmann::ordered_json json = {{"location", s.location},   {"entries", s.entries},
                                       {"bytes", s.bytes},         {"memory_hits", s.memory_hits},
                                       {"hits", s.hits},           {"misses", s.misses},
                                       {"compiles", s.compiles},   {"compile_ns", s.compile_ns},
                                       {"evictions", s.evictions}, {"quarantined", s.quarantined},
                                       {"waits", s.waits}};
  return json.dump(2);
}

void AddCache(CLI::App& app, Session& session) {
  CLI::App* command = app.add_subcommand("cache", "Look at the kernel cache");
  command->require_subcommand(1);
  CLI::App* stats = command->add_subcommand(
      "stats", "Where the cache is and what it holds; the counters are those of this process");
  const auto json = std::make_shared<bool>(false);
  stats->add_flag("--json", *json, "print JSON, with this process' counters");
  SetExamples(*command, "  tl cache stats\n  TL_CACHE_DIR=/tmp/cache tl cache stats --json");
  SetExamples(*stats, "  tl cache stats\n  TL_CACHE_DIR=/tmp/cache tl cache stats --json");
  stats->callback([&session, json] { session.run = [json] { return Stats(*json); }; });
}

}  // namespace cli
