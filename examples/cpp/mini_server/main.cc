// A server in small: everything is compiled ahead of time from a plan (or comes in a pack), the
// context is sealed, then several threads answer requests of random lengths, each on a stream of
// its own. It ends with the latencies and the library's counters, and fails if anything was
// compiled after sealing or an answer is wrong.
//
//   example_mini_server [--plan FILE | --pack FILE] [--backend NAME] [--threads N] [--rounds N]
//                       [--tokens N]
//
// NAME is cuda or cpu; without it the best device there is.
#define TL_EXPERIMENTAL  // tl_warm
#include <algorithm>
#include <cstdio>
#include <deque>
#include <exception>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "device.h"
#include "requests.h"
#include "tl/tl.hpp"
#include "worker.h"

namespace {

using server::Service;
using server::Worker;

struct Settings {
  std::string plan, pack, backend;
  int threads = 4, rounds = 50;
  int64_t tokens = 96;
};

int Number(const std::string& flag, const std::string& text) {
  size_t used = 0;
  int value = 0;
  try {
    value = std::stoi(text, &used);
  } catch (const std::exception&) {
  }
  if (used != text.size() || value < 1)
    throw std::runtime_error(flag + " takes a number from 1 on, not '" + text + "'");
  return value;
}

Settings Parse(int argc, char** argv) {
  Settings s;
  for (int i = 1; i < argc; i += 2) {
    const std::string flag = argv[i];
    if (i + 1 == argc) throw std::runtime_error(flag + " takes a value");
    const std::string value = argv[i + 1];
    if (flag == "--plan") {
      s.plan = value;
    } else if (flag == "--pack") {
      s.pack = value;
    } else if (flag == "--backend") {
      s.backend = value;
    } else if (flag == "--threads") {
      s.threads = Number(flag, value);
    } else if (flag == "--rounds") {
      s.rounds = Number(flag, value);
    } else if (flag == "--tokens") {
      s.tokens = Number(flag, value);
    } else {
      throw std::runtime_error("unknown option " + flag);
    }
  }
  if (s.plan.empty() == s.pack.empty()) throw std::runtime_error("give --plan FILE or --pack FILE");
  return s;
}

void Log(void*, tl_log_level level, const char* message) {
  if (level != TL_LOG_INFO) std::fprintf(stderr, "warning: %s\n", message);
}

tilejit::Context Open(const Settings& s) {
  tilejit::ContextOptions options;
  options.log = Log;
  if (!s.pack.empty()) {
    options.packs = {s.pack};
    // So that nothing but the pack can serve.
    options.cache_mode = TL_CACHE_MEMORY;
  }
  return tilejit::Context(options);
}

void Warm(const tilejit::Context& context, const Settings& s, const tilejit::Device& device) {
  std::ifstream file(s.plan, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  if (!file) throw std::runtime_error("cannot read " + s.plan);
  tilejit::WarmOptions options;
  options.targets = {device.target};
  tl_warm_result result = TL_INIT(tl_warm_result);
  context.Warm(text.str(), options, &result);
  std::printf("warmed: %llu kernels, %llu of them compiled now\n",
              static_cast<unsigned long long>(result.total),
              static_cast<unsigned long long>(result.compiled));
}

std::vector<Service> Load(const tilejit::Context& context, const tilejit::Device& device) {
  std::vector<Service> services;
  for (auto& request : server::AllRequests()) {
    tilejit::Kernel kernel = context.Compile(request->program(), device);
    services.push_back({std::move(request), std::move(kernel)});
  }
  return services;
}

// Runs all workers to their end; throws what one of them threw.
void Serve(std::deque<Worker>& workers, int rounds) {
  std::vector<std::exception_ptr> failures(workers.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < workers.size(); ++i) {
    threads.emplace_back([&, i] {
      try {
        workers[i].Run(rounds);
      } catch (...) {
        failures[i] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

void PrintLatencies(const std::vector<Service>& services, const std::deque<Worker>& workers) {
  std::printf("%-12s %9s %9s %9s %9s %9s\n", "latency, us", "requests", "p50", "p90", "p99", "max");
  for (size_t s = 0; s < services.size(); ++s) {
    std::vector<double> all;
    for (const Worker& worker : workers)
      all.insert(all.end(), worker.latencies()[s].begin(), worker.latencies()[s].end());
    std::sort(all.begin(), all.end());
    const auto at = [&](double share) {
      return all[static_cast<size_t>(share * (all.size() - 1))];
    };
    std::printf("%-12s %9zu %9.1f %9.1f %9.1f %9.1f\n", services[s].request->name().c_str(),
                all.size(), at(0.5), at(0.9), at(0.99), all.back());
  }
}

int Run(const Settings& s) {
  const tilejit::Context context = Open(s);
  const tilejit::Device device = context.FindDevice(s.backend);
  std::printf("device: %s (%s)\n", device.name.c_str(), device.backend.c_str());
  if (s.pack.empty()) Warm(context, s, device);

  context.Seal();
  const uint64_t before = context.Stats().compiles;
  const std::vector<Service> services = Load(context, device);
  memory m = server::OpenMemory(context, device);
  std::deque<Worker> workers;
  for (int i = 0; i < s.threads; ++i) workers.emplace_back(&m, device, services, s.tokens, i + 1);
  Serve(workers, s.rounds);
  PrintLatencies(services, workers);

  const tl_cache_stats stats = context.Stats();
  std::printf("counters: memory_hits %llu, hits %llu, misses %llu, compiles %llu\n",
              static_cast<unsigned long long>(stats.memory_hits),
              static_cast<unsigned long long>(stats.hits),
              static_cast<unsigned long long>(stats.misses),
              static_cast<unsigned long long>(stats.compiles));
  std::printf("compiled after sealing: %llu\n",
              static_cast<unsigned long long>(stats.compiles - before));
  return stats.compiles == before ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return Run(Parse(argc, argv));
  } catch (const tilejit::Error& error) {
    // The log of a sealed context's miss is a plan that warms it.
    std::fprintf(stderr, "error: %s\n%s", error.what(), error.log().c_str());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
  }
  return 1;
}
