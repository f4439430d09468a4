// generator --seed S --count N --backends nested,cpu,thread,emulate,cuda [--faults N] [--show]
// [--refusals] [--whole] [--warpgroups] [--compiler PATH] [--library DIR]
//
// Runs programs of the seeds S … S+N-1 and prints what was refused, which operation met which type,
// and every fault with its program, whole and made small. `--show` prints the programs and runs
// nothing,
// `--refusals` prints refused programs too, `--whole` does not make faults small, `--warpgroups`
// makes programs that reach sm_90a's products (backend emulate:sm_90a).
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "tests/generator/coverage.h"
#include "tests/generator/differential.h"
#include "tests/generator/generator.h"

namespace tl::generator {
namespace {

struct Flags {
  uint64_t seed = 1;
  uint64_t count = 100;
  int max_faults = 5;
  bool show = false;
  bool refusals = false;  // print them too
  bool minimize = true;
  Kind kind = Kind::kAny;
  std::vector<std::string> backends = {"nested", "cpu", "thread"};
  Differential::Places places;
};

Flags Parse(int argc, char** argv) {
  Flags f;
  for (int i = 1; i < argc; ++i) {
    const std::string_view flag = argv[i];
    const char* value = i + 1 < argc ? argv[i + 1] : "";
    if (flag == "--show") {
      f.show = true;
    } else if (flag == "--refusals") {
      f.refusals = true;
    } else if (flag == "--warpgroups") {
      f.kind = Kind::kWarpgroups;
    } else if (flag == "--whole") {
      f.minimize = false;
    } else if (flag == "--seed") {
      f.seed = std::strtoull(value, nullptr, 10), ++i;
    } else if (flag == "--count") {
      f.count = std::strtoull(value, nullptr, 10), ++i;
    } else if (flag == "--faults") {
      f.max_faults = std::atoi(value), ++i;
    } else if (flag == "--compiler") {
      f.places.compiler = value, ++i;
    } else if (flag == "--library") {
      f.places.library = value, ++i;
    } else if (flag == "--backends") {
      f.backends = absl::StrSplit(value, ',', absl::SkipEmpty()), ++i;
    } else {
      std::fprintf(stderr, "unknown flag %s\n", argv[i]);
      std::exit(2);
    }
  }
  return f;
}

void ReportFault(const Program& program, const Outcome& outcome, Differential& differential,
                 const Flags& flags) {
  std::printf("==== FAULT on %s: %s\n%s", outcome.where.c_str(), outcome.message.c_str(),
              Describe(program).c_str());
  if (flags.minimize) {
    const Program small =
        Minimize(program, outcome, [&](const Program& p) { return differential.Run(p); });
    const Outcome again = differential.Run(small);
    std::printf("---- made small: %s\n%s", again.message.c_str(), Describe(small).c_str());
  }
  std::fflush(stdout);
}

int Main(const Flags& flags) {
  Differential differential(flags.backends, flags.places);
  Coverage coverage;
  std::map<std::string, int> refusals;
  std::map<std::string, uint64_t> examples;
  uint64_t run = 0, refused = 0;
  int faults = 0;
  int64_t compared = 0, unbounded = 0;
  for (uint64_t i = 0; i < flags.count && faults < flags.max_faults; ++i) {
    const Program program = Generate(flags.seed + i, flags.kind);
    if (flags.show) {
      std::printf("%s\n", Describe(program).c_str());
      continue;
    }
    const Outcome outcome = differential.Run(program);
    ++run;
    compared += outcome.compared;
    unbounded += outcome.unbounded;
    if (outcome.verdict == Verdict::kRefused) {
      ++refused;
      const std::string kind = outcome.where + ": " + outcome.kind;
      if (refusals[kind]++ == 0) examples[kind] = program.seed;
      if (flags.refusals) {
        std::printf("==== refused, %s: %s\n%s", outcome.where.c_str(), outcome.message.c_str(),
                    Describe(program).c_str());
      }
    }
    const bool bound =
        outcome.where != "parse" && outcome.where != "bind" && outcome.where != "text";
    if (bound && differential.module() != nullptr) coverage.Add(*differential.module());
    if (outcome.verdict == Verdict::kDiffers) {
      ++faults;
      ReportFault(program, outcome, differential, flags);
    }
  }
  if (flags.show) return 0;
  std::printf("%s\nmissing: %s\n", coverage.Table().c_str(),
              absl::StrJoin(coverage.Missing(), ", ").c_str());
  std::printf(
      "%llu programs, %llu refused (%.1f %%), %d faults; %lld elements compared, %lld without a "
      "bound\n",
      static_cast<unsigned long long>(run), static_cast<unsigned long long>(refused),
      run ? 100.0 * static_cast<double>(refused) / static_cast<double>(run) : 0.0, faults,
      static_cast<long long>(compared), static_cast<long long>(unbounded));
  for (const auto& [kind, count] : refusals) {
    std::printf("%6d  %s (seed %llu)\n", count, kind.c_str(),
                static_cast<unsigned long long>(examples[kind]));
  }
  return faults > 0 ? 1 : 0;
}

}  // namespace
}  // namespace tl::generator

int main(int argc, char** argv) { return tl::generator::Main(tl::generator::Parse(argc, argv)); }
